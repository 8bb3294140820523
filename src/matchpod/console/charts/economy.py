"""Draw the value of what both teams carried in each round, and how they bought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.columns import WIDTH, Columns, place
from matchpod.console.charts.parts import (
    Cell,
    Drawing,
    LegendItem,
    Mark,
    Name,
    NumbersTable,
    bar,
    label,
    line,
    render_drawing,
    render_empty,
)
from matchpod.console.charts.people import team_names
from matchpod.console.charts.wording import MISSING, number, shorten, side_letter
from matchpod.core.stats.buy_types import BuyType
from matchpod.core.views.round_shapes import StoredRound, StoredRoundTeam

_AXIS: Final = 184
_REACH: Final = 100
"""The height of the longest bar."""
_INSET: Final = 16
"""Room for the letter between the axis and a bar."""
_HEIGHT: Final = 334
_LEAST_SCALE: Final = 10000
"""A value that has the longest bar at least."""
_GRID: Final = 10000

BUY_LETTERS: Final = {BuyType.PISTOL: "P", BuyType.ECO: "E", BuyType.FORCE: "F", BuyType.FULL: "B"}
BUY_WORDS: Final = {
    BuyType.PISTOL: "pistol round",
    BuyType.ECO: "eco",
    BuyType.FORCE: "force buy",
    BuyType.FULL: "full buy",
}
_LEGEND: Final = (
    *(LegendItem(letter, BUY_WORDS[buy]) for buy, letter in BUY_LETTERS.items()),
    LegendItem("✓", "won the round"),
    LegendItem(MISSING, "unknown"),
)


def economy(rounds: Sequence[StoredRound], team1_name: str, team2_name: str) -> Markup:
    """Draw a bar per team and round: up for the first team, down for the second one. Unknown values have a dash."""
    values = [team.equipment_value for one in rounds for team in (one.team1, one.team2)]
    known = [value for value in values if value is not None]
    if not known:
        return render_empty("economy", "The log has no equipment values.")
    names = team_names(team1_name, team2_name)
    columns = place(rounds)
    unit = _REACH / max(_LEAST_SCALE, *known)
    title = f"Equipment value of {names[Team.TEAM1]} and {names[Team.TEAM2]} in each round"
    body: list[Mark] = [
        *columns.heads(28),
        *_grid(columns.width, unit, max(known)),
        line("axis", (0, _AXIS), (columns.width, _AXIS)),
        *(mark for one, x in columns for team in Team for mark in _marks(one, team, (x, unit), names)),
        label("name team1", (0, 46), f"▲ {shorten(names[Team.TEAM1])}", names[Team.TEAM1]),
        label("name team2", (0, _HEIGHT - 6), f"▼ {shorten(names[Team.TEAM2])}", names[Team.TEAM2]),
    ]
    drawing = Drawing((columns.width, _HEIGHT), title, body, is_wide=True)
    return render_drawing("economy", drawing, _table(columns, names), _LEGEND)


def _grid(width: int, unit: float, most: int) -> list[Mark]:
    marks: list[Mark] = []
    for value in range(_GRID, max(most, _LEAST_SCALE) + 1, _GRID * max(1, most // (4 * _GRID))):
        for direction in (-1, 1):
            y = _AXIS + direction * (_INSET + value * unit)
            marks += [line("grid", (34, y), (width, y)), label("tick end", (30, y + 4), f"{value // 1000}k")]
    return marks


def _team_of(one: StoredRound, team: Team) -> StoredRoundTeam:
    return one.team1 if team is Team.TEAM1 else one.team2


def _marks(one: StoredRound, team: Team, spot: tuple[float, float], names: Mapping[Team | None, str]) -> list[Mark]:
    x, unit = spot
    own = _team_of(one, team)
    is_up = team is Team.TEAM1
    title = f"Round {one.number}, {names[team]} ({side_letter(own.side)}): {_sentence(own)}"
    title += ". Won the round" if one.winner is team else ""
    letter = MISSING if own.buy_type is None else BUY_LETTERS[own.buy_type]
    marks: list[Mark] = [label("value middle", (x, _AXIS - 4 if is_up else _AXIS + 13), letter, title)]
    length = 0.0
    if own.equipment_value is not None:
        length = max(1.0, own.equipment_value * unit)
        top = _AXIS - _INSET - length if is_up else _AXIS + _INSET
        marks.append(bar(f"bar {team.value}", (x - WIDTH / 2 + 4, top), (WIDTH - 8, length), title))
    if one.winner is team:
        end = _INSET + length
        marks.append(label("value middle", (x, _AXIS - end - 3 if is_up else _AXIS + end + 12), "✓", title))
    return marks


def _sentence(own: StoredRoundTeam) -> str:
    value = "equipment value unknown" if own.equipment_value is None else f"equipment ${number(own.equipment_value)}"
    return value if own.buy_type is None else f"{value}, {BUY_WORDS[own.buy_type]}"


def _table(columns: Columns, names: Mapping[Team | None, str]) -> NumbersTable:
    heads: list[Cell] = ["Round"]
    for team in Team:
        heads += [Name(names[team]), "Buy"]
    rows: list[list[Cell]] = []
    for one in columns.rounds:
        row: list[Cell] = [one.number]
        for own in (one.team1, one.team2):
            row += [number(own.equipment_value), MISSING if own.buy_type is None else BUY_WORDS[own.buy_type]]
        rows.append(row)
    return NumbersTable("Equipment value in each round", heads, rows)
