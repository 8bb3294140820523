"""The garbage collector runs rarely, and cycles are freed all the same; freed memory is returned to the system."""

from __future__ import annotations

import asyncio
import gc
import platform
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from matchpod.app.garbage import YOUNG_OBJECTS, collect_rarely, run_collections
from tests.waiting import until


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
    await until(lambda: node() is None)
    collecting.cancel()


FREED_MB = 60
PROGRAM = f"""
import resource
import threading
from pathlib import Path
from matchpod.app.garbage import return_memory, share_one_heap

def rss_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

def work(at_once):
    blocks = [bytearray(4_000) for _ in range({FREED_MB} * 250)]
    at_once.wait()
    kept.append(blocks[-1])

kept = []
share_one_heap()
for _ in range(2):
    at_once = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=(at_once,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
before_mb = rss_mb()
return_memory()
print(before_mb - rss_mb())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries return memory by themselves")
def test_memory_that_threads_have_freed_is_returned_to_the_system() -> None:
    """Something that was allocated last keeps the heap from becoming smaller by itself."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert float(done.stdout) > FREED_MB / 2
