"""Count entries that were begun and never finished, and set them aside.

An entry that is set aside keeps its number and its bytes in the log; only its kind changes, so every later fold treats
it as lost. Number 0, which no entry has, counts how often a process began to resume the match and died meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from matchpod.ports import Database, NothingChangedError, Statement, Value
from matchpod.storage.rows import column_list, from_row, write_one

RESUMING: Final = 0
"""The number under which resuming a match is counted: its entries are numbered from 1."""


class SetAsideRow(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was set aside, with the kind it had."""

    server_id: str
    seq: int
    begun: int
    kind: str


async def count(db: Database, server_id: str, seq: int) -> int:
    """Count one more unfinished attempt to apply an entry; return how many there were."""
    rows = await write_one(
        db,
        "INSERT INTO unfinished_entries (server_id, seq, begun) VALUES (:server_id, :seq, 1)"
        " ON CONFLICT (server_id, seq) DO UPDATE SET begun = unfinished_entries.begun + 1 RETURNING begun",
        {"server_id": server_id, "seq": seq},
    )
    return msgspec.convert(rows[0][0], int)


async def finish(db: Database, server_id: str, seq: int) -> None:
    """Take back one count: the attempt was finished after all."""
    params: Mapping[str, Value] = {"server_id": server_id, "seq": seq}
    of_entry = "WHERE server_id = :server_id AND seq = :seq AND kind IS NULL"
    take_back = Statement(f"UPDATE unfinished_entries SET begun = begun - 1 {of_entry}", params)
    await db.write([take_back, Statement(f"DELETE FROM unfinished_entries {of_entry} AND begun <= 0", params)])


async def forget(db: Database, server_id: str, seq: int) -> None:
    """Take back all counts of an entry that is not set aside."""
    await write_one(
        db,
        "DELETE FROM unfinished_entries WHERE server_id = :server_id AND seq = :seq AND kind IS NULL RETURNING seq",
        {"server_id": server_id, "seq": seq},
    )


async def begun_of(db: Database, server_id: str) -> set[int]:
    """The numbers of entries that were begun and never finished, and are not set aside; with RESUMING if it counts."""
    begun, params = "FROM unfinished_entries WHERE server_id = :server_id AND kind IS NULL", {"server_id": server_id}
    if await db.read_one(f"SELECT seq {begun} LIMIT 1", params) is None:
        return set()  # nearly always, and every match that is resumed needs to know
    rows = await db.read(f"SELECT seq {begun}", params)
    return {number for (number,) in msgspec.convert(rows, list[tuple[int]])}


async def set_aside(db: Database, server_id: str, seq: int) -> bool:
    """Set an entry aside; False if it does not exist, already is, or is in a block: its match has ended."""
    params: Mapping[str, Value] = {"server_id": server_id, "seq": seq}
    keep_kind = Statement(
        "UPDATE unfinished_entries SET kind = (SELECT kind FROM raw_log WHERE server_id = :server_id AND seq = :seq)"
        " WHERE server_id = :server_id AND seq = :seq AND kind IS NULL",
        params,
        must_change=True,
    )
    change = Statement(
        "UPDATE raw_log SET kind = 'set_aside' WHERE server_id = :server_id AND seq = :seq AND kind <> 'block'",
        params,
        must_change=True,
    )
    try:
        await db.write([keep_kind, change])
    except NothingChangedError:
        return False
    return True


async def of_server(db: Database, server_id: str) -> list[SetAsideRow]:
    """The entries of a server that were set aside."""
    rows = await db.read(
        f"SELECT {column_list(SetAsideRow)} FROM unfinished_entries"
        " WHERE server_id = :server_id AND kind IS NOT NULL ORDER BY seq",
        {"server_id": server_id},
    )
    return [from_row(SetAsideRow, row) for row in rows]
