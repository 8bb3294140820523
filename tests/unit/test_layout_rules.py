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


def test_clean_checkout_has_no_faults(checkout: Path) -> None:
    write(checkout, "src/matchpod/core/match/series.py", GOOD)
    write(checkout, "tests/unit/core/match/test_series.py", "")
    assert check_layout.find_faults(checkout) == []


def test_module_of_601_lines_is_a_warning_and_no_fault(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(checkout, "src/matchpod/short.py", GOOD + "x = 1\n" * 599)
    write(checkout, "src/matchpod/long.py", GOOD + "x = 1\n" * 600)
    assert check_layout.main(checkout) == 0
    printed = capsys.readouterr().out
    assert printed == (
        "warning: src/matchpod/long.py:1 module is 601 lines; does it have two subjects?\nlayout: no faults\n"
    )


def test_function_of_40_lines_is_allowed_and_41_is_a_fault(checkout: Path) -> None:
    write(checkout, "src/matchpod/short.py", function_of(40))
    write(checkout, "src/matchpod/long.py", function_of(41))
    assert check_layout.find_faults(checkout) == ["src/matchpod/long.py:2 long is 41 lines, at most 40"]


@pytest.mark.parametrize(
    "signature",
    [
        "def f(a, b, c, d): ...",
        "def f(a, b, c, d, *, e, g): ...",
        "def f(a, b, c, d, *rest, **options): ...",
        "class A:\n    def f(self, a, b, c, d): ...",
        "class A:\n    @classmethod\n    def f(cls, a, b, c, d): ...",
    ],
)
def test_four_positional_parameters_are_allowed(checkout: Path, signature: str) -> None:
    write(checkout, "src/matchpod/called.py", GOOD + signature + "\n")
    assert check_layout.find_faults(checkout) == []


@pytest.mark.parametrize("signature", ["def f(a, b, c, d, e): ...", "def f(a, b, /, c, d, e=1): ..."])
def test_fifth_positional_parameter_is_a_fault(checkout: Path, signature: str) -> None:
    write(checkout, "src/matchpod/called.py", GOOD + signature + "\n")
    assert check_layout.find_faults(checkout) == ["src/matchpod/called.py:2 f has 5 positional parameters, at most 4"]


@pytest.mark.parametrize("text", ["", "x = 1\n", '""""""\n'])
def test_module_without_a_docstring_is_a_fault(checkout: Path, text: str) -> None:
    write(checkout, "src/matchpod/undocumented.py", text)
    assert check_layout.find_faults(checkout) == [
        "src/matchpod/undocumented.py:1 module has no docstring that says what it does"
    ]


def test_docstring_of_eight_lines_is_allowed_and_nine_is_a_fault(checkout: Path) -> None:
    write(checkout, "src/matchpod/short.py", '"""One.\n' + "More.\n" * 7 + '"""\n')
    write(checkout, "src/matchpod/long.py", '"""One.\n' + "More.\n" * 8 + '"""\n')
    assert check_layout.find_faults(checkout) == ["src/matchpod/long.py:1 module docstring is 9 lines, at most 8"]


@pytest.mark.parametrize("name", sorted(check_layout.VAGUE_NAMES))
def test_vague_module_name_is_a_fault(checkout: Path, name: str) -> None:
    write(checkout, f"src/matchpod/{name}.py", GOOD)
    assert check_layout.find_faults(checkout) == [
        f"src/matchpod/{name}.py:1 {name} is too vague; choose a name that describes the content"
    ]


def test_module_of_a_pure_package_needs_a_test_at_the_mirrored_path(checkout: Path) -> None:
    write(checkout, "src/matchpod/core/stats/__init__.py", GOOD)
    write(checkout, "src/matchpod/core/stats/ledger.py", GOOD)
    write(checkout, "packages/cs2-protocol/src/cs2_protocol/rcon.py", GOOD)
    write(checkout, "packages/cs2-protocol/protocol_tests/test_rcon.py", "")
    assert check_layout.find_faults(checkout) == [
        "src/matchpod/core/stats/ledger.py:1 has no test module tests/unit/core/stats/test_ledger.py"
    ]


def test_package_that_imports_the_service_or_its_tests_is_a_fault(checkout: Path) -> None:
    write(checkout, "packages/cs2-simulator/src/cs2_simulator/play.py", GOOD + "from cs2_protocol import rcon\n")
    write(checkout, "packages/cs2-simulator/simulator_tests/steps.py", "from .tests import one\nimport testsuite\n")
    write(checkout, "packages/cs2-simulator/simulator_tests/test_play.py", "import os, matchpod.core\n")
    write(
        checkout,
        "packages/cs2-simulator/simulator_tests/test_rcon.py",
        "def f():\n    from tests.effort import seeds\n",
    )
    assert check_layout.find_faults(checkout) == [
        "packages/cs2-simulator/simulator_tests/test_play.py:1 imports matchpod.core, which is not part of a package",
        "packages/cs2-simulator/simulator_tests/test_rcon.py:2 imports tests.effort, which is not part of a package",
    ]


def test_import_of_our_code_in_a_package_that_stands_alone_is_a_fault(checkout: Path) -> None:
    own = "import asyncio\nfrom matchpod.web.http.asgi import Scope\n"
    write(checkout, "src/matchpod/web/http/bodies.py", GOOD + own + "from matchpod.web.httpx import x\n")
    write(checkout, "packages/cs2-protocol/src/cs2_protocol/__init__.py", GOOD)
    write(checkout, "src/matchpod/web/http/heads.py", GOOD + "from cs2_protocol import rcon\n")
    assert check_layout.find_faults(checkout) == [
        "src/matchpod/web/http/bodies.py:4 imports matchpod.web.httpx, but matchpod.web.http stands alone",
        "src/matchpod/web/http/heads.py:2 imports cs2_protocol, but matchpod.web.http stands alone",
    ]


def test_public_class_with_the_name_of_another_is_a_fault(checkout: Path) -> None:
    write(checkout, "src/matchpod/app/first.py", GOOD + "class Pause:\n    pass\nclass _Own:\n    pass\n")
    write(checkout, "src/matchpod/web/second.py", GOOD + "class _Own:\n    pass\nclass Pause:\n    pass\n")
    write(checkout, "packages/cs2-simulator/src/cs2_simulator/third.py", GOOD + "class Pause:\n    pass\n")
    assert check_layout.find_faults(checkout) == [
        "src/matchpod/web/second.py:4 the class Pause has the name of one in src/matchpod/app/first.py"
    ]


def test_machine_path_is_a_fault_in_any_file_git_would_track(checkout: Path) -> None:
    write(checkout, "docs/notes.md", f"first\nsee {MACHINE_PATH}notes\n")
    assert check_layout.find_faults(checkout) == [f"docs/notes.md:2 contains the machine path {MACHINE_PATH}"]


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
