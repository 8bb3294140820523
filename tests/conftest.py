"""Shared by all tests: where the real server data lies, and a clear skip where it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
