"""Count entries that were begun and never finished, and set them aside.

An entry that is set aside keeps its number and its bytes in the log; only its kind changes, so every later fold skips
it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from matchpod.ports import Database, NothingChangedError, Statement, Value
from matchpod.storage.rows import column_list, from_row, write_one


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


async def set_aside(db: Database, server_id: str, seq: int) -> bool:
    """Set an entry aside; False if it does not exist or already is."""
    params: Mapping[str, Value] = {"server_id": server_id, "seq": seq}
    keep_kind = Statement(
        "UPDATE unfinished_entries SET kind = (SELECT kind FROM raw_log WHERE server_id = :server_id AND seq = :seq)"
        " WHERE server_id = :server_id AND seq = :seq AND kind IS NULL",
        params,
        must_change=True,
    )
    change = Statement(
        "UPDATE raw_log SET kind = 'set_aside' WHERE server_id = :server_id AND seq = :seq", params, must_change=True
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
