"""The layout checks report violations and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import check_layout

GOOD = '"""A valid module."""\n'
MACHINE_PATH = "/".join(["", "root", ""])  # built from parts, as the rule applies to this file too


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Create a repository with an empty package and no faults."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    write(tmp_path, "src/matchpod/__init__.py", GOOD)
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def function_of(lines: int, docstring: str = "") -> str:
    """Return a module whose function has `lines` lines, not counting its docstring."""
    return GOOD + "def long():\n" + docstring + "    x = 1\n" * (lines - 1)


CORE, PROTOCOL, SIMULATOR = "src/matchpod/core", "packages/cs2-protocol", "packages/cs2-simulator"
LONG_DOCSTRING = '"""One.\n' + "More.\n" * 8 + '"""\n'


@pytest.mark.parametrize(
    ("files", "faults"),
    [
        pytest.param({f"{CORE}/match/series.py": GOOD, "tests/unit/core/match/test_series.py": ""}, [], id="clean"),
        pytest.param(
            {"src/matchpod/short.py": function_of(40), "src/matchpod/long.py": function_of(41)},
            ["src/matchpod/long.py:2 long is 41 lines, at most 40"],
            id="long function",
        ),
        pytest.param(
            {
                "src/matchpod/four.py": GOOD
                + "def f(a, b, c, d): ...\ndef g(a, b, c, d, *rest, e, h, **options): ...\n",
                "src/matchpod/methods.py": GOOD
                + "class A:\n    def f(self, a, b, c, d): ...\n    @classmethod\n    def g(cls, a, b, c, d): ...\n",
                "src/matchpod/five.py": GOOD + "def f(a, b, c, d, e): ...\ndef g(a, b, /, c, d, e=1): ...\n",
            },
            [
                "src/matchpod/five.py:2 f has 5 positional parameters, at most 4",
                "src/matchpod/five.py:3 g has 5 positional parameters, at most 4",
            ],
            id="fifth positional parameter",
        ),
        pytest.param(
            {f"src/matchpod/{name}.py": text for name, text in (("a", ""), ("b", "x = 1\n"), ("c", '""""""\n'))},
            [f"src/matchpod/{name}.py:1 module has no docstring that says what it does" for name in "abc"],
            id="no docstring",
        ),
        pytest.param(
            {"src/matchpod/short.py": LONG_DOCSTRING.replace("More.\n", "", 1), "src/matchpod/long.py": LONG_DOCSTRING},
            ["src/matchpod/long.py:1 module docstring is 9 lines, at most 8"],
            id="long docstring",
        ),
        pytest.param(
            {f"src/matchpod/{name}.py": GOOD for name in check_layout.VAGUE_NAMES},
            [
                f"src/matchpod/{name}.py:1 {name} is too vague; choose a name that describes the content"
                for name in sorted(check_layout.VAGUE_NAMES)
            ],
            id="vague name",
        ),
        pytest.param(
            {
                f"{CORE}/stats/__init__.py": GOOD,
                f"{CORE}/stats/ledger.py": GOOD,
                f"{PROTOCOL}/src/cs2_protocol/rcon.py": GOOD,
                f"{PROTOCOL}/protocol_tests/test_rcon.py": "",
            },
            [f"{CORE}/stats/ledger.py:1 has no test module tests/unit/core/stats/test_ledger.py"],
            id="pure module without tests",
        ),
        pytest.param(
            {
                f"{SIMULATOR}/src/cs2_simulator/play.py": GOOD + "from cs2_protocol import rcon\n",
                f"{SIMULATOR}/simulator_tests/steps.py": "from .tests import one\nimport testsuite\n",
                f"{SIMULATOR}/simulator_tests/test_play.py": "import os, matchpod.core\n",
                f"{SIMULATOR}/simulator_tests/test_rcon.py": "def f():\n    from tests.effort import seeds\n",
            },
            [
                f"{SIMULATOR}/simulator_tests/test_play.py:1 imports matchpod.core, which is not part of a package",
                f"{SIMULATOR}/simulator_tests/test_rcon.py:2 imports tests.effort, which is not part of a package",
            ],
            id="package that imports the service or its tests",
        ),
        pytest.param(
            {
                "src/matchpod/web/http/bodies.py": GOOD
                + "import asyncio\nfrom matchpod.web.http.asgi import Scope\nfrom matchpod.web.httpx import x\n",
                f"{PROTOCOL}/src/cs2_protocol/__init__.py": GOOD,
                "src/matchpod/web/http/heads.py": GOOD + "from cs2_protocol import rcon\n",
            },
            [
                "src/matchpod/web/http/bodies.py:4 imports matchpod.web.httpx, but matchpod.web.http stands alone",
                "src/matchpod/web/http/heads.py:2 imports cs2_protocol, but matchpod.web.http stands alone",
            ],
            id="package that stands alone",
        ),
        pytest.param(
            {
                "src/matchpod/app/first.py": GOOD + "class Pause:\n    pass\nclass _Own:\n    pass\n",
                "src/matchpod/web/second.py": GOOD + "class _Own:\n    pass\nclass Pause:\n    pass\n",
                f"{SIMULATOR}/src/cs2_simulator/third.py": GOOD + "class Pause:\n    pass\n",
            },
            ["src/matchpod/web/second.py:4 the class Pause has the same name as one in src/matchpod/app/first.py"],
            id="public class of the same name",
        ),
        pytest.param(
            {"docs/notes.md": f"first\nsee {MACHINE_PATH}notes\n"},
            [f"docs/notes.md:2 contains the machine path {MACHINE_PATH}"],
            id="machine path in any file git would track",
        ),
    ],
)
def test_faults_of_a_checkout(checkout: Path, files: dict[str, str], faults: list[str]) -> None:
    for path, text in files.items():
        write(checkout, path, text)
    assert check_layout.find_faults(checkout) == faults


def test_module_of_601_lines_is_a_warning_and_no_fault(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(checkout, "src/matchpod/short.py", GOOD + "x = 1\n" * 599)
    write(checkout, "src/matchpod/long.py", GOOD + "x = 1\n" * 600)
    assert check_layout.main(checkout) == 0
    printed = capsys.readouterr().out
    assert printed == (
        "warning: src/matchpod/long.py:1 module is 601 lines; does it have two subjects?\nlayout: no faults\n"
    )


def test_folder_that_is_not_a_git_checkout_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(SystemExit, match="git cannot list the files"):
        check_layout.find_faults(tmp_path)


def test_faults_are_printed_and_exit_code_is_1(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(checkout, "src/matchpod/utils.py", "")
    assert check_layout.main(checkout) == 1
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3
    assert printed[-1] == "layout: 2 faults"
