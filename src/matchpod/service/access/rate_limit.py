"""Limit rates within this process: per key with token buckets, or for all clients together in round-robin order."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable

from matchpod.core.errors import RateLimitError

MAX_KEYS = 10_000
"""Maximum number of buckets; they take one or two megabytes. If there are more, the bucket of the least recently used
key is dropped. The key's next use begins with a full bucket."""

_MINUTE_S = 60.0
_ROUNDING = 1e-6
"""Fraction of a token that may be missing, due to rounding, when the timer for the next token fires."""


class RateLimiter:
    """Allows `per_minute` units per key and minute. After an idle minute, they may be used all at once.

    The error message names `owner`, to which the limit applies, and `unit`, which is counted.
    """

    def __init__(self, per_minute: int, monotonic: Callable[[], float], *, owner: str, unit: str) -> None:
        self._limit = f"The limit of {owner} is {per_minute} {unit} per minute."
        self._size = float(per_minute)
        self._per_second = per_minute / _MINUTE_S
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def acquire(self, key: str) -> None:
        """Remove a token from the key's bucket. Raise RateLimitError if there is none."""
        now = self._monotonic()
        tokens = self._tokens(key, now)
        if tokens < 1.0:
            self._store(key, tokens, now)
            wait_s = max(1, math.ceil((1.0 - tokens) / self._per_second))
            raise RateLimitError(f"{self._limit} Retry in {wait_s} s.", retry_after_s=wait_s)
        self._store(key, tokens - 1.0, now)

    def has(self, key: str) -> bool:
        """True if there is a token in the key's bucket."""
        return self._tokens(key, self._monotonic()) >= 1.0

    def _tokens(self, key: str, now: float) -> float:
        tokens, since = self._buckets.get(key, (self._size, now))
        return min(self._size, tokens + max(0.0, now - since) * self._per_second)

    def _store(self, key: str, tokens: float, now: float) -> None:
        self._buckets[key] = (tokens, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)


class FairPacer:
    """Admits up to `burst` requests at once, then `per_second` requests per second, one per waiting client in turn.

    A request waits for at most `max_wait_s`. If `max_wait_s` is 0, requests over the limit are rejected at once.
    """

    def __init__(self, per_second: float, *, burst: int, max_wait_s: float, what: str) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._max_wait_s = max_wait_s
        self._most = int(max_wait_s * per_second)
        """Maximum number of waiting requests per client. Further requests would time out before their turn."""
        self._limit = f"{what} are served {per_second:g} times per second."
        self._tokens, self._since_s = self._burst, -math.inf
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """The waiting requests by client. The first client is the next to have a turn."""
        self._timer: asyncio.TimerHandle | None = None

    async def turn(self, client: str) -> None:
        """Wait for a request's turn. RateLimitError if it times out, or if the client has too many waiting requests."""
        if not self._queues and self._take():
            return
        if len(self._queues.get(client, ())) >= self._most:
            raise self._error()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(client, deque()).append(waiter)
        try:
            self._begin_turns()
            async with asyncio.timeout(self._max_wait_s):
                await waiter
        except TimeoutError:
            raise self._error() from None
        finally:
            queue = self._queues.get(client)
            if queue is not None and waiter in queue:
                queue.remove(waiter)
                if not queue:
                    del self._queues[client]

    def _begin_turns(self) -> None:
        """Admit the waiting requests for which there are tokens, and set a timer for the next request."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queues:
            client, queue = self._queues.popitem(last=False)
            while queue and queue[0].done():  # timed out, but its task has not removed it yet
                queue.popleft()
            if queue and not self._take():
                self._queues[client] = queue
                self._queues.move_to_end(client, last=False)
                break
            if queue:
                queue.popleft().set_result(None)
            if queue:
                self._queues[client] = queue  # at the end: all other waiting clients have a turn first
        if self._queues:
            wait_s = (1.0 - self._tokens) / self._per_second
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._begin_turns)

    def _take(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        self._tokens = min(self._burst, self._tokens + (now_s - self._since_s) * self._per_second)
        self._since_s = now_s
        if self._tokens < 1.0 - _ROUNDING:
            return False
        self._tokens -= 1.0
        return True

    def _error(self) -> RateLimitError:
        return RateLimitError(f"{self._limit} Retry later.", retry_after_s=max(1, math.ceil(self._max_wait_s)))
