"""Look for garbage rarely.

Reference counts free what a match needs no longer; only cycles of objects are left to the garbage collector. By default
Python looks at all objects, those of all live matches too, whenever a quarter more have been created: with 500 matches
a pause of 0.2 s every few seconds. Log posts leave no cycles, so looking every few minutes is enough.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Final

YOUNG_OBJECTS: Final = 50_000
"""After this many more objects than before the young ones are looked at: a creation or a page of the console makes
some thousands."""
COLLECT_S: Final = 300.0
"""Pause between two looks at all objects."""


def collect_rarely() -> None:
    """Collect what the start has left, never look at what lives as long as the process, and at new objects rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 10)


async def run_collections(every_s: float = COLLECT_S) -> None:
    """Look at all objects every few minutes, until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        gc.collect()
