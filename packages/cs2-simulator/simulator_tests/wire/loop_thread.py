"""Run an event loop in a thread, so that tests can use blocking clients against it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TypeVar

TIMEOUT_S = 180.0

_Result = TypeVar("_Result")


class LoopThread:
    """A running event loop. Exit fails if tasks are left over."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        left = self.call(self._count_tasks())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT_S)
        self.loop.close()
        if exc_type is None:
            assert left == 0, f"{left} tasks left over"

    def call(self, work: Coroutine[object, object, _Result]) -> _Result:
        """Run a coroutine in the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(TIMEOUT_S)

    def run(self, function: Callable[[], _Result]) -> _Result:
        """Call a function in the loop and wait for its result."""

        async def work() -> _Result:
            return function()

        return self.call(work())

    async def _count_tasks(self) -> int:
        await asyncio.sleep(0.05)
        return len(asyncio.all_tasks()) - 1
