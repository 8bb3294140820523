"""Render the parts that charts have in common: marks, drawings, and the names in their tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from matchpod.console.rendering import macro

MAX_PLAYERS: Final = 32
"""Players in a chart, the first ones; a full server has fewer. A deathmatch with many guests may have more."""

MAX_ROUNDS: Final = 200
"""Rounds in a chart, the last ones; a map with ten overtimes has fewer, and more would make the page slow."""

Point = tuple[float, float]
Mark = tuple[str, str, list[str], str, str]
"""A shape in a drawing: what it is, its CSS classes, its numbers, its text and its tooltip."""
Cell = str | int | tuple[str, str]
"""A cell of a table; a name and what follows it are two texts, since a name may have its own writing direction."""


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
    """Return a drawing, its legend of signs and words, and its numbers as a table.

    The first row of the table and the first cell of each row are headings. Its caption is the title, unless given. A
    wide drawing keeps its size on a phone and scrolls; another one fits its width.
    """
    named = {"table": table, "caption": caption or title, "legend": legend, "is_wide": is_wide}
    return render("drawing", kind, title, size, marks, **named)


def bar(kind: str, corner: Point, size: Point, title: str = "") -> Mark:
    """Return a rectangle, with a tooltip unless it has no title."""
    return "bar", kind, [_px(value) for value in corner + size], "", title


def line(kind: str, start: Point, end: Point) -> Mark:
    return "line", kind, [_px(value) for value in start + end], "", ""


def label(kind: str, at: Point, text: str, title: str = "") -> Mark:
    """Return a text, with a tooltip unless it has no title."""
    return "label", kind, [_px(value) for value in at], text, title


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
