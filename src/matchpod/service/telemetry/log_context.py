"""Record which request or match a task works for, so that the task's log lines have the request id and trace id.

Tasks that the task starts do not inherit the ids, because some of them live longer and work for other requests, too.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

import msgspec

from matchpod.core.trace_context import read_traceparent


class _Work(msgspec.Struct, frozen=True):
    """The ids of what a task works for. `traceparent` is a header from a caller, which may be invalid."""

    task: weakref.ref[asyncio.Task[object]]
    request_id: str | None
    traceparent: str | None


_WORK: Final[ContextVar[_Work | None]] = ContextVar("work", default=None)


def begin_work(*, request_id: str | None = None, traceparent: str | None = None) -> None:
    """Set the ids of the request or match for which the current task works from now on."""
    task = asyncio.current_task()
    if task is not None:
        _WORK.set(_Work(weakref.ref(task), request_id, traceparent))


def log_fields() -> Mapping[str, str]:
    """Return the `request_id` and `trace_id` for which the current task works, as far as they are set."""
    work = _WORK.get()
    if work is None or work.task() is not _current_task():
        return {}
    context = read_traceparent(work.traceparent)
    found = {"request_id": work.request_id, "trace_id": None if context is None else context.trace_id}
    return {name: value for name, value in found.items() if value is not None}


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # another thread
        return None
