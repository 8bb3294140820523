"""Do the tests cover enough? Reads the JSON report of coverage.py; exit 1 with the files that pull a number down.

Two rules: the whole package by coverage's own percentage (lines and branches), and the branches alone of the pure
packages, where an untried branch is a match that ends wrongly.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

OVERALL_PERCENT = 90.0
"""Lines and branches of everything: the command line and adapters have parts that only a real machine reaches."""

PURE_BRANCH_PERCENT = 97.0
"""Branches of the rules and the language: values in, values out, so almost nothing is hard to reach."""

PURE_PACKAGES = ("src/matchpod/core/", "src/matchpod/cs2/")


class FileCoverage(NamedTuple):
    """What the report says about one file."""

    path: str
    percent: float
    branches: int
    covered_branches: int
    missing_lines: int

    @property
    def missed_branches(self) -> int:
        """Branches that no test took."""
        return self.branches - self.covered_branches


class Report(NamedTuple):
    """What the rules need from coverage's report."""

    percent: float
    files: tuple[FileCoverage, ...]


def read_report(path: Path) -> Report:
    """Read the report that `pytest --cov-branch --cov-report=json` wrote."""
    report = json.loads(path.read_text(encoding="utf-8"))
    files = tuple(
        FileCoverage(
            path=name.replace("\\", "/"),
            percent=entry["summary"]["percent_covered"],
            branches=entry["summary"]["num_branches"],
            covered_branches=entry["summary"]["covered_branches"],
            missing_lines=entry["summary"]["missing_lines"],
        )
        for name, entry in report["files"].items()
    )
    return Report(percent=report["totals"]["percent_covered"], files=files)


def overall_faults(report: Report) -> list[str]:
    """The overall rule: nothing, or one line and the files below the threshold."""
    if report.percent >= OVERALL_PERCENT:
        return []
    low = sorted((file for file in report.files if file.percent < OVERALL_PERCENT), key=lambda file: file.percent)
    return [
        f"overall {report.percent:.2f} % is below {OVERALL_PERCENT:g} %",
        *(f"  {file.path}: {file.percent:.2f} %, {file.missing_lines} lines not run" for file in low),
    ]


def branch_percent(files: tuple[FileCoverage, ...]) -> float:
    """Covered branches of all branches, in percent."""
    return 100 * sum(file.covered_branches for file in files) / max(sum(file.branches for file in files), 1)


def pure_faults(files: tuple[FileCoverage, ...]) -> list[str]:
    """The branch rule over the pure packages: nothing, or one line and the files with untried branches."""
    if not any(file.branches for file in files):
        return [f"the report has no branches in {' or '.join(PURE_PACKAGES)}: was it measured with --cov-branch?"]
    percent = branch_percent(files)
    if percent >= PURE_BRANCH_PERCENT:
        return []
    low = sorted((file for file in files if file.missed_branches), key=lambda file: -file.missed_branches)
    return [
        f"branches of core and cs2 {percent:.2f} % are below {PURE_BRANCH_PERCENT:g} %",
        *(f"  {file.path}: {file.missed_branches} of {file.branches} branches not taken" for file in low),
    ]


def main(report_path: Path) -> int:
    """Print the two numbers, or what is wrong with them."""
    if not report_path.is_file():
        print(f"there is no coverage report at {report_path}: did the tests import matchpod at all?")
        return 1
    report = read_report(report_path)
    pure = tuple(file for file in report.files if file.path.startswith(PURE_PACKAGES))
    faults = overall_faults(report) + pure_faults(pure)
    for fault in faults:
        print(fault)
    if not faults:
        print(f"coverage: overall {report.percent:.2f} %, branches of core and cs2 {branch_percent(pure):.2f} %")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
