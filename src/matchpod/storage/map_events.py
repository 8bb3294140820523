"""What happened on a map, item by item? Timelines are stored in batches, numbered 1, 2, 3, … without gaps.

A batch is a few lines of JSON under the number of its first one. Two who write on from the same item collide on that
number, so of two writers one is refused. When the match has ended, batches are merged into larger, compressed ones;
whoever reads sees no difference. Old ones are deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from matchpod.ports import Database, DuplicateError, NothingChangedError, Statement

MERGED_ITEMS: Final = 500
"""Items of a merged batch: enough to compress well (to a tenth), few enough to unpack for one page."""
PRUNE_BATCHES: Final = 1_000
"""Batches deleted in one transaction: short enough that other writers hardly wait."""

# JSON has no raw newline, so that lines need no escaping.
_BETWEEN_LINES: Final = b"\n"

# The batch that has the next item, or the first there is when older ones were deleted, and from there on those that
# have the wanted number of items. One query, for a merge between two would show.
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
    """Store items from a number on; DuplicateError when an item of that number is there, whoever wrote it."""
    if not lines:
        raise ValueError("a batch has at least one item")
    # Merged batches begin elsewhere than the ones they were made of: the number is then that of the batch around it,
    # which is taken.
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
            "body": _BETWEEN_LINES.join(lines),
        },
    )


async def read_after(db: Database, map_id: str, after_seq: int, *, limit: int) -> list[tuple[int, bytes]]:
    """The next items after a number, at most `limit`, in order: number and JSON."""
    rows = await db.read(_READ_AFTER, {"map_id": map_id, "next_seq": after_seq + 1, "items": limit})
    items: list[tuple[int, bytes]] = []
    for first_seq, is_compressed, body in msgspec.convert(rows, list[tuple[int, int, bytes]]):
        lines = _lines(body, is_compressed)
        items += [item for item in enumerate(lines, first_seq) if item[0] > after_seq]
        if len(items) >= limit:
            break  # before the next one is unpacked for nothing
    return items[:limit]


async def last_seqs(db: Database, server_id: str) -> dict[str, int]:
    """The number of the last item of each map of a server that has any."""
    rows = await db.read(
        "SELECT map_id, first_seq + count - 1 FROM maps JOIN map_events ON map_id = maps.id"
        " AND first_seq = (SELECT MAX(newest.first_seq) FROM map_events AS newest WHERE newest.map_id = maps.id)"
        " WHERE server_id = :server_id",
        {"server_id": server_id},
    )
    return dict(msgspec.convert(rows, list[tuple[str, int]]))


async def last_seq(db: Database, map_id: str) -> int:
    """The number of the last item of a map; 0 where there is none. It may have items although its row is gone."""
    row = await db.look_up(
        "SELECT first_seq + count - 1 FROM map_events WHERE map_id = :map_id ORDER BY first_seq DESC LIMIT 1",
        {"map_id": map_id},
    )
    return 0 if row is None else msgspec.convert(row[0], int)


# --- upkeep -------------------------------------------------------------------------------------------------------


# Whoever writes on goes by the last item that is stored.
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
    """Merge and compress the items of a match that has ended; reading them gives the same as before."""
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
            # Somebody else was faster, and has merged them or deleted them.
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
            body = zlib.compress(_BETWEEN_LINES.join(line for _, _, line in items))
            statements.append(
                Statement(
                    "INSERT INTO map_events (map_id, first_seq, count, at_ms, is_compressed, body)"
                    " VALUES (:map_id, :first_seq, :count, :at_ms, 1, :body)",
                    {
                        "map_id": map_id,
                        "first_seq": items[0][0],
                        "count": len(items),
                        # Kept as long as the newest of them.
                        "at_ms": max(at_ms for _, at_ms, _ in items),
                        "body": body,
                    },
                )
            )
    return statements


def _runs(batches: Sequence[_Batch]) -> Iterator[list[tuple[int, int, bytes]]]:
    """The items (number, time, JSON) of batches; a new run where one does not go on after the other."""
    run: list[tuple[int, int, bytes]] = []
    for batch in batches:
        if run and batch.first_seq != run[-1][0] + 1:
            yield run
            run = []
        lines = _lines(batch.body, is_compressed=0)
        run += [(seq, batch.at_ms, line) for seq, line in enumerate(lines, batch.first_seq)]
    yield run


async def prune(db: Database, before_ms: int) -> int:
    """Delete batches that came before a time, except those of matches that go on; answers how many items they had."""
    delete = Statement(
        "DELETE FROM map_events WHERE (map_id, first_seq) IN ("
        f" SELECT old.map_id, old.first_seq {_OLD} ORDER BY old.at_ms LIMIT :limit) RETURNING count",
        {"before_ms": before_ms, "limit": PRUNE_BATCHES},
    )
    deleted = 0
    while True:
        (rows,) = await db.write([delete])
        deleted += sum(count for (count,) in msgspec.convert(rows, list[tuple[int]]))
        if len(rows) < PRUNE_BATCHES:
            return deleted


async def count_prunable(db: Database, before_ms: int) -> int:
    """How many items `prune` would delete."""
    # PostgreSQL adds BIGINTs up to a NUMERIC.
    sql = f"SELECT CAST(COALESCE(SUM(old.count), 0) AS BIGINT) {_OLD}"
    rows = await db.read(sql, {"before_ms": before_ms})
    return msgspec.convert(rows[0][0], int)


def _lines(body: bytes, is_compressed: int) -> list[bytes]:
    return (zlib.decompress(body) if is_compressed else body).split(_BETWEEN_LINES)
