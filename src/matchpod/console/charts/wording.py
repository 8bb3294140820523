"""Convert untrusted names and unknown numbers to text that is safe to show in a chart."""

from __future__ import annotations

import re
from itertools import accumulate
from unicodedata import east_asian_width

from cs2_protocol.game import Side, Team

MISSING = "–"
"""Shown in place of a number that was not measured."""

MAX_NAME_CHARS = 256
"""Maximum number of characters of a name in a tooltip or table. Names in the log are never longer."""

MAX_LABEL_CHARS = 17
"""Maximum number of characters of a name next to a bar, equal to the length of a player id. Longer names do not fit on
the screen of a phone."""

UNLISTED = "unlisted player"

_BROAD = frozenset("MWmw@%&")
# Characters that embed, override or isolate the writing direction would also reverse the text after the name.
_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(name: str | None, fallback: str = UNLISTED) -> str:
    """Return a name without control characters and direction characters; `fallback` if nothing else is in it."""
    return _UNSHOWABLE.sub("", name or "").strip()[:MAX_NAME_CHARS] or fallback


def shorten(name: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return a clean name. If it is wider than `limit` average characters, cut it and add an ellipsis."""
    widths = list(accumulate(_width(char) for char in name))
    if not widths or widths[-1] <= limit:
        return name
    return name[: sum(width <= limit - 1 for width in widths)].rstrip() + "…"


def _width(char: str) -> float:
    if char in _BROAD or east_asian_width(char) in {"W", "F"}:
        return 1.6
    return 1.15 if char.isupper() else 1.0


def number(value: float | None, digits: int = 0) -> str:
    """Format a number; return a dash if it was not measured."""
    return MISSING if value is None else f"{value:,.{digits}f}"


def plural(count: int, singular: str) -> str:
    return f"{count} {singular}{'' if count == 1 else 's'}"


def side_letter(side: Side | None) -> str:
    """Return the letter of a side, or a question mark if the side is unknown."""
    return "?" if side is None else side.name


def team_class(team: Team | None) -> str:
    """Return the CSS class of a team. Without a team, it is the class for muted text."""
    return "muted" if team is None else team.value
