"""Convert times of a game that runs faster or slower than our clock to our time.

Only simulated games run at another speed. Their events keep game time, so durations and intervals are in game time;
times that callers see are in our time. Each log post relates a game time to our time. A time between two posts is
interpolated, and no time is later than the post that reported it, so times are in order and never in the future.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import Final

import msgspec

TOLERANCE_MS: Final = 500
"""How far computed times may lag behind the posts before the speed is measured again. The times of posts vary."""

MAX_STRETCHES: Final = 2000
"""Maximum number of stored stretches. A usual sandbox match has some hundred. Beyond it, the last is replaced."""


class Stretch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a game with constant speed, from game time `from_ms`, which is `our_ms` in our time.

    From there on, `per_ms` of game time take `lasts_ms` of our time.
    """

    from_ms: int
    our_ms: int
    per_ms: int = 1
    lasts_ms: int = 0

    def ours(self, at_ms: int) -> int:
        """Return our time for a game time, which need not be within the stretch."""
        return self.our_ms + max(0, at_ms - self.from_ms) * self.lasts_ms // self.per_ms


class GameTimes(msgspec.Struct):
    """The relation between the time of one game and our time. Without posts, as for real servers, both are the same."""

    stretches: list[Stretch] = []
    until_ms: int = 0
    """The latest game time whose time in ours is known."""

    def add_post(self, sent_ms: int, received_ms: int) -> None:
        """Record at which game time a post was sent, and when it was received. Earlier times stay the same."""
        if not self.stretches:
            self.stretches.append(Stretch(sent_ms, received_ms))
        elif sent_ms > self.until_ms:
            self._continue(sent_ms, received_ms)
        self.until_ms = max(sent_ms, self.until_ms)

    def ours(self, at_ms: int) -> int:
        """Return our time for a game time."""
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
