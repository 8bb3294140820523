"""Does a player hit heads more often than chance explains? Binomial odds over the aimed kills of a whole match.

Counted are the guns with which one aims at heads: rifles, submachine guns, pistols. A sniper rifle kills by any hit,
so its users aim at the body; shotguns and machine guns hit heads by spread; knives, fire, grenades and the taser know
no head. The odds are those of a player at the base rate, better than anybody known: the highest published career
rate is 68.1 % of 27,501 kills, most professionals stand at 45 to 55 %. Every kill is another look, and each look is
another chance for chance: MAX_CHANCE is set so that all looks of a long map together stay below 1 in 1,000.
"""

from __future__ import annotations

import math

import msgspec

from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType
from matchpod.core.stats.weapons import PISTOLS

KIND = "Aimbot"

AIMED = PISTOLS | {
    *("ak47", "m4a1", "m4a1_silencer", "aug", "sg556", "galilar", "famas"),
    *("mp9", "mp7", "mp5sd", "mac10", "p90", "ump45", "bizon"),
}
"""Guns with which a head is hit by aiming at it. A name not listed here does not count."""

BASE_PERCENT = 70
"""Headshots in 100 aimed kills of the best honest player we reckon with."""

DEATHMATCH_BASE_PERCENT = 80
"""Deathmatch is where people practise headshots and nothing else: nobody loses a round by missing one."""

MAX_CHANCE = 1 / 2000
"""A rate is reported when the best honest player would reach it more seldom than this."""

GROWTH = 10
"""On a later map the evidence is reported again only when it has become this many times less likely."""

MIN_KILLS = 22
"""Fewer never suffice, so their odds need not be worked out: 0.70 ** 21 is above MAX_CHANCE."""

_SMALLEST_CHANCE = 1e-9


class HeadshotRate(msgspec.Struct, tag=True):
    """The aimed kills of one player in a match."""

    base_percent: int = BASE_PERCENT
    kills: int = 0
    headshots: int = 0
    report_below: float = MAX_CHANCE
    is_told: bool = False

    @classmethod
    def of(cls, match_type: MatchType) -> HeadshotRate:
        """Nothing seen yet, in a match of this type."""
        return cls(DEATHMATCH_BASE_PERCENT if match_type is MatchType.DEATHMATCH else BASE_PERCENT)

    def new_map(self) -> None:
        """Another map begins: the evidence stays and may be reported once more."""
        self.is_told = False

    def see(self, kill: Kill) -> CheatSuspected | None:
        """Count an enemy kill of the player; a report when the rate has become too unlikely."""
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
            f"chance 1 in {odds:,} for a player who hits {self.base_percent} %"
        )


def chance_of(headshots: int, kills: int, base_percent: int) -> float:
    """The chance that a player at the base rate has that many headshots or more."""
    # Whole numbers up to the last division: as floats the terms overflow at about 1,000 kills.
    ways: int = sum(
        math.comb(kills, hit) * base_percent**hit * (100 - base_percent) ** (kills - hit)
        for hit in range(headshots, kills + 1)
    )
    all_ways: int = 100**kills
    return ways / all_ways
