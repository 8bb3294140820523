"""Compare text with a stored golden file. `make golden` writes the files again instead."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

_IS_WRITING = os.environ.get("MATCHPOD_WRITE_GOLDEN") == "1"


def check_golden(name: str, actual: str) -> None:
    """Fail if the file in this folder differs; with MATCHPOD_WRITE_GOLDEN=1, write it."""
    file = FOLDER / name
    if _IS_WRITING:
        file.write_text(actual, encoding="utf-8")
    assert actual == file.read_text(encoding="utf-8"), f"{name} differs; `make golden` writes it again"
