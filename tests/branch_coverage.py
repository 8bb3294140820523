"""Measure which branches of the pure packages their tests reach, for `make test`.

Python calls the tracer for every function, also those of pytest, which are most of what runs here. So only imports and
the bodies of tests are traced: that gives the same percentages as tracing everything, for a third of its cost.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from coverage import Coverage

PACKAGES = ("matchpod.core", "matchpod.cs2", "cs2_protocol")

MANY_CASES = ("hypothesis", "law")
"""Tests with these markers are too slow for it."""


class BranchCoverage:
    """A plugin of pytest that writes a JSON report of the tests in these folders, which one process runs."""

    def __init__(self, report: str, folders: Sequence[Path]) -> None:
        self._report = str(Path(report).absolute())  # a test may end in another folder
        self._folders = folders
        self._has_run = False
        sources = ["src/matchpod/core", "src/matchpod/cs2", "packages/cs2-protocol/src"]
        self._coverage = Coverage(data_file=None, branch=True, source=sources)
        with self._coverage.collect():
            for package in PACKAGES:
                folder = importlib.import_module(package).__path__
                for module in pkgutil.walk_packages(folder, f"{package}."):
                    importlib.import_module(module.name)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        """Trace the body of a test."""
        is_measured = any(folder in pyfuncitem.path.parents for folder in self._folders)
        if not is_measured or any(pyfuncitem.get_closest_marker(marker) for marker in MANY_CASES):
            return (yield)
        self._has_run = True
        with self._coverage.collect():
            return (yield)

    def pytest_unconfigure(self) -> None:
        """Write the report in the process that has run the tests."""
        if self._has_run:
            self._coverage.json_report(outfile=self._report)
