"""Run the garbage collector rarely, and return freed memory to the system.

Reference counts free what a match needs no longer; only cycles of objects are left to the garbage collector. By default
Python scans all objects, those of all live matches too, whenever a quarter more have been created: with 500 matches a
pause of 0.2 s every few seconds. Log posts leave no cycles, so a full collection every few minutes is enough.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import Final

YOUNG_OBJECTS: Final = 50_000
"""Threshold of the youngest generation, in objects: creating a match or rendering a page makes some thousands."""
COLLECT_S: Final = 300.0
"""Pause between two full collections."""

_M_ARENA_MAX: Final = -8
"""The option of `mallopt` for the number of heaps."""


def share_one_heap() -> None:
    """Let threads that are started from now on allocate from one heap. Has no effect without glibc.

    It keeps what is freed. With a heap per thread, its default, each thread that has packed the log of an ended match
    keeps 13 MB: that was most of what a service had grown by after 700 short matches.
    """
    _call("mallopt", _M_ARENA_MAX, 1)


def collect_rarely() -> None:
    """Collect once, exclude all objects of the start from later collections, and raise the thresholds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 10)


async def run_collections(every_s: float = COLLECT_S) -> None:
    """Run a full collection every few minutes, until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        gc.collect()
        return_memory()


def return_memory() -> None:
    """Return freed memory to the system; it takes milliseconds. Has no effect without glibc."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)
