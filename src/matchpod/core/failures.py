"""Explain failed matches to callers: a closed set of failures, each with one sentence.

The messages of internal errors may contain addresses, paths or output of a server. Such messages are for operators, and
never part of the sentences. The console shows the error of a failed server to people with access to its log.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from matchpod.core.effects import CancelReason


class Failure(StrEnum):
    """Why a server failed, in more detail than the cancel reason `server_failed`."""

    REGION_REMOVED = "region_removed"
    START_FAILED = "start_failed"
    NOT_READY_IN_TIME = "not_ready_in_time"
    SETTINGS_REJECTED = "settings_rejected"
    PLUGIN_FAILED = "plugin_failed"
    LOG_MISSING = "log_missing"
    MAP_NOT_LOADED = "map_not_loaded"
    PLAY_NOT_STARTED = "play_not_started"
    CONSOLE_FAULT = "console_fault"
    SERVICE_ERROR = "service_error"


_OF_FAILURE: Final = {
    Failure.REGION_REMOVED: "The region of this match is no longer configured.",
    Failure.START_FAILED: "The server could not be started.",
    Failure.NOT_READY_IN_TIME: "The server did not load its map and settings in time. Check that the map exists.",
    Failure.SETTINGS_REJECTED: "The server rejected some of the settings. Check the custom console variables.",
    Failure.PLUGIN_FAILED: "The match plugin of the server is missing or did not load the match.",
    Failure.LOG_MISSING: "The server started, but its log did not arrive.",
    Failure.MAP_NOT_LOADED: "The server did not load the requested map.",
    Failure.PLAY_NOT_STARTED: "The server did not start play although all players had joined.",
    Failure.CONSOLE_FAULT: "The server sent invalid data or too much data over its console.",
    Failure.SERVICE_ERROR: "An internal error of the service ended the match.",
}

_OF_REASON: Final = {
    CancelReason.NO_CAPACITY: "No server became free in this region in time.",
    CancelReason.SERVER_FAILED: "The server could not be started or controlled.",
    CancelReason.SERVER_LOST: "The server stopped responding, or its process ended.",
    CancelReason.LOG_QUOTA_EXCEEDED: "The server sent more log data than a match may have.",
}

FAILURE_REASONS: Final = frozenset(_OF_REASON)
"""Cancel reasons where the service or the server is at fault. The status is then `failed`; with any other reason, it
is `stopped`."""

SENTENCES: Final = (*_OF_FAILURE.values(), *_OF_REASON.values())
"""All sentences that callers may see as the reason of a failed match."""


def sentence(reason: CancelReason | None, failure: Failure | None) -> str | None:
    """Return the sentence that tells callers why a match failed; None if the match did not fail."""
    if reason is None or reason not in FAILURE_REASONS:
        return None
    return _OF_REASON[reason] if failure is None else _OF_FAILURE[failure]
