"""Shared by all tests: how much they try, and where the real server data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import effort

effort.register_profiles()

_BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "corpus"


def corpus_dir() -> Path:
    """The folder of real logs: beside the checkout, or where MATCHPOD_CORPUS points."""
    return Path(os.environ.get("MATCHPOD_CORPUS", _BESIDE_THE_CHECKOUT))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real server data; tests that need it are skipped where it is missing."""
    path = corpus_dir()
    if not path.is_dir():
        pytest.skip(f"no real server data at {path}; set MATCHPOD_CORPUS to its folder")
    return path


PURE = tuple(Path(__file__).parent / "unit" / package for package in ("core", "cs2"))
"""Tests of the packages whose coverage is measured."""


LONGEST = tuple(
    Path(__file__).parent / name
    for name in (
        "contract/test_supervisor.py",
        "e2e/test_serve.py",
        "e2e/service/test_replicas.py",
        "e2e/service/test_results.py",
        "e2e/service/test_cancellations.py",
        "contract/test_runner.py",
        "e2e/service",
        "e2e",
        "contract",
    )
)
"""Files and folders that take longest. They run first, so that short files fill the gaps between the workers at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(folder in item.path.parents for folder in PURE):
            item.add_marker(pytest.mark.pure)
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    paths = (item.path, *item.path.parents)
    return next((place for place, longest in enumerate(LONGEST) if longest in paths), len(LONGEST))
