"""Find every JSON shape in a SQLite database, and take single fields out of it.

Nothing is listed here: a shape is whatever a column of bytes holds as JSON, so new columns and fields are included.
What game servers and plugins sent is left out: it is not ours, and is read by rules of its own.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

NOT_OURS = {"raw_log"}
SERVERS = {
    "server_id": "server_id",
    "map_id": "(SELECT server_id FROM maps WHERE id = map_id)",
    "callback_id": "(SELECT server_id FROM callbacks WHERE id = callback_id)",
}
"""How the server of a row is found, by one of its columns."""

Fields = tuple[str, ...]
"""The names on the way to a field; `[]` stands for an entry of a list."""
Shape = tuple[str, str, str]
"""Table, column, and the type if there are several in one column."""
Change = Callable[[dict[str, Any], str], None]


def remove(owner: dict[str, Any], name: str) -> None:
    """Take a field away."""
    del owner[name]


def set_to_null(owner: dict[str, Any], name: str) -> None:
    """Leave a field without a value."""
    owner[name] = None


class Cell:
    """One value in a column of bytes that is JSON: an object, a list of them, or one per line; maybe compressed."""

    def __init__(self, table: str, column: str, row: int, body: bytes, server_id: str | None) -> None:
        self.table, self.column, self.row, self.server_id = table, column, row, server_id
        try:
            body, self._is_compressed = zlib.decompress(body), True
        except zlib.error:
            self._is_compressed = False
        try:
            self._value, self._is_lines = json.loads(body), False
        except ValueError:
            self._value, self._is_lines = [json.loads(line) for line in body.split(b"\n")], True
        found = self._value if isinstance(self._value, list) else [self._value]
        self.objects: list[dict[str, Any]] = [one for one in found if isinstance(one, dict)]

    def shape_of(self, found: dict[str, Any]) -> Shape:
        """Return the shape of one of the objects."""
        is_list = isinstance(self._value, list) and not self._is_lines
        return self.table, self.column, "" if is_list else str(found.get("type", ""))

    @property
    def body(self) -> bytes:
        """The bytes to store."""
        if self._is_lines:
            body = b"\n".join(json.dumps(one, separators=(",", ":")).encode() for one in self._value)
        else:
            body = json.dumps(self._value, separators=(",", ":")).encode()
        return zlib.compress(body) if self._is_compressed else body


class Removal(NamedTuple):
    """A field that was changed in one object."""

    shape: Shape
    fields: Fields

    def __str__(self) -> str:
        table, column, kind = self.shape
        return f"{table}.{column}{f' {kind}' if kind else ''}: {'.'.join(self.fields)}"


def read_cells(path: Path) -> list[Cell]:
    """Return everything in a database that is JSON."""
    cells: list[Cell] = []
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(set(tables) - NOT_OURS):
            kinds = {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")}
            server = "id" if table == "servers" else next((SERVERS[name] for name in SERVERS if name in kinds), "NULL")
            for column in (name for name, kind in kinds.items() if kind == "BLOB"):
                rows = database.execute(f"SELECT rowid, {column}, {server} FROM {table} ORDER BY rowid").fetchall()
                for row, body, server_id in rows:
                    with suppress(ValueError, TypeError):  # sealed secrets, snapshots, nothing
                        cells.append(Cell(table, column, row, body, server_id))
    return cells


def write_cells(path: Path, cells: list[Cell]) -> None:
    """Write these cells back to the database."""
    with closing(sqlite3.connect(path)) as database, database:
        for cell in cells:
            statement = f"UPDATE {cell.table} SET {cell.column} = ? WHERE rowid = ?"
            database.execute(statement, (cell.body, cell.row))


def all_removals(cells: list[Cell]) -> set[Removal]:
    """Return every field of every shape."""
    found = ((cell.shape_of(one), one) for cell in cells for one in cell.objects)
    return {Removal(shape, fields) for shape, one in found for fields in _fields(one)}


def change_each_once(cells: list[Cell], left: set[Removal], change: Change) -> dict[Cell, list[Removal]]:
    """Change one field of each object, if there are some in `left`, and take it out of there; return what was changed.

    An object within one that lost a field keeps its fields: it may not be read at all.
    """
    done: dict[Cell, list[Removal]] = {}
    by_shape: dict[Shape, set[Fields]] = {}
    for shape, fields in left:
        by_shape.setdefault(shape, set()).add(fields)
    for cell in cells:
        for one in cell.objects:
            shape = cell.shape_of(one)
            of_shape = by_shape.get(shape)
            for owner, fields in _objects_to_change(one, of_shape) if of_shape else ():
                change(owner, fields[-1])
                left.discard(Removal(shape, fields))
                done.setdefault(cell, []).append(Removal(shape, fields))
    return done


def _objects_to_change(
    found: object, left: set[Fields], before: Fields = ()
) -> Iterator[tuple[dict[str, Any], Fields]]:
    """Yield an object and one of its fields that is left, or those within it."""
    if isinstance(found, list):
        for entry in found:
            yield from _objects_to_change(entry, left, (*before, "[]"))
    elif isinstance(found, dict):
        fields = next(((*before, name) for name in found if (*before, name) in left), None)
        if fields is not None:
            left.discard(fields)
            yield found, fields
            return
        for name, value in found.items():
            yield from _objects_to_change(value, left, (*before, name))


def _fields(found: Mapping[str, object], before: Fields = ()) -> Iterator[Fields]:
    seen: set[Fields] = set()
    for name, value in found.items():
        fields = (*before, name)
        yield fields
        if isinstance(value, dict):
            yield from _fields(value, fields)
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, dict):
                inner = [one for one in _fields(entry, (*fields, "[]")) if one not in seen]
                seen.update(inner)
                yield from inner
