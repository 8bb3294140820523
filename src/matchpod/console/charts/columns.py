"""Place the rounds of a map side by side in a drawing, with gaps where a half or an overtime begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from matchpod.console.charts.halves import Part, split_rounds
from matchpod.console.charts.parts import Mark, label
from matchpod.core.views.round_shapes import StoredRound

MAX_COLUMNS: Final = 200
"""Rounds in a drawing, the last ones; a map with ten overtimes has fewer, and more would make the page slow."""

WIDTH: Final = 28
"""The width of a round, with room for a number of two digits or a letter."""
_GAP: Final = 12
_MARGIN: Final = 40


class Columns(msgspec.Struct, frozen=True):
    """The rounds of a drawing, and where they are."""

    rounds: tuple[StoredRound, ...]
    centers: tuple[float, ...]
    parts: tuple[Part, ...]
    width: int
    """The width of the whole drawing."""

    def __iter__(self) -> Iterator[tuple[StoredRound, float]]:
        """Iterate over the rounds and the middle of their columns."""
        return zip(self.rounds, self.centers, strict=True)

    def heads(self, y: float) -> list[Mark]:
        """Return the numbers of the rounds at this height, and above them the names of the parts."""
        numbers: list[Mark] = [label("tick middle", (x, y), str(one.number)) for one, x in self]
        first = {one.number: x - WIDTH / 2 for one, x in self}
        names: list[Mark] = [
            label("tick", (first[part.rounds[0].number], y - 16), part.name) for part in self.parts if part.name
        ]
        return names + numbers


def place(rounds: Sequence[StoredRound]) -> Columns:
    """Place the rounds from left to right."""
    shown = tuple(rounds[-MAX_COLUMNS:])
    parts = split_rounds(shown)
    centers: list[float] = []
    left = float(_MARGIN)
    for part in parts:
        centers += [left + WIDTH * (index + 0.5) for index in range(len(part.rounds))]
        left += WIDTH * len(part.rounds) + _GAP
    return Columns(rounds=shown, centers=tuple(centers), parts=parts, width=max(320, round(left)))
