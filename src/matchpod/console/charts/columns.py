"""Draw the rounds of a map as columns, with team 1 above a horizontal axis and team 2 below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cs2_protocol.game import Team
from matchpod.console.charts.halves import split_rounds
from matchpod.console.charts.parts import MAX_ROUNDS, Mark, label
from matchpod.console.charts.wording import shorten
from matchpod.core.views.round_shapes import StoredRound

WIDTH: Final = 28
"""Width of a column. A number of two digits or a letter fits into it."""
_GAP: Final = 12
_MARGIN: Final = 40

Columns = list[tuple[StoredRound, float]]
"""Rounds, each with the x coordinate of the middle of its column."""


def place(rounds: Sequence[StoredRound]) -> tuple[Columns, int, list[Mark]]:
    """Return the columns (with gaps between halves and overtimes), the drawing's width, and the labels at its top."""
    columns: Columns = []
    names: list[Mark] = []
    numbers: list[Mark] = []
    left = float(_MARGIN)
    for name, inside in split_rounds(rounds[-MAX_ROUNDS:]):
        if name:
            names.append(label("tick", (left, 12), name))
        for record in inside:
            middle = left + WIDTH / 2
            columns.append((record, middle))
            numbers.append(label("tick middle", (middle, 28), str(record.number)))
            left += WIDTH
        left += _GAP
    return columns, max(320, round(left)), names + numbers


def team_labels(names: Mapping[Team | None, str], height: int, after: str = "") -> list[Mark]:
    """Return the team names as labels at the top and the bottom of the drawing."""
    above, below = names[Team.TEAM1], names[Team.TEAM2]
    return [
        label("name team1", (0, 46), f"▲ {shorten(above)}{after}", above),
        label("name team2", (0, height - 6), f"▼ {shorten(below)}{after}", below),
    ]
