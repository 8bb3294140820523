"""Who plays for which team, and where does each team stand? Teams are told by roster and company, never by side.

Listed players belong to the team that lists them. Others belong to the team whose side they stood on when a round
began. Where team1 stands is a vote of the players, held when a freeze time starts (at halftime the server moves them
one by one), and again when a round starts and ends among those seen since the round before, in case their moves were
lost. The score is the second witness: no team's score ever falls, and at halftime the game swaps both numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from matchpod.core.model import GameSettings, PlayerId, Side, Team, is_human

MAX_MEMBERS = 1024
"""Far more people than ever stand on one server."""


class Sides(msgspec.Struct):
    """Players, sides and teams of one server."""

    listed: dict[PlayerId, Team] = {}
    names: dict[Team, str] = {}
    """What the caller calls his teams, as far as the match plugin lets names through."""
    members: dict[PlayerId, Team] = {}
    standing: dict[PlayerId, Side] = {}
    seen: dict[PlayerId, Side] = {}
    """Who was seen where since the last round was decided."""
    team1_side: Side = Side.CT

    @staticmethod
    def of(settings: GameSettings) -> Sides:
        """The sides of a match before anybody joined: team1 begins as CT."""
        named = {Team.TEAM1: settings.team1, Team.TEAM2: settings.team2}
        return Sides(
            listed={player: team for player in settings.roster if (team := settings.team_of(player))},
            names={team: _plain(roster.name) for team, roster in named.items() if roster is not None},
        )

    @property
    def has_people(self) -> bool:
        """A human stands on a side."""
        return any(map(is_human, self.standing))

    def stand(self, player_id: PlayerId, side: Side | None) -> None:
        """A player is on a side now; None takes him off the field."""
        if side is None:
            self.standing.pop(player_id, None)
            self.seen.pop(player_id, None)
        else:
            self.standing[player_id] = self.seen[player_id] = side

    def clear_field(self) -> None:
        """Everybody leaves the field, as at a map change, and team1 begins as CT; who belongs where is remembered."""
        self.standing.clear()
        self.seen.clear()
        self.team1_side = Side.CT

    def team_of(self, player_id: PlayerId) -> Team | None:
        """The player's team: as listed, else as he was last counted, else by where he stands."""
        team = self.listed.get(player_id) or self.members.get(player_id)
        if team is None and (side := self.standing.get(player_id)) is not None:
            return self.team_on(side)
        return team

    def team_on(self, side: Side) -> Team:
        """The team that stands on a side."""
        return Team.TEAM1 if side is self.team1_side else Team.TEAM2

    def by_team(self, ct: int, t: int) -> tuple[int, int]:
        """A score by side as a score by team."""
        return (ct, t) if self.team1_side is Side.CT else (t, ct)

    def begin(self, side_names: Mapping[Side, str | None]) -> None:
        """Settle where team1 stands as a map goes live: by listed players, the names on the server, else company."""
        lean = self._lean(self.listed) or self._lean_of_names(side_names)
        if lean:
            self.team1_side = Side.CT if lean > 0 else Side.T
        else:
            self.vote()

    def vote(self, *, is_fresh: bool = False) -> bool:
        """Settle where team1 stands by where the players are; True if the teams changed sides.

        A tie, or nobody to ask, leaves everything as it was. A fresh vote asks only those seen since the last round,
        and needs more than half of all: it may overrule what was believed before.
        """
        people = {player: team for player, team in self.members.items() if is_human(player)}
        for voters in (self.listed, people, self.members):
            known = sum(player in voters for player in self.standing)
            if known:
                lean = self._lean(voters, is_fresh=is_fresh)
                is_enough = 2 * abs(lean) > known if is_fresh else lean != 0
                return is_enough and self._move(Side.CT if lean > 0 else Side.T)
        return False

    def match_score(self, by_side: tuple[int, int], by_team: tuple[int, int]) -> bool:
        """Let the score decide where team1 stands; True if it says the teams changed sides."""
        ct, t = by_side
        if not _has_grown(by_team, self.by_team(ct, t)) and _has_grown(by_team, self.by_team(t, ct)):
            return self.turn()
        return False

    def turn(self) -> bool:
        """The teams stand the other way round."""
        return self._move(self.team1_side.other)

    def line_ups(self) -> tuple[tuple[PlayerId, ...], tuple[PlayerId, ...]]:
        """Both teams as they stand now; from here on unlisted players belong to the team they stand with."""
        if len(self.members) > MAX_MEMBERS:
            self.members.clear()
        teams: dict[Team, list[PlayerId]] = {Team.TEAM1: [], Team.TEAM2: []}
        for player_id, side in self.standing.items():
            team = self.listed.get(player_id)
            if team is None:
                team = self.members[player_id] = self.team_on(side)
            teams[team].append(player_id)
        return tuple(teams[Team.TEAM1]), tuple(teams[Team.TEAM2])

    def _lean(self, voters: Mapping[PlayerId, Team], *, is_fresh: bool = False) -> int:
        """Above 0 when these players say that team1 is CT, below when they say T."""
        lean = 0
        for player_id, side in self.standing.items():
            team = voters.get(player_id)
            if team is not None and (not is_fresh or player_id in self.seen):
                lean += 1 if (team is Team.TEAM1) == (side is Side.CT) else -1
        return lean

    def _lean_of_names(self, side_names: Mapping[Side, str | None]) -> int:
        shown = (_plain(side_names.get(Side.CT) or ""), _plain(side_names.get(Side.T) or ""))
        ours = (self.names.get(Team.TEAM1, ""), self.names.get(Team.TEAM2, ""))
        if not all(ours) or ours[0] == ours[1]:
            return 0
        return (shown == ours) - (shown == ours[::-1])

    def _move(self, team1_side: Side) -> bool:
        has_moved = team1_side is not self.team1_side
        self.team1_side = team1_side
        return has_moved


def _has_grown(before: tuple[int, int], after: tuple[int, int]) -> bool:
    return before[0] <= after[0] and before[1] <= after[1]


def _plain(name: str) -> str:
    """A team name as the match plugin shows it: letters, digits, blanks, `_` and `-`."""
    return "".join(char for char in name if char.isalnum() or char in " _-").strip()
