"""The states of a demo, and how long the release of a server waits for it.

A demo is a recording of one map by the game server (GOTV), which the match plugin uploads after the map. A map has
several if its match was restored, or was given another server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

UPLOAD_LIMIT_MS: Final = 180_000
"""How long one upload may take: the plugin gives up after 100 s, and a busy machine needs a moment more."""

PATIENCE_MS: Final = 60_000
"""How long an upload waits for the database: longer than a failover takes."""

STALE_MS: Final = PATIENCE_MS + 30_000
"""An upload whose process did not report for so long is over: the process was killed, or has lost the database for
longer than an upload waits for it. After that wait, it still needs time for a report, which may fail once more."""

RENEW_MS: Final = 5_000
"""How often a process reports its uploads."""

LATE_MS: Final = 6 * 3_600_000
"""How long after its match a server may still upload."""

MAX_FILES: Final = 20
"""Files of one map: a match that is restored again and again has a few."""


class DemoState(StrEnum):
    """Whether a demo can be downloaded."""

    RECORDING = "recording"
    """The server records it, or was not heard to upload it yet."""
    UPLOADING = "uploading"
    AVAILABLE = "available"
    MISSING = "missing"
    """There is none, or not all of it: `MissingReason` says why. A late upload may still come."""


class MissingReason(StrEnum):
    """Why a demo is missing."""

    NOT_UPLOADED = "not_uploaded"
    """The server did not upload it in time."""
    CANCELED = "canceled"
    """The match was canceled while it was recorded, and its server was not kept for it."""
    SERVER_LOST = "server_lost"
    """The server was gone before it uploaded it."""
    CUT = "cut"
    """The upload ended before its last byte."""
    INTERRUPTED = "interrupted"
    """The service stopped during the upload."""
    TOO_SLOW = "too_slow"
    """The upload took longer than UPLOAD_LIMIT_MS."""
    TOO_LARGE = "too_large"
    """The file is larger than one demo may be."""
    OVER_QUOTA = "over_quota"
    """The organization's demos take all the space that they may."""
    DISK_FULL = "disk_full"
    """The storage has no space left."""
    STORAGE_FAILED = "storage_failed"
    """The storage could not be reached, or rejected the file."""
    DELETED = "deleted"
    """It was deleted when it was past its retention."""


UPLOAD_REASONS: Final = (
    MissingReason.CUT,
    MissingReason.INTERRUPTED,
    MissingReason.TOO_SLOW,
    MissingReason.TOO_LARGE,
    MissingReason.OVER_QUOTA,
    MissingReason.DISK_FULL,
    MissingReason.STORAGE_FAILED,
)
"""Why an upload that has begun did not make a demo available."""


class DemoProgress(msgspec.Struct, frozen=True, kw_only=True):
    """What decides how long to wait for a demo."""

    state: DemoState
    due_ms: int | None = None
    """When an upload must have begun; None while it is not known when the recording ends."""
    begun_at_ms: int | None = None
    renewed_at_ms: int | None = None


def state_of_map(states: Sequence[DemoState]) -> DemoState:
    """Return the state of a map from those of its demos: what is still to come counts before what is there."""
    order = (DemoState.UPLOADING, DemoState.RECORDING, DemoState.AVAILABLE)
    return next((state for state in order if state in states), DemoState.MISSING)


def waits_until_ms(demos: Iterable[DemoProgress], now_ms: int) -> int | None:
    """Return until when a server has to be kept for its demos; None if nothing can come any more.

    A recording without `due_ms` is not waited for: set it with `storage.demos.await_upload` when its map has ended.
    """
    times = [until for until in map(_until_ms, demos) if until is not None and until > now_ms]
    return max(times, default=None)


def is_stale(demo: DemoProgress, now_ms: int) -> bool:
    """True if an upload is over, though its process did not say so."""
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
