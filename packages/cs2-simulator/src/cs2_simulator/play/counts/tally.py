"""Define the counters of a player, named as in `core.stats`, so that tests can compare them with those counted from
logs.

Each player has one tally per round. The tally of a map is the sum of the tallies of its rounds.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec

_MISSES = (2, 5, 3, 6, 1, 4)
"""Numbers of missed shots before a hit, used in turn. Missed shots have no log line, so they are not simulated in
fights."""


class Tally(msgspec.Struct, kw_only=True):
    """The counters of one player in a round or on a map.

    `team` is 1, 2 or 0 (none). Sums keep the latest name and team.
    """

    rounds_played: int = 0
    kills: int = 0
    deaths: int = 0
    assists: int = 0
    flash_assists: int = 0
    headshots: int = 0
    damage: int = 0
    utility_damage: int = 0
    team_kills: int = 0
    pistol_kills: int = 0
    sniper_kills: int = 0
    knife_kills: int = 0
    chicken_kills: int = 0
    enemies_flashed: int = 0
    bomb_plants: int = 0
    bomb_defuses: int = 0
    he_thrown: int = 0
    flash_thrown: int = 0
    smoke_thrown: int = 0
    molly_thrown: int = 0
    decoy_thrown: int = 0
    # The counters from here on are only known at the end of the round.
    first_kills: int = 0
    first_deaths: int = 0
    trade_kills: int = 0
    traded_deaths: int = 0
    clutch_kills: int = 0
    clutch1v1: int = 0
    clutch1v2: int = 0
    clutch1v3: int = 0
    clutch1v4: int = 0
    clutch1v5: int = 0
    double_kills: int = 0
    triple_kills: int = 0
    quad_kills: int = 0
    aces: int = 0
    kast_rounds: int = 0
    player_id: str = ""
    name: str = ""
    team: int = 0
    mvps: int = 0
    shots_fired: int = 0
    shots_hit: int = 0
    # The following counters appear only in the game's own statistics and awards:
    burn_damage: int = 0
    he_damage: int = 0
    blind_kills: int = 0
    """Kills by this player while blinded by a flashbang."""
    carrier_kills: int = 0
    """Kills of the bomb carrier."""
    weapon_kills: dict[str, int] = msgspec.field(default_factory=dict)
    """Kills of enemies by weapon, named as in `killed` lines."""

    def count_shot(self) -> None:
        """Count a shot that hit, and the shots that missed before it."""
        self.shots_fired += 1 + _MISSES[self.shots_hit % len(_MISSES)]
        self.shots_hit += 1

    def add(self, later: Tally) -> None:
        self.name = later.name
        self.team = later.team or self.team
        for counter, count in zip(COUNTERS, _COUNTS(later), strict=True):
            if count:
                setattr(self, counter, getattr(self, counter) + count)
        for weapon, kills in later.weapon_kills.items():
            self.weapon_kills[weapon] = self.weapon_kills.get(weapon, 0) + kills


COUNTERS = tuple(name for name in Tally.__struct_fields__ if name not in ("player_id", "name", "team", "weapon_kills"))
"""Names of all counters that are summed."""

_COUNTS = attrgetter(*COUNTERS)
"""Reads all counters of a tally in one call instead of forty. It is called for every player after every round."""


OF_COACH = Tally(deaths=1)
"""The statistics that the game shows for a coach. The plugin resets a coach's statistics at the start of each round,
and then kills the coach once."""


def add_all(totals: dict[str, Tally], later: list[Tally]) -> None:
    """Add tallies to the totals by player. A player without a total gets a new total."""
    for tally in later:
        total = totals.get(tally.player_id)
        if total is None:
            total = totals[tally.player_id] = Tally(player_id=tally.player_id, name=tally.name)
        total.add(tally)
