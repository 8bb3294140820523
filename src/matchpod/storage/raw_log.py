"""Store everything that game servers send, byte for byte, before it is processed.

The entries of a server's log are numbered 1, 2, 3, … without gaps, in commit order. After the match has ended, they are
merged into compressed blocks, from which the same entries are read. A block is one row, stored under the number of its
last entry. Entries are deleted after their retention period.
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
"""Total size of bodies in bytes at which a block is complete: large enough to compress to a tenth, small enough to
unpack whenever a page is read. Writing such a block hardly delays other transactions."""
BLOCK_ENTRIES: Final = 2_000
"""Maximum number of entries in a block. When a block is read, all its entries are in memory."""
PAGE_ENTRIES: Final = 200
"""Maximum number of entries read at a time to fill a block."""
PRUNE_ENTRIES: Final = 1_000
"""Maximum number of entries deleted per transaction, few enough that other writers hardly wait."""
PRUNE_MATCHES: Final = 500
"""Maximum number of matches read at a time to find entries to delete."""

_BLOCK: Final = "block"
"""The kind of a row that contains a block."""
_WHOLE = 0
"""The value of `is_compressed` for an entry stored uncompressed. The value is 1 for an entry with a compressed body,
and -n for a block of n consecutive entries."""

_RawRow = tuple[str, int, str, int, bytes, bytes, str, int]
"""A row with the columns of `RawEntry` and the column `is_compressed`."""

# There is no index by age, because it would cost another page write per post. Instead, the primary key is used to find
# the matches with a log one by one. Old entries are deleted if their match ended before `:before_ms`, or has no row in
# `servers`. A match in progress keeps entries of any age, because a replay of its log may need them.
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
    """One entry of a server's log: a log post, a plugin report, or a record of the service itself."""

    server_id: str
    seq: int
    kind: str
    """`log`, `report`, or a kind that the service defines for its own records."""
    received_ms: int
    headers: bytes
    """The headers of the request, as JSON."""
    body: bytes
    attempt: str = ""
    """`ServerRow.attempt` of the server that sent the entry; empty if the service or an earlier version wrote it."""


def append(
    server_id: str, kind: str, *, received_ms: int, headers: bytes, body: bytes, attempt: str = ""
) -> list[Statement]:
    """Store an entry under its server's next number. The first statement returns this number and the log's total bytes.

    That statement also locks the server's row in `raw_log_heads`, so concurrent appends wait for each other.
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
    """Return the number of a server's newest entry, and the total bytes of its log, including deleted entries."""
    row = await db.read_one("SELECT seq, bytes FROM raw_log_heads WHERE server_id = :id", {"id": server_id})
    return (0, 0) if row is None else msgspec.convert(row, tuple[int, int])


async def read_after(db: Database, server_id: str, seq: int, *, limit: int) -> list[RawEntry]:
    """Return the entries after a number, in order: about `limit`, a whole block, or fewer if some were deleted."""
    # A row has the number of its last entry, and a block contains consecutive entries. So the last row to read is the
    # first whose number is at or after the last requested entry.
    rows = await db.read(
        f"SELECT {column_list(RawEntry)}, is_compressed FROM raw_log"
        " WHERE server_id = :server_id AND seq > :seq AND seq <= COALESCE(("
        " SELECT MIN(seq) FROM raw_log WHERE server_id = :server_id AND seq >= :last_seq), :last_seq)"
        " ORDER BY seq LIMIT :limit",
        {"server_id": server_id, "seq": seq, "last_seq": seq + limit, "limit": limit},
    )
    return await _unpack(rows, lambda entry: entry.seq > seq, limit)


async def has_kind(db: Database, server_id: str, kind: str, *, after_seq: int, attempt: str = "") -> bool:
    """True if the log of an open match has an entry of this kind after `after_seq`, by this attempt or the service."""
    row = await db.read_one(
        "SELECT seq FROM raw_log WHERE server_id = :server_id AND seq > :seq AND kind = :kind"
        " AND attempt IN ('', :attempt) ORDER BY seq LIMIT 1",
        {"server_id": server_id, "seq": after_seq, "kind": kind, "attempt": attempt},
    )
    return row is not None


async def newest_of_kind(db: Database, server_id: str, kind: str, *, count: int) -> list[RawEntry]:
    """Return those of a server's last `count` entries that have this kind, newest first."""
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
    """Merge the entries of an ended match into compressed blocks. Reading returns the same entries as before."""
    seq = 0
    while rows := await _read_block(db, server_id, seq):
        merge, seq = await asyncio.to_thread(_merge, server_id, rows)
        # Both errors mean that another process has merged or deleted these entries in the meantime.
        with contextlib.suppress(DuplicateError, NothingChangedError):
            await db.write(merge)


async def _read_block(db: Database, server_id: str, seq: int) -> list[Row]:
    """Return rows after a number that are not blocks: enough to fill a block, or all that remain."""
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
    """Delete entries older than `before_ms` whose match ended before then or has no row; return how many entries."""
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
    """Return the number of entries that `prune` would delete."""
    return sum([count async for old in _old_entries(db, before_ms) for _, count in old])


async def _old_entries(db: Database, before_ms: int) -> AsyncIterator[list[tuple[str, int]]]:
    """Yield groups of matches, each match with the number of its entries to delete."""
    after = ""
    while True:
        rows = await db.read(_OLD, {"after": after, "before_ms": before_ms, "limit": PRUNE_MATCHES})
        found = msgspec.convert(rows, list[tuple[str, int]])
        yield [(server_id, count) for server_id, count in found if count]
        if len(found) < PRUNE_MATCHES:
            return
        after = found[-1][0]


def _merge(server_id: str, rows: Sequence[Row]) -> tuple[list[Statement], int]:
    """Return statements that replace the first of these rows with a block, and the number of the block's last entry."""
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
    # If fewer rows are deleted, another process has merged some of them. Blocks must not overlap, so roll back.
    return [Statement(delete, of_entries, must_change=len(merged)), Statement(insert, of_block)], merged[-1].seq


async def _unpack(rows: Sequence[Row], wanted: Callable[[RawEntry], bool], limit: int) -> list[RawEntry]:
    """Return about `limit` of the wanted entries. Blocks are unpacked in a thread, because unpacking is slow."""
    found: list[RawEntry] = []
    for row in rows:
        entries = await asyncio.to_thread(_entries, row) if row[2] == _BLOCK else _entries(row)
        found += filter(wanted, entries)
        if len(found) >= limit:
            break  # enough entries: do not unpack the next block
    return found


def _entries(row: Row) -> list[RawEntry]:
    """Return the entries of a row: all entries of a block, or the single entry."""
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
