"""Decide whether the machine is the reason why a server could not be started, and when to retry.

A machine that has run out of memory, disk space, processes or open files cannot start a server for any match. So
matches wait instead of failing after a few attempts, and only one match at a time retries.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Final

MACHINE_ERRORS: Final = frozenset(
    {
        errno.ENOSPC,  # no disk space
        errno.EDQUOT,  # no disk quota
        errno.ENOMEM,  # no memory
        errno.EAGAIN,  # no further processes
        errno.EMFILE,  # no further open files in this process
        errno.ENFILE,  # no further open files on the machine
    }
)
FIRST_PAUSE_MS: Final = 1_000
MAX_PAUSE_MS: Final = 30_000
"""Maximum delay between two attempts in a region. The delay begins with FIRST_PAUSE_MS and doubles with each
failure."""


def is_machine_fault(error: BaseException) -> bool:
    """True if the error or one of its causes (`raise … from`) is a fault of the machine, not of a server."""
    return any(isinstance(cause, OSError) and cause.errno in MACHINE_ERRORS for cause in causes_of(error))


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of its cause, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


class _Pause:
    """The pause of a region. After the pause, one match retries, and only a failure of this match doubles the pause."""

    def __init__(self, until_ms: int, length_ms: int) -> None:
        self.until_ms = until_ms
        self.length_ms = length_ms
        self.is_tried = False


class MachineFaults:
    """The regions in which this process starts no servers for now, because of a fault of the machine."""

    def __init__(self, first_pause_ms: int = FIRST_PAUSE_MS) -> None:
        self._first_pause_ms = first_pause_ms
        self._pauses: dict[str, _Pause] = {}
        self.cleared: set[str] = set()
        """The regions whose machine is no longer at fault, and whose waiting matches were not woken yet."""

    def is_known(self, region: str) -> bool:
        """True if the last attempt to start a server in the region failed because of a machine fault."""
        return region in self._pauses

    def may_start(self, region: str, now_ms: int) -> bool:
        """True if a server may be started in the region now. After each pause, only the first call returns True."""
        pause = self._pauses.get(region)
        if pause is None:
            return True
        if now_ms < pause.until_ms:
            return False
        pause.is_tried, pause.until_ms = True, now_ms + pause.length_ms
        return True

    def is_paused(self, region: str, now_ms: int) -> bool:
        """True if no server may be started in the region now."""
        pause = self._pauses.get(region)
        return pause is not None and now_ms < pause.until_ms

    def record(self, region: str, now_ms: int) -> int:
        """Record that a server could not be started because of the machine. Return when to retry."""
        pause = self._pauses.setdefault(region, _Pause(now_ms + self._first_pause_ms, self._first_pause_ms))
        if pause.is_tried:
            pause.is_tried = False
            pause.length_ms = min(2 * pause.length_ms, MAX_PAUSE_MS)
            pause.until_ms = now_ms + pause.length_ms
        return pause.until_ms

    def clear(self, region: str) -> None:
        """Record that the machine is no longer at fault."""
        if self._pauses.pop(region, None) is not None:
            self.cleared.add(region)
