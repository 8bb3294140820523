"""Build views from rows: fields of the same name are copied, times are formatted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from matchpod.core.iso_dates import iso_time

_View = TypeVar("_View", bound=msgspec.Struct)
_Reader = tuple[int, Sequence[str], Callable[[msgspec.Struct], tuple[Any, ...]], Sequence[tuple[str, str]]]
"""How to read one row: its index, the names of the fields to copy, the function that reads them, and pairs of a time
field of the view and its column."""


def view_of(view: type[_View], *rows: msgspec.Struct, **fields: object) -> _View:
    """Build a `view` from rows. Each field that is not in `fields` comes from the first row that has it.

    Times are formatted: `started_at` comes from `started_at_ms`. Fields that no row has keep their default.
    """
    for row, names, read, times in _readers(view, tuple(fields), *map(type, rows)):
        fields.update(zip(names, read(rows[row]), strict=False))
        for name, source in times:
            fields[name] = time_text(getattr(rows[row], source))
    return view(**fields)


@cache
def _readers(view: type[msgspec.Struct], given: tuple[str, ...], *rows: type[msgspec.Struct]) -> list[_Reader]:
    """Return how to read the fields of a view from rows of these types; `attrgetter` reads all at once, in C."""
    left = [name for name in view.__struct_fields__ if name not in given]
    readers: list[_Reader] = []
    for number, row in enumerate(rows):
        same = [name for name in left if hasattr(row, name)]
        times = [(name, f"{name}_ms") for name in left if name not in same and hasattr(row, f"{name}_ms")]
        left = [name for name in left if name not in (*same, *dict(times))]
        # attrgetter returns a tuple only for two or more names, so there are two additional names.
        readers.append((number, same, attrgetter(*same, "__class__", "__class__"), times))
    return readers


def time_text(at_ms: int | None) -> str | None:
    """A time in the format of the API; None stays None."""
    return None if at_ms is None else iso_time(at_ms)
