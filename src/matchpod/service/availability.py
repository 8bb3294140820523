"""What does a caller hear while the database is away? That he may try again, whichever use case he asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from matchpod.core.errors import UnavailableError
from matchpod.ports import DatabaseAwayError

RETRY_AFTER_S = 2
"""A database that restarts is back in seconds."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


def unavailable_when_away(work: Callable[_P, Awaitable[_T]]) -> Callable[_P, Awaitable[_T]]:
    """Let a use case answer UnavailableError where its database is away."""

    @wraps(work)
    async def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await work(*args, **kwargs)
        except DatabaseAwayError as exc:
            raise UnavailableError("The database is away; try again.", retry_after_s=RETRY_AFTER_S) from exc

    return guarded
