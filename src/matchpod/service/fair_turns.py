"""Let work take fair turns: a queue per key, such as the reads of an organization, and a bounded number in progress.

The event loop does one thing at a time: what is more than the share of a key waits here, and not in the loop's queue.
Few turns begin per iteration of the loop: what never waits, such as log posts, goes on in between. Of the keys with
waiting work, the one whose last turn was longest ago is next. The latency of others matters more than throughput: while
there are others, fewer turns begin and are in progress, and a key with a queue is held back a moment for one without.
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
"""Turns of one key in progress. More would make each slower: with SQLite, their work is done by one core and by a few
threads that read, of which others need one."""
OF_KEY_SHARED: Final = 4
"""The limit with a database on the network: some turns wait for its answers."""
NEAR_S: Final = 10.0
"""An owner is alone if no other owner had a turn for this long. Otherwise its keys have half as many in progress, and
one turn begins per iteration of the loop: the next turn of another one has to wait for them."""
BURST: Final = 8
"""Turns of an owner who is alone that begin per iteration of the loop: what they write is then committed together."""
SLOW_S: Final = 0.02
"""After this time, work in progress counts no longer for that: it waits for the database more than it computes."""
CHANGES: Final = 8
"""This many times as many turns may be in progress if they change something: they mostly wait for a commit, and those
that wait together share it."""
AT_ONCE: Final = 64
"""Turns of all keys in progress."""
MAX_WAITING: Final = 1_000
"""Work of one key that waits, each with its request in memory; a burst of that size is done within a second or two."""
MAX_WAIT_S: Final = 10.0
"""Longest wait for a turn: shorter than the timeouts of clients and proxies, so that they get a response."""
FULL_S: Final = 5.0
"""Pause before work is rejected because the queue is full: otherwise a client that repeats it at once would keep the
loop busy with rejections."""
HOLD_S: Final = 0.01
"""How long keys with a queue are held back for work of a key without one: most requests take less."""

_T = TypeVar("_T")

WatchLoss = Callable[[Callable[[], None] | None], None]
"""Gets a function to call if the result is no longer wanted; None at the end of the wait."""


class TurnKey(NamedTuple):
    """What has a queue: one kind of work of an owner; `parallel` times as many turns as usual may be in progress."""

    owner: str
    kind: str = ""
    parallel: int = 1


def changes_of(owner: str) -> TurnKey:
    """Return the queue of requests that change something: they do not wait behind those that read."""
    return TurnKey(owner, "changes", CHANGES)


def streams_of(owner: str) -> TurnKey:
    """Return the queue of streams that have to read what they have missed."""
    return TurnKey(owner, "streams")


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many turns are in progress, and how many may wait for how long."""

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
    """Too much work of the key waits already."""


class WaitedTooLongError(Exception):
    """The turn has not come in time."""


class NotWantedError(Exception):
    """The result is no longer wanted."""


class _Outcome(Enum):
    """How a wait ended."""

    BEGUN = auto()
    TOO_LONG = auto()
    GONE = auto()


_Waiter = asyncio.Future[_Outcome]


class FairTurns:
    """The turns of a process."""

    def __init__(self, limits: TurnLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._in_progress: dict[TurnKey, int] = {}
        self._total = 0
        self._queues: dict[TurnKey, OrderedDict[_Waiter, None]] = {}
        """Waiting work by key; no queue is empty."""
        self._served: dict[TurnKey, int] = {}
        """The number of the last turn of each key, since nothing was in progress."""
        self._turns = 0
        self._begun_s: dict[TurnKey, float] = {}
        """When the last turn of each key in progress began."""
        self._last_owner = ""
        self._last_s = self._alone_from_s = -math.inf
        """When the last turn of all began, and when its owner counts as alone unless another one has a turn before."""
        self._begun = 0
        """How many turns have begun in this iteration of the loop."""
        self._is_planned = False
        self._held: asyncio.TimerHandle | None = None
        """Ends the time in which waiting work is held back."""
        self._is_due = False
        """True if waiting work was held back long enough: the next turn begins in any case."""

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return sum(map(len, self._queues.values()))

    def begin(self, key: TurnKey) -> bool:
        """Begin a turn now; False if it has to wait. Each turn must be ended."""
        if key in self._queues or not self._has_room(key):
            return False
        if self._begun and (self._begun >= self.limits.burst or not self._is_alone(key)):
            return False
        self._hold_place(key)
        return True

    async def wait(self, key: TurnKey, *, watch_loss: WatchLoss | None = None, is_limited: bool = True) -> None:
        """Wait for a turn to begin, after those of the same key that wait already.

        Without `is_limited`, however many wait, and for however long.
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
                outcome = waiter.result()  # cancelled right after that
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
        """Wait for a turn without a limit, do the work in it, and return its result."""
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
        """Continue in the next iteration of the loop."""
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_planned, self._begun = False, 0
        while self._queues and self._begun < self.limits.burst:
            key = self._next_key()
            if key is None:
                return  # the end of a turn goes on, or the timer
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
        """Return the key whose turn is next; None if none can begin now."""
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
