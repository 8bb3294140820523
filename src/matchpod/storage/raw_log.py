"""Store what game servers send, byte for byte, before it is processed.

The entries of a server are numbered 1, 2, 3, … without gaps, in the order of their transactions. After the match has
ended they are merged into compressed blocks, which read the same: a block is one row under the number of its last
entry. They are deleted after their retention.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from matchpod.ports import Database, DuplicateError, NothingChangedError, Row, Statement, Value
from matchpod.storage import log_blocks
from matchpod.storage.log_blocks import LogColumns
from matchpod.storage.rows import column_list, from_row

BLOCK_BYTES: Final = 512 * 1024
"""Size of the bodies at which a block is complete: large enough to compress to a tenth, and small enough to unpack for
one page. Other writers hardly wait for the transaction that writes one."""
BLOCK_ENTRIES: Final = 2_000
"""Maximum entries of a block, if they are small: all of them are in memory when it is read."""
PAGE_ENTRIES: Final = 200
"""Maximum entries that are read at a time to be merged."""
PRUNE_ENTRIES: Final = 1_000
"""Maximum entries deleted per transaction: few enough that other writers hardly wait."""
PRUNE_MATCHES: Final = 500
"""Matches that are looked at per query for what is to be deleted."""

_BLOCK: Final = "block"
"""The kind of a row that holds a block."""
_WHOLE = 0
"""The column `is_compressed` of an entry as it was sent. It is 1 if its body is compressed, and the negative number of
entries in a block, which follow each other."""

_RawRow = tuple[str, int, str, int, bytes, bytes, str, int]
"""The columns of `RawEntry`, and `is_compressed`."""

# No index has the age of entries: it would be one more page to write for every post. The matches that have a log are
# found one by one in the primary key, and their entries count if the match ended before that time; those without a
# row of `servers` count too. A match in progress keeps entries of any age: replaying it may need them.
_OLD: Final = """
WITH RECURSIVE stored (id) AS (
    SELECT MIN(server_id) FROM raw_log WHERE server_id > :after
    UNION ALL
    SELECT (SELECT MIN(server_id) FROM raw_log WHERE server_id > stored.id) FROM stored WHERE stored.id IS NOT NULL
)
SELECT id, CASE WHEN EXISTS (
    SELECT 1 FROM servers WHERE servers.id = stored.id AND (phase <> 'released' OR ended_at_ms >= :before_ms)
) THEN 0 ELSE (
    SELECT COUNT(*) FROM raw_log WHERE server_id = stored.id AND received_ms < :before_ms
) END
FROM stored WHERE id IS NOT NULL LIMIT :limit
"""


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
    attempt: str = ""
    """`ServerRow.attempt` of the server that sent it; empty if the service or an earlier version wrote it."""


def append(
    server_id: str, kind: str, *, received_ms: int, headers: bytes, body: bytes, attempt: str = ""
) -> list[Statement]:
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
        "INSERT INTO raw_log (server_id, seq, kind, received_ms, headers, body, attempt, is_compressed)"
        " SELECT server_id, seq, :kind, :received_ms, :headers, :body, :attempt, 0"
        " FROM raw_log_heads WHERE server_id = :server_id",
        {
            "server_id": server_id,
            "kind": kind,
            "received_ms": received_ms,
            "headers": headers,
            "body": body,
            "attempt": attempt,
        },
        must_change=True,
    )
    return [increment, insert]


async def newest_seq(db: Database, server_id: str) -> int:
    """Return the number of a server's newest entry; 0 if there is none."""
    return (await head(db, server_id))[0]


async def head(db: Database, server_id: str) -> tuple[int, int]:
    """Return the number of a server's newest entry, and all bytes that were stored in its log."""
    row = await db.read_one("SELECT seq, bytes FROM raw_log_heads WHERE server_id = :id", {"id": server_id})
    return (0, 0) if row is None else msgspec.convert(row, tuple[int, int])


async def read_after(db: Database, server_id: str, seq: int, *, limit: int) -> list[RawEntry]:
    """Return entries after a number, in order: about `limit`, or all of a block; fewer if some were deleted."""
    # A row ends with the entry of its number, and the entries of a block are numbered without gaps. So the rows up to
    # the first one that ends at or after the last entry have enough of them, and no other block is read.
    rows = await db.read(
        f"SELECT {column_list(RawEntry)}, is_compressed FROM raw_log"
        " WHERE server_id = :server_id AND seq > :seq AND seq <= COALESCE(("
        " SELECT MIN(seq) FROM raw_log WHERE server_id = :server_id AND seq >= :last_seq), :last_seq)"
        " ORDER BY seq LIMIT :limit",
        {"server_id": server_id, "seq": seq, "last_seq": seq + limit, "limit": limit},
    )
    return await _unpack(rows, lambda entry: entry.seq > seq, limit)


async def has_kind(db: Database, server_id: str, kind: str, *, after_seq: int, attempt: str = "") -> bool:
    """True if the log of a match in progress has an entry of this kind after a number, of the service or an attempt."""
    row = await db.read_one(
        "SELECT seq FROM raw_log WHERE server_id = :server_id AND seq > :seq AND kind = :kind"
        " AND attempt IN ('', :attempt) ORDER BY seq LIMIT 1",
        {"server_id": server_id, "seq": after_seq, "kind": kind, "attempt": attempt},
    )
    return row is not None


async def newest_of_kind(db: Database, server_id: str, kind: str, *, count: int) -> list[RawEntry]:
    """Return those of a server's last `count` entries that are of a kind, newest first."""
    rows = await db.read(
        f"SELECT {column_list(RawEntry)}, is_compressed FROM raw_log"
        f" WHERE server_id = :server_id AND (kind = :kind OR kind = '{_BLOCK}')"
        " AND seq > (SELECT seq FROM raw_log_heads WHERE server_id = :server_id) - :count ORDER BY seq DESC",
        {"server_id": server_id, "kind": kind, "count": count},
    )
    after_seq = await newest_seq(db, server_id) - count if any(row[2] == _BLOCK for row in rows) else 0
    found = await _unpack(rows, lambda entry: entry.kind == kind and entry.seq > after_seq, count)
    return sorted(found, key=lambda entry: entry.seq, reverse=True)


async def compress(db: Database, server_id: str) -> None:
    """Merge the entries of an ended match into compressed blocks; they read the same as before."""
    seq = 0
    while rows := await _read_block(db, server_id, seq):
        merge, seq = await asyncio.to_thread(_merge, server_id, rows)
        # Raised if another process has merged or deleted the entries in the meantime.
        with contextlib.suppress(DuplicateError, NothingChangedError):
            await db.write(merge)


async def _read_block(db: Database, server_id: str, seq: int) -> list[Row]:
    """Return the rows after a number that are not in a block yet, at least as many as fill one."""
    rows: list[Row] = []
    size = 0
    while (
        size < BLOCK_BYTES
        and len(rows) < BLOCK_ENTRIES
        and (
            page := await db.read(
                f"SELECT {column_list(RawEntry)}, is_compressed FROM raw_log"
                f" WHERE server_id = :server_id AND seq > :seq AND kind <> '{_BLOCK}' ORDER BY seq LIMIT :limit",
                {"server_id": server_id, "seq": rows[-1][1] if rows else seq, "limit": PAGE_ENTRIES},
            )
        )
    ):
        rows += page
        size += sum(len(body) for *_, body, _, _ in msgspec.convert(page, list[_RawRow]))
    return rows


async def prune(db: Database, before_ms: int) -> int:
    """Delete the entries that are older than a time, of matches that ended before it; return how many."""
    delete = (
        "DELETE FROM raw_log WHERE (server_id, seq) IN (SELECT server_id, seq FROM raw_log"
        " WHERE server_id = :server_id AND received_ms < :before_ms ORDER BY seq LIMIT :limit) RETURNING seq"
    )
    deleted = 0
    async for old in _old_entries(db, before_ms):
        while old:
            statements, room = [], PRUNE_ENTRIES
            while old and room:
                server_id, count = old.pop()
                limit = min(count, room)
                params: dict[str, Value] = {"server_id": server_id, "before_ms": before_ms, "limit": limit}
                statements.append(Statement(delete, params))
                room -= limit
                if count > limit:
                    old.append((server_id, count - limit))
            deleted += sum(map(len, await db.write(statements)))
    return deleted


async def count_prunable(db: Database, before_ms: int) -> int:
    """Return how many entries `prune` would delete."""
    return sum([count async for old in _old_entries(db, before_ms) for _, count in old])


async def _old_entries(db: Database, before_ms: int) -> AsyncIterator[list[tuple[str, int]]]:
    """Yield how many entries are to be deleted of which match, some matches at a time."""
    after = ""
    while True:
        rows = await db.read(_OLD, {"after": after, "before_ms": before_ms, "limit": PRUNE_MATCHES})
        found = msgspec.convert(rows, list[tuple[str, int]])
        yield [(server_id, count) for server_id, count in found if count]
        if len(found) < PRUNE_MATCHES:
            return
        after = found[-1][0]


def _merge(server_id: str, rows: Sequence[Row]) -> tuple[list[Statement], int]:
    """Return the statements that replace the first of these rows by one block, and the number of its last entry."""
    merged: list[RawEntry] = []
    size = 0
    for row in rows:
        (entry,) = _entries(row)
        if size >= BLOCK_BYTES or len(merged) == BLOCK_ENTRIES or (merged and entry.seq != merged[-1].seq + 1):
            break
        merged.append(entry)
        size += len(entry.body)
    of_entries: dict[str, Value] = {"server_id": server_id, "first_seq": merged[0].seq, "seq": merged[-1].seq}
    delete = (
        f"DELETE FROM raw_log WHERE server_id = :server_id AND seq >= :first_seq AND seq <= :seq AND kind <> '{_BLOCK}'"
    )
    of_block: dict[str, Value] = {
        "server_id": server_id,
        "seq": merged[-1].seq,
        "received_ms": max(entry.received_ms for entry in merged),
        "headers": b"{}",
        "body": log_blocks.pack(
            LogColumns(
                first_seq=merged[0].seq,
                kinds=[entry.kind for entry in merged],
                received_ms=[entry.received_ms for entry in merged],
                headers=[entry.headers for entry in merged],
                bodies=[entry.body for entry in merged],
                attempts=[entry.attempt for entry in merged],
            )
        ),
        "stored": -len(merged),
    }
    insert = (
        "INSERT INTO raw_log (server_id, seq, kind, received_ms, headers, body, is_compressed)"
        f" VALUES (:server_id, :seq, '{_BLOCK}', :received_ms, :headers, :body, :stored)"
    )
    # All of them, or another process has merged some meanwhile: blocks must not overlap.
    return [Statement(delete, of_entries, must_change=len(merged)), Statement(insert, of_block)], merged[-1].seq


async def _unpack(rows: Sequence[Row], wanted: Callable[[RawEntry], bool], limit: int) -> list[RawEntry]:
    """Return the wanted entries of rows, about `limit` at most; blocks are unpacked in a thread, as it takes time."""
    found: list[RawEntry] = []
    for row in rows:
        entries = await asyncio.to_thread(_entries, row) if row[2] == _BLOCK else _entries(row)
        found += filter(wanted, entries)
        if len(found) >= limit:
            break  # do not unpack the next block for nothing
    return found


def _entries(row: Row) -> list[RawEntry]:
    """Return the entry of a row, or all of its block."""
    entry = from_row(RawEntry, row[:-1])
    if entry.kind != _BLOCK:
        return [entry if row[-1] == _WHOLE else msgspec.structs.replace(entry, body=zlib.decompress(entry.body))]
    block = log_blocks.unpack(entry.body)
    columns = zip(block.kinds, block.received_ms, block.headers, block.bodies, block.attempts, strict=True)
    return [
        RawEntry(
            server_id=entry.server_id,
            seq=seq,
            kind=kind,
            received_ms=received_ms,
            headers=headers,
            body=body,
            attempt=attempt,
        )
        for seq, (kind, received_ms, headers, body, attempt) in enumerate(columns, block.first_seq)
    ]
