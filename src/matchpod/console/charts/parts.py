"""The parts that charts have in common: marks, drawings and tables, which the templates turn into HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec
from markupsafe import Markup

from matchpod.console.rendering import macro

_TEMPLATE = "charts.html"


class Bar(msgspec.Struct, frozen=True):
    """A rectangle, with a tooltip unless it has no title."""

    shape: ClassVar[str] = "bar"
    kind: str
    x: str
    y: str
    width: str
    height: str
    title: str


class Line(msgspec.Struct, frozen=True):
    """A straight line."""

    shape: ClassVar[str] = "line"
    kind: str
    x1: str
    y1: str
    x2: str
    y2: str


class Label(msgspec.Struct, frozen=True):
    """A text, with a tooltip unless it has no title."""

    shape: ClassVar[str] = "label"
    kind: str
    x: str
    y: str
    text: str
    title: str


Mark = Bar | Line | Label


class Drawing(msgspec.Struct, frozen=True):
    """Marks in a frame. A wide drawing keeps its size on a phone and scrolls; another one fits its width."""

    size: tuple[int, int]
    title: str
    marks: Sequence[Mark]
    is_wide: bool = False


class Name(msgspec.Struct, frozen=True):
    """A name in a table, isolated from the writing direction of the text around it."""

    name: str
    after: str = ""
    """What follows the name."""


Cell = str | int | Name


class NumbersTable(msgspec.Struct, frozen=True):
    """The numbers of a chart, shown on request. The first cell of a row is its heading."""

    caption: str
    heads: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]


class LegendItem(msgspec.Struct, frozen=True):
    """What a sign of a chart means."""

    sign: str
    words: str


def render_empty(kind: str, text: str) -> Markup:
    """Return the sentence that stands for a chart without numbers."""
    return macro(_TEMPLATE, "empty", kind, text)


def render_drawing(kind: str, drawing: Drawing, table: NumbersTable, legend: Sequence[LegendItem] = ()) -> Markup:
    """Return a drawing with its numbers as a table; `kind` is the CSS class of the chart."""
    return macro(_TEMPLATE, "drawn", kind, drawing, table, legend)


def render_table(kind: str, name: str, table: object, remarks: Iterable[str] = ()) -> Markup:
    """Return a chart that is a table, drawn by the macro of this name; empty remarks are left out."""
    return macro(_TEMPLATE, name, kind, table, " ".join(filter(None, remarks)))


def bar(kind: str, corner: tuple[float, float], size: tuple[float, float], title: str = "") -> Bar:
    """Return a rectangle."""
    return Bar(kind, _px(corner[0]), _px(corner[1]), _px(size[0]), _px(size[1]), title)


def line(kind: str, start: tuple[float, float], end: tuple[float, float]) -> Line:
    """Return a line."""
    return Line(kind, _px(start[0]), _px(start[1]), _px(end[0]), _px(end[1]))


def label(kind: str, at: tuple[float, float], text: str, title: str = "") -> Label:
    """Return a text."""
    return Label(kind, _px(at[0]), _px(at[1]), text, title)


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
