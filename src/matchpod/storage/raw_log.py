"""Store what game servers send, byte for byte, before it is processed.

The entries of a server are numbered 1, 2, 3, … without gaps, in the order of their transactions. They are compressed
after the match has ended, and deleted after their retention.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

import msgspec

from matchpod.ports import Database, Row, Statement
from matchpod.storage.rows import column_list, from_row, read_number, write_one

COMPRESS_ENTRIES: Final = 100
"""Maximum entries compressed per transaction: few enough that other writers hardly wait."""
NEWEST_ENTRIES: Final = 100
"""How many of the newest entries of a server are searched for a log post: others are rare, one every few seconds."""
PRUNE_ENTRIES: Final = 1_000
"""Maximum entries deleted per transaction: few enough that other writers hardly wait."""

# Entries of any age are kept while their match is in progress: replaying it may need them.
_OLD: Final = (
    "FROM raw_log AS old WHERE old.received_ms < :before_ms AND NOT EXISTS ("
    " SELECT 1 FROM servers WHERE servers.id = old.server_id AND servers.phase <> 'released')"
)


class RawEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a server's log: a log post, a plugin report, or what the service recorded."""

    server_id: str
    seq: int
    kind: str
    """`log`, `report`, or another kind defined by the service."""
    received_ms: int
    headers: bytes
    """JSON."""
    body: bytes


def append(server_id: str, kind: str, *, received_ms: int, headers: bytes, body: bytes) -> list[Statement]:
    """Store an entry under the server's next number; the first statement returns that number and all bytes stored.

    The first of two statements locks the server's row in `raw_log_heads`, so a concurrent append waits.
    """
    increment = Statement(
        "INSERT INTO raw_log_heads (server_id, seq, bytes) VALUES (:server_id, 1, :size)"
        " ON CONFLICT (server_id) DO UPDATE SET seq = raw_log_heads.seq + 1, bytes = raw_log_heads.bytes + :size"
        " RETURNING seq, bytes",
        {"server_id": server_id, "size": len(body)},
        must_change=True,
    )
    insert = Statement(
        "INSERT INTO raw_log (server_id, seq, kind, received_ms, headers, body, is_compressed)"
        " SELECT server_id, seq, :kind, :received_ms, :headers, :body, 0"
        " FROM raw_log_heads WHERE server_id = :server_id",
        {"server_id": server_id, "kind": kind, "received_ms": received_ms, "headers": headers, "body": body},
        must_change=True,
    )
    return [increment, insert]


async def newest_seq(db: Database, server_id: str) -> int:
    """Return the number of a server's newest entry; 0 if there is none."""
    row = await db.read_one("SELECT seq FROM raw_log_heads WHERE server_id = :server_id", {"server_id": server_id})
    return 0 if row is None else msgspec.convert(row[0], int)


async def read_after(db: Database, server_id: str, seq: int, *, limit: int) -> list[RawEntry]:
    """Return at most `limit` entries after a number, in order."""
    rows = await db.read(
        f"SELECT {column_list(RawEntry)}, is_compressed FROM raw_log"
        " WHERE server_id = :server_id AND seq > :seq ORDER BY seq LIMIT :limit",
        {"server_id": server_id, "seq": seq, "limit": limit},
    )
    return [_entry(row) for row in rows]


async def has_kind(db: Database, server_id: str, kind: str, *, after_seq: int) -> bool:
    """True if an entry of this kind exists after a number."""
    rows = await db.read(
        "SELECT seq FROM raw_log WHERE server_id = :server_id AND seq > :seq AND kind = :kind ORDER BY seq LIMIT 1",
        {"server_id": server_id, "seq": after_seq, "kind": kind},
    )
    return bool(rows)


async def newest_of_kind(db: Database, server_id: str, kind: str, *, count: int) -> list[RawEntry]:
    """Return those of a server's last `count` entries that are of a kind, newest first."""
    rows = await db.read(
        f"SELECT {column_list(RawEntry)}, is_compressed FROM raw_log WHERE server_id = :server_id AND kind = :kind"
        " AND seq > (SELECT seq FROM raw_log_heads WHERE server_id = :server_id) - :count ORDER BY seq DESC",
        {"server_id": server_id, "kind": kind, "count": count},
    )
    return [_entry(row) for row in rows]


async def count_unheard(db: Database, since_ms: int) -> dict[str, int]:
    """Count by region the running servers that have posted no log since a time."""
    rows = await db.read(
        "SELECT region, COUNT(*) FROM servers WHERE phase = 'running' AND NOT EXISTS ("
        " SELECT 1 FROM raw_log WHERE raw_log.server_id = servers.id AND kind = 'log' AND received_ms >= :since_ms"
        " AND seq > (SELECT seq FROM raw_log_heads WHERE raw_log_heads.server_id = servers.id) - :newest)"
        " GROUP BY region",
        {"since_ms": since_ms, "newest": NEWEST_ENTRIES},
    )
    return dict(msgspec.convert(rows, list[tuple[str, int]]))


async def compress(db: Database, server_id: str) -> None:
    """Compress the entries of an ended match; they read the same as before."""
    while True:
        rows = await db.read(
            "SELECT seq, body FROM raw_log WHERE server_id = :server_id AND is_compressed = 0"
            " ORDER BY seq LIMIT :limit",
            {"server_id": server_id, "limit": COMPRESS_ENTRIES},
        )
        if not rows:
            return
        entries = msgspec.convert(rows, list[tuple[int, bytes]])
        await db.write(await asyncio.to_thread(_compress_statements, server_id, entries))


async def prune(db: Database, before_ms: int) -> int:
    """Delete entries older than a time, except those of matches in progress; return how many."""
    old = f"SELECT old.server_id, old.seq {_OLD} LIMIT :limit"
    delete = f"DELETE FROM raw_log WHERE (server_id, seq) IN ({old}) RETURNING seq"
    deleted = 0
    while True:
        rows = await write_one(db, delete, {"before_ms": before_ms, "limit": PRUNE_ENTRIES})
        deleted += len(rows)
        if len(rows) < PRUNE_ENTRIES:
            return deleted


async def count_prunable(db: Database, before_ms: int) -> int:
    """Return how many entries `prune` would delete."""
    return await read_number(db, f"SELECT COUNT(*) {_OLD}", {"before_ms": before_ms})


def _compress_statements(server_id: str, entries: list[tuple[int, bytes]]) -> list[Statement]:
    # The last condition prevents concurrent calls from compressing an entry twice.
    update = (
        "UPDATE raw_log SET body = :body, is_compressed = 1"
        " WHERE server_id = :server_id AND seq = :seq AND is_compressed = 0"
    )
    bodies = [(seq, zlib.compress(body)) for seq, body in entries]
    return [Statement(update, {"server_id": server_id, "seq": seq, "body": body}) for seq, body in bodies]


def _entry(row: Row) -> RawEntry:
    entry = from_row(RawEntry, row[:-1])
    return msgspec.structs.replace(entry, body=zlib.decompress(entry.body)) if row[-1] else entry
