"""Build views from rows: fields of the same name are copied, times are formatted."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from matchpod.core.iso_dates import iso_time

_View = TypeVar("_View", bound=msgspec.Struct)


def view_of(view: type[_View], *rows: msgspec.Struct, **fields: object) -> _View:
    """A view of rows. Fields not in `fields` are those of the first row that has them, with times as text:
    `started_at` from `started_at_ms`. Fields that no row has keep their default.
    """
    for name, row, source in _sources(view, *map(type, rows)):
        if name not in fields:
            value = getattr(rows[row], source)
            fields[name] = value if source == name else time_text(value)
    return view(**fields)


@cache
def _sources(view: type[msgspec.Struct], *rows: type[msgspec.Struct]) -> tuple[tuple[str, int, str], ...]:
    """Return the fields of a view, each with the number of the row that has it and its name there."""
    sources = [
        (name, number, source)
        for name in view.__struct_fields__
        for number, row in enumerate(rows)
        for source in (name, f"{name}_ms")
        if hasattr(row, source)
    ]
    return tuple({entry[0]: entry for entry in reversed(sources)}.values())  # the first source of each name


def time_text(at_ms: int | None) -> str | None:
    """A time in the format of the API; None stays None."""
    return None if at_ms is None else iso_time(at_ms)
