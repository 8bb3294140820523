"""Detect repeated bursts of kills that are faster than a human can aim or a rifle can fire.

A burst is three headshots on different distant enemies within a second with guns that fire once per click, or four if
one of them was with an automatic gun; or two kills within a second with a bolt-action rifle, which cannot fire that
fast. Log files have timestamps in whole seconds, so only equal timestamps are certainly less than a second apart. The
window therefore suits files as well as posts, which have milliseconds. Wallbangs are excluded, since one bullet can
kill several enemies. A single burst is not evidence: it may be luck, or the server may have stalled and then caught up.
Angles are not in the log.
"""

from __future__ import annotations

import msgspec

from cs2_protocol.game import PlayerId
from cs2_protocol.weapons import PISTOLS, SNIPERS
from matchpod.core.anticheat.headshot_rate import AIMED
from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType

KIND = "RageBot"

WINDOW_MS = 1000
"""Length of the window in ms. The first and the last kill of a burst are less than this time apart."""

MIN_DISTANCE = 500
"""Minimum distance of a headshot in game units (12.7 m). In a real log, an honest player had three closer headshots
within a second."""

BOLT_ACTION = frozenset({"awp", "ssg08"})
"""Rifles with cycle times of 1.46 s and 1.25 s; switching to another such rifle takes a second or more."""

SINGLE_SHOT = (PISTOLS - {"cz75a", "glock"}) | BOLT_ACTION
"""Guns that fire one bullet per click, so each headshot was aimed. The CZ75 is automatic, and the Glock has bursts."""

SPRAYED = (AIMED | SNIPERS) - SINGLE_SHOT
"""Automatic and burst-fire guns. A few headshots in one spray can be luck."""

SINGLE_SHOT_HEADSHOTS = 3
SPRAYED_HEADSHOTS = 4
"""Minimum number of headshots in a burst if any gun is automatic or burst-fire; otherwise SINGLE_SHOT_HEADSHOTS. In a
real log, honest rifle players had 4 headshots within 3 s once, and 2 headshots within 1 s twice."""

MIN_BURSTS = 2
"""Minimum number of bursts before the first report, and of further bursts before each further report."""


class Headshot(msgspec.Struct, frozen=True, gc=False):
    """A headshot kill that may become part of a burst."""

    at_ms: int
    is_sprayed: bool


class KillBursts(msgspec.Struct, tag=True):
    """Bursts of one player. `recent` has the last headshot per victim; `told_bursts` is `bursts` at the last report."""

    recent: dict[PlayerId, Headshot] = {}
    bolt_at_ms: int | None = None
    bursts: int = 0
    told_bursts: int = 0
    is_told: bool = False

    @classmethod
    def of(cls, _match_type: MatchType) -> KillBursts:
        """Return a new detector; its thresholds are the same for every match type."""
        return cls()

    def new_map(self) -> None:
        """Start a new map: the evidence is kept, and one more report is allowed."""
        self.is_told = False

    def observe(self, kill: Kill) -> CheatSuspected | None:
        """Process a kill of an enemy; return a report, at most one per map, if bursts repeat."""
        if kill.is_wallbang:
            return None
        burst = self._bolt_burst(kill) or self._headshot_burst(kill)
        if burst is None:
            return None
        self.bursts += 1
        self.recent, self.bolt_at_ms = {}, None
        if self.is_told or self.bursts - self.told_bursts < MIN_BURSTS:
            return None
        self.is_told, self.told_bursts = True, self.bursts
        reason = f"{self.bursts} bursts of kills faster than humanly possible; the last: {burst} within a second"
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
        self.recent = {victim: shot for victim, shot in self.recent.items() if _is_within(shot.at_ms, kill.at_ms)}
        self.recent[kill.victim] = Headshot(kill.at_ms, is_sprayed)
        count = len(self.recent)
        has_spray = any(shot.is_sprayed for shot in self.recent.values())
        if count < (SPRAYED_HEADSHOTS if has_spray else SINGLE_SHOT_HEADSHOTS):
            return None
        return f"{count} headshots on different distant enemies"


def _is_within(before_ms: int, now_ms: int) -> bool:
    """True if the times are less than the window apart; False if the clock was set back between them."""
    return 0 <= now_ms - before_ms < WINDOW_MS
