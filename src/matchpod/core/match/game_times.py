"""Convert game time to our time, for games that run faster or slower than our clock.

Only simulated games run at another speed. Events keep game time, so durations and intervals are in game time; the times
that callers see are in our time. Each log post links a game time to the time at which the post was received. Times
between two posts are interpolated. No converted time is later than the post that reported it, so converted times are in
order and never in the future.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import Final

import msgspec

TOLERANCE_MS: Final = 500
"""Maximum time in ms by which computed times may lag behind the posts, because arrival times vary. If they lag further,
or are ahead of a post, the speed is measured again."""

MAX_STRETCHES: Final = 2000
"""Maximum number of stored stretches. A typical sandbox match has several hundred. At the maximum, a new
stretch replaces the last."""


class Stretch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a game with constant speed. It begins at game time `from_ms`, which is `our_ms` in our time.

    Within it, `per_ms` of game time take `lasts_ms` of our time.
    """

    from_ms: int
    our_ms: int
    per_ms: int = 1
    lasts_ms: int = 0

    def ours(self, at_ms: int) -> int:
        """Convert a game time to our time, extrapolating after the stretch. Earlier times convert to its beginning."""
        return self.our_ms + max(0, at_ms - self.from_ms) * self.lasts_ms // self.per_ms


class GameTimes(msgspec.Struct):
    """The relation between game time and our time in a match. Equal while no post is added, as for real servers."""

    stretches: list[Stretch] = []
    until_ms: int = 0
    """The game time of the newest post. Later game times are converted as if they were `until_ms`."""

    def add_post(self, sent_ms: int, received_ms: int) -> None:
        """Record when a post was sent, in game time, and when it was received. Earlier times convert as before."""
        if not self.stretches:
            self.stretches.append(Stretch(sent_ms, received_ms))
        elif sent_ms > self.until_ms:
            self._continue(sent_ms, received_ms)
        self.until_ms = max(sent_ms, self.until_ms)

    def ours(self, at_ms: int) -> int:
        """Convert a game time to our time."""
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
