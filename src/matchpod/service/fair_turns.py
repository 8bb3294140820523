"""Schedule work in fair turns: a queue per key, such as the reads of an organization, and limits for work in progress.

The event loop runs one task at a time, so work beyond the share of a key must wait here, not in the loop's queue. Only
a few turns begin per iteration of the loop, so that work without turns, such as log posts, continues in between. The
next turn is given to the waiting key whose last turn is longest ago.

Low latency for each owner (such as an organization) matters more than throughput. While several owners have turns,
fewer turns begin and are in progress, and a key with a queue waits for a moment in favor of keys without a queue.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Final, NamedTuple, TypeVar

import msgspec

OF_KEY: Final = 2
"""Maximum number of turns in progress per key. A higher number would make each turn slower, because with SQLite, one
core and a few reader threads do the work of all keys."""
OF_KEY_SHARED: Final = 4
"""OF_KEY for a database on the network. It is higher, because some turns wait for the database's responses."""
NEAR_S: Final = 10.0
"""Time in seconds without turns of other owners after which an owner counts as alone. Until then, its keys may have
half as many turns in progress, and one turn begins per iteration of the loop, so that a turn of another owner can soon
begin."""
BURST: Final = 8
"""Maximum number of turns that begin per iteration of the loop if their owner is alone. Their writes may then share a
transaction."""
SLOW_S: Final = 0.02
"""Time in seconds since a key's last turn began, after which the key may have its full number of turns in progress even
if its owner is not alone. Work that takes this long mostly waits for the database."""
CHANGES: Final = 8
"""Factor by which the limit of turns in progress per key is higher for turns that write to the database. They mostly
wait for a commit, which waiting turns share."""
AT_ONCE: Final = 64
"""Maximum number of turns in progress for all keys together."""
MAX_WAITING: Final = 1_000
"""Maximum number of waiting requests per key. They are kept in memory. A full queue is processed within one or two
seconds."""
MAX_WAIT_S: Final = 10.0
"""Timeout in seconds of the wait for a turn. It is shorter than the timeouts of clients and proxies, so that they get a
response."""
FULL_S: Final = 5.0
"""Delay in seconds before a request is rejected because the queue is full. Without it, a client that retries at once
would keep the loop busy with rejections."""
HOLD_S: Final = 0.01
"""Time in seconds for which keys with a queue wait in favor of keys without a queue. Most requests take less time."""

_T = TypeVar("_T")

WatchLoss = Callable[[Callable[[], None] | None], None]
"""A function that receives a callback, which it must call if the client no longer waits for the result. At the end of
the wait, the function receives None."""


class TurnKey(NamedTuple):
    """The key of a queue: an owner and a type of work. `parallel` multiplies the limit of turns in progress."""

    owner: str
    kind: str = ""
    parallel: int = 1


def changes_of(owner: str) -> TurnKey:
    """Return the key for requests that write to the database. They have a queue of their own, without reads."""
    return TurnKey(owner, "changes", CHANGES)


def streams_of(owner: str) -> TurnKey:
    """Return the key for reads of the items that readers of streams have missed."""
    return TurnKey(owner, "streams")


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of `FairTurns`. The constants above describe them."""

    of_key: int = OF_KEY
    near_s: float = NEAR_S
    burst: int = BURST
    slow_s: float = SLOW_S
    at_once: int = AT_ONCE
    waiting: int = MAX_WAITING
    wait_s: float = MAX_WAIT_S
    full_s: float = FULL_S
    hold_s: float = HOLD_S


DEFAULT_LIMITS: Final = TurnLimits()


class QueueFullError(Exception):
    """The queue of the key is full."""


class WaitedTooLongError(Exception):
    """The wait for a turn timed out."""


class NotWantedError(Exception):
    """The client no longer waits for the result."""


class _Outcome(Enum):
    """How the wait for a turn ended."""

    BEGUN = auto()
    TOO_LONG = auto()
    GONE = auto()


_Waiter = asyncio.Future[_Outcome]


class FairTurns:
    """Schedules the turns of this process."""

    def __init__(self, limits: TurnLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._in_progress: dict[TurnKey, int] = {}
        self._total = 0
        self._queues: dict[TurnKey, OrderedDict[_Waiter, None]] = {}
        """The queues of waiting work by key, without empty queues."""
        self._served: dict[TurnKey, int] = {}
        """The number of each key's last turn. Cleared when no turn is in progress."""
        self._turns = 0
        self._begun_s: dict[TurnKey, float] = {}
        """When the last turn of each key in progress began."""
        self._last_owner = ""
        self._last_s = self._alone_from_s = -math.inf
        """When the last turn of any key began, and when its owner counts as alone unless another owner has a turn."""
        self._begun = 0
        """Number of turns that have begun in this iteration of the loop."""
        self._is_planned = False
        self._held: asyncio.TimerHandle | None = None
        """The timer that ends the hold on waiting work."""
        self._is_due = False
        """True if waiting work was held back long enough, so that the next turn begins in any case."""

    @property
    def waiting(self) -> int:
        """The number of waiting requests of all keys."""
        return sum(map(len, self._queues.values()))

    def begin(self, key: TurnKey) -> bool:
        """Begin a turn now. False if the turn has to wait. The caller must end each turn that has begun."""
        if key in self._queues or not self._has_room(key):
            return False
        if self._begun and (self._begun >= self.limits.burst or not self._is_alone(key)):
            return False
        self._hold_place(key)
        return True

    async def wait(self, key: TurnKey, *, watch_loss: WatchLoss | None = None, is_limited: bool = True) -> None:
        """Wait until a turn begins, behind all turns of the same key that are already waiting.

        If not `is_limited`, neither the length of the queue nor the waiting time is limited.
        """
        queue = self._queues.get(key, OrderedDict())
        if is_limited and len(queue) >= self.limits.waiting:
            await asyncio.sleep(self.limits.full_s)
            raise QueueFullError
        loop = asyncio.get_running_loop()
        waiter: _Waiter = loop.create_future()
        self._queues[key] = queue
        queue[waiter] = None
        self._plan()
        timer = loop.call_later(self.limits.wait_s, _resolve, waiter, _Outcome.TOO_LONG) if is_limited else None
        if watch_loss is not None:
            watch_loss(lambda: _resolve(waiter, _Outcome.GONE))
        outcome = None
        try:
            outcome = await waiter
        finally:
            if outcome is None and waiter.done() and not waiter.cancelled():
                outcome = waiter.result()  # this task was cancelled right after the wait had ended
                if outcome is _Outcome.BEGUN:
                    self.end(key)
            if outcome is not _Outcome.BEGUN:
                self._leave(key, waiter)
            if timer is not None:
                timer.cancel()
            if watch_loss is not None:
                watch_loss(None)
        if outcome is _Outcome.TOO_LONG:
            raise WaitedTooLongError
        if outcome is _Outcome.GONE:
            raise NotWantedError

    async def run(self, key: TurnKey, work: Callable[[], Awaitable[_T]]) -> _T:
        """Wait for a turn, not limited by time or queue length, run `work` in the turn, and return its result."""
        if not self.begin(key):
            await self.wait(key, is_limited=False)
        try:
            return await work()
        finally:
            self.end(key)

    def end(self, key: TurnKey) -> None:
        self._total -= 1
        left = self._in_progress[key] - 1
        if left:
            self._in_progress[key] = left
        else:
            del self._in_progress[key], self._begun_s[key]
        if self._queues:
            self._plan()
        elif not self._total:
            self._served.clear()

    def _has_room(self, key: TurnKey) -> bool:
        held, limits = self._in_progress.get(key, 0), self.limits
        most = limits.of_key * key.parallel
        if self._total >= limits.at_once or held >= most:
            return False
        if held < max(1, most // 2):
            return True
        return self._is_alone(key) or time.monotonic() >= self._begun_s[key] + limits.slow_s

    def _is_alone(self, key: TurnKey) -> bool:
        if key.owner == self._last_owner:
            return time.monotonic() >= self._alone_from_s
        return time.monotonic() >= self._last_s + self.limits.near_s

    def _hold_place(self, key: TurnKey) -> None:
        now_s = time.monotonic()
        if key.owner != self._last_owner and now_s < self._last_s + self.limits.near_s:
            self._alone_from_s = now_s + self.limits.near_s
        self._last_owner, self._last_s = key.owner, now_s
        self._total += 1
        self._in_progress[key] = self._in_progress.get(key, 0) + 1
        self._begun_s[key] = now_s
        self._begun += 1
        self._turns += 1
        self._served[key] = self._turns
        self._plan()

    def _leave(self, key: TurnKey, waiter: _Waiter) -> None:
        queue = self._queues.get(key)
        if queue is not None and waiter in queue:
            del queue[waiter]
            if not queue:
                del self._queues[key]

    def _plan(self) -> None:
        """Schedule `_begin_turns` for the next iteration of the event loop."""
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._begin_turns)

    def _begin_turns(self) -> None:
        self._is_planned, self._begun = False, 0
        while self._queues and self._begun < self.limits.burst:
            key = self._next_key()
            if key is None:
                return  # the end of a turn, or the timer, calls `_plan`
            queue = self._queues[key]
            waiter, _ = queue.popitem(last=False)
            if not queue:
                del self._queues[key]
            if not waiter.done():
                self._hold_place(key)
                waiter.set_result(_Outcome.BEGUN)
                if not self._is_alone(key):
                    break
        if self._queues:
            self._plan()

    def _next_key(self) -> TurnKey | None:
        """Return the key whose turn is next; None if no turn can begin now."""
        ready = [key for key in self._queues if self._has_room(key)]
        is_held = not self._is_due and any(key not in self._queues for key in self._in_progress)
        if is_held:
            ready = [key for key in ready if key not in self._in_progress and len(self._queues[key]) == 1]
        if not ready:
            if self._held is None:
                self._held = asyncio.get_running_loop().call_later(self.limits.hold_s, self._release)
            return None
        if not is_held and self._held is not None:
            self._held.cancel()
            self._held = None
        self._is_due = False
        return min(ready, key=lambda key: self._served.get(key, 0))

    def _release(self) -> None:
        self._held, self._is_due = None, True
        self._plan()


def _resolve(waiter: _Waiter, outcome: _Outcome) -> None:
    if not waiter.done():
        waiter.set_result(outcome)
