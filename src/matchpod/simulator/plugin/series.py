"""Where does the series stand? The loaded match: its maps, who won them, who belongs to which team, on which side.

The plugin's team1 and team2 are those of the match file. The game's first team is the one that `mp_teamname_1` names
and that begins a map as CT: `is_team1_first` says whether that is team1 on the map being played. Everything said by
side is turned into the plugin's teams here, and only here.
"""

from __future__ import annotations

from enum import StrEnum

from matchpod.core.model import Side, Team
from matchpod.cs2.steam_id import account_of
from matchpod.simulator.play.player import SPECTATOR, Player
from matchpod.simulator.plugin.match_file import MatchFile

TEAMS = ("team1", "team2", "spec")
"""Where the plugin can list a player."""

NO_MATCH_ID = -1
"""What the plugin calls a match that nobody gave a number and that has not begun."""


class Standing(StrEnum):
    """What follows from the end of a map."""

    GOES_ON = "goes_on"
    DECIDED = "decided"
    STUCK = "stuck"


class Series:
    """A loaded match."""

    def __init__(self, match: MatchFile, url: str) -> None:
        self.match = match
        self.url = url
        self.match_id = NO_MATCH_ID if match.match_id is None else match.match_id
        self.maps = match.pool[: match.num_maps] if match.skips_veto else ()
        """The maps in their order; none before the veto."""
        self.map_number = 0
        self.wins = [0, 0]
        self.rosters = (dict(match.team1.players), dict(match.team2.players))
        self.spectators = dict(match.spectators)
        self.is_team1_first = True
        self.original_values: dict[str, str] = {}
        """What the variables of the match were before it."""

    @property
    def needs_knife(self) -> bool:
        """True when a knife round decides the sides of this map."""
        return self.match.map_sides[self.map_number] == "knife"

    @property
    def backup_prefix(self) -> str:
        """How the backups of this map are called."""
        return f"matchzy_{self.match_id}_{self.map_number}"

    @property
    def first_name(self) -> str:
        """The name of the team that begins this map as CT."""
        return self.match.team1.name if self.is_team1_first else self.match.team2.name

    @property
    def second_name(self) -> str:
        """The name of the team that begins this map as T."""
        return self.match.team2.name if self.is_team1_first else self.match.team1.name

    def take_sides(self, first_team_side: Side) -> None:
        """Sides of the map that comes; before a knife round each team stands where it last stood."""
        side = self.match.map_sides[self.map_number]
        if side == "knife":
            self.is_team1_first = self.side_of(Team.TEAM1, first_team_side) is Side.CT
        else:
            self.is_team1_first = side in ("team1_ct", "team2_t")

    def side_of(self, team: Team, first_team_side: Side) -> Side:
        """Where a team stands, given where the game's first team stands."""
        is_first = (team is Team.TEAM1) is self.is_team1_first
        return first_team_side if is_first else first_team_side.other

    def by_team(self, score: tuple[int, int]) -> tuple[int, int]:
        """The game's score (first, second) as the plugin's (team1, team2)."""
        return score if self.is_team1_first else (score[1], score[0])

    def team_of(self, player: Player) -> Team | None:
        """Whose player somebody is."""
        player_id = player.person.player_id
        if player_id in self.rosters[0]:
            return Team.TEAM1
        return Team.TEAM2 if player_id in self.rosters[1] else None

    def place_of(self, player: Player, first_team_side: Side) -> str | None:
        """The team word a listed person must take; None for one who is not listed."""
        team = self.team_of(player)
        if team is not None:
            return self.side_of(team, first_team_side).value
        return SPECTATOR if player.person.player_id in self.spectators else None

    def add(self, player_id: str, team: str, nick: str) -> bool:
        """List one more player in one of `TEAMS`; False when he is listed already."""
        lists = dict(zip(TEAMS, (*self.rosters, self.spectators), strict=True))
        if any(player_id in listed for listed in lists.values()):
            return False
        lists[team][player_id] = nick
        return True

    def remove(self, player_id: str) -> bool:
        """Strike a player off; False when he is not listed."""
        lists = (*self.rosters, self.spectators)
        found = [listed.pop(player_id, None) for listed in lists]
        return any(nick is not None for nick in found)

    def expected(self) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        """Account and forced name of everyone who may come, by the plugin's teams."""
        return _accounts(self.rosters[0]), _accounts(self.rosters[1])

    def end_map(self, score: tuple[int, int]) -> Standing:
        """Count a map that ended with this score, by team; what follows is MatchZy's arithmetic.

        A drawn map counts for nobody and leaves the number of maps to play as it was. So a series can run out of maps
        undecided: the plugin then looks for a map behind the last one, fails, and never ends the series.
        """
        if score[0] != score[1]:
            self.wins[0 if score[0] > score[1] else 1] += 1
        remaining = self.match.num_maps - sum(self.wins)
        needed = self.match.num_maps // 2 + 1
        if remaining <= 0 and (self.wins[0] == self.wins[1] or not self.match.can_clinch):
            return Standing.DECIDED
        if self.match.can_clinch and needed in self.wins:
            return Standing.DECIDED
        self.map_number += 1
        return Standing.GOES_ON if self.map_number < len(self.maps) else Standing.STUCK


def _accounts(roster: dict[str, str]) -> list[tuple[int, str]]:
    accounts = ((account_of(player_id), nick) for player_id, nick in roster.items())
    return [(account, nick) for account, nick in accounts if account is not None]
