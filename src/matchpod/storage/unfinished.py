"""Record which log entry a process is processing, entries during which processes died, and entries set aside.

An entry that is set aside keeps its number and its bytes in the log; only its kind changes. Later folds treat it as
lost. Two numbers that no entry has stand for resuming a match as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from matchpod.ports import Database, NothingChangedError, Statement, Value
from matchpod.storage.heartbeats import IS_ALIVE
from matchpod.storage.rows import column_list, from_row, write_one

RESUMING: Final = 0
"""The entry number recorded while a process is resuming a match, possibly at the same time as other matches."""
ALONE: Final = -1
"""The entry number recorded while a process is resuming a match and no other match."""

_OPEN: Final = "server_id = :server_id AND kind IS NULL"
_DEAD: Final = "dead "
"""Prefix of `owner` for a process that is known to have died."""


class SetAsideRow(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was set aside, with its original kind."""

    server_id: str
    seq: int
    begun: int
    """Number of processes that died while processing the entry; 0 if it was set aside because it raised an error."""
    kind: str


async def begin(db: Database, server_id: str, seq: int, owner: str) -> None:
    """Record that a process begins to process an entry, and delete its record of the match's previous entry."""
    params: Mapping[str, Value] = {"server_id": server_id, "seq": seq, "owner": owner}
    finished = f"DELETE FROM unfinished_entries WHERE {_OPEN} AND owner = :owner AND seq <> :seq"
    record = (
        "INSERT INTO unfinished_entries (server_id, seq, begun, owner) VALUES (:server_id, :seq, 0, :owner)"
        " ON CONFLICT (server_id, seq) DO UPDATE SET owner = excluded.owner"
    )
    await db.write([Statement(finished, params), Statement(record, params)])


async def record_death(db: Database, server_id: str, seq: int, name: str) -> None:
    """Record and count that the named process died while processing an entry. Repeating it counts only once."""
    earlier = f"unfinished_entries.owner LIKE '{_DEAD}%' AND unfinished_entries.owner <> excluded.owner"
    await write_one(
        db,
        "INSERT INTO unfinished_entries (server_id, seq, begun, owner) VALUES (:server_id, :seq, 0, :owner)"
        " ON CONFLICT (server_id, seq) DO UPDATE SET owner = excluded.owner,"
        f" begun = unfinished_entries.begun + CASE WHEN {earlier} THEN 1 ELSE 0 END",
        {"server_id": server_id, "seq": seq, "owner": f"{_DEAD}{name}"},
    )


async def count(db: Database, server_id: str, seq: int) -> int:
    """Count an entry whose processing took far too long as if a process had died; return the new count."""
    rows = await write_one(
        db,
        "INSERT INTO unfinished_entries (server_id, seq, begun) VALUES (:server_id, :seq, 1)"
        " ON CONFLICT (server_id, seq) DO UPDATE SET begun = unfinished_entries.begun + 1 RETURNING begun",
        {"server_id": server_id, "seq": seq},
    )
    return msgspec.convert(rows[0][0], int)


async def count_deaths(db: Database, server_id: str, owner: str) -> tuple[dict[int, int], bool]:
    """Return, by entry number, how many processes died while processing it, and whether any entry was set aside.

    A record counts as a death if its process is no longer alive. Records of this process itself are deleted: a write
    that failed, or whose response was lost, is not a death.
    """
    params: Mapping[str, Value] = {"server_id": server_id, "owner": owner}
    if await db.read_one("SELECT seq FROM unfinished_entries WHERE server_id = :server_id LIMIT 1", params) is None:
        return {}, False  # nearly always so; a cheap query, because it runs for every match that is resumed
    is_dead = f" AND owner NOT IN (SELECT owner FROM heartbeats WHERE {IS_ALIVE})" if db.is_postgres else ""
    await db.write(
        [
            *release(server_id, owner),
            Statement(
                "UPDATE unfinished_entries SET begun = begun + 1, owner = NULL"
                f" WHERE {_OPEN} AND owner IS NOT NULL{is_dead}",
                params,
            ),
        ]
    )
    rows = await db.read("SELECT seq, begun, kind FROM unfinished_entries WHERE server_id = :server_id", params)
    found = msgspec.convert(rows, list[tuple[int, int, str | None]])
    deaths = {seq: begun for seq, begun, kind in found if begun and kind is None}
    return deaths, any(kind is not None for _, _, kind in found)


def release(server_id: str, owner: str) -> list[Statement]:
    """Delete a live process's records about a match. Deaths of processes that were already counted are kept."""
    params: Mapping[str, Value] = {"server_id": server_id, "owner": owner}
    of_own = f"WHERE {_OPEN} AND owner = :owner"
    return [
        Statement(f"DELETE FROM unfinished_entries {of_own} AND begun = 0", params),
        Statement(f"UPDATE unfinished_entries SET owner = NULL {of_own}", params),
    ]


def forget(server_id: str) -> Statement:
    """Delete the records of a match that was resumed or has ended, except those of entries that were set aside."""
    return Statement(f"DELETE FROM unfinished_entries WHERE {_OPEN}", {"server_id": server_id})


async def set_aside(db: Database, server_id: str, seq: int) -> bool:
    """Set an entry aside; False if it does not exist, is already set aside, or is in a block (its match has ended)."""
    params: Mapping[str, Value] = {"server_id": server_id, "seq": seq}
    keep_kind = Statement(
        "INSERT INTO unfinished_entries (server_id, seq, begun, kind)"
        " SELECT server_id, seq, 0, kind FROM raw_log"
        " WHERE server_id = :server_id AND seq = :seq AND kind NOT IN ('block', 'set_aside')"
        " ON CONFLICT (server_id, seq) DO UPDATE SET kind = excluded.kind, owner = NULL",
        params,
        must_change=True,
    )
    change = "UPDATE raw_log SET kind = 'set_aside' WHERE server_id = :server_id AND seq = :seq"
    try:
        await db.write([keep_kind, Statement(change, params)])
    except NothingChangedError:
        return False
    return True


async def of_server(db: Database, server_id: str) -> list[SetAsideRow]:
    rows = await db.read(
        f"SELECT {column_list(SetAsideRow)} FROM unfinished_entries"
        " WHERE server_id = :server_id AND kind IS NOT NULL ORDER BY seq",
        {"server_id": server_id},
    )
    return [from_row(SetAsideRow, row) for row in rows]


async def prune(db: Database) -> None:
    """Delete the records of matches whose log entries were all pruned."""
    await write_one(
        db,
        "DELETE FROM unfinished_entries WHERE NOT EXISTS ("
        " SELECT 1 FROM raw_log WHERE raw_log.server_id = unfinished_entries.server_id)",
    )
