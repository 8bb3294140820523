"""Run the garbage collector rarely.

Reference counts free what a match needs no longer; only cycles of objects are left to the garbage collector. By default
Python scans all objects, those of all live matches too, whenever a quarter more have been created: with 500 matches a
pause of 0.2 s every few seconds. Log posts leave no cycles, so a full collection every few minutes is enough.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Final

YOUNG_OBJECTS: Final = 50_000
"""Threshold of the youngest generation, in objects: creating a match or rendering a page makes some thousands."""
COLLECT_S: Final = 300.0
"""Pause between two full collections."""


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
