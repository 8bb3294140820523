"""Find the real server logs that some tests read."""

from __future__ import annotations

import os
from pathlib import Path

_DEFAULT_CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"

# Commands reject unknown variables that begin with MATCHPOD_, and many tests run commands.
if _given := os.environ.pop("MATCHPOD_CORPUS", None):
    os.environ["TESTS_CORPUS"] = _given


def corpus_dir() -> Path:
    """Return the folder of real server logs: MATCHPOD_CORPUS, or `shared/corpus` next to the checkout."""
    return Path(os.environ.get("TESTS_CORPUS", _DEFAULT_CORPUS))
