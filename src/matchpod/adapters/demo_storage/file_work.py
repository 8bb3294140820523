"""Run the operations on a file in threads, one after the other, even if the caller of an operation is cancelled.

A thread cannot be cancelled. If the file were closed while a thread uses it, the descriptor might be reused for another
file.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Final, TypeVar

from matchpod.ports import StorageError, StorageFullError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_T = TypeVar("_T")


class FileWork:
    """Runs the operations on one file."""

    def __init__(self) -> None:
        self._last: asyncio.Future[object] | None = None

    async def run(self, step: Callable[[], _T]) -> _T:
        """Run an operation in a thread, after all earlier operations; convert an OSError to a StorageError."""
        await self.wait()
        work = asyncio.get_running_loop().run_in_executor(None, step)
        work.add_done_callback(_retrieve)
        self._last = work  # type: ignore[assignment]  # the result of any step
        try:
            return await asyncio.shield(work)
        except OSError as exc:
            raise storage_error(exc) from exc

    async def wait(self) -> None:
        """Wait until the last operation has ended or failed."""
        if self._last is not None and not self._last.done():
            await asyncio.wait([self._last])


def storage_error(exc: OSError) -> StorageError:
    kind = StorageFullError if exc.errno in _FULL else StorageError
    return kind(exc.strerror or str(exc))


def _retrieve(work: asyncio.Future[_T]) -> None:
    """Retrieve the exception of an operation, so that asyncio does not log it if the caller was cancelled."""
    if not work.cancelled():
        work.exception()
