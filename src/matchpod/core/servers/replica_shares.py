"""Divide the matches that are due among the processes that drive matches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec


class ReplicaLoad(msgspec.Struct, frozen=True):
    """The number of matches that a process drives, and the maximum number; None if the process has no maximum."""

    matches: int
    max_matches: int | None = None

    def added_up_to(self, level: int) -> int:
        """Return how many matches the process acquires until it drives `level` matches, or reaches its maximum."""
        limit = level if self.max_matches is None else min(level, self.max_matches)
        return max(0, limit - self.matches)


def share_of(due: int, own: int, others: Sequence[ReplicaLoad]) -> int:
    """Return how many of the `due` matches a process that drives `own` matches may acquire.

    Each match is meant for the process that drives the fewest matches. If several processes drive the fewest, each of
    them may acquire the match, and the first to do so gets it.
    """

    def needed(count: int) -> int:
        """Return how many matches must be due for this process to get `count`; processes with fewer go first."""
        return count + sum(other.added_up_to(own + count - 1) for other in others)

    return bisect_right(range(1, due + 1), due, key=needed)
