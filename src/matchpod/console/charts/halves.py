"""Find the rounds with which the halves and overtimes of a map begin.

The rounds do not contain the game settings. So a half is found by the change of sides, and overtime by a tie after two
halves of equal length. If neither is found, the parts have no names.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence

from matchpod.core.views.round_shapes import StoredRound


def split_rounds(rounds: Sequence[StoredRound]) -> list[tuple[str, list[StoredRound]]]:
    """Split the rounds of a map into halves and overtimes, each with its name.

    The name is empty if it is unknown, and for the second half of an overtime.
    """
    swaps = _swaps(rounds)
    names = _part_names(rounds, swaps)
    starts = sorted({*swaps, *names})
    parts = [list(part) for _, part in itertools.groupby(rounds, lambda record: bisect_right(starts, record.number))]
    return [(names.get(part[0].number, ""), part) for part in parts]


def _swaps(rounds: Sequence[StoredRound]) -> list[int]:
    """Return the number of the first round after each change of sides."""
    known = [record for record in rounds if record.team1.side is not None]
    return [record.number for before, record in itertools.pairwise(known) if before.team1.side != record.team1.side]


def _part_names(rounds: Sequence[StoredRound], swaps: list[int]) -> dict[int, str]:
    """Return the names of halves and overtimes by the number of their first round; empty if the names are uncertain."""
    by_number = {record.number: record for record in rounds}
    if not swaps or not {1, swaps[0] - 1} <= by_number.keys():  # the first change of sides may be in a missing round
        return {}
    half = swaps[0] - 1
    names = {1: "1st half", swaps[0]: "2nd half"}
    if rounds[-1].number <= 2 * half:
        return names
    if not _is_tied(by_number.get(2 * half)):
        return {}  # the map was not played as two halves and overtime
    first = 2 * half + 1
    names[first] = "Overtime"
    later = [number for number in swaps if number > first]
    length = 2 * (later[0] - first) if later else 0
    if length and rounds[-1].number >= first + length:
        for count, start in enumerate(range(first, rounds[-1].number + 1, length), start=1):
            names[start] = f"Overtime {count}"
    return names


def _is_tied(record: StoredRound | None) -> bool:
    return record is not None and record.score is not None and record.score.team1 == record.score.team2
