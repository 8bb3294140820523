"""Run a coroutine without a task, if it does not have to wait."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class WouldWaitError(Exception):
    """A coroutine has to wait, so it has no result at once."""


def result_at_once(work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine. If the coroutine has to wait, close it and raise WouldWaitError."""
    try:
        work.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    work.close()
    raise WouldWaitError
