"""Draw how a figure grows with the number of matches, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 50, 130, 40, 40
COLORS = ("#8a8f98", "#1f6feb", "#c2410c", "#15803d")
STEPS = 4
"""Lines of the grid."""


def growth_svg(title: str, lines: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """Return a plot with one line per label, through points of a number of matches and a figure."""
    matches = sorted({count for points in lines.values() for count, _ in points})
    top = max(figure for points in lines.values() for _, figure in points)

    def x(count: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * count / matches[-1]

    def y(figure: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * figure / top

    parts = [_text(LEFT, 20, f"{title}, by live matches", "start")]
    for step in range(STEPS + 1):
        figure = top * step / STEPS
        parts.append(f'<path d="M{LEFT} {y(figure):.1f}H{WIDTH - RIGHT}" stroke="#d0d4da"/>')
        parts.append(_text(LEFT - 6, y(figure) + 4, f"{figure:.1f}", "end"))
    parts += [_text(x(count), HEIGHT - BOTTOM + 18, f"{count:,}", "middle") for count in matches]
    for color, (label, points) in zip(COLORS, lines.items(), strict=False):
        path = " ".join(f"{x(count):.1f},{y(figure):.1f}" for count, figure in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(count):.1f}" cy="{y(one):.1f}" r="3" fill="{color}"/>' for count, one in points]
        last = points[-1]
        parts.append(_text(x(last[0]) + 8, y(last[1]) + 4, f"{label}: {last[1]:.2f}", "start", color))
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    font = 'font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>{background}{"".join(parts)}</svg>\n'


def _text(x: float, y: float, text: str, anchor: str, color: str = "#24292f") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(text)}</text>'
