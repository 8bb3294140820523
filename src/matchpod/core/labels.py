"""Labels of a match: short pairs of a name and a value from its caller, to find and group matches by."""

from __future__ import annotations

from typing import Final

import msgspec

MAX_LABELS: Final = 8
"""Maximum number of labels per match and per filter, such as an event, a round and a table. Each is an index row."""

MAX_LABELED: Final = 10_000
"""Maximum number of matches read for a list by label, which takes up to 0.1 s. A time range finds older matches."""

SEPARATOR: Final = ":"
"""Separates name and value in a filter. A name cannot contain it, a value can."""


class Label(msgspec.Struct, frozen=True):
    """One label."""

    name: str
    value: str

    def __str__(self) -> str:
        """Format the label for a filter."""
        return f"{self.name}{SEPARATOR}{self.value}"


def read_label(text: str) -> Label:
    """Parse a label from a filter."""
    name, _, value = text.partition(SEPARATOR)
    return Label(name, value)
