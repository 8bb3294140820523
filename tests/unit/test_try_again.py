"""Tests that failed beside all others are tried again alone, if they are few."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from scripts import try_again

PASS = [sys.executable, "-c", ""]
LISTED = dict.fromkeys(("a", "b", "t0", "t1", "t2", "t3"), "known")
FAIL = [sys.executable, "-c", "import sys; sys.exit(len(sys.argv))"]


def cache(folder: Path, *failed: str, code: int = 1) -> Path:
    (folder / "v" / "cache").mkdir(parents=True)
    (folder / "exit").write_text(f"{code}\n", encoding="utf-8")
    (folder / "v" / "cache" / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)), encoding="utf-8")
    return folder


def test_test_that_passes_alone_fails_the_run_unless_it_is_listed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = cache(tmp_path, "a.py::b[1 - 2]", "c")
    listed = {"c": "two processes", "a.py::b[1 - 2]": "a slow disk"}
    assert try_again.try_again(PASS, found, listed) == 0
    assert "unsteady: a.py::b[1 - 2] # a slow disk\n" in capfd.readouterr().out
    del listed["c"]
    assert try_again.try_again(PASS, found, listed) == 1
    assert capfd.readouterr().out.endswith("tests/unsteady.txt:\nc # what is known of the cause\n")


def test_fault_stays_a_fault(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert try_again.try_again(FAIL, cache(tmp_path, "a", "b"), {"a": "?", "b": "?"}) == 1
    assert "unsteady" not in capfd.readouterr().out


def test_list_names_tests_that_exist_with_a_cause(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_one() -> None: ...\n", encoding="utf-8")
    listed = try_again.read_list("# a comment\n\ntest_a.py::test_one[a: b] # slow disk\n")
    assert listed == {"test_a.py::test_one[a: b]": "slow disk"}
    assert try_again.list_faults(listed, tmp_path) == []
    wrong = dict.fromkeys(("test_a.py::test_two", "test_b.py::test_one", "test_a.py::test_one", "x"), "")
    faults = try_again.list_faults(wrong, tmp_path)
    assert len([fault for fault in faults if "no such test" in fault]) == 3
    assert len([fault for fault in faults if "say what is known" in fault]) == 4
    assert faults[0] == "at most 3 tests may be listed: fix one"


@pytest.mark.parametrize("number", [0, try_again.MAX_TESTS + 1])
def test_many_failures_and_those_of_no_test_are_final(tmp_path: Path, number: int) -> None:
    assert try_again.try_again(PASS, cache(tmp_path, *(f"t{one}" for one in range(number))), LISTED) == 1


@pytest.mark.parametrize("code", [2, 3, 4, 5])
def test_run_that_failed_in_another_way_is_final(tmp_path: Path, code: int) -> None:
    assert try_again.try_again(PASS, cache(tmp_path, "a", code=code), LISTED) == 1


def test_run_that_left_no_exit_code_is_final(tmp_path: Path) -> None:
    assert try_again.try_again(PASS, tmp_path / "killed", LISTED) == 1
