"""Summarize a running match for an overview of many: small, and equal as long as nothing in it changes."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import Side
from matchpod.core.match.match import Match
from matchpod.core.views.attention import Signals
from matchpod.core.views.progress import (
    PlayerState,
    PublicPhase,
    RosterPlayer,
    Stays,
    WaitingFor,
    live_roster,
    public_phase,
    round_number,
)
from matchpod.core.views.series_maps import loaded_map


class MatchCard(msgspec.Struct, frozen=True, kw_only=True):
    """A running match; times are those of our clock."""

    phase: PublicPhase
    map_name: str | None
    """The map that is loaded or loading."""
    map_number: int
    maps_won: tuple[int, int]
    score: tuple[int, int] | None
    """Rounds won on this map, 0:0 until it is live; None in a deathmatch."""
    team1_side: Side | None
    round: int | None
    live_ms: int | None
    """When the current map began."""
    waiting_for: WaitingFor | None
    until_ms: int | None
    roster: tuple[RosterPlayer, ...]
    heard_ms: int | None
    """When the server last sent something."""
    paused_ms: int | None
    called_ms: int | None
    lost_rounds: int
    detections: int

    @property
    def missing(self) -> int:
        """The number of listed players who are not on the server."""
        return sum(player.state is not PlayerState.CONNECTED for player in self.roster)


def card_of(
    match: Match, stays: Stays, signals: Signals, *, heard_ms: int | None, deadline: tuple[int, WaitingFor] | None
) -> MatchCard:
    """Return the summary of a match."""
    current, phase = loaded_map(match), public_phase(match)
    is_live = phase in (PublicPhase.LIVE, PublicPhase.PAUSED)
    started_ms = current.started_at_ms
    return MatchCard(
        phase=phase,
        map_name=current.name or None,
        map_number=current.number,
        maps_won=match.series_score,
        score=(current.team1_score, current.team2_score) if current.is_scored else None,
        team1_side=current.team1_side if is_live and current.is_scored else None,
        round=round_number(match),
        live_ms=None if started_ms is None or not is_live else match.times.ours(started_ms),
        waiting_for=None if deadline is None else deadline[1],
        until_ms=None if deadline is None else deadline[0],
        roster=live_roster(match, stays),
        heard_ms=heard_ms,
        paused_ms=signals.paused_ms if phase is PublicPhase.PAUSED else None,
        called_ms=signals.called_ms,
        lost_rounds=sum(len(played.missing_rounds) for played in match.maps),
        detections=len(match.detections),
    )
