"""Run the garbage collector rarely, and return freed memory to the system.

Reference counting frees most objects of a match; only reference cycles are left to the garbage collector. By default,
Python scans all objects, including those of live matches, whenever their number has grown by a quarter. With 500
matches, each scan is a pause of 0.2 s, every few seconds. Log posts leave no cycles, so a full collection every few
minutes is enough.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import Final

YOUNG_OBJECTS: Final = 50_000
"""Number of new objects after which the youngest generation is collected. Creating a match or rendering a page
allocates a few thousand objects."""
COLLECT_S: Final = 300.0
"""Interval in seconds between full collections."""

_M_ARENA_MAX: Final = -8
"""The parameter of glibc's `mallopt` for the maximum number of heaps."""


def share_one_heap() -> None:
    """Let all threads that start from now on share one heap of malloc. Without glibc, do nothing.

    By default, glibc gives each thread its own heap, which keeps freed memory. Each thread that had compressed the log
    of an ended match kept 13 MB. That was most of the memory growth of a service after 700 short matches.
    """
    _call("mallopt", _M_ARENA_MAX, 1)


def collect_rarely() -> None:
    """Collect once, exclude all objects that now exist from later collections, and raise the thresholds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 10)


async def run_collections(every_s: float = COLLECT_S) -> None:
    """Run a full collection every `every_s` seconds, until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        gc.collect()
        return_memory()


def return_memory() -> None:
    """Return freed memory to the system, which takes some milliseconds. Without glibc, do nothing."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)
