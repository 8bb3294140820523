"""Limit how often something is done, in the memory of this process: per minute and key, or evenly for all together."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

from matchpod.core.errors import RateLimitError

MAX_KEYS = 10_000
"""Maximum buckets, one or two megabytes. Beyond that the least recently used key gets a full bucket again."""

_MINUTE_S = 60.0


class RateLimiter:
    """Allows each key `per_minute` units per minute, all of them at once after an idle minute.

    `owner` and `unit` are for the error message: the limit of whom, and of what.
    """

    def __init__(self, per_minute: int, monotonic: Callable[[], float], *, owner: str, unit: str) -> None:
        self._limit = f"The limit of {owner} is {per_minute} {unit} per minute."
        self._size = float(per_minute)
        self._per_second = per_minute / _MINUTE_S
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def acquire(self, key: str) -> None:
        """Take one token from the key's bucket; raise RateLimitError if it is empty."""
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


class RequestPacer:
    """Lets `burst` through at once, and then `per_second`; others wait for their turn, at most `max_wait_s`."""

    def __init__(
        self, per_second: float, monotonic: Callable[[], float], *, burst: int, max_wait_s: float, what: str
    ) -> None:
        self._pause_s = 1.0 / per_second
        self._burst_s = (burst - 1) * self._pause_s
        self._monotonic = monotonic
        self._max_wait_s = max_wait_s
        self._limit = f"{what} are served {per_second:g} times per second."
        self._turn_s = -math.inf
        """When the next one may pass, if it does not use the burst."""

    def wait_s(self) -> float:
        """Take a turn, and return the seconds to wait for it; raise RateLimitError if that is too long."""
        now_s = self._monotonic()
        turn_s = max(self._turn_s, now_s - self._burst_s)
        wait_s = max(0.0, turn_s - now_s)
        if wait_s > self._max_wait_s:
            raise RateLimitError(f"{self._limit} Retry later.", retry_after_s=math.ceil(wait_s))
        self._turn_s = turn_s + self._pause_s
        return wait_s
