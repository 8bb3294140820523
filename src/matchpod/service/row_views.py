"""Build views from rows: copy the fields with the same name, and format times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from matchpod.core.iso_dates import iso_time

_View = TypeVar("_View", bound=msgspec.Struct)
_Reader = tuple[int, Sequence[str], Callable[[msgspec.Struct], tuple[Any, ...]], Sequence[tuple[str, str]]]
"""How to read a row: the row's index, the names of the fields to copy, the function that reads them, and pairs of a
time field in the view and the column that it comes from."""


def view_of(view: type[_View], *rows: msgspec.Struct, **fields: object) -> _View:
    """Build a `view` from rows. A field is taken from `fields`, or else from the first row that has it.

    Times are formatted: for example, `started_at` is built from `started_at_ms`. Fields that no row has keep their
    default.
    """
    for row, names, read, times in _readers(view, tuple(fields), *map(type, rows)):
        fields.update(zip(names, read(rows[row]), strict=False))
        for name, source in times:
            fields[name] = time_text(getattr(rows[row], source))
    return view(**fields)


@cache
def _readers(view: type[msgspec.Struct], given: tuple[str, ...], *rows: type[msgspec.Struct]) -> list[_Reader]:
    """Return how to read a view's fields from rows of these types. `attrgetter` is fast: it reads all fields in C."""
    left = [name for name in view.__struct_fields__ if name not in given]
    readers: list[_Reader] = []
    for number, row in enumerate(rows):
        same = [name for name in left if hasattr(row, name)]
        times = [(name, f"{name}_ms") for name in left if name not in same and hasattr(row, f"{name}_ms")]
        left = [name for name in left if name not in (*same, *dict(times))]
        # Two names are added because `attrgetter` returns a tuple only for two or more names.
        readers.append((number, same, attrgetter(*same, "__class__", "__class__"), times))
    return readers


def time_text(at_ms: int | None) -> str | None:
    """Return a time in the format of the API; None for None."""
    return None if at_ms is None else iso_time(at_ms)
