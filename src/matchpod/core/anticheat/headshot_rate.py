"""Detect an implausible headshot rate with a binomial test over a player's aimed kills in a match.

Only rifles, submachine guns and pistols count. Sniper rifles kill with body shots, shotguns and machine guns hit heads
by spread, and knives, fire, grenades and the taser cannot hit heads. The base rate is higher than that of any known
player: the highest published career rate is 68.1 % of 27,501 kills, and most professionals have 45 to 55 %. The test is
repeated as kills are added, which adds false positives: 1 in 1,400 players at the base rate within 30 aimed kills.
"""

from __future__ import annotations

import math

import msgspec

from cs2_protocol.weapons import PISTOLS
from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType

KIND = "Aimbot"

AIMED = PISTOLS | {
    *("ak47", "m4a1", "m4a1_silencer", "aug", "sg556", "galilar", "famas"),
    *("mp9", "mp7", "mp5sd", "mac10", "p90", "ump45", "bizon"),
}
"""Weapons whose headshots require aim. Other weapons do not count."""

BASE_PERCENT = 70
"""Assumed headshot percentage of the best honest player."""

DEATHMATCH_BASE_PERCENT = 80
"""Assumed headshot percentage of the best honest player in deathmatch, where players practise headshots and a miss does
not cost a round."""

MAX_CHANCE = 1 / 2000
"""A headshot rate is reported if the probability that the best honest player reaches it is below this threshold."""

GROWTH = 10
"""Factor by which the probability must drop for another report on a later map."""

MIN_KILLS = 22
"""Minimum number of kills for a report. Even with headshots only, 21 kills are not enough: 0.70 ** 21 is above
MAX_CHANCE."""

_SMALLEST_CHANCE = 1e-9


class HeadshotRate(msgspec.Struct, tag=True):
    """The aimed kills of one player in a match. `is_told` is True if the rate was reported on this map."""

    base_percent: int = BASE_PERCENT
    kills: int = 0
    headshots: int = 0
    report_below: float = MAX_CHANCE
    is_told: bool = False

    @classmethod
    def of(cls, match_type: MatchType) -> HeadshotRate:
        """Return a new detector with the base rate of this match type."""
        return cls(DEATHMATCH_BASE_PERCENT if match_type is MatchType.DEATHMATCH else BASE_PERCENT)

    def new_map(self) -> None:
        """Start a new map: the evidence is kept, and one more report is allowed."""
        self.is_told = False

    def observe(self, kill: Kill) -> CheatSuspected | None:
        """Count a kill of an enemy; return a report, at most one per map, if the headshot rate is too unlikely."""
        if kill.weapon not in AIMED:
            return None
        self.kills += 1
        self.headshots += kill.is_headshot
        is_high = self.headshots * 100 > self.kills * self.base_percent
        if self.is_told or not (kill.is_headshot and is_high) or self.kills < MIN_KILLS:
            return None
        chance = chance_of(self.headshots, self.kills, self.base_percent)
        if chance >= self.report_below:
            return None
        self.is_told, self.report_below = True, chance / GROWTH
        return CheatSuspected(kill.at_ms, kill.killer, KIND, self._reason(chance), kill.weapon)

    def _reason(self, chance: float) -> str:
        odds = round(1 / max(chance, _SMALLEST_CHANCE))
        return (
            f"{self.headshots} of {self.kills} rifle, SMG and pistol kills were headshots; "
            f"chance 1 in {odds:,} for a player with a headshot rate of {self.base_percent} %"
        )


def chance_of(headshots: int, kills: int, base_percent: int) -> float:
    """Return the probability of at least this many headshots for a player with the base rate."""
    # Compute with integers until the final division: float terms overflow at about 1,000 kills.
    ways: int = sum(
        math.comb(kills, hit) * base_percent**hit * (100 - base_percent) ** (kills - hit)
        for hit in range(headshots, kills + 1)
    )
    all_ways: int = 100**kills
    return ways / all_ways
