"""Read and write rows as structs, whose fields are the columns of their table.

A boolean is stored as 0 or 1 (NULL for None), a tuple of words as one text with the words separated by spaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from itertools import repeat
from typing import Final, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from matchpod.ports import Database, NothingChangedError, Parameter, Row, Statement, Value

_PLAIN: Final = frozenset((str, int, float, bytes, type(None)))
"""The types that every database driver supports."""

_S = TypeVar("_S", bound=msgspec.Struct)


async def read_first(db: Database, struct: type[_S], rest: str, params: Mapping[str, Value]) -> _S | None:
    """Return the first row of an indexed query as a struct, or None; `rest` is the query from `FROM` on."""
    row = await db.read_one(f"SELECT {column_list(struct)} {rest}", params)
    return None if row is None else from_row(struct, row)


async def read_all(db: Database, struct: type[_S], rest: str, params: Mapping[str, Value] | None = None) -> list[_S]:
    """Return all rows of a query as structs; `rest` is the query from `FROM` on."""
    return [from_row(struct, row) for row in await db.read(f"SELECT {column_list(struct)} {rest}", params)]


async def read_number(db: Database, sql: str, params: Mapping[str, Value] | None = None) -> int:
    """Return the number in the only column of a query's only row."""
    ((number,),) = await db.read(sql, params)
    return msgspec.convert(number, int)


async def write_one(db: Database, sql: str, params: Mapping[str, Parameter] | None = None) -> list[Row]:
    """Run one statement in its own transaction, and return its rows (RETURNING)."""
    (rows,) = await db.write([Statement(sql, params or {})])
    return rows


async def write_if_changed(db: Database, change: Statement, *also: Statement) -> list[Row]:
    """Run `change` and, if it changes any row, the statements `also`, in one transaction; return rows of `change`."""
    if not also:
        return (await db.write([change]))[0]
    try:
        return (await db.write([replace(change, must_change=True), *also]))[0]
    except NothingChangedError:
        return []


def insert(table: str, value: msgspec.Struct) -> Statement:
    """Insert a row; DuplicateError if its key exists."""
    return Statement(_insert_sql(table, type(value)), to_params(value))


def parameter_list(name: str, values: Sequence[str]) -> tuple[str, dict[str, Value]]:
    """Return the parameters of an IN condition as SQL (`(:name_0, …)`), and their values; without values, one empty
    text.

    The last value is repeated until the number of parameters is a power of two, so that there are only a few different
    statements.
    """
    known = values or ("",)
    padded = [*known, *repeat(known[-1], (1 << (len(known) - 1).bit_length()) - len(known))]
    params: dict[str, Value] = {f"{name}_{number}": value for number, value in enumerate(padded)}
    return f"({', '.join(f':{parameter}' for parameter in params)})", params


@cache
def _insert_sql(table: str, struct: type[msgspec.Struct]) -> str:
    parameters = ", ".join(f":{name}" for name in struct.__struct_fields__)
    return f"INSERT INTO {table} ({column_list(struct)}) VALUES ({parameters})"


@cache
def column_list(struct: type[msgspec.Struct]) -> str:
    """Return the columns of the struct's table as SQL, in the order that `from_row` expects."""
    return ", ".join(struct.__struct_fields__)


def from_row(struct: type[_S], row: Row) -> _S:
    """Convert a row to a struct. The row must have been selected with `column_list`."""
    values: dict[str, object] = dict(zip(struct.__struct_fields__, row, strict=True))
    flags, words = _special_fields(struct)
    for name, may_be_none in flags:
        if not may_be_none or values[name] is not None:
            values[name] = values[name] == 1
    for name in words:
        value = values[name]
        if isinstance(value, str):
            values[name] = tuple(value.split())
    return msgspec.convert(values, struct)


@cache  # inspecting annotations is slower than converting a row
def _special_fields(struct: type[msgspec.Struct]) -> tuple[tuple[tuple[str, bool], ...], tuple[str, ...]]:
    """Return the boolean fields (and whether they may be None), and the names of the fields with word tuples."""
    fields = msgspec.structs.fields(struct)
    return (
        tuple((field.name, field.type is not bool) for field in fields if field.type in (bool, bool | None)),
        tuple(field.name for field in fields if field.type == tuple[str, ...]),
    )


def to_params(value: msgspec.Struct) -> dict[str, Value]:
    return plain(asdict(value))


def plain(params: Mapping[str, Value]) -> dict[str, Value]:
    """Convert booleans and enums to int and str, because some database drivers do not support them."""
    return {name: value if type(value) in _PLAIN else _column(value) for name, value in params.items()}


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
