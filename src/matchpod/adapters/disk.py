"""Measure the free space of a file system."""

from __future__ import annotations

import os
from pathlib import Path


def free_bytes(folder: Path) -> int:
    """Return how many bytes this user can still write to the file system of a folder. The folder need not exist yet."""
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
