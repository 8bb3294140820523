"""The garbage collector runs rarely, and cycles are freed all the same."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from matchpod.app.garbage import YOUNG_OBJECTS, collect_rarely, run_collections


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def rare() -> Iterator[None]:
    before = gc.get_threshold()
    collect_rarely()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("rare")
def test_some_thousand_new_objects_start_no_collection() -> None:
    before = [generation["collections"] for generation in gc.get_stats()]
    kept = [[number] for number in range(YOUNG_OBJECTS // 10)]
    assert [generation["collections"] for generation in gc.get_stats()] == before
    assert kept


@pytest.mark.usefixtures("rare")
async def test_cycles_are_freed_every_few_minutes() -> None:
    node = weakref.ref(Node())
    assert node() is not None
    collecting = asyncio.create_task(run_collections(every_s=0.001))
    async with asyncio.timeout(60):
        while node() is not None:
            await asyncio.sleep(0.001)
    collecting.cancel()
