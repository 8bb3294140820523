"""Measure which branches of the pure packages their tests reach, for `make test`.

Python calls the tracer for every function, also those of pytest, which are most of what runs here. So only imports and
the bodies of tests are traced: that gives the same percentages as tracing everything, for a third of its cost.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from coverage import Coverage

PACKAGES = ("matchpod.core", "matchpod.cs2", "cs2_protocol")

MANY_CASES = ("hypothesis", "law")
"""Tests with these markers are too slow for it."""


class BranchCoverage:
    """A plugin of pytest that writes a JSON report of the tests it runs in this process."""

    def __init__(self, report: str) -> None:
        self._report = report
        folders = ["src/matchpod/core", "src/matchpod/cs2", "packages/cs2-protocol/src"]
        self._coverage = Coverage(data_file=None, branch=True, source=folders)
        with self._coverage.collect():
            for package in PACKAGES:
                folder = importlib.import_module(package).__path__
                for module in pkgutil.walk_packages(folder, f"{package}."):
                    importlib.import_module(module.name)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        """Trace the body of a test."""
        if any(pyfuncitem.get_closest_marker(marker) for marker in MANY_CASES):
            return (yield)
        with self._coverage.collect():
            return (yield)

    def pytest_sessionfinish(self) -> None:
        """Write the report."""
        self._coverage.json_report(outfile=self._report)
