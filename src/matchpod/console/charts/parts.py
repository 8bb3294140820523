"""Build the parts that all charts have in common: frames, SVG marks and tables. Everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

Cell = str | int | Markup

_SVG = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" viewBox="0 0 {width} {height}" width="{width}"'
    ' height="{height}" role="img" aria-label="{label}"><title>{label}</title>{body}</svg>'
)
_FIGURE = Markup('<figure class="chart {kind}">{body}</figure>')
_SCROLL = Markup('<div class="scroll" tabindex="0" role="group" aria-label="{}">{}</div>')
_EMPTY = Markup('<p class="chart-empty muted">{}</p>')
_REMARK = Markup('<p class="remark muted">{}</p>')
_TABLE = Markup(
    '<details class="numbers"><summary>As a table</summary><div class="scroll" tabindex="0" role="group"'
    ' aria-label="{caption}"><table><caption>{caption}</caption><thead><tr>{heads}</tr></thead>'
    "<tbody>{rows}</tbody></table></div></details>"
)
_COLUMN = Markup('<th scope="col">{}</th>')
_ROW = Markup('<tr><th scope="row">{}</th>{}</tr>')
_CELL = Markup("<td>{}</td>")
_NAME = Markup('<bdi title="{name}">{name}</bdi>')
_TITLE = Markup("<title>{}</title>")
_RECT = Markup('<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}">{title}</rect>')
_LINE = Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>')
_TEXT = Markup('<text class="{}" x="{}" y="{}">{}{}</text>')


def join(parts: Iterable[Markup]) -> Markup:
    """Return the parts in a row."""
    return Markup("").join(parts)


def figure(kind: str, *parts: Markup) -> Markup:
    """Return a chart with its own CSS class."""
    return _FIGURE.format(kind=kind, body=join(parts))


def scroll(label: str, body: Markup) -> Markup:
    """Return a part that scrolls sideways where the screen is too narrow, also with the keyboard."""
    return _SCROLL.format(label, body)


def empty(text: str) -> Markup:
    """Return the sentence that stands for a chart without numbers."""
    return _EMPTY.format(text)


def remark(*sentences: str) -> Markup:
    """Return the sentences below a chart; empty ones are left out."""
    text = " ".join(filter(None, sentences))
    return _REMARK.format(text) if text else Markup("")


def svg(size: tuple[int, int], label: str, body: Iterable[Markup], *, is_wide: bool = False) -> Markup:
    """Return a drawing of this size. A wide one keeps its size on a phone; another one fits its width."""
    width, height = size
    kind = "drawing wide" if is_wide else "drawing"
    return _SVG.format(kind=kind, width=width, height=height, label=label, body=join(body))


def bar(kind: str, corner: tuple[float, float], size: tuple[float, float], title: str = "") -> Markup:
    """Return a rectangle, with a tooltip unless it has no title."""
    (x, y), (width, height) = corner, size
    title_tag = _TITLE.format(title) if title else Markup("")
    return _RECT.format(kind=kind, x=_px(x), y=_px(y), width=_px(width), height=_px(height), title=title_tag)


def line(kind: str, start: tuple[float, float], end: tuple[float, float]) -> Markup:
    """Return a line."""
    return _LINE.format(kind, _px(start[0]), _px(start[1]), _px(end[0]), _px(end[1]))


def label(kind: str, at: tuple[float, float], text: str, title: str = "") -> Markup:
    """Return a text, with a tooltip unless it has no title."""
    return _TEXT.format(kind, _px(at[0]), _px(at[1]), text, _TITLE.format(title) if title else Markup(""))


def name_tag(name: str) -> Markup:
    """Return a name for a table, isolated from the writing direction of the text around it."""
    return _NAME.format(name=name)


def numbers_table(caption: str, heads: Sequence[Cell], rows: Iterable[Sequence[Cell]]) -> Markup:
    """Return the numbers of a chart as a table that is shown on request. The first cell of a row is its heading."""
    columns = join(_COLUMN.format(head) for head in heads)
    lines = join(_ROW.format(row[0], join(_CELL.format(cell) for cell in row[1:])) for row in rows)
    return _TABLE.format(caption=caption, heads=columns, rows=lines)


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
