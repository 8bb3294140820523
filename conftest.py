"""Configure all tests: hypothesis profiles, the folder of real server logs, coverage and order."""

from __future__ import annotations

import gc
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import effort
from tests.corpus_folder import corpus_dir

effort.register_profiles()

# Every worker collects thousands of tests: a quarter of that time was garbage collection.
gc.set_threshold(100_000, 20, 100)

# The HTTP client of the tests looks for this package in every request; not finding it takes longer than the request.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real server logs; skip the test if it does not exist."""
    path = corpus_dir()
    if not path.is_dir():
        pytest.skip(f"no real server logs in {path}; set MATCHPOD_CORPUS to their folder")
    return path


ROOT = Path(__file__).parent

SLOWEST = tuple(
    ROOT / ("" if name.startswith("packages/") else "tests") / name
    for name in (
        "e2e/test_serve.py",
        "deploy/test_chart.py",
        "contract/test_supervisor.py",
        "e2e/service/test_replicas.py",
        "e2e/service/test_database_copies.py",
        "contract/test_agones_fleet.py",
        "e2e/service/test_results.py",
        "packages/matchpod-gameserver/gameserver_tests/process",
        "contract/test_runner_entries.py",
        "e2e/service/test_recovery.py",
        "chaos/test_short_run.py",
        "contract/test_old_rows.py",
        "contract/test_openapi.py",
        "unit/simulator/test_lost_log.py",
        "unit/simulator/test_agreement.py",
        "e2e/service",
        "e2e",
        "contract",
    )
)
"""Files and folders that take longest, slowest first. They run first, so that no worker is left with a long file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `make test`."""
    parser.addoption("--branch-coverage", metavar="FILE", help="write a JSON report of the pure packages' coverage")
    parser.addoption("--forks", metavar="COUNT", type=int, help="run the tests in this many forked processes")


def pytest_configure(config: pytest.Config) -> None:
    """Measure coverage and fork if asked to; otherwise their libraries are not even imported."""
    if report := config.getoption("--branch-coverage"):
        from tests.branch_coverage import BranchCoverage

        config.pluginmanager.register(BranchCoverage(report))
    if workers := config.getoption("--forks"):
        from tests.forked_workers import ForkedWorkers

        config.pluginmanager.register(ForkedWorkers(workers))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest first."""
    items.sort(key=lambda item: _priority(item.path))


@cache
def _priority(path: Path) -> int:
    paths = (path, *path.parents)
    return next((priority for priority, slow in enumerate(SLOWEST) if slow in paths), len(SLOWEST))
