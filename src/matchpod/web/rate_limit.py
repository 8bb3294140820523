"""May this key ask again already? One token bucket a key, in the memory of this process."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

from matchpod.core.errors import RateLimitError

MAX_KEYS = 10_000
"""A megabyte or two; the key that was silent for longest is forgotten, which leaves it a full bucket."""

_MINUTE_S = 60.0


class RateLimiter:
    """Lets `per_minute` requests a minute through for each key, and as many at once after a quiet minute."""

    def __init__(self, per_minute: int, monotonic: Callable[[], float]) -> None:
        self._size = float(per_minute)
        self._per_second = per_minute / _MINUTE_S
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> None:
        """Take one request from the key's bucket; RateLimitError when it is empty."""
        now = self._monotonic()
        left, since = self._buckets.get(key, (self._size, now))
        left = min(self._size, left + (now - since) * self._per_second)
        if left < 1.0:
            self._keep(key, left, now)
            wait_s = max(1, math.ceil((1.0 - left) / self._per_second))
            raise RateLimitError(
                f"This key may make {self._size:.0f} requests a minute; try again in {wait_s} s.", retry_after_s=wait_s
            )
        self._keep(key, left - 1.0, now)

    def _keep(self, key: str, left: float, now: float) -> None:
        self._buckets[key] = (left, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
