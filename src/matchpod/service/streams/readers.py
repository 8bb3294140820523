"""Let readers of streams wait for new items, and limit how many are open per process and per organization.

A new item may be for a thousand readers, each of which takes about 40 µs of the event loop. Therefore only a few are
woken per iteration of the loop, organizations in turn, so that other work continues in between.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from matchpod.core.errors import RateLimitError, UnavailableError

MAX_READERS: Final = 10_000
"""Maximum number of readers per process. Each has a connection and a few kilobytes, and a process may open 65,536
files."""
FULL_RETRY_S: Final = 5
"""Retry-After of the error for too many readers."""
WOKEN_AT_ONCE: Final = 16
"""Maximum number of readers woken per iteration of the event loop, which takes less than a millisecond."""


class PollPace(msgspec.Struct, frozen=True, kw_only=True):
    """How often the database is read for streams; times in seconds."""

    poll_s: float = 1.0
    """Pause between two polls of a shared database, and so the maximum delay of items of another process."""
    check_polls: int = 5
    """Factor by which a database that is not shared is polled less often. There, polls are only a safeguard, because
    this process knows when it writes. With a shared database, one of this many polls checks whether the map is over,
    and reads its items even if this process records them."""
    gather_s: float = 0.1
    """Pause between a write of this process and the read that follows for an organization, so that it reads several
    events at once."""
    retry_s: float = 1.0
    """Pause before a reader tries again while the database is unavailable."""

    @property
    def check_s(self) -> float:
        """Pause between two polls of a database that is not shared."""
        return self.poll_s * self.check_polls


DEFAULT_PACE: Final = PollPace()


class StreamReader:
    """One open stream. Must be closed by the code that opened it."""

    def __init__(self, org_id: str) -> None:
        self.org_id = org_id
        self.is_over = False
        """True if all items were returned and there will be no others."""
        self.is_closed = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._when_closed: Callable[[], None] | None = None
        self.readers: OpenReaders | None = None
        """The open readers that this reader was added to."""

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
        """End the stream, which returns no further frames. Closing twice has no effect."""
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
        """Wait for new items or the deadline; may return early."""
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer.when() > deadline:
            # A timer that fires too early costs less than a new timer for each wait.
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
    """The open readers of this process, of all kinds of streams."""

    def __init__(self, *, max_readers: int, max_of_org: int | None) -> None:
        self._max_readers = max_readers
        self._max_of_org = max_of_org
        self._readers: set[StreamReader] = set()
        self._of_org: Counter[str] = Counter()
        self._woken: OrderedDict[str, OrderedDict[StreamReader, None]] = OrderedDict()
        """Readers to wake, by organization; the organization whose turn is next comes first."""
        self._left = WOKEN_AT_ONCE
        """Number of readers that may still be woken in this iteration of the event loop."""
        self._is_planned = False
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._readers)

    def check(self, org_id: str) -> None:
        """Raise an error for the caller if the organization cannot open another stream now."""
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
        """Count a reader until it is discarded."""
        self._readers.add(reader)
        self._of_org[reader.org_id] += 1
        reader.readers = self

    def discard(self, reader: StreamReader) -> None:
        self._readers.discard(reader)
        self._of_org[reader.org_id] -= 1

    def wake(self, reader: StreamReader) -> None:
        """Wake a reader now, or after other readers if there are many."""
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
        """Close all readers and accept no new ones."""
        self._is_closed = True
        for reader in tuple(self._readers):
            reader.close()
