"""Does a player kill enemies he cannot see? Kills through smoke, through walls and while blind, by count and share.

Each happens in honest play: smoke is sprayed, known spots are shot through, a blinded player keeps firing where he
last saw somebody. What honest play does not reach is a large share of all gun kills, and above all headshots: nobody
aims at a head he does not see. Near kills are left out, because steps and shapes give the enemy away; so are machine
guns, made for spraying at what one does not see, and shotguns, which need no aim.
"""

from __future__ import annotations

import msgspec

from matchpod.core.anticheat.headshot_rate import AIMED
from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType
from matchpod.core.stats.weapons import SNIPERS

KIND = "Wallhack"

GUNS = AIMED | SNIPERS
"""One bullet a shot, and fired at somebody."""

MIN_DISTANCE = 500
"""Game units, 12.7 m. Nearer than that an enemy is heard, and shows as a shape in smoke."""

MIN_HEADSHOTS = 6
MIN_HEADSHOT_PERCENT = 20
"""Headshots on unseen enemies, and their share of all gun kills; 1 of 167 in real logs."""

MIN_UNSEEN = 10
MIN_UNSEEN_PERCENT = 40
"""Kills of unseen enemies by any hit, and their share of all gun kills; 4 of 167 in real logs."""


class BlindAndSmoke(msgspec.Struct, tag=True):
    """The gun kills of one player in a match, and those of enemies he could not see.

    `told_headshots` and `told_unseen` are the counts at the last report.
    """

    kills: int = 0
    unseen: int = 0
    headshots: int = 0
    through_smoke: int = 0
    blind: int = 0
    through_walls: int = 0
    told_headshots: int = 0
    told_unseen: int = 0
    is_told: bool = False

    @classmethod
    def of(cls, _match_type: MatchType) -> BlindAndSmoke:
        """Nothing seen yet; smoke is as thick in every type of match."""
        return cls()

    def new_map(self) -> None:
        """Another map begins: the evidence stays and may be reported once more."""
        self.is_told = False

    def see(self, kill: Kill) -> CheatSuspected | None:
        """Count an enemy kill of the player; a report when too many were of enemies he could not see."""
        if kill.weapon not in GUNS:
            return None
        self.kills += 1
        is_hidden = kill.is_through_smoke or kill.is_blind or kill.is_wallbang
        if not is_hidden or kill.distance is None or kill.distance < MIN_DISTANCE:
            return None
        self.unseen += 1
        self.headshots += kill.is_headshot
        self.through_smoke += kill.is_through_smoke
        self.blind += kill.is_blind
        self.through_walls += kill.is_wallbang
        if self.is_told or not self._is_too_much():
            return None
        self.is_told, self.told_headshots, self.told_unseen = True, self.headshots, self.unseen
        return CheatSuspected(kill.at_ms, kill.killer, KIND, self._reason(), kill.weapon)

    def _is_too_much(self) -> bool:
        """Count and share are reached, and since the last report the count was reached anew."""
        has_headshots = self.headshots - self.told_headshots >= MIN_HEADSHOTS
        has_unseen = self.unseen - self.told_unseen >= MIN_UNSEEN
        return (has_headshots and self.headshots * 100 >= self.kills * MIN_HEADSHOT_PERCENT) or (
            has_unseen and self.unseen * 100 >= self.kills * MIN_UNSEEN_PERCENT
        )

    def _reason(self) -> str:
        return (
            f"{self.unseen} of {self.kills} gun kills were of distant enemies out of sight, {self.headshots} of them "
            f"headshots ({self.through_smoke} through smoke, {self.through_walls} through walls, {self.blind} blind)"
        )
