"""Let readers of streams wait for new items, and limit the number of open readers per process and per organization.

A new item may wake a thousand readers, and each takes about 40 µs of the event loop. Therefore only a few readers are
woken per iteration of the loop, one per organization in turn, so that other work continues in between.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from matchpod.core.errors import RateLimitError, UnavailableError

MAX_READERS: Final = 10_000
"""Maximum number of readers per process. Each reader needs a connection and a few kilobytes, and a process may open
65,536 files."""
FULL_RETRY_S: Final = 5
"""Retry-After in seconds of the error that there are too many readers."""
WOKEN_AT_ONCE: Final = 16
"""Maximum number of readers that are woken per iteration of the event loop. This takes less than a millisecond."""


class PollPace(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals, in seconds, at which the database is read for streams."""

    poll_s: float = 1.0
    """Interval at which a shared database is polled. It is the maximum delay of items that another process stores."""
    check_polls: int = 5
    """Factor by which the poll interval is longer if the database is not shared. Such polls are only a safeguard:
    this process knows when it writes. With a shared database, one in `check_polls` polls checks whether the map is
    over, and reads its items even if this process records them."""
    gather_s: float = 0.1
    """Delay between a write of an organization's events by this process and the read that follows, so that several
    events are read at once."""
    retry_s: float = 1.0
    """Interval at which a reader retries while the database is unavailable."""

    @property
    def check_s(self) -> float:
        """Interval at which a database that is not shared is polled."""
        return self.poll_s * self.check_polls


DEFAULT_PACE: Final = PollPace()


class StreamReader:
    """The reader of an open stream. The code that has opened it must close it."""

    def __init__(self, org_id: str) -> None:
        self.org_id = org_id
        self.is_over = False
        """True if all items were returned and there will be no further items."""
        self.is_closed = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._when_closed: Callable[[], None] | None = None
        self.readers: OpenReaders | None = None
        """The `OpenReaders` to which this reader was added."""

    def wake(self) -> None:
        """Check for new items soon."""
        if self._waiter is None or self._waiter.done():
            return
        if self.readers is None:
            self.resume()
        else:
            self.readers.wake(self)

    def resume(self) -> None:
        """Check for new items now, if this reader waits for them."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """End the stream: it returns no further frames. A second call has no effect."""
        if not self.is_closed:
            self.is_closed = True
            self._leave()
            self._cancel_timer()
            self.wake()
            if self._when_closed is not None:
                self._when_closed()

    def when_closed(self, act: Callable[[], None]) -> None:
        self._when_closed = act

    def _leave(self) -> None:
        """Remove this reader from its channels."""
        raise NotImplementedError

    async def wait(self, deadline: float) -> None:
        """Wait until there are new items, but at most until the deadline. May return earlier."""
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer.when() > deadline:
            # Keep a timer with an earlier deadline: waking too early costs less than a new timer for each wait.
            self._cancel_timer()
            self._timer = loop.call_at(deadline, self._on_timer)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _on_timer(self) -> None:
        self._timer = None
        self.wake()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class OpenReaders:
    """The open readers of all streams of this process."""

    def __init__(self, *, max_readers: int, max_of_org: int | None) -> None:
        self._max_readers = max_readers
        self._max_of_org = max_of_org
        self._readers: set[StreamReader] = set()
        self._of_org: Counter[str] = Counter()
        self._woken: OrderedDict[str, OrderedDict[StreamReader, None]] = OrderedDict()
        """The readers to wake, by organization. The organization whose turn is next comes first."""
        self._left = WOKEN_AT_ONCE
        """Number of readers that may still be woken in this iteration of the event loop."""
        self._is_planned = False
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._readers)

    def check(self, org_id: str) -> None:
        """Raise UnavailableError or RateLimitError if the organization cannot open another stream now."""
        if self._is_closed:
            raise UnavailableError("The service is draining. Retry later.", retry_after_s=1)
        if len(self._readers) >= self._max_readers:
            raise UnavailableError("Too many open streams. Retry later.", retry_after_s=FULL_RETRY_S)
        if self._max_of_org is not None and self._of_org[org_id] >= self._max_of_org:
            raise RateLimitError(
                f"This organization has {self._max_of_org} open streams, its limit. Close some, or retry later.",
                retry_after_s=FULL_RETRY_S,
            )

    def add(self, reader: StreamReader) -> None:
        """Add a reader, which counts toward the limits until it is discarded."""
        self._readers.add(reader)
        self._of_org[reader.org_id] += 1
        reader.readers = self

    def discard(self, reader: StreamReader) -> None:
        self._readers.discard(reader)
        self._of_org[reader.org_id] -= 1

    def wake(self, reader: StreamReader) -> None:
        """Wake a reader now or, if many readers have to be woken, when it is its turn."""
        if self._left and not self._woken:
            self._left -= 1
            reader.resume()
        else:
            self._woken.setdefault(reader.org_id, OrderedDict())[reader] = None
        self._plan()

    def _plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._wake_next)

    def _wake_next(self) -> None:
        self._is_planned, self._left = False, WOKEN_AT_ONCE
        while self._left and self._woken:
            org_id, readers = self._woken.popitem(last=False)
            reader, _ = readers.popitem(last=False)
            if readers:
                self._woken[org_id] = readers
            self._left -= 1
            reader.resume()
        if self._left < WOKEN_AT_ONCE:
            self._plan()

    def close(self) -> None:
        """Close all readers and accept no further readers."""
        self._is_closed = True
        for reader in tuple(self._readers):
            reader.close()
