"""Labels of a match: short pairs of a name and a value from its caller, to find and group matches by."""

from __future__ import annotations

from typing import Final

import msgspec

MAX_LABELS: Final = 8
"""Most labels of a match, and of a filter: an event, a round, a table and a few more. Each is a row in an index."""

MAX_LABELED: Final = 10_000
"""Matches that a list by label reads, which takes a tenth of a second at most; a range of time finds older ones."""

SEPARATOR: Final = ":"
"""Between name and value in a filter. No name contains it; a value may."""


class Label(msgspec.Struct, frozen=True):
    """One label."""

    name: str
    value: str

    def __str__(self) -> str:
        """The label as in a filter."""
        return f"{self.name}{SEPARATOR}{self.value}"


def read_label(text: str) -> Label:
    """Return the label of a filter."""
    name, _, value = text.partition(SEPARATOR)
    return Label(name, value)
