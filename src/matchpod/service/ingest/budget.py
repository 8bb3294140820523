"""Limit the rate of posts per token, so that a flood from one game server does not slow down other servers.

A post over the limit waits for at most MAX_WAIT_S; then it is rejected. Game servers resend a post until it is stored,
so nothing is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from matchpod.core.errors import RateLimitError

BYTES_PER_S: Final = 256 * 1024
"""Maximum sustained number of bytes per second and token. A real match logs less than 1 KB per second; a simulated
match at the speed of the sandbox logs 30 times as much."""

BURST_BYTES: Final = 8 * 1024 * 1024
"""Maximum number of bytes that a token may send at once after a pause, such as an outage. The log of several maps
fits."""

POST_BYTES: Final = 512
"""Number of bytes that each post costs in addition to its size, because even an empty post has to be stored."""

MAX_AT_ONCE: Final = 4
"""Maximum number of posts per token that are received and stored concurrently. Game servers send one post at a time."""

MAX_WAIT_S: Final = 5.0
"""Maximum time that a post waits before it is rejected. Waiting posts cost less than a flood of retries after
rejections."""

MAX_TOKENS: Final = 10_000
"""Maximum number of tokens whose budget and sender are cached; they take a few megabytes. If there are more, the least
recently used token is dropped: its next post gets a full budget and needs a database read."""

NORMAL_SPEED: Final = 30.0
"""Game speed up to which BYTES_PER_S applies: that of the sandbox. Faster regions get a proportionally higher rate."""


class IngestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits per token, and the maximum number of cached tokens."""

    bytes_per_s: int = BYTES_PER_S
    burst_bytes: int = BURST_BYTES
    max_wait_s: float = MAX_WAIT_S
    max_tokens: int = MAX_TOKENS


DEFAULT_LIMITS: Final = IngestLimits()


class Budget:
    """The bucket of bytes that a token may send; it is refilled at a constant rate."""

    def __init__(self, now_s: float, limits: IngestLimits = DEFAULT_LIMITS) -> None:
        self.turns = asyncio.Semaphore(MAX_AT_ONCE)
        self.taken = 0
        """Number of posts that `take` has accepted and that are not stored yet."""
        self._limits = limits
        self._bytes = float(limits.burst_bytes)
        self._at_s = now_s

    def wait_s(self, now_s: float, speed: float) -> float:
        """Return the time in seconds until the next post may be received; 0 if it may be received now."""
        rate = self._limits.bytes_per_s * max(1.0, speed / NORMAL_SPEED)
        self._bytes = min(float(self._limits.burst_bytes), self._bytes + max(0.0, now_s - self._at_s) * rate)
        self._at_s = now_s
        return max(0.0, -self._bytes / rate)

    def spend(self, size: int) -> None:
        """Charge a received post. The budget may become negative, because the size is known only after the receipt."""
        self._bytes -= size + POST_BYTES


class IngestBudgets:
    """The budgets of all tokens, in the memory of this process."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, *, limits: IngestLimits = DEFAULT_LIMITS
    ) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._budgets: OrderedDict[str, Budget] = OrderedDict()

    def take(self, token: str, size: int, speed: float) -> Budget | None:
        """Charge a post to its token's budget, and return the budget; None if the post has to wait."""
        budget = self._budget(token)
        if budget.taken >= MAX_AT_ONCE or budget.turns.locked() or budget.wait_s(self._monotonic(), speed):
            return None
        budget.taken += 1
        budget.spend(size)
        return budget

    @asynccontextmanager
    async def turn(self, token: str, speed: float) -> AsyncIterator[Budget]:
        """Wait until the token may send a post. Raise RateLimitError if this takes longer than `max_wait_s`."""
        budget = self._budget(token)
        began_s = self._monotonic()
        try:
            async with asyncio.timeout(self._limits.max_wait_s):
                await budget.turns.acquire()
        except TimeoutError:
            raise self._rejection() from None
        try:
            wait_s = budget.wait_s(self._monotonic(), speed)
            left_s = self._limits.max_wait_s - (self._monotonic() - began_s)
            await asyncio.sleep(min(wait_s, max(0.0, left_s)))
            if wait_s > left_s:
                raise self._rejection()
            yield budget
        finally:
            budget.turns.release()

    def _budget(self, token: str) -> Budget:
        budget = self._budgets.get(token)
        if budget is None:
            budget = self._budgets[token] = Budget(self._monotonic(), self._limits)
        self._budgets.move_to_end(token)
        if len(self._budgets) > self._limits.max_tokens:
            self._budgets.popitem(last=False)
        return budget

    def _rejection(self) -> RateLimitError:
        kib = self._limits.bytes_per_s // 1024
        return RateLimitError(f"This token sends more than {kib} KiB per second. Send the post again.", retry_after_s=1)
