"""Limit a rate with a token bucket, which fills up as time passes."""

from __future__ import annotations


class TokenBucket:
    """Allows `per_second` tokens per second, and `burst` tokens at once after a pause."""

    __slots__ = ("_at_s", "_burst", "_per_second", "_tokens")

    def __init__(self, burst: float, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = burst
        self._at_s: float | None = None

    def spend(self, amount: float, now_s: float) -> bool:
        """Take tokens out of the bucket; False if it has too few, and then none is taken."""
        if self._at_s is not None and now_s > self._at_s and self._tokens < self._burst:
            self._tokens = min(self._burst, self._tokens + (now_s - self._at_s) * self._per_second)
        self._at_s = now_s
        if amount > self._tokens:
            return False
        self._tokens -= amount
        return True

    def grant(self, amount: float, max_tokens: float) -> None:
        """Put tokens into the bucket, also more than the burst, but at most `max_tokens`."""
        self._tokens = max(self._tokens, min(max_tokens, self._tokens + amount))
