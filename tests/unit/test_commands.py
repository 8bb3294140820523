"""Tests that chaos runs, benchmarks and scripts start outside pytest, which alone finds the tests of the packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("tests/chaos", "tests/real_time", "tests/bench", "scripts")
ONLY_IN_PYTEST = ("protocol_tests", "simulator_tests", "gameserver_tests")


def imports_of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_commands_import_nothing_that_only_pytest_finds() -> None:
    files = [file for folder in COMMANDS for file in (ROOT / folder).glob("*.py") if not file.name.startswith("test_")]
    seen = set(files)
    while files:
        file = files.pop()
        names = set(imports_of(file))
        assert not [name for name in names if name.startswith(ONLY_IN_PYTEST)], file
        found = {ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith(("tests.", "scripts."))}
        new = {path for path in found if path.is_file()} - seen
        seen |= new
        files += new
    assert {ROOT / "tests/e2e/service/game_server.py", ROOT / "tests/real_time/session.py"} <= seen
