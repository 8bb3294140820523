"""Say where a match stands from its row alone: before its server is running, and if its log is not read here."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from matchpod.core.model import GameSettings
from matchpod.core.server_status import ServerPhase
from matchpod.core.stored.stored_settings import read_settings
from matchpod.core.views.match_progress import MatchProgress
from matchpod.core.views.progress import RosterPlayer, WaitingFor, expected_roster
from matchpod.service.views.match_summary import phase_of
from matchpod.storage.servers import ServerSummary

MAX_DECODED: Final = 2_000
"""Cached settings and rosters, a few kilobytes each: callers poll a match until it is running, the wall always."""


def stored_progress(row: ServerSummary) -> MatchProgress:
    """Where a match stands, as stored. No listed player has joined, as far as the row says."""
    is_pending = row.phase is ServerPhase.PENDING
    return MatchProgress(
        phase=phase_of(row),
        map_name=next(iter(decoded_settings(row.settings).maps), None),
        waiting_for=WaitingFor.FREE_SERVER if is_pending else None,
        until_ms=row.pending_until_ms if is_pending else None,
        roster=listed_players(row.settings),
    )


@lru_cache(MAX_DECODED)
def decoded_settings(settings: bytes) -> GameSettings:
    """The stored settings of a match."""
    return read_settings(settings)


@lru_cache(MAX_DECODED)
def listed_players(settings: bytes) -> tuple[RosterPlayer, ...]:
    """The listed players of a match, none of whom has joined."""
    return expected_roster(decoded_settings(settings))
