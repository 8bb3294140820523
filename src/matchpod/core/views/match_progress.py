"""Describe the current progress of a match for the API and the console, as small values that can be compared."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from cs2_protocol.game import PlayerId, Side
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.actions import ActionRecord, ActionState, ActionType
from matchpod.core.match.match import Match
from matchpod.core.match.roster import RosterRole
from matchpod.core.views.attention import Signals
from matchpod.core.views.progress import (
    Deadline,
    PlayerState,
    PublicPhase,
    RosterPlayer,
    Sides,
    Stays,
    WaitingFor,
    live_roster,
    public_phase,
    round_number,
    sides_of,
)
from matchpod.core.views.series_maps import loaded_map

_BEGUN: Final = (PublicPhase.LIVE, PublicPhase.PAUSED, PublicPhase.BETWEEN_MAPS, PublicPhase.ENDED)
"""The phases after the first map went live."""


class PendingAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An action on a match that is neither done nor failed."""

    action_id: Annotated[str, Meta(description="The id of the action.")]
    type: Annotated[ActionType, Meta(description="What was asked for.")]
    state: Annotated[ActionState, Meta(description="`requested` or `sent`.")]
    requested_at: Annotated[str, Meta(description="When: ISO 8601 in UTC.")]


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """A listed person who does not play: a spectator or a coach."""

    steam_id: PlayerId
    role: RosterRole
    name: str = ""
    """The person's name; empty unless the person is on the server."""
    is_here: bool = False


class MatchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Match progress; times are on our clock. If its log is not read, only phase, settings and deadline are known."""

    phase: PublicPhase
    map_name: str | None = None
    """The map that is loaded or loading."""
    map_number: int = 1
    maps_won: tuple[int, int] = (0, 0)
    score: tuple[int, int] | None = None
    """Rounds won on this map: 0:0 until the map is live, None in a deathmatch."""
    waiting_for: WaitingFor | None = None
    until_ms: int | None = None
    roster: tuple[RosterPlayer, ...] = ()
    excused: tuple[PlayerId, ...] = ()
    """Listed players without whom play was started. The match does not wait for them until they connect."""
    guests: tuple[Guest, ...] = ()
    sides: Sides | None = None
    """The sides of the teams on a live map; None at other times and in modes without teams."""
    round: int | None = None
    live_ms: int | None = None
    """When the current map began; None unless it is live."""
    heard_ms: int | None = None
    """When the service last received something from the server."""
    paused_ms: int | None = None
    called_ms: int | None = None
    call: str = ""
    """The chat message of the player who asked for an admin at `called_ms`."""
    lost_rounds: int = 0
    detections: int = 0
    pending_action: PendingAction | None = None

    @property
    def missing(self) -> tuple[RosterPlayer, ...]:
        """The listed players who should be on the server, but are not."""
        away = (player for player in self.roster if player.state is not PlayerState.CONNECTED)
        return tuple(player for player in away if player.steam_id not in self.excused)

    @property
    def shown_score(self) -> tuple[int, int] | None:
        """The score of this map; None in a deathmatch, and until the first map is live."""
        has_begun = self.map_number > 1 or self.phase in _BEGUN
        return self.score if has_begun else None

    @property
    def team1_side(self) -> Side | None:
        """The side that the first team plays on."""
        return None if self.sides is None else self.sides.team1

    @property
    def deadline(self) -> Deadline | None:
        """What the match waits for, and until when; None if it does not wait for anything."""
        if self.waiting_for is None or self.until_ms is None:
            return None
        return Deadline(waiting_for=self.waiting_for, until=iso_time(self.until_ms))


class LiveState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a match as callers see it, encoded once for all of them. Fields of type `bytes` are JSON."""

    phase: PublicPhase
    match: bytes
    """The live view; null unless the server is running."""
    deadline: bytes
    round: int | None
    sides: bytes
    roster: bytes
    last_heard_at: str | None
    pending_action: bytes

    @classmethod
    def of(cls, progress: MatchProgress, match: bytes = b"null") -> LiveState:
        """Encode the progress of a match; `match` is the JSON of its live view."""
        encode = msgspec.json.encode
        return cls(
            phase=progress.phase,
            match=match,
            deadline=encode(progress.deadline),
            round=progress.round,
            sides=encode(progress.sides),
            roster=encode(progress.roster),
            last_heard_at=None if progress.heard_ms is None else iso_time(progress.heard_ms),
            pending_action=encode(progress.pending_action),
        )


def progress_of(
    match: Match,
    stays: Stays,
    signals: Signals,
    *,
    heard_ms: int | None,
    deadline: tuple[int, WaitingFor] | None,
    skipped_ms: int = 0,
) -> MatchProgress:
    """Return the progress of a match that has a server."""
    current, phase = loaded_map(match), public_phase(match)
    is_live = phase in (PublicPhase.LIVE, PublicPhase.PAUSED)
    started_ms, pending = current.started_at_ms, match.pending_action()
    return MatchProgress(
        phase=phase,
        map_name=current.name or None,
        map_number=current.number,
        maps_won=match.series_score,
        score=(current.team1_score, current.team2_score) if current.is_scored else None,
        waiting_for=None if deadline is None else deadline[1],
        until_ms=None if deadline is None else deadline[0],
        roster=live_roster(match, stays),
        excused=tuple(match.presence.excused),
        guests=tuple(_guest(match, player_id) for player_id in match.roster.guests()),
        sides=sides_of(match),
        round=round_number(match),
        live_ms=None if started_ms is None or not is_live else match.times.ours(started_ms),
        heard_ms=heard_ms,
        paused_ms=signals.paused_ms if phase is PublicPhase.PAUSED else None,
        called_ms=signals.called_ms,
        call=signals.call,
        lost_rounds=sum(len(played.missing_rounds) for played in match.maps),
        detections=len(match.detections),
        pending_action=None if pending is None else _pending(pending, skipped_ms),
    )


def _guest(match: Match, player_id: PlayerId) -> Guest:
    connection = match.presence.connected.get(player_id)
    return Guest(
        steam_id=player_id,
        role=match.roster.roles[player_id],
        name="" if connection is None else connection.name,
        is_here=connection is not None,
    )


def _pending(record: ActionRecord, skipped_ms: int) -> PendingAction:
    requested_at = iso_time(record.requested_ms + skipped_ms)
    return PendingAction(
        action_id=record.action.id, type=record.action.type, state=record.state, requested_at=requested_at
    )
