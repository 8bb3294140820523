"""Run an event loop in a thread, so that tests can use blocking clients against it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TypeVar

TIMEOUT_S = 180.0

_Result = TypeVar("_Result")


class DrivenLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still until the test advances it."""

    _now_s = 1000.0

    def time(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        self._now_s += seconds


def run_driven(work: Callable[[DrivenLoop], Coroutine[object, object, _Result]]) -> _Result:
    """Run a coroutine in an event loop whose clock it advances itself."""
    with asyncio.Runner(loop_factory=DrivenLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, DrivenLoop)
        return runner.run(work(loop))


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class LoopThread:
    """A running event loop. Exit fails if tasks are left over."""

    def __init__(self, *, is_driven: bool = False) -> None:
        self.loop = DrivenLoop() if is_driven else asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        left = self.finish_tasks()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT_S)
        self.loop.close()
        if exc_type is None:
            assert left == 0, f"{left} tasks left over"

    def call(self, work: Coroutine[object, object, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(TIMEOUT_S)

    def run(self, function: Callable[[], _Result]) -> _Result:
        async def work() -> _Result:
            return function()

        return self.call(work())

    def advance(self, seconds: float) -> None:
        async def work() -> None:
            assert isinstance(self.loop, DrivenLoop)
            self.loop.advance(seconds)
            await turns()

        self.call(work())

    def finish_tasks(self) -> int:
        """Wait until the tasks of the loop are done, for a second at most. Return how many are left."""

        async def work() -> int:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            left = (await asyncio.wait(others, timeout=1))[1] if others else ()
            await turns()  # closed transports close their sockets
            return len(left)

        return self.call(work())
