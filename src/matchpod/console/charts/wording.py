"""Turn untrusted names and missing numbers into text that is safe to show in a chart."""

from __future__ import annotations

import re
from itertools import accumulate
from unicodedata import east_asian_width

from cs2_protocol.game import Side, Team

MISSING = "–"
"""Shown instead of a number that was not measured."""

MAX_NAME_CHARS = 256
"""Maximum length of a name in a tooltip or table. Names in the log are not longer."""

MAX_LABEL_CHARS = 17
"""Maximum length of a name beside a bar: the length of a player ID. Longer names do not fit on a phone."""

UNLISTED = "unlisted player"

_BROAD = frozenset("MWmw@%&")
# Embeddings, overrides and isolates of the writing direction would also reverse the text after the name.
_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(name: str | None, fallback: str = UNLISTED) -> str:
    """Return a name without control and text direction characters; the fallback if no other character is left."""
    return _UNSHOWABLE.sub("", name or "").strip()[:MAX_NAME_CHARS] or fallback


def shorten(name: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return a clean name, truncated with an ellipsis to the width of `limit` average characters."""
    widths = list(accumulate(_width(char) for char in name))
    if not widths or widths[-1] <= limit:
        return name
    return name[: sum(width <= limit - 1 for width in widths)].rstrip() + "…"


def _width(char: str) -> float:
    if char in _BROAD or east_asian_width(char) in {"W", "F"}:
        return 1.6
    return 1.15 if char.isupper() else 1.0


def number(value: float | None, digits: int = 0) -> str:
    """Return a number as text; a dash if it was not measured."""
    return MISSING if value is None else f"{value:,.{digits}f}"


def plural(count: int, singular: str) -> str:
    return f"{count} {singular}{'' if count == 1 else 's'}"


def side_letter(side: Side | None) -> str:
    """Return the letter of a side; a question mark if the side is unknown."""
    return "?" if side is None else side.name


def team_class(team: Team | None) -> str:
    """Return the CSS class of a team; without a team, the class of muted text."""
    return "muted" if team is None else team.value
