"""Convert rows to structs and back. The fields of a struct are the columns of its table, in order.

Booleans are stored as 0 and 1, tuples of words as one text separated by spaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import TypeVar

import msgspec

from matchpod.ports import Row, Value

_S = TypeVar("_S", bound=msgspec.Struct)


def column_list(struct: type[msgspec.Struct]) -> str:
    """Return the columns of the struct's table, for a SELECT or an INSERT."""
    return ", ".join(struct.__struct_fields__)


def parameter_list(struct: type[msgspec.Struct]) -> str:
    """Return the parameters for an INSERT of all columns, in the order of column_list."""
    return ", ".join(f":{name}" for name in struct.__struct_fields__)


def from_row(struct: type[_S], row: Row) -> _S:
    """Convert a row that was selected with column_list."""
    values: dict[str, object] = dict(zip(struct.__struct_fields__, row, strict=True))
    flags, words = _special_fields(struct)
    for name in flags:
        values[name] = values[name] == 1
    for name in words:
        value = values[name]
        if isinstance(value, str):
            values[name] = tuple(value.split())
    return msgspec.convert(values, struct)


@cache  # inspecting the annotations of a struct takes longer than converting a row
def _special_fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the boolean fields, and of the fields that are tuples of words."""
    fields = msgspec.structs.fields(struct)
    return (
        tuple(field.name for field in fields if field.type is bool),
        tuple(field.name for field in fields if field.type == tuple[str, ...]),
    )


def to_params(value: msgspec.Struct) -> dict[str, Value]:
    """Return the values for parameter_list."""
    return {name: _column(getattr(value, name)) for name in value.__struct_fields__}


def plain(params: Mapping[str, Value]) -> dict[str, Value]:
    """Convert booleans and enums, which a database driver may not support, to plain values."""
    return {name: _column(value) for name, value in params.items()}


def _column(value: Value | tuple[str, ...]) -> Value:
    match value:
        case bool():
            return int(value)
        case StrEnum():
            return value.value
        case tuple():
            return " ".join(value)
        case _:
            return value
