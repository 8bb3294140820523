"""Store the state of the loaded match: stage, maps, wins, rosters and sides.

The plugin's team1 and team2 are those of the match file. The game's first team has the name in `mp_teamname_1` and
begins a map as CT; `is_team1_first` is true if this is team1 on the current map. Only this module converts sides to the
plugin's teams.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum

from cs2_protocol.game import Side, Team
from cs2_protocol.steam_id import account_of
from cs2_simulator.play.player import SPECTATOR, Player
from cs2_simulator.plugin.match_file import MatchFile
from cs2_simulator.plugin.player_lists import SPECTATORS, TEAM1, TEAM2, PlayerLists

NO_MATCH_ID = -1
"""Match id before the start of the match, if the match file has no id."""


class PluginStage(IntEnum):
    """Stage of the plugin's match. Numbers and names are those of get5. MatchZy does not use get5's other stages."""

    NONE = 0
    WARMUP = 3
    KNIFE = 4
    WAITING_FOR_KNIFE_DECISION = 5
    LIVE = 7
    POST_GAME = 9

    @property
    def is_started(self) -> bool:
        """True from the knife round or the live start until the server leaves the map."""
        return self > PluginStage.WARMUP


class SeriesStanding(StrEnum):
    GOES_ON = "goes_on"
    DECIDED = "decided"
    STUCK = "stuck"


class Series:
    def __init__(self, match: MatchFile, url: str) -> None:
        self.match = match
        self.url = url
        self.match_id = NO_MATCH_ID if match.match_id is None else match.match_id
        self.maps = match.pool[: match.num_maps]
        self.map_number = 0
        self.wins = [0, 0]
        self.is_team1_first = True
        self.original_values: dict[str, str] = {}
        """Values of the match's variables before it was loaded."""
        self.lists = PlayerLists({TEAM1: match.team1.players, TEAM2: match.team2.players, SPECTATORS: match.spectators})
        self.standing = SeriesStanding.GOES_ON
        self._backups: dict[str, PlayerLists] = {}

    @property
    def needs_knife(self) -> bool:
        return self.match.map_sides[self.map_number] == "knife"

    @property
    def backup_prefix(self) -> str:
        return f"matchzy_{self.match_id}_{self.map_number}"

    @property
    def names(self) -> tuple[str, str]:
        """Names of the teams that begin this map as CT and as T."""
        team1, team2 = self.match.team1.name, self.match.team2.name
        return (team1, team2) if self.is_team1_first else (team2, team1)

    def assign_sides(self, first_team_side: Side) -> None:
        """Assign the sides on which the teams begin this map. For a knife round, the teams stay on their last sides."""
        side = self.match.map_sides[self.map_number]
        if side == "knife":
            self.is_team1_first = self.side_of(Team.TEAM1, first_team_side) is Side.CT
        else:
            self.is_team1_first = side in ("team1_ct", "team2_t")

    def side_of(self, team: Team, first_team_side: Side) -> Side:
        """Return the side of a team, given the side of the game's first team."""
        is_first = (team is Team.TEAM1) is self.is_team1_first
        return first_team_side if is_first else first_team_side.other

    def by_team(self, score: tuple[int, int]) -> tuple[int, int]:
        """Convert the game's score (first, second) to the plugin's (team1, team2)."""
        return score if self.is_team1_first else (score[1], score[0])

    def required_team(self, player: Player, first_team_side: Side) -> str | None:
        """Return the name of the team that a listed player must join; None if the player is not listed."""
        match self.lists.list_of(player.person.player_id):
            case None:
                return None
            case "spec":
                return SPECTATOR
            case name:
                return self.side_of(Team(name), first_team_side).value

    def expected_people(self, name: str) -> list[tuple[int, str]]:
        """Return the account and the forced name of everyone in a list."""
        accounts = ((account_of(player_id), nick) for player_id, nick in self.lists[name].items())
        return [(account, nick) for account, nick in accounts if account is not None]

    # --- backups ---------------------------------------------------------------------------------------------------

    def backup_file(self, rounds_played: int) -> str:
        """Return the name of the plugin's backup file. The name of the game's own file ends in `.txt`."""
        return f"{self.backup_prefix}_round{rounds_played:02d}.json"

    def write_backup(self, rounds_played: int) -> None:
        """Save the current player lists, so that a restore of this backup can restore them too."""
        self._backups[self.backup_file(rounds_played)] = self.lists.copy()

    def has_backup(self, file: str) -> bool:
        return file in self._backups

    def restore(self, file: str) -> None:
        self.lists = self._backups[file].copy()

    def end_map(self, score: tuple[int, int]) -> SeriesStanding:
        """Count a map that ended with this score (team1, team2), as MatchZy does.

        A drawn map counts for neither team and does not reduce the number of remaining maps. So a series can run out of
        maps without a winner. The plugin then raises an index error and never ends the series.
        """
        self.standing = self._count_map(score)
        return self.standing

    def _count_map(self, score: tuple[int, int]) -> SeriesStanding:
        if score[0] != score[1]:
            self.wins[0 if score[0] > score[1] else 1] += 1
        remaining = self.match.num_maps - sum(self.wins)
        needed = self.match.num_maps // 2 + 1
        if remaining <= 0 and (self.wins[0] == self.wins[1] or not self.match.can_clinch):
            return SeriesStanding.DECIDED
        if self.match.can_clinch and needed in self.wins:
            return SeriesStanding.DECIDED
        self.map_number += 1
        return SeriesStanding.GOES_ON if self.map_number < len(self.maps) else SeriesStanding.STUCK


def accounts_of(people: Iterable[str]) -> list[int]:
    """Return the account numbers of SteamID64s. Texts that are not SteamID64s are left out."""
    return [account for account in map(account_of, people) if account is not None]
