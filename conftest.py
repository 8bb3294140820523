"""Configure all tests: hypothesis profiles, the folder of real server logs, coverage and order."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
TESTS = ROOT / "tests"
BROWSER, DEPLOY = TESTS / "browser", TESTS / "deploy"
WAITING = ROOT / "packages/matchpod-gameserver/gameserver_tests/process"
BUSY = (TESTS / "unit", ROOT / "packages")
"""Folders of tests that compute, except those in WAITING."""
MEASURED = (TESTS / "unit/core", TESTS / "unit/cs2", ROOT / "packages/cs2-protocol")
"""The tests of the packages whose coverage is measured."""

SLOWEST = (
    *(
        TESTS / name
        for name in (
            "e2e/service/test_disturbed_actions.py",
            "e2e/service/test_match_actions.py",
            "e2e/service/test_replicas.py",
            "e2e/service/test_game_settings.py",
            "e2e/service/test_recovery.py",
            "e2e/service/test_results.py",
            "e2e/test_serve.py",
            "deploy",
            "contract/test_heartbeats.py",
            "contract/test_supervisor.py",
            "contract/test_runner_entries.py",
        )
    ),
    WAITING,
    *(
        TESTS / name
        for name in ("contract/test_old_rows.py", "contract/test_openapi.py", "e2e/service", "e2e", "contract")
    ),
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

        config.pluginmanager.register(BranchCoverage(report, MEASURED))
    if workers := config.getoption("--forks"):
        from tests import imported_service, migrated
        from tests.forked_workers import ForkedWorkers, Group

        def group_of(item: pytest.Item) -> Group:
            """A process for the tests that share a browser, whose event loop stays; one for those that are measured.

            Those of `deploy` share the rendered chart.
            """
            if _is_in(item.path, *MEASURED):
                return Group("measured", is_busy=True)
            if _is_in(item.path, BROWSER):
                return Group("browser", is_alone=True)
            if _is_in(item.path, DEPLOY):
                return Group("deploy")
            return Group(item.path, is_busy=_is_in(item.path, *BUSY) and not _is_in(item.path, WAITING))

        @contextmanager
        def prepared(folder: Path) -> Iterator[None]:
            """Make what most workers need once, before they are forked."""
            from tests.unit.service.match_log import test_fold  # after it was collected

            with imported_service.importing(folder):
                migrated.template()
                test_fold.recorded()
                yield

        plugin = ForkedWorkers(workers, group_of, busy_workers=max(workers // 3, 1), beside=prepared)
        config.pluginmanager.register(plugin)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest first."""
    items.sort(key=lambda item: _priority(item.path))


@cache
def _priority(path: Path) -> int:
    if _is_in(path, *MEASURED):
        return -1
    if _is_in(path, BROWSER):  # last, for runs in one process: its event loop stays
        return len(SLOWEST) + 1
    paths = (path, *path.parents)
    return next((priority for priority, slow in enumerate(SLOWEST) if slow in paths), len(SLOWEST))


def _is_in(path: Path, *folders: Path) -> bool:
    return any(folder in path.parents for folder in folders)
