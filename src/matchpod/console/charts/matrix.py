"""Draw numbers between pairs of players as a table: a row per player who acts, a column per player it happens to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.parts import render_table
from matchpod.console.charts.people import Subject, by_team
from matchpod.console.charts.wording import MISSING, number, team_class

HEAT_STEPS: Final = 5
"""Shades above the one for zero; more cannot be told apart."""

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


class _Cell(msgspec.Struct, frozen=True):
    kind: str
    title: str
    number: str
    note: str


class _Column(msgspec.Struct, frozen=True):
    kind: str
    name: str
    total: str


class _Row(msgspec.Struct, frozen=True):
    name: str
    cells: list[_Cell]
    total: str


class _Group(msgspec.Struct, frozen=True):
    """The columns of a team."""

    size: int
    kind: str
    name: str


class _Body(msgspec.Struct, frozen=True):
    """The rows of a team."""

    kind: str
    rows: list[_Row]


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    """The matrix as it is shown."""

    caption: str
    corner: str
    row_total: str
    column_total: str
    groups: list[_Group]
    columns: list[_Column]
    bodies: list[_Body]
    sum: str


def render_matrix(kind: str, matrix: Matrix, names: Mapping[Team | None, str], remarks: Iterable[str]) -> Markup:
    """Return the matrix, in which players are grouped by team, with remarks below it."""
    columns = by_team(matrix.columns, lambda one: one.team)
    order = [column for _, members in columns for column in members]
    firsts = {members[0].key for _, members in columns}
    most = max(matrix.values.values(), default=0)
    table = _Table(
        caption=matrix.caption,
        corner=matrix.corner,
        row_total=matrix.row_total,
        column_total=matrix.column_total,
        groups=_groups(columns, names),
        columns=[_Column(_first(one, firsts), one.name, number(_column_sum(matrix, one))) for one in order],
        bodies=[
            _Body(team or "", [_row(matrix, row, order, (most, firsts)) for row in members])
            for team, members in by_team(matrix.rows, lambda one: one.team)
        ],
        sum=number(sum(matrix.values.values())),
    )
    return render_table(kind, "matrix", table, remarks)


def _groups(columns: list[tuple[Team | None, list[Subject]]], names: Mapping[Team | None, str]) -> list[_Group]:
    if [team for team, _ in columns] == [None]:  # free-for-all
        return []
    return [
        _Group(len(members), team_class(team), MISSING if team is None else names[team]) for team, members in columns
    ]


def _row(matrix: Matrix, row: Subject, columns: Sequence[Subject], look: tuple[int, set[str]]) -> _Row:
    total = sum(value for (actor, _), value in matrix.values.items() if actor == row.key)
    return _Row(row.name, [_cell(matrix, row, column, look) for column in columns], number(total))


def _cell(matrix: Matrix, row: Subject, column: Subject, look: tuple[int, set[str]]) -> _Cell:
    most, firsts = look
    value = matrix.values.get((row.key, column.key), 0)
    note = matrix.notes.get((row.key, column.key), "")
    is_mate = row.key == column.key or (row.team is not None and row.team is column.team)
    edge = _first(column, firsts)
    if is_mate and not value:
        return _Cell(f"mate {edge}".strip(), note and f"{row.name}: {note} {column.name}", "", note)
    title = f"{row.name}: {number(value)} {matrix.unit} {column.name}"
    return _Cell(f"heat{heat(value, most)} {edge}".strip(), title, number(value), note)


def _first(one: Subject, firsts: set[str]) -> str:
    return "first" if one.key in firsts else ""


def _column_sum(matrix: Matrix, column: Subject) -> int:
    return sum(value for (_, target), value in matrix.values.items() if target == column.key)


def heat(value: int, most: int) -> int:
    """Return the shade of a number: 0 for zero, up to HEAT_STEPS for the highest one."""
    return 0 if value <= 0 else min(HEAT_STEPS, 1 + (value * HEAT_STEPS - 1) // max(most, 1))
