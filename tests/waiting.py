"""Wait for what no event tells of, such as the state of another process or of a database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

WITHIN_S = 120.0
"""Far longer than anything takes on a busy machine."""
LOOK_S = 0.01


async def until(condition: Callable[..., object], what: str = "", *, within_s: float = WITHIN_S) -> None:
    """Wait until a condition, which may be a coroutine function, is true; say what was awaited if it never is."""
    deadline_s = monotonic() + within_s
    while not (await found if isinstance(found := condition(), Awaitable) else found):
        assert monotonic() < deadline_s, f"not within {within_s:g} s: {what or condition}"
        await asyncio.sleep(LOOK_S)
