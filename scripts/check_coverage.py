"""Check the JSON report of coverage.py against two thresholds. On failure, list the responsible files and exit with 1.

The first threshold is for the percentage that coverage.py computes (lines and branches) of the whole package. The
second is for the branch coverage of the pure packages, in which an untested branch can end a match wrongly.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

OVERALL_PERCENT = 90.0
"""Minimum percentage of covered lines and branches of the package. Tests cannot reach all parts of the command line and
of adapters."""

PURE_BRANCH_PERCENT = 97.0
"""Minimum percentage of covered branches in `core` and `cs2`. They are pure code, so almost every branch is easy to
test."""

PURE_PACKAGES = ("src/matchpod/core/", "src/matchpod/cs2/", "packages/cs2-protocol/")


class FileCoverage(NamedTuple):
    """The coverage of one file."""

    path: str
    percent: float
    branches: int
    covered_branches: int
    missing_lines: int

    @property
    def missed_branches(self) -> int:
        """Number of branches not covered by any test."""
        return self.branches - self.covered_branches


class Report(NamedTuple):
    """The parts of the coverage report that the thresholds are about."""

    percent: float
    files: tuple[FileCoverage, ...]


def read_report(path: Path) -> Report:
    """Read the JSON report of coverage.py."""
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
    """Check the threshold of the whole package. Return nothing, or a summary line and the files below the threshold."""
    if report.percent >= OVERALL_PERCENT:
        return []
    low = sorted((file for file in report.files if file.percent < OVERALL_PERCENT), key=lambda file: file.percent)
    return [
        f"overall {report.percent:.2f} % is below {OVERALL_PERCENT:g} %",
        *(f"  {file.path}: {file.percent:.2f} %, {file.missing_lines} lines not covered" for file in low),
    ]


def branch_percent(files: tuple[FileCoverage, ...]) -> float:
    """Return the percentage of branches that are covered."""
    return 100 * sum(file.covered_branches for file in files) / max(sum(file.branches for file in files), 1)


def pure_faults(files: tuple[FileCoverage, ...]) -> list[str]:
    """Check the threshold for the branch coverage of the pure packages.

    Return nothing, or a summary line and the files with gaps.
    """
    if not any(file.branches for file in files):
        return [f"the report has no branches in {' or '.join(PURE_PACKAGES)}: were branches measured?"]
    percent = branch_percent(files)
    if percent >= PURE_BRANCH_PERCENT:
        return []
    low = sorted((file for file in files if file.missed_branches), key=lambda file: -file.missed_branches)
    return [
        f"branch coverage of core and cs2 {percent:.2f} % is below {PURE_BRANCH_PERCENT:g} %",
        *(f"  {file.path}: {file.missed_branches} of {file.branches} branches not covered" for file in low),
    ]


def main(report_path: Path) -> int:
    """Print the two percentages, or the violated rules."""
    if not report_path.is_file():
        print(f"coverage report {report_path} not found: did the tests import matchpod at all?")
        return 1
    report = read_report(report_path)
    pure = tuple(file for file in report.files if file.path.startswith(PURE_PACKAGES))
    faults = overall_faults(report) + pure_faults(pure)
    for fault in faults:
        print(fault)
    if not faults:
        print(f"coverage: overall {report.percent:.2f} %, branch coverage of core and cs2 {branch_percent(pure):.2f} %")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
