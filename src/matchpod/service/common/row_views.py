"""Build views from rows: fields of the same name are copied, times are formatted."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from matchpod.core.views.result import iso_time

_View = TypeVar("_View", bound=msgspec.Struct)


def view_of(view: type[_View], row: msgspec.Struct, **fields: object) -> _View:
    """A view of a row. Fields not in `fields` are the row's, with times as text: `started_at` from `started_at_ms`."""
    same, times = _sources(view, type(row))
    for name in same:
        if name not in fields:
            fields[name] = getattr(row, name)
    for name in times:
        if name not in fields:
            fields[name] = time_text(getattr(row, f"{name}_ms"))
    return view(**fields)


@cache
def _sources(view: type[msgspec.Struct], row: type[msgspec.Struct]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields of a view that rows have under the same name, and the others."""
    names = view.__struct_fields__
    return (
        tuple(name for name in names if hasattr(row, name)),
        tuple(name for name in names if not hasattr(row, name)),
    )


def time_text(at_ms: int | None) -> str | None:
    """A time in the format of the API; None stays None."""
    return None if at_ms is None else iso_time(at_ms)
