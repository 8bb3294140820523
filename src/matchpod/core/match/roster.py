"""List the people of a match and their roles: who may be on its server now, who plays, and who only watches.

A match begins with the people in its settings; actions may change them later. The match waits only for players, and
only their statistics count. Spectators and coaches are only allowed on the server. Every change returns a new roster.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.model import GameSettings, MatchType


class RosterRole(StrEnum):
    """The role of a listed person in a match."""

    TEAM1 = "team1"
    """Plays for the first team."""
    TEAM2 = "team2"
    """Plays for the second team."""
    PLAYER = "player"
    """Plays in a match without teams."""
    SPECTATOR = "spectator"
    """Watches: a caster or a referee."""
    COACH1 = "coach1"
    """Coaches the first team, on its side but without playing."""
    COACH2 = "coach2"
    """Coaches the second team."""

    @property
    def plays(self) -> bool:
        """True for the roles of players: the match waits for them, and their statistics count."""
        return self in _PLAYERS

    @staticmethod
    def of_match(match_type: MatchType) -> tuple[RosterRole, ...]:
        """Return the roles that people can have in a match of this type."""
        if not match_type.has_series:
            return RosterRole.PLAYER, RosterRole.SPECTATOR
        return tuple(role for role in RosterRole if role is not RosterRole.PLAYER)


_PLAYERS: Final = (RosterRole.TEAM1, RosterRole.TEAM2, RosterRole.PLAYER)
_TEAMS: Final = {RosterRole.TEAM1: Team.TEAM1, RosterRole.TEAM2: Team.TEAM2}


class Roster(msgspec.Struct, frozen=True, kw_only=True):
    """The people of a match.

    If it `is_open`, no player was listed at creation, and anyone may join and play. `created` has the players listed at
    creation.
    """

    roles: dict[PlayerId, RosterRole] = {}
    is_open: bool = True
    created: tuple[PlayerId, ...] = ()
    players: tuple[PlayerId, ...] = ()
    """The current players, in order. Derived from `roles`, and stored because it is read for every event."""
    former: dict[PlayerId, RosterRole] = {}
    """Players whom an action removed, with their last role as a player. Their statistics still count."""

    @staticmethod
    def of(settings: GameSettings) -> Roster:
        """Return the people whom the settings list."""
        roles = dict.fromkeys(settings.players, RosterRole.PLAYER)
        for team, plays, coaches in (
            (settings.team1, RosterRole.TEAM1, RosterRole.COACH1),
            (settings.team2, RosterRole.TEAM2, RosterRole.COACH2),
        ):
            if team is not None:
                roles |= dict.fromkeys(team.players, plays) | dict.fromkeys(team.coaches, coaches)
        roles |= dict.fromkeys(settings.spectators, RosterRole.SPECTATOR)
        players = _players_of(roles)
        return Roster(roles=roles, is_open=not players, created=players, players=players)

    def role_of(self, player_id: PlayerId) -> RosterRole | None:
        """Return the role of a person; None if they are not listed."""
        return self.roles.get(player_id)

    def team_of(self, player_id: PlayerId) -> Team | None:
        """Return the team for which a person plays, or played before they were removed; None if there is none."""
        team = _TEAMS.get(self.roles.get(player_id, RosterRole.SPECTATOR))
        return team or _TEAMS.get(self.former.get(player_id, RosterRole.SPECTATOR))

    def is_let_in(self, player_id: PlayerId) -> bool:
        """True if a person is allowed on the server."""
        return self.is_open or player_id in self.roles

    def is_guest(self, player_id: PlayerId) -> bool:
        """True for spectators and coaches."""
        role = self.roles.get(player_id)
        return role is not None and not role.plays

    def is_counted(self, player_id: PlayerId) -> bool:
        """True if the statistics of a person count: for current and former players."""
        role = self.roles.get(player_id)
        return player_id in self.former or (self.is_open if role is None else role.plays)

    def guests(self) -> tuple[PlayerId, ...]:
        """Return the spectators and coaches."""
        return tuple(player_id for player_id, role in self.roles.items() if not role.plays)

    def add(self, player_id: PlayerId, role: RosterRole) -> Roster:
        """Add a person, or give them another role."""
        return self._with({**self.roles, player_id: role})

    def remove(self, player_id: PlayerId) -> Roster:
        """Remove a person. Removing a person who is not listed changes nothing."""
        return self._with({listed: role for listed, role in self.roles.items() if listed != player_id})

    def replace(self, out: PlayerId, in_: PlayerId) -> Roster:
        """Give the role of `out` to `in_`, and remove `out`. Raise ValueError if `out` is not listed."""
        role = self.roles.get(out)
        if role is None:
            raise ValueError(f"{out} is not on the roster")
        return self.remove(out).add(in_, role)

    def _with(self, roles: dict[PlayerId, RosterRole]) -> Roster:
        players = _players_of(roles)
        gone = {player_id: self.roles[player_id] for player_id in self.players if player_id not in players}
        former = {player_id: role for player_id, role in {**self.former, **gone}.items() if player_id not in players}
        return msgspec.structs.replace(self, roles=roles, players=players, former=former)


def _players_of(roles: dict[PlayerId, RosterRole]) -> tuple[PlayerId, ...]:
    return tuple(player_id for player_id, role in roles.items() if role.plays)
