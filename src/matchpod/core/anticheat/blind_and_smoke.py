"""Detect a player who often kills enemies out of sight: through smoke, through walls or while blind.

Such kills also happen in honest play: players spray into smoke, shoot through known spots, or keep firing while blind.
But they are never a large share of a player's gun kills, least of all as headshots, which need a visible target. Close
kills are excluded, because footsteps and silhouettes reveal the enemy; so are kills with machine guns, which are made
for spraying at unseen enemies, and with shotguns, which need no precise aim.
"""

from __future__ import annotations

import msgspec

from cs2_protocol.weapons import SNIPERS
from matchpod.core.anticheat.headshot_rate import AIMED
from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType

KIND = "Wallhack"

GUNS = AIMED | SNIPERS
"""Guns that fire one bullet per shot and are aimed at a target."""

MIN_DISTANCE = 500
"""Minimum distance to an unseen enemy in game units (12.7 m). A closer enemy can be heard, or seen in smoke."""

MIN_HEADSHOTS = 6
MIN_HEADSHOT_PERCENT = 20
"""Minimum percentage of headshots on unseen enemies among all gun kills for a report. At least MIN_HEADSHOTS of them
must be new since the last report. Real logs have 1 such headshot in 167 kills."""

MIN_UNSEEN = 10
MIN_UNSEEN_PERCENT = 40
"""Minimum percentage of kills of unseen enemies among all gun kills for a report. At least MIN_UNSEEN of them must be
new since the last report. Real logs have 4 such kills in 167."""


class BlindAndSmoke(msgspec.Struct, tag=True):
    """The gun kills of one player in a match, and how many were of unseen enemies.

    `told_headshots` and `told_unseen` are the counts at the last report; `is_told` is True after a report on this map.
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
        """Return a new detector; its thresholds are the same for every match type."""
        return cls()

    def new_map(self) -> None:
        """Start a new map: the evidence is kept, and one more report is allowed."""
        self.is_told = False

    def observe(self, kill: Kill) -> CheatSuspected | None:
        """Count a kill of an enemy; return a report, at most one per map, if too many kills were of unseen enemies."""
        if kill.weapon not in GUNS:
            return None
        self.kills += 1
        is_unseen = kill.is_through_smoke or kill.is_blind or kill.is_wallbang
        if not is_unseen or kill.distance is None or kill.distance < MIN_DISTANCE:
            return None
        self.unseen += 1
        self.headshots += kill.is_headshot
        self.through_smoke += kill.is_through_smoke
        self.blind += kill.is_blind
        self.through_walls += kill.is_wallbang
        if self.is_told or not self._is_suspicious():
            return None
        self.is_told, self.told_headshots, self.told_unseen = True, self.headshots, self.unseen
        return CheatSuspected(kill.at_ms, kill.killer, KIND, self._reason(), kill.weapon)

    def _is_suspicious(self) -> bool:
        """True if unseen kills, or headshots among them, are a large share and enough are new since the last report."""
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
