"""Tests in forked processes give the reports that they give in one, and none is lost with its process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_workers import GIVE_WAY

RUN = (
    "import sys, pytest; from tests.forked_workers import ForkedWorkers; "
    "sys.exit(pytest.main(['-p', 'no:cacheprovider', *sys.argv[1:]], plugins=[ForkedWorkers(2)]))"
)
CONFTEST = """
import os, pathlib, pytest

@pytest.fixture(scope="session")
def ended(tmp_path_factory):
    yield
    (tmp_path_factory.getbasetemp() / "ended").touch()
"""
TESTS = """
def test_passed(ended):
    print("not shown")

def test_failed(ended):
    print("shown")
    raise ValueError("this one")
"""
DYING = """
import os

def test_dies():
    os._exit(0)
"""

GROUPED_RUN = (
    "import sys, pytest; from tests.forked_workers import ForkedWorkers, Group; "
    "of = lambda item: Group(item.path, is_busy='busy' in item.name, is_alone='alone' in item.name); "
    "sys.exit(pytest.main(['-p', 'no:cacheprovider', *sys.argv[1:]], plugins=[ForkedWorkers(0, of)]))"
)
GROUPED = """
import os, pathlib

def test_{name}():
    with (pathlib.Path(__file__).parent / "ran").open("a") as ran:
        ran.write(f"{{os.getpid()}} {{os.nice(0)}} ")
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the tests in a folder, without other plugins, which take seconds to import."""
    command = [sys.executable, "-c", program, "-q", f"--basetemp={folder / 'temporary'}", str(folder)]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    cwd = Path(__file__).parents[2]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=alone, check=False)


def test_group_may_have_its_own_process_and_tests_that_compute_give_way(tmp_path: Path) -> None:
    for name in ("busy", "alone"):
        (tmp_path / f"test_{name}.py").write_text(GROUPED.format(name=name))
    done = run(GROUPED_RUN, tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    ran = (tmp_path / "ran").read_text().split()
    assert ran[0] != ran[2]
    assert abs(int(ran[1]) - int(ran[3])) == min(GIVE_WAY, 19 - os.nice(0))


def test_all_reports_arrive_and_a_process_that_dies_is_named_by_its_test(tmp_path: Path) -> None:
    files = {"conftest": CONFTEST, "test_one": TESTS, "test_two": TESTS, "test_z": DYING}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = run(RUN, tmp_path)
    assert done.returncode == pytest.ExitCode.INTERRUPTED, done.stderr
    assert "2 failed, 2 passed" in done.stdout
    assert done.stdout.count("E       ValueError: this one") == done.stdout.count("\nshown\n") == 2
    assert "not shown" not in done.stdout
    assert "processes died in test_z.py::test_dies" in done.stdout
    ended = list(tmp_path.glob("temporary/gw*/ended"))
    assert ended, "fixtures of the session end in each process that used them"
