"""Convert times of a game that runs faster or slower than our clock to our time.

Only simulated games do. Their events keep the time of the game, so durations and intervals are those of the game; times
that callers see are ours. Each log post says which time of the game was which of ours. A time between two posts is
interpolated, and none is later than the post that reported it, so times are in order and never in the future.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import Final

import msgspec

TOLERANCE_MS: Final = 500
"""How far times may be behind the posts before the speed is measured again: posts vary a little."""

MAX_STRETCHES: Final = 2000
"""Most stretches stored, of which a usual sandbox match has some hundred. Beyond that, the last one is replaced."""


class Stretch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a game with the same speed: from `from_ms` of the game, which is `our_ms`, `per_ms` take `lasts_ms`."""

    from_ms: int
    our_ms: int
    per_ms: int = 1
    lasts_ms: int = 0

    def ours(self, at_ms: int) -> int:
        """Return our time for a time of the game; it need not be within the stretch."""
        return self.our_ms + max(0, at_ms - self.from_ms) * self.lasts_ms // self.per_ms


class GameTimes(msgspec.Struct):
    """What is known about the times of one game. Without any post, as in real time, its times are ours."""

    stretches: list[Stretch] = []
    until_ms: int = 0
    """The latest time of the game that is known in our time."""

    def add_post(self, sent_ms: int, received_ms: int) -> None:
        """Add that a post sent at this time of the game was received at this time of ours. Earlier times stay."""
        if not self.stretches:
            self.stretches.append(Stretch(sent_ms, received_ms))
        elif sent_ms > self.until_ms:
            self._continue(sent_ms, received_ms)
        self.until_ms = max(sent_ms, self.until_ms)

    def ours(self, at_ms: int) -> int:
        """Return our time for a time of the game."""
        stretches = self.stretches
        if not stretches:
            return at_ms
        stretch = stretches[-1]
        if at_ms < stretch.from_ms:
            stretch = stretches[max(0, bisect_right(stretches, at_ms, key=attrgetter("from_ms")) - 1)]
        return stretch.ours(min(at_ms, self.until_ms))

    def _continue(self, sent_ms: int, received_ms: int) -> None:
        last = self.stretches[-1]
        expected_ms = last.ours(sent_ms)
        if expected_ms <= received_ms <= expected_ms + TOLERANCE_MS:
            return
        if len(self.stretches) < MAX_STRETCHES:
            last = Stretch(self.until_ms, last.ours(self.until_ms))
        else:
            self.stretches.pop()
        lasts_ms = max(0, received_ms - last.our_ms)  # 0 if our clock was set back
        self.stretches.append(Stretch(last.from_ms, last.our_ms, sent_ms - last.from_ms, lasts_ms))
