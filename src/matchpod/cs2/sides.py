"""Who plays for which team, and where does each team stand? Teams are told by roster and company, never by side.

Listed players belong to the team that lists them. Others belong to the team whose side they stood on when a round
began. Where team1 stands is a vote of everybody's present side, held when a freeze time starts, because at halftime
the server moves players one by one. The score is the second witness: the game swaps both numbers at halftime.
"""

from __future__ import annotations

import msgspec

from matchpod.core.model import GameSettings, PlayerId, Side, Team


class Sides(msgspec.Struct):
    """Players, sides and teams of one server."""

    listed: dict[PlayerId, Team] = {}
    members: dict[PlayerId, Team] = {}
    standing: dict[PlayerId, Side] = {}
    team1_side: Side = Side.CT

    @staticmethod
    def of(settings: GameSettings) -> Sides:
        """The sides of a match before anybody joined: team1 begins as CT."""
        return Sides(listed={player: team for player in settings.roster if (team := settings.team_of(player))})

    def stand(self, player_id: PlayerId, side: Side | None) -> None:
        """A player is on a side now; None takes him off the field."""
        if side is None:
            self.standing.pop(player_id, None)
        else:
            self.standing[player_id] = side

    def clear_field(self) -> None:
        """Everybody leaves the field, as at a map change; who belongs to which team is remembered."""
        self.standing.clear()

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

    def vote(self) -> bool:
        """Settle where team1 stands by where the players of both teams are; True if the teams changed sides.

        A tie, or nobody to ask, leaves everything as it was.
        """
        votes = 0
        for player_id, side in self.standing.items():
            team = self.listed.get(player_id) or self.members.get(player_id)
            if team is not None:
                votes += 1 if (team is Team.TEAM1) == (side is Side.CT) else -1
        if votes == 0:
            return False
        return self._move(Side.CT if votes > 0 else Side.T)

    def match_score(self, by_side: tuple[int, int], by_team: tuple[int, int]) -> bool:
        """Let the score decide where team1 stands; True if it says the teams changed sides."""
        ct, t = by_side
        if ct != t and self.by_team(ct, t) != by_team and self.by_team(t, ct) == by_team:
            return self._move(self.team1_side.other)
        return False

    def line_ups(self) -> tuple[tuple[PlayerId, ...], tuple[PlayerId, ...]]:
        """Both teams as they stand now; from here on unlisted players belong to the team they stand with."""
        teams: dict[Team, list[PlayerId]] = {Team.TEAM1: [], Team.TEAM2: []}
        for player_id, side in self.standing.items():
            team = self.listed.get(player_id)
            if team is None:
                team = self.members[player_id] = self.team_on(side)
            teams[team].append(player_id)
        return tuple(teams[Team.TEAM1]), tuple(teams[Team.TEAM2])

    def _move(self, team1_side: Side) -> bool:
        has_moved = team1_side is not self.team1_side
        self.team1_side = team1_side
        return has_moved
