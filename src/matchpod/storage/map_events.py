"""Store the timeline of a map in batches; its items are numbered 1, 2, 3, … without gaps.

A batch is one row: a few items as lines of JSON, stored under the number of the first item. If two writers append after
the same item, they use the same number, so one write fails. After the match, batches are merged into larger, compressed
batches, from which the same items are read. Batches are deleted after their retention period.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from matchpod.ports import Database, DuplicateError, NothingChangedError, Statement
from matchpod.storage.rows import read_number, write_one

MERGED_ITEMS: Final = 500
"""Maximum number of items in a merged batch: enough to compress to a tenth, few enough to unpack whenever a page is
read."""
PRUNE_BATCHES: Final = 1_000
"""Maximum number of batches deleted per transaction, few enough that other writers hardly wait."""

# JSON contains no raw newline, so the lines need no escaping.
_LINE_SEPARATOR: Final = b"\n"

# Read the batch with the next item (if older batches were deleted, the first remaining batch), and as many further
# batches as the requested items may need. A single query, so that batches cannot be merged in between.
_READ_AFTER: Final = """
    SELECT first_seq, is_compressed, body FROM map_events
    JOIN (SELECT COALESCE(
        (SELECT MAX(first_seq) FROM map_events WHERE map_id = :map_id AND first_seq <= :next_seq),
        (SELECT MIN(first_seq) FROM map_events WHERE map_id = :map_id)
    ) AS start_seq) AS edge
    ON first_seq >= start_seq
    AND first_seq < CASE WHEN start_seq > :next_seq THEN start_seq ELSE :next_seq END + :items
    WHERE map_id = :map_id ORDER BY first_seq
    """


def append(map_id: str, first_seq: int, lines: Sequence[bytes], *, at_ms: int) -> Statement:
    """Store items numbered from `first_seq`; DuplicateError if an item with that number exists."""
    if not lines:
        raise ValueError("a batch must have at least one item")
    # The number may be within a merged batch. Then use the number of that batch, so that the insert violates the
    # primary key.
    return Statement(
        "INSERT INTO map_events (map_id, first_seq, count, at_ms, is_compressed, body) VALUES (:map_id, COALESCE(("
        " SELECT CASE WHEN first_seq + count > :first_seq THEN first_seq END FROM map_events"
        " WHERE map_id = :map_id AND first_seq <= :first_seq ORDER BY first_seq DESC LIMIT 1"
        "), :first_seq), :count, :at_ms, 0, :body)",
        {
            "map_id": map_id,
            "first_seq": first_seq,
            "count": len(lines),
            "at_ms": at_ms,
            "body": _LINE_SEPARATOR.join(lines),
        },
    )


async def read_after(db: Database, map_id: str, after_seq: int, *, limit: int) -> list[tuple[int, bytes]]:
    """Return at most `limit` items after a number, in order, as (number, JSON) pairs."""
    rows = await db.read(_READ_AFTER, {"map_id": map_id, "next_seq": after_seq + 1, "items": limit})
    items: list[tuple[int, bytes]] = []
    for first_seq, is_compressed, body in msgspec.convert(rows, list[tuple[int, int, bytes]]):
        lines = _lines(body, is_compressed)
        items += [item for item in enumerate(lines, first_seq) if item[0] > after_seq]
        if len(items) >= limit:
            break  # the requested items are complete: do not decompress the next batch
    return items[:limit]


async def last_seqs(db: Database, server_id: str) -> dict[str, int]:
    """Return, by map id, the number of the last item of each map of a server; maps without items are left out."""
    rows = await db.read(
        "SELECT map_id, first_seq + count - 1 FROM maps JOIN map_events ON map_id = maps.id"
        " AND first_seq = (SELECT MAX(newest.first_seq) FROM map_events AS newest WHERE newest.map_id = maps.id)"
        " WHERE server_id = :server_id",
        {"server_id": server_id},
    )
    return dict(msgspec.convert(rows, list[tuple[str, int]]))


async def last_seq(db: Database, map_id: str) -> int:
    """Return the number of a map's last item, or 0 if it has no items or does not exist."""
    row = await db.read_one(
        "SELECT first_seq + count - 1 FROM map_events WHERE map_id = :map_id ORDER BY first_seq DESC LIMIT 1",
        {"map_id": map_id},
    )
    return 0 if row is None else msgspec.convert(row[0], int)


# --- upkeep -------------------------------------------------------------------------------------------------------


# Matches in progress are excluded, because their last stored item determines the number of the next item.
_OLD: Final = (
    "FROM map_events AS old WHERE old.at_ms < :before_ms AND NOT EXISTS ("
    " SELECT 1 FROM maps JOIN servers ON servers.id = maps.server_id"
    " WHERE maps.id = old.map_id AND servers.phase <> 'released')"
)


class _Batch(msgspec.Struct, frozen=True, array_like=True):
    first_seq: int
    at_ms: int
    body: bytes


async def compact(db: Database, server_id: str) -> None:
    """Merge and compress the items of an ended match. Reading returns the same items as before."""
    rows = await db.read("SELECT id FROM maps WHERE server_id = :server_id", {"server_id": server_id})
    for (map_id,) in msgspec.convert(rows, list[tuple[str]]):
        found = await db.read(
            "SELECT first_seq, at_ms, body FROM map_events WHERE map_id = :map_id AND is_compressed = 0"
            " ORDER BY first_seq",
            {"map_id": map_id},
        )
        if found:
            batches = msgspec.convert(found, list[_Batch])
            merge = await asyncio.to_thread(_merge, map_id, batches)
            # Both errors mean that another process has merged or deleted these batches in the meantime.
            with contextlib.suppress(DuplicateError, NothingChangedError):
                await db.write(merge)


def _merge(map_id: str, batches: Sequence[_Batch]) -> list[Statement]:
    statements = [
        Statement(
            "DELETE FROM map_events WHERE map_id = :map_id AND is_compressed = 0"
            " AND first_seq >= :first_seq AND first_seq <= :last_seq",
            {"map_id": map_id, "first_seq": batches[0].first_seq, "last_seq": batches[-1].first_seq},
            must_change=True,
        )
    ]
    for run in _runs(batches):
        for start in range(0, len(run), MERGED_ITEMS):
            items = run[start : start + MERGED_ITEMS]
            body = zlib.compress(_LINE_SEPARATOR.join(line for _, _, line in items))
            statements.append(
                Statement(
                    "INSERT INTO map_events (map_id, first_seq, count, at_ms, is_compressed, body)"
                    " VALUES (:map_id, :first_seq, :count, :at_ms, 1, :body)",
                    {
                        "map_id": map_id,
                        "first_seq": items[0][0],
                        "count": len(items),
                        # The time of a merged batch is that of its newest item, because `prune` compares this time.
                        "at_ms": max(at_ms for _, at_ms, _ in items),
                        "body": body,
                    },
                )
            )
    return statements


def _runs(batches: Sequence[_Batch]) -> Iterator[list[tuple[int, int, bytes]]]:
    """Yield lists of consecutive items (number, time, JSON) of batches; each gap in the numbers begins a new list."""
    run: list[tuple[int, int, bytes]] = []
    for batch in batches:
        if run and batch.first_seq != run[-1][0] + 1:
            yield run
            run = []
        lines = _lines(batch.body, is_compressed=0)
        run += [(seq, batch.at_ms, line) for seq, line in enumerate(lines, batch.first_seq)]
    yield run


async def prune(db: Database, before_ms: int) -> int:
    """Delete batches older than a time, except those of matches in progress; return how many items were deleted."""
    delete = (
        "DELETE FROM map_events WHERE (map_id, first_seq) IN ("
        f" SELECT old.map_id, old.first_seq {_OLD} ORDER BY old.at_ms LIMIT :limit) RETURNING count"
    )
    deleted = 0
    while True:
        rows = await write_one(db, delete, {"before_ms": before_ms, "limit": PRUNE_BATCHES})
        deleted += sum(count for (count,) in msgspec.convert(rows, list[tuple[int]]))
        if len(rows) < PRUNE_BATCHES:
            return deleted


async def count_prunable(db: Database, before_ms: int) -> int:
    """Return the number of items that `prune` would delete."""
    # In PostgreSQL, SUM of BIGINT values is NUMERIC.
    sql = f"SELECT CAST(COALESCE(SUM(old.count), 0) AS BIGINT) {_OLD}"
    return await read_number(db, sql, {"before_ms": before_ms})


def _lines(body: bytes, is_compressed: int) -> list[bytes]:
    return (zlib.decompress(body) if is_compressed else body).split(_LINE_SEPARATOR)
