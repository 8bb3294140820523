"""The coverage check enforces its thresholds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import check_coverage


def report(folder: Path, *, overall: float, core_branches: tuple[int, int]) -> Path:
    covered, branches = core_branches
    summary = {"percent_covered": 99.0, "num_branches": branches, "covered_branches": covered, "missing_lines": 3}
    low = {"percent_covered": 10.0, "num_branches": 0, "covered_branches": 0, "missing_lines": 90}
    files = {"src/matchpod/core/match/match.py": {"summary": summary}, "src/matchpod/cli.py": {"summary": low}}
    path = folder / "coverage.json"
    path.write_text(json.dumps({"totals": {"percent_covered": overall}, "files": files}), encoding="utf-8")
    return path


def test_coverage_at_the_thresholds_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_coverage.main(report(tmp_path, overall=90.0, core_branches=(97, 100))) == 0
    assert "97.00 %" in capsys.readouterr().out


def test_low_overall_coverage_lists_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_coverage.main(report(tmp_path, overall=89.9, core_branches=(100, 100))) == 1
    printed = capsys.readouterr().out
    assert "src/matchpod/cli.py" in printed
    assert "match.py" not in printed


def test_low_branch_coverage_of_pure_packages_lists_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_coverage.main(report(tmp_path, overall=99.0, core_branches=(96, 100))) == 1
    assert "src/matchpod/core/match/match.py: 4 of 100" in capsys.readouterr().out


def test_missing_report_and_report_without_branches_fail(tmp_path: Path) -> None:
    assert check_coverage.main(report(tmp_path, overall=99.0, core_branches=(0, 0))) == 1
    assert check_coverage.main(tmp_path / "none.json") == 1
