"""Define the states of a demo, and until when a server is kept for the uploads of its demos.

A demo is a recording of one map, made by the game server (GOTV) and uploaded by the match plugin after the map. A map
has several demos if its match was restored, or was given another server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

UPLOAD_LIMIT_MS: Final = 180_000
"""Timeout in ms for one upload. The plugin gives up after 100 s; the remaining time is a margin for a busy machine."""

PATIENCE_MS: Final = 60_000
"""Maximum time in ms for which an upload waits for an unavailable database: longer than a failover takes."""

STALE_MS: Final = PATIENCE_MS + 30_000
"""Time in ms without a report after which an upload is considered dead: its process was killed, or could not reach the
database for longer than an upload waits. The additional 30 s allow the first report after that wait to fail once."""

RENEW_MS: Final = 5_000
"""Interval in ms at which a process reports its running uploads."""

LATE_MS: Final = 6 * 3_600_000
"""Time in ms after the end of a match in which its server may still upload demos."""

MAX_FILES: Final = 20
"""Maximum number of demos per map. A match that is restored several times has a few."""


class DemoState(StrEnum):
    """Whether a demo can be downloaded."""

    RECORDING = "recording"
    """The server is recording the demo, or has not begun to upload it."""
    UPLOADING = "uploading"
    AVAILABLE = "available"
    MISSING = "missing"
    """There is no demo, or only a part of it; `MissingReason` says why. A late upload may still arrive."""


class MissingReason(StrEnum):
    """Why a demo is missing."""

    NOT_UPLOADED = "not_uploaded"
    """The server did not upload the demo in time."""
    CANCELED = "canceled"
    """The match was canceled during the recording, and its server was not kept for the upload."""
    SERVER_LOST = "server_lost"
    """The server was lost before it had uploaded the demo."""
    CUT = "cut"
    """The upload ended before the whole file had been received."""
    INTERRUPTED = "interrupted"
    """The service stopped during the upload."""
    TOO_SLOW = "too_slow"
    """The upload took longer than UPLOAD_LIMIT_MS."""
    TOO_LARGE = "too_large"
    """The file exceeds the size limit for demos."""
    OVER_QUOTA = "over_quota"
    """The organization's demos have reached their storage quota."""
    DISK_FULL = "disk_full"
    """The storage has no space left."""
    STORAGE_FAILED = "storage_failed"
    """The storage was unavailable, or rejected the file."""
    DELETED = "deleted"
    """The demo was deleted at the end of its retention time."""


UPLOAD_REASONS: Final = (
    MissingReason.CUT,
    MissingReason.INTERRUPTED,
    MissingReason.TOO_SLOW,
    MissingReason.TOO_LARGE,
    MissingReason.OVER_QUOTA,
    MissingReason.DISK_FULL,
    MissingReason.STORAGE_FAILED,
)
"""The reasons why an upload that had begun did not make a demo available."""


class DemoProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The state and times that determine how long a server is kept for a demo."""

    state: DemoState
    due_ms: int | None = None
    """Deadline by which the upload must begin; None while the end of the recording is unknown."""
    begun_at_ms: int | None = None
    renewed_at_ms: int | None = None


def state_of_map(states: Sequence[DemoState]) -> DemoState:
    """Return the demo state of a map from the states of its demos. Demos that are still expected take precedence."""
    order = (DemoState.UPLOADING, DemoState.RECORDING, DemoState.AVAILABLE)
    return next((state for state in order if state in states), DemoState.MISSING)


def waits_until_ms(demos: Iterable[DemoProgress], now_ms: int) -> int | None:
    """Return the time until which a server must be kept for its demos; None if no further upload can arrive.

    A recording without `due_ms` is not waited for. `storage.demos.await_upload` sets `due_ms` when the map has ended.
    """
    times = [until for until in map(_until_ms, demos) if until is not None and until > now_ms]
    return max(times, default=None)


def is_stale(demo: DemoProgress, now_ms: int) -> bool:
    """True if an upload has timed out: it took too long, or its process no longer reports it."""
    until_ms = _until_ms(demo)
    return demo.state is DemoState.UPLOADING and (until_ms is None or until_ms <= now_ms)


def _until_ms(demo: DemoProgress) -> int | None:
    match demo.state:
        case DemoState.RECORDING:
            return demo.due_ms
        case DemoState.UPLOADING:
            begun_ms = demo.begun_at_ms or 0
            return min(begun_ms + UPLOAD_LIMIT_MS + STALE_MS, (demo.renewed_at_ms or begun_ms) + STALE_MS)
        case _:
            return None
