"""Tests that failed beside all others are tried again alone, if they are few."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from scripts import try_again

PASS = [sys.executable, "-c", ""]
FAIL = [sys.executable, "-c", "import sys; sys.exit(len(sys.argv))"]


def cache(folder: Path, *failed: str, code: int = 1) -> Path:
    (folder / "v" / "cache").mkdir(parents=True)
    (folder / "exit").write_text(f"{code}\n", encoding="utf-8")
    (folder / "v" / "cache" / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)), encoding="utf-8")
    return folder


def test_tests_that_pass_alone_are_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    caches = [cache(tmp_path / "one", "a.py::b[1 - 2]"), cache(tmp_path / "two", "c")]
    assert try_again.main(PASS, caches) == 0
    assert "unsteady, mend it: a.py::b[1 - 2]\n" in capfd.readouterr().out


def test_fault_stays_a_fault(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert try_again.main(FAIL, [cache(tmp_path / "one", "a", "b")]) == 1
    assert "unsteady" not in capfd.readouterr().out


@pytest.mark.parametrize("number", [0, try_again.MAX_TESTS + 1])
def test_many_failures_and_those_of_no_test_are_final(tmp_path: Path, number: int) -> None:
    assert try_again.main(PASS, [cache(tmp_path / "one", *(f"t{one}" for one in range(number)))]) == 1


@pytest.mark.parametrize("code", [2, 3, 4, 5])
def test_run_that_failed_in_another_way_is_final(tmp_path: Path, code: int) -> None:
    assert try_again.main(PASS, [cache(tmp_path / "one", "a"), cache(tmp_path / "two", "b", code=code)]) == 1


def test_run_that_left_no_exit_code_is_final(tmp_path: Path) -> None:
    assert try_again.main(PASS, [cache(tmp_path / "one", "a"), tmp_path / "killed"]) == 1
