"""Convert a database outage into UnavailableError, which tells callers to retry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from matchpod.core.errors import UnavailableError
from matchpod.ports import DatabaseUnavailableError

RETRY_AFTER_S = 2
"""Retry-After of the error in seconds. A database that restarts is available again within seconds."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


def unavailable_on_outage(work: Callable[_P, Awaitable[_T]]) -> Callable[_P, Awaitable[_T]]:
    """Decorator: raise UnavailableError if the database is unavailable."""

    @wraps(work)
    async def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await work(*args, **kwargs)
        except DatabaseUnavailableError as exc:
            raise UnavailableError("The database is unavailable. Retry later.", retry_after_s=RETRY_AFTER_S) from exc

    return guarded
