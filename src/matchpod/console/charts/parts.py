"""Render the parts that charts have in common: drawings, the shapes in them, and tables with names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from matchpod.console.rendering import macro

MAX_PLAYERS: Final = 32
"""Maximum number of players in a chart; few matches have more. Further players are left out."""

MAX_ROUNDS: Final = 200
"""Maximum number of rounds in a chart; if there are more, the newest are shown. A map with ten overtimes has fewer.
With more rounds, the page would be slow."""

Point = tuple[float, float]
Mark = tuple[str, str, list[str], str, str]
"""A shape in a drawing: its kind, its CSS classes, its coordinates, its text and its tooltip."""
Cell = str | int | tuple[str, str]
"""A table cell: a text, a number, or a name and the text after it. A name is separate, because its writing direction
may differ from that of the text."""


def render(name: str, *values: object, **named: object) -> Markup:
    return macro("charts.html", name, *values, **named)


def render_drawing(
    kind: str,
    title: str,
    size: Point,
    marks: Sequence[Mark],
    *,
    table: Sequence[Sequence[Cell]],
    caption: str = "",
    legend: Sequence[tuple[str, str]] = (),
    is_wide: bool = False,
) -> Markup:
    """Return a drawing, its legend (pairs of sign and meaning), and a table of its numbers.

    Headings are the first row of the table and the first cell of each other row. The caption defaults to the title. On
    a phone, a wide drawing keeps its size and scrolls; any other drawing is scaled down to fit.
    """
    named = {"table": table, "caption": caption or title, "legend": legend, "is_wide": is_wide}
    return render("drawing", kind, title, size, marks, **named)


def bar(kind: str, corner: Point, size: Point, title: str = "") -> Mark:
    """Return a rectangle. If a title is given, it is the tooltip."""
    return "bar", kind, [_px(value) for value in corner + size], "", title


def line(kind: str, start: Point, end: Point) -> Mark:
    return "line", kind, [_px(value) for value in start + end], "", ""


def label(kind: str, at: Point, text: str, title: str = "") -> Mark:
    """Return a text. If a title is given, it is the tooltip."""
    return "label", kind, [_px(value) for value in at], text, title


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
