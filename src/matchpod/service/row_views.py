"""Build views from rows: fields of the same name are copied, times are formatted."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from matchpod.core.result import iso_time

_View = TypeVar("_View", bound=msgspec.Struct)


def view_of(view: type[_View], row: msgspec.Struct, **fields: object) -> _View:
    """A view of a row. Fields not in `fields` are the row's, with times as text: `started_at` from `started_at_ms`."""
    for name in view.__struct_fields__:
        if name not in fields:
            fields[name] = getattr(row, name) if hasattr(row, name) else time_text(getattr(row, f"{name}_ms"))
    return view(**fields)


def time_text(at_ms: int | None) -> str | None:
    """A time in the format of the API; None stays None."""
    return None if at_ms is None else iso_time(at_ms)
