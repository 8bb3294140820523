"""Define the labels of a match: pairs of a name and a value, set by its caller to find and group matches."""

from __future__ import annotations

from typing import Final

import msgspec

MAX_LABELS: Final = 8
"""Maximum number of labels per match, and per filter. Typical labels are an event, a round and a table. Each label is a
row in an index."""

MAX_LABELED: Final = 10_000
"""Maximum number of matches that are read for a list filtered by label. Reading them takes up to 0.1 s. Older matches
are found if a time range excludes the newer matches."""

SEPARATOR: Final = ":"
"""Separates the name of a label from its value in a filter. A name cannot contain it, but a value can."""


class Label(msgspec.Struct, frozen=True):
    """The name and the value of a label."""

    name: str
    value: str

    def __str__(self) -> str:
        """Format the label as `name:value`, as used in filters."""
        return f"{self.name}{SEPARATOR}{self.value}"


def read_label(text: str) -> Label:
    """Parse a label in the form `name:value`, as used in filters."""
    name, _, value = text.partition(SEPARATOR)
    return Label(name, value)
