"""Draw numbers between pairs of players as a table: a row per player who acts, a column per player it happens to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.parts import join, scroll
from matchpod.console.charts.people import Subject, by_team
from matchpod.console.charts.wording import MISSING, number, team_class

HEAT_STEPS: Final = 5
"""Shades above the one for zero; more cannot be told apart."""

_TABLE: Final = Markup(
    '<table class="matrix"><caption>{caption}</caption><thead>{groups}<tr>'
    '<th scope="col">{corner}</th>{heads}<th scope="col" class="total">{row_total}</th></tr></thead>{bodies}'
    '<tfoot><tr><th scope="row">{column_total}</th>{totals}<td class="total">{sum}</td></tr></tfoot></table>'
)
_GROUPS: Final = Markup('<tr class="groups"><td></td>{}<td></td></tr>')
_GROUP: Final = Markup('<th scope="colgroup" colspan="{}" class="{} first"><bdi>{}</bdi></th>')
_HEAD: Final = Markup('<th scope="col" class="{}" title="{name}"><span><bdi>{name}</bdi></span></th>')
_BODY: Final = Markup('<tbody class="{}">{}</tbody>')
_ROW: Final = Markup(
    '<tr><th scope="row" title="{name}"><bdi>{name}</bdi></th>{cells}<td class="total">{total}</td></tr>'
)
_CELL: Final = Markup('<td class="{}" title="{}">{}</td>')
_TOTAL: Final = Markup('<td class="{}">{}</td>')
_NOTE: Final = Markup('<span class="note">{}</span>')

Pair = tuple[str, str]
"""The keys of two players: who acts, and to whom it happens."""


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a table, and its words."""

    caption: str
    corner: str
    row_total: str
    column_total: str
    rows: Sequence[Subject]
    columns: Sequence[Subject]
    values: Mapping[Pair, int]
    """Pairs that are left out are zero."""
    notes: Mapping[Pair, str] = {}
    """Short remarks that do not count in the totals."""
    unit: str
    """What is counted, as in `Ann: 3 <unit> Ben`."""


def draw_matrix(matrix: Matrix, names: Mapping[Team | None, str]) -> Markup:
    """Return the table, in which players are grouped by team."""
    columns = by_team(matrix.columns, lambda one: one.team)
    rows = by_team(matrix.rows, lambda one: one.team)
    order = [column for _, members in columns for column in members]
    firsts = {members[0].key for _, members in columns}
    most = max(matrix.values.values(), default=0)
    bodies = (
        _BODY.format(team or "", join(_row(matrix, row, order, (most, firsts)) for row in members))
        for team, members in rows
    )
    table = _TABLE.format(
        caption=matrix.caption,
        corner=matrix.corner,
        row_total=matrix.row_total,
        column_total=matrix.column_total,
        groups=_groups(columns, names),
        heads=join(_HEAD.format(_first(one, firsts), name=one.name) for one in order),
        bodies=join(bodies),
        totals=join(_TOTAL.format(_first(one, firsts), number(_column_sum(matrix, one))) for one in order),
        sum=number(sum(matrix.values.values())),
    )
    return scroll(matrix.caption, table)


def _groups(columns: list[tuple[Team | None, list[Subject]]], names: Mapping[Team | None, str]) -> Markup:
    if [team for team, _ in columns] == [None]:  # free-for-all
        return Markup("")
    cells = (
        _GROUP.format(len(members), team_class(team), MISSING if team is None else names[team])
        for team, members in columns
    )
    return _GROUPS.format(join(cells))


def _row(matrix: Matrix, row: Subject, columns: Sequence[Subject], look: tuple[int, set[str]]) -> Markup:
    total = sum(value for (actor, _), value in matrix.values.items() if actor == row.key)
    cells = join(_cell(matrix, row, column, look) for column in columns)
    return _ROW.format(name=row.name, cells=cells, total=number(total))


def _cell(matrix: Matrix, row: Subject, column: Subject, look: tuple[int, set[str]]) -> Markup:
    most, firsts = look
    value = matrix.values.get((row.key, column.key), 0)
    note = matrix.notes.get((row.key, column.key), "")
    is_mate = row.key == column.key or (row.team is not None and row.team is column.team)
    edge = _first(column, firsts)
    if is_mate and not value:
        return _CELL.format(f"mate {edge}".strip(), note and f"{row.name}: {note} {column.name}", _note(note))
    title = f"{row.name}: {number(value)} {matrix.unit} {column.name}"
    return _CELL.format(
        f"heat{heat(value, most)} {edge}".strip(), title, Markup("{}{}").format(number(value), _note(note))
    )


def _note(note: str) -> Markup:
    return _NOTE.format(note) if note else Markup("")


def _first(one: Subject, firsts: set[str]) -> str:
    return "first" if one.key in firsts else ""


def _column_sum(matrix: Matrix, column: Subject) -> int:
    return sum(value for (_, target), value in matrix.values.items() if target == column.key)


def heat(value: int, most: int) -> int:
    """Return the shade of a number: 0 for zero, up to HEAT_STEPS for the highest one."""
    return 0 if value <= 0 else min(HEAT_STEPS, 1 + (value * HEAT_STEPS - 1) // max(most, 1))
