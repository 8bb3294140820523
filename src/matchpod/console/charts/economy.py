"""Draw the equipment value and the buy type of both teams per round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.columns import WIDTH, place, team_labels
from matchpod.console.charts.parts import Cell, Mark, bar, label, line, render, render_drawing
from matchpod.console.charts.people import team_names
from matchpod.console.charts.wording import MISSING, number, side_letter
from matchpod.core.stats.buy_types import BuyType
from matchpod.core.views.round_shapes import StoredRound, StoredRoundTeam

_AXIS: Final = 184
_REACH: Final = 100
"""Height of a full-length bar."""
_INSET: Final = 16
"""Height of the space between the axis and a bar, for the letter of the buy type."""
_HEIGHT: Final = 334
_LEAST_SCALE: Final = 10000
"""Minimum equipment value for the scale of the bars: a full-length bar stands for this value or a higher maximum."""
_GRID: Final = 10000

_BUYS: Final = {
    BuyType.PISTOL: ("P", "pistol round"),
    BuyType.ECO: ("E", "eco"),
    BuyType.FORCE: ("F", "force buy"),
    BuyType.FULL: ("B", "full buy"),
}
"""The letter and the meaning of each buy type."""
_LEGEND: Final = (*_BUYS.values(), ("✓", "won the round"), (MISSING, "unknown"))


def economy(rounds: Sequence[StoredRound], team1_name: str, team2_name: str) -> Markup:
    """Draw a bar per team and round: upward for team 1, downward for team 2. An unknown value is shown as a dash."""
    values = [team.equipment_value for record in rounds for team in (record.team1, record.team2)]
    known = [value for value in values if value is not None]
    if not known:
        return render("empty", "economy", "The log has no equipment values.")
    names = team_names(team1_name, team2_name)
    columns, width, marks = place(rounds)
    unit = _REACH / max(_LEAST_SCALE, *known)
    marks += [*_grid(width, unit, max(known)), line("axis", (0, _AXIS), (width, _AXIS))]
    table: list[list[Cell]] = [["Round", (names[Team.TEAM1], ""), "Buy", (names[Team.TEAM2], ""), "Buy"]]
    for record, x in columns:
        marks += [mark for team in Team for mark in _marks(record, team, (x, unit), names)]
        teams = (record.team1, record.team2)
        table.append([record.number, *(cell for own in teams for cell in (number(own.equipment_value), _buy(own)[1]))])
    return render_drawing(
        "economy",
        f"Equipment value of {names[Team.TEAM1]} and {names[Team.TEAM2]} in each round",
        (width, _HEIGHT),
        [*marks, *team_labels(names, _HEIGHT)],
        caption="Equipment value in each round",
        table=table,
        legend=_LEGEND,
        is_wide=True,
    )


def _grid(width: int, unit: float, most: int) -> list[Mark]:
    marks: list[Mark] = []
    for value in range(_GRID, max(most, _LEAST_SCALE) + 1, _GRID * max(1, most // (4 * _GRID))):
        for direction in (-1, 1):
            y = _AXIS + direction * (_INSET + value * unit)
            marks += [line("grid", (34, y), (width, y)), label("tick end", (30, y + 4), f"{value // 1000}k")]
    return marks


def _marks(record: StoredRound, team: Team, spot: tuple[float, float], names: Mapping[Team | None, str]) -> list[Mark]:
    x, unit = spot
    own, is_up = (record.team1, True) if team is Team.TEAM1 else (record.team2, False)
    value, (letter, words) = own.equipment_value, _buy(own)
    carried = "equipment value unknown" if value is None else f"equipment ${number(value)}"
    title = f"Round {record.number}, {names[team]} ({side_letter(own.side)}): {carried}"
    title += "" if own.buy_type is None else f", {words}"
    title += ". Won the round" if record.winner is team else ""
    marks = [label("value middle", (x, _AXIS - 4 if is_up else _AXIS + 13), letter, title)]
    length = 0.0
    if value is not None:
        length = max(1.0, value * unit)
        top = _AXIS - _INSET - length if is_up else _AXIS + _INSET
        marks.append(bar(f"bar {team.value}", (x - WIDTH / 2 + 4, top), (WIDTH - 8, length), title))
    if record.winner is team:
        end = _INSET + length
        marks.append(label("value middle", (x, _AXIS - end - 3 if is_up else _AXIS + end + 12), "✓", title))
    return marks


def _buy(own: StoredRoundTeam) -> tuple[str, str]:
    return (MISSING, MISSING) if own.buy_type is None else _BUYS[own.buy_type]
