"""Render the common parts of charts: marks, drawings, and names in tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from matchpod.console.rendering import macro

MAX_PLAYERS: Final = 32
"""Maximum number of players in a chart, more than most matches have. Further players are left out."""

MAX_ROUNDS: Final = 200
"""Maximum number of rounds in a chart, the newest. A map with ten overtimes has fewer; more would make the page
slow."""

Point = tuple[float, float]
Mark = tuple[str, str, list[str], str, str]
"""A shape in a drawing: its kind, CSS classes, coordinates, text and tooltip."""
Cell = str | int | tuple[str, str]
"""A table cell. A name is separate from the text after it, because it may have another writing direction."""


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
    """Return a drawing with its legend (signs and their meaning), and its numbers as a table.

    The first row of the table and the first cell of each row are headings. The caption defaults to the title. On a
    phone, a wide drawing keeps its size and scrolls; any other drawing is scaled to fit.
    """
    named = {"table": table, "caption": caption or title, "legend": legend, "is_wide": is_wide}
    return render("drawing", kind, title, size, marks, **named)


def bar(kind: str, corner: Point, size: Point, title: str = "") -> Mark:
    """Return a rectangle, with the title, if any, as its tooltip."""
    return "bar", kind, [_px(value) for value in corner + size], "", title


def line(kind: str, start: Point, end: Point) -> Mark:
    return "line", kind, [_px(value) for value in start + end], "", ""


def label(kind: str, at: Point, text: str, title: str = "") -> Mark:
    """Return a text, with the title, if any, as its tooltip."""
    return "label", kind, [_px(value) for value in at], text, title


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
