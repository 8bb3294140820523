"""Does a player kill faster than a hand can aim or a bolt can cycle? Two kinds of burst, reported when they repeat.

A burst is three headshots of different distant enemies within a second by guns that fire once a click, four by guns
that may spray; or two kills within a second by a rifle whose bolt takes longer. Log files stamp whole seconds: equal
stamps are less than a second apart and unequal ones may be more, so one window fits files and posts. Bullets that went
through something are left out: one of them kills several. A server that stalls catches up and stamps a long fight as a
short one, and luck does the rest, so a single burst says nothing. Direction is not known: no angle is judged.
"""

from __future__ import annotations

import msgspec

from matchpod.core.anticheat.headshot_rate import AIMED
from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType, PlayerId
from matchpod.core.stats.weapons import PISTOLS, SNIPERS

KIND = "RageBot"

WINDOW_MS = 1000
"""Kills of a burst are less than this apart, first to last."""

MIN_DISTANCE = 500
"""Game units, 12.7 m. In a crowd at arm's length honest players kill three in a second: a real log has it."""

BOLT_ACTION = frozenset({"awp", "ssg08"})
"""The bolt takes 1.46 s and 1.25 s; taking up another such rifle takes no less than a second."""

SINGLE_SHOT = (PISTOLS - {"cz75a", "glock"}) | BOLT_ACTION
"""One click, one bullet: every head was aimed at. The CZ75 is automatic and the Glock fires bursts."""

SPRAYED = (AIMED | SNIPERS) - SINGLE_SHOT
"""Guns that fire on while the trigger is held: a line of enemies in a spray is luck, up to a point."""

SINGLE_SHOT_HEADSHOTS = 3
SPRAYED_HEADSHOTS = 4
"""A real log has four honest rifle headshots within three seconds, and twice two within one."""

MIN_BURSTS = 2
"""Bursts in a match before anything is said, and again before it is said again."""


class Headshot(msgspec.Struct, frozen=True, gc=False):
    """A kill that may become part of a burst."""

    at_ms: int
    is_sprayed: bool


class KillBursts(msgspec.Struct, tag=True):
    """The bursts of one player in a match, and the kills of the last second by victim."""

    recent: dict[PlayerId, Headshot] = {}
    bolt_at_ms: int | None = None
    bursts: int = 0
    told_bursts: int = 0
    is_told: bool = False

    @classmethod
    def of(cls, _match_type: MatchType) -> KillBursts:
        """Nothing seen yet; hands are as fast in every type of match."""
        return cls()

    def new_map(self) -> None:
        """Another map begins: the evidence stays and may be reported once more."""
        self.is_told = False

    def see(self, kill: Kill) -> CheatSuspected | None:
        """Look at an enemy kill of the player; a report when bursts repeat."""
        if kill.is_wallbang:
            return None
        found = self._bolt_burst(kill) or self._headshot_burst(kill)
        if found is None:
            return None
        self.bursts += 1
        self.recent, self.bolt_at_ms = {}, None
        if self.is_told or self.bursts - self.told_bursts < MIN_BURSTS:
            return None
        self.is_told, self.told_bursts = True, self.bursts
        reason = f"{self.bursts} bursts of kills faster than aim allows; the last: {found} within a second"
        return CheatSuspected(kill.at_ms, kill.killer, KIND, reason, kill.weapon)

    def _bolt_burst(self, kill: Kill) -> str | None:
        if kill.weapon not in BOLT_ACTION:
            return None
        before_ms, self.bolt_at_ms = self.bolt_at_ms, kill.at_ms
        if before_ms is None or not _is_within(before_ms, kill.at_ms):
            return None
        return "2 kills with a bolt-action rifle"

    def _headshot_burst(self, kill: Kill) -> str | None:
        is_sprayed = kill.weapon in SPRAYED
        if not kill.is_headshot or not (is_sprayed or kill.weapon in SINGLE_SHOT):
            return None
        if kill.distance is None or kill.distance < MIN_DISTANCE:
            return None
        self.recent = {who: shot for who, shot in self.recent.items() if _is_within(shot.at_ms, kill.at_ms)}
        self.recent[kill.victim] = Headshot(kill.at_ms, is_sprayed)
        count = len(self.recent)
        has_spray = any(shot.is_sprayed for shot in self.recent.values())
        if count < (SPRAYED_HEADSHOTS if has_spray else SINGLE_SHOT_HEADSHOTS):
            return None
        return f"{count} headshots of different distant enemies"


def _is_within(before_ms: int, now_ms: int) -> bool:
    """A clock that was set back tells nothing."""
    return 0 <= now_ms - before_ms < WINDOW_MS
