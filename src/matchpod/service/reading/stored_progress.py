"""Derive the progress of a match from its row. For use before its server is running, or if its log is not read."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from matchpod.core.model import GameSettings
from matchpod.core.server_status import ServerPhase
from matchpod.core.stored.stored_settings import read_settings
from matchpod.core.views.match_progress import LiveState, MatchProgress
from matchpod.core.views.progress import PublicPhase, RosterPlayer, WaitingFor, expected_roster
from matchpod.storage.servers import ServerSummary

MAX_STORED: Final = 2_000
"""Maximum number of matches whose progress is cached; each takes a few kilobytes. They are cached because callers poll
a match until it is running, and because the wall reads all open matches."""


def stored_progress(row: ServerSummary) -> MatchProgress:
    """Return the stored progress of a match. All listed players count as missing: rows do not say who joined."""
    return _progress(*_key(row))


def stored_state(row: ServerSummary) -> LiveState:
    """Return the stored progress of a match as callers see it."""
    return _state(*_key(row))


def _key(row: ServerSummary) -> tuple[bytes, PublicPhase, bool, int | None]:
    """Return the columns that determine a match's progress. Settings are empty if the match has ended."""
    is_pending = row.phase is ServerPhase.PENDING
    settings = b"" if row.has_ended else row.settings
    return settings, row.public_phase, is_pending, row.pending_until_ms if is_pending else None


@lru_cache(MAX_STORED)
def _progress(settings: bytes, phase: PublicPhase, is_pending: bool, until_ms: int | None) -> MatchProgress:
    if not settings:
        return MatchProgress(phase=phase)
    asked = decoded_settings(settings)
    return MatchProgress(
        phase=phase,
        map_name=next(iter(asked.maps), None),
        maps_won=asked.maps_won.plus(0, 0),
        waiting_for=WaitingFor.FREE_SERVER if is_pending else None,
        until_ms=until_ms,
        roster=listed_players(settings),
    )


@lru_cache(MAX_STORED)
def _state(settings: bytes, phase: PublicPhase, is_pending: bool, until_ms: int | None) -> LiveState:
    return LiveState.of(_progress(settings, phase, is_pending, until_ms))


@lru_cache(MAX_STORED)
def decoded_settings(settings: bytes) -> GameSettings:
    return read_settings(settings)


@lru_cache(MAX_STORED)
def listed_players(settings: bytes) -> tuple[RosterPlayer, ...]:
    """Return the listed players of a match, none of whom has joined."""
    return expected_roster(decoded_settings(settings))
