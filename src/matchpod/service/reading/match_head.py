"""Summarize a match from its stored row and its ending: the fields that lists and views of matches share."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec.structs import replace

from matchpod.core.iso_dates import iso_time
from matchpod.core.match.played_map import MapStatus
from matchpod.core.secrets import mask_url
from matchpod.core.server_status import OPEN_PHASES, ServerStatus
from matchpod.core.views.match_progress import MatchProgress
from matchpod.core.views.progress import PublicPhase
from matchpod.service.identity.principals import Audience
from matchpod.service.reading.endings import IN_PROGRESS, Ending
from matchpod.service.row_views import view_of
from matchpod.storage.history import MapRow
from matchpod.storage.servers import ServerSummary

_Row = TypeVar("_Row", bound=ServerSummary)


class MatchSummary(Ending, frozen=True, kw_only=True):
    """A match on its server, and how it ended."""

    server_id: str
    game_id: str
    external_match_id: str | None = None
    region: str
    status: ServerStatus
    phase: PublicPhase
    ip: str | None = None
    """The address that players connect to: None until the server has been running, which proves the address right."""
    port: int | None = None
    callback_url: str | None = None
    created_at_ms: int
    running_at_ms: int | None = None

    @property
    def created_at(self) -> str:
        return iso_time(self.created_at_ms)


class MatchMap(msgspec.Struct, frozen=True, kw_only=True):
    """A map of a match, as requested and as played."""

    id: str
    map_number: int
    map_name: str
    played_map_name: str | None
    status: MapStatus
    team1_score: int
    team2_score: int
    winner: str | None
    started_at_ms: int | None
    finished_at_ms: int | None
    is_needed: bool

    @property
    def name(self) -> str:
        """The name on the server, if it was played."""
        return self.played_map_name or self.map_name

    @property
    def has_score(self) -> bool:
        """True once it is or was played."""
        return self.status in (MapStatus.LIVE, MapStatus.FINISHED) or self.team1_score + self.team2_score > 0


def match_map(row: MapRow) -> MatchMap:
    return view_of(MatchMap, row)


def visible_row(row: _Row, audience: Audience) -> _Row:
    """The row without what this audience may not see of it: who created the match, secrets in its callback URL."""
    if audience is not Audience.MEMBERS:
        return row
    return replace(row, created_by=None, callback_url=None if row.callback_url is None else mask_url(row.callback_url))


def summarize(
    row: ServerSummary, ending: Ending = IN_PROGRESS, *, progress: MatchProgress | None = None
) -> MatchSummary:
    """The summary of a match, with the phase of its progress if that is known.

    Its `error` is the one for callers, not that of the row.
    """
    was_running = row.running_at_ms is not None
    return MatchSummary(
        server_id=row.id,
        game_id=row.game_id,
        external_match_id=row.external_match_id,
        region=row.region,
        status=row.status,
        phase=phase_of(row) if progress is None else progress.phase,
        ip=row.ip if was_running else None,
        port=row.port if was_running else None,
        callback_url=row.callback_url,
        created_at_ms=row.created_at_ms,
        running_at_ms=row.running_at_ms,
        reason=ending.reason,
        ended_at_ms=ending.ended_at_ms,
        missing_players=ending.missing_players,
        connected_players=ending.connected_players,
        absent_players=ending.absent_players,
        log_complete=ending.log_complete,
        error=ending.error,
    )


def has_ended(row: ServerSummary) -> bool:
    """True once the match has an outcome, even if its server is not released yet."""
    return row.phase not in OPEN_PHASES


def phase_of(row: ServerSummary) -> PublicPhase:
    """The phase of a match as stored: on its server, the match itself may be a few seconds ahead."""
    return PublicPhase.ENDED if has_ended(row) else row.match_phase
