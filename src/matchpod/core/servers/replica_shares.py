"""Divide the matches that are due among the processes that drive matches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec


class ReplicaLoad(msgspec.Struct, frozen=True):
    """How many matches a process drives, and how many it may drive; None if there is no limit."""

    matches: int
    max_matches: int | None = None

    def added_up_to(self, level: int) -> int:
        """How many more matches it acquires to drive `level`, or as many as it may."""
        limit = level if self.max_matches is None else min(level, self.max_matches)
        return max(0, limit - self.matches)


def share_of(due: int, own: int, others: Sequence[ReplicaLoad]) -> int:
    """How many of the due matches a process acquires that drives `own`: each match goes to the least loaded one.

    If several drive equally few, each of them may acquire the next: the first one gets it.
    """

    def needed(count: int) -> int:
        """How many must be due so that it gets `count`: all others are brought to its level before its last one."""
        return count + sum(other.added_up_to(own + count - 1) for other in others)

    return bisect_right(range(1, due + 1), due, key=needed)
