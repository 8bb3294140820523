"""Describe the progress of a match: its phase, its connected players, its deadlines, and the sides of its teams."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from cs2_protocol.game import PlayerId, Side, Team
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.alarms import Alarm
from matchpod.core.match.match import Match
from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.timers import to_ms
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.views.result import player_name
from matchpod.core.views.result_shapes import SteamId


class PublicPhase(StrEnum):
    """The phase of a match in the API, from its creation to its end."""

    ALLOCATING = "allocating"
    """The match has no server yet, or its server is being prepared."""
    WAITING_FOR_PLAYERS = "waiting_for_players"
    """Players may connect; play has not been requested."""
    STARTING = "starting"
    """All listed players have joined; play is about to start."""
    LIVE = "live"
    """A map is being played."""
    PAUSED = "paused"
    """A map is being played, and paused."""
    BETWEEN_MAPS = "between_maps"
    """A map has ended, and the next map is loading or waiting for its players."""
    ENDED = "ended"
    """The match is finished or canceled."""


class PlayerState(StrEnum):
    """Whether a listed player is on the server."""

    CONNECTED = "connected"
    LEFT = "left"
    NEVER_JOINED = "never_joined"


class WaitingFor(StrEnum):
    """What a match waits for until its current deadline."""

    FREE_SERVER = "free_server"
    """The match waits for a free server in its region. At the deadline it fails with `no_capacity`."""
    PLAYERS_TO_JOIN = "players_to_join"
    """The match waits for missing players, or for its first player. At the deadline it is canceled or forfeited."""
    PLAYERS_TO_RETURN = "players_to_return"
    """The match waits for players to return, because all have left. At the deadline it ends."""
    SIDES = "sides"
    """The match waits for the players to choose their sides. At the deadline, play starts anyway."""
    START = "start"
    """The match waits for its players to be ready, or for an action to start play. At the deadline it is canceled."""
    TIME_LIMIT = "time_limit"
    """A deathmatch is in play. It ends at the deadline at the latest."""
    FINAL_SCORE = "final_score"
    """The match waits for the last reports of a series that is over. At the deadline it ends with the known result."""


_ALARMS: Final = {
    Alarm.ALL_LEFT: WaitingFor.PLAYERS_TO_RETURN,
    Alarm.IDLE: WaitingFor.PLAYERS_TO_RETURN,
    Alarm.READY: WaitingFor.SIDES,
    Alarm.NOT_READY: WaitingFor.START,
    Alarm.TIME_UP: WaitingFor.TIME_LIMIT,
    Alarm.SERIES_OVER: WaitingFor.FINAL_SCORE,
}
"""The alarms that callers see, in addition to the time to join. All other alarms only repeat a request, or end a match
that nothing else has ended."""

_PHASES: Final = {
    MatchPhase.WARMUP: PublicPhase.WAITING_FOR_PLAYERS,
    MatchPhase.STARTING: PublicPhase.STARTING,
    MatchPhase.LIVE: PublicPhase.LIVE,
    MatchPhase.BETWEEN_MAPS: PublicPhase.BETWEEN_MAPS,
    MatchPhase.OVER: PublicPhase.ENDED,
}


class RosterPlayer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A listed player, and whether they are on the server."""

    steam_id: SteamId
    name: Annotated[str | None, Meta(description="The player's name; null if unknown.")] = None
    team: Annotated[Team | None, Meta(description="`team1` or `team2`; null in a deathmatch.")]
    state: Annotated[
        PlayerState, Meta(description="`left` if the player was connected before. A map change is not leaving.")
    ] = PlayerState.NEVER_JOINED
    since: Annotated[
        str | None, Meta(description="When the player connected or left; null if they never joined, or if unknown.")
    ] = None


class Deadline(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a match waits for, and until when."""

    waiting_for: Annotated[WaitingFor, Meta(description="What the match waits for.")]
    until: Annotated[
        str,
        Meta(
            description="Until when: ISO 8601 in UTC. Later if the service was interrupted, since that time is extra."
        ),
    ]


class Sides(msgspec.Struct, frozen=True, kw_only=True):
    """The sides that the teams currently play on."""

    team1: Annotated[Side, Meta(description="The side of the first team.")]
    team2: Annotated[Side, Meta(description="The side of the second team.")]


class Stay(msgspec.Struct):
    """When a listed player last connected or left. `missed_ms` is when a map change disconnected them."""

    name: str
    since_ms: int
    has_left: bool = False
    missed_ms: int | None = None


class Stays(msgspec.Struct):
    """When the listed players of a match last connected or left, on our clock."""

    by_player: dict[PlayerId, Stay] = msgspec.field(default_factory=dict)
    are_all_here: bool = False
    """True if all listed players are connected. An update changes nothing until a player leaves or is added."""

    def update(self, match: Match, now_ms: int, *, match_ms: int) -> None:
        """Record which players have connected or left. `match_ms` is the time on the clock of the match's timeouts."""
        presence = match.presence
        changed_ms = presence.map_change_at_ms
        is_loading = changed_ms is not None and match_ms - changed_ms < to_ms(match.timers.map_change_grace_s)
        self.are_all_here = True
        for player_id in presence.roster.players:
            stay, connection = self.by_player.get(player_id), presence.connected.get(player_id)
            if connection is not None:
                if stay is None or stay.has_left:
                    stay = self.by_player[player_id] = Stay(connection.name or (stay.name if stay else ""), now_ms)
                stay.missed_ms = None
                stay.name = connection.name or stay.name
                continue
            self.are_all_here = False
            if stay is None:
                if player_id in presence.ever_connected:
                    self.by_player[player_id] = Stay("", now_ms, has_left=True)
            elif not stay.has_left:
                stay.missed_ms = now_ms if stay.missed_ms is None else stay.missed_ms
                if player_id in presence.left or not is_loading:
                    self.by_player[player_id] = Stay(stay.name, stay.missed_ms, has_left=True)


def public_phase(match: Match) -> PublicPhase:
    is_paused = match.phase is MatchPhase.LIVE and match.current_map.is_paused
    return PublicPhase.PAUSED if is_paused else _PHASES[match.phase]


def next_deadline(match: Match) -> tuple[int, WaitingFor] | None:
    """Return the earliest deadline that callers see, on the clock of the match's timeouts; None if there is none."""
    if match.phase is MatchPhase.OVER:
        return None
    due = [(due_ms, _ALARMS[alarm]) for due_ms, alarm in match.alarms() if alarm in _ALARMS]
    join_ms = match.join_deadline_ms()
    return min(due if join_ms is None else [*due, (join_ms, WaitingFor.PLAYERS_TO_JOIN)], default=None)


def expected_roster(settings: GameSettings) -> tuple[RosterPlayer, ...]:
    """Return the listed players of a match that has no server yet: none of them has joined."""
    return tuple(RosterPlayer(steam_id=player, team=settings.team_of(player)) for player in settings.roster)


def live_roster(match: Match, stays: Stays) -> tuple[RosterPlayer, ...]:
    """Return the listed players, and whether they are on the server."""
    return tuple(_roster_player(match, player, stays.by_player.get(player)) for player in match.roster.players)


def _roster_player(match: Match, player_id: PlayerId, stay: Stay | None) -> RosterPlayer:
    team = match.roster.team_of(player_id)
    if stay is None:
        return RosterPlayer(steam_id=player_id, team=team)
    return RosterPlayer(
        steam_id=player_id,
        name=stay.name or player_name(match, player_id) or None,
        team=team,
        state=PlayerState.LEFT if stay.has_left else PlayerState.CONNECTED,
        since=iso_time(stay.since_ms),
    )


def round_number(match: Match) -> int | None:
    """Return the latest round of the live map; None if no map is live, and in a deathmatch."""
    is_live = match.phase is MatchPhase.LIVE and match.current_map.is_scored
    return match.current_map.latest_round if is_live else None


def sides_of(match: Match) -> Sides | None:
    """Return the sides of the teams on a live map; None if unknown, and in a deathmatch."""
    side = match.current_map.team1_side
    if match.phase is not MatchPhase.LIVE or side is None or match.settings.match_type is MatchType.DEATHMATCH:
        return None
    return Sides(team1=side, team2=side.other)
