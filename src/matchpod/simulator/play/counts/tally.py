"""What did one player do? His counters over a round or a map, under the names by which results are compared.

A round is counted per player in a tally of its own, and a map is the sum of its rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter


@dataclass(slots=True)
class Tally:
    """What one player did in a round or on a map. `team` is 1 or 2, 0 for none; name and team are the latest."""

    player_id: str
    name: str
    team: int = 0
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
    mvps: int = 0
    # Only the game's own block and awards show these:
    burn_damage: int = 0
    he_damage: int = 0
    blind_kills: int = 0
    """Kills made while blinded himself."""
    carrier_kills: int = 0
    """Kills of the one who had the bomb."""
    rounds_survived: int = 0
    weapon_kills: dict[str, int] = field(default_factory=dict)
    """Kills of enemies by weapon, in the words of `killed`."""

    def add(self, later: Tally) -> None:
        """Add what the same player did later."""
        self.name = later.name
        self.team = later.team or self.team
        for counter, count in zip(COUNTERS, _COUNTS(later), strict=True):
            if count:
                setattr(self, counter, getattr(self, counter) + count)
        for weapon, kills in later.weapon_kills.items():
            self.weapon_kills[weapon] = self.weapon_kills.get(weapon, 0) + kills


COUNTERS = tuple(each.name for each in fields(Tally) if each.name not in ("player_id", "name", "team", "weapon_kills"))
"""Every counter that adds up."""

_COUNTS = attrgetter(*COUNTERS)
"""All counters at once: one call instead of forty, after every round of every player."""


def add_all(totals: dict[str, Tally], later: list[Tally]) -> None:
    """Add tallies to the totals by player; who has no total yet gets one of his own."""
    for tally in later:
        total = totals.get(tally.player_id)
        if total is None:
            total = totals[tally.player_id] = Tally(tally.player_id, tally.name)
        total.add(tally)
