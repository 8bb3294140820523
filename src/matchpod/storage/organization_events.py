"""Store the events of an organization's matches, numbered 1, 2, 3, … without gaps, in commit order.

A number is assigned while the transaction holds the organization's lock (`history_counts.lock`), until it commits. So
an event never becomes visible before events with lower numbers. Events are deleted oldest first, but the newest event
of an organization is kept, because the next number is derived from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage import history_counts
from matchpod.storage.rows import parameter_list, write_one

PRUNE_EVENTS: Final = 1_000
"""Maximum number of events deleted per transaction, few enough that other writers hardly wait."""

_ORGS_PER_QUERY: Final = 512
_INSERT: Final = (
    "INSERT INTO organization_events (org_id, seq, at_ms, line) SELECT :org_id,"
    " (SELECT COALESCE(MAX(seq), 0) + 1 FROM organization_events WHERE org_id = :org_id), :at_ms, :line"
)


def append(org_id: str, lines: Sequence[bytes], *, at_ms: int) -> list[Statement]:
    """Store events (JSON) under the next numbers. Run these statements last: other writers wait for the lock."""
    inserted = [insert(org_id, line, at_ms=at_ms) for line in lines]
    return [history_counts.lock(org_id), *inserted] if lines else []


def insert(org_id: str, line: bytes, *, at_ms: int, only_if: str = "", **params: Value) -> Statement:
    """Store an event, in a transaction that has locked the counts of the organization.

    `only_if` is an SQL condition, and `params` are its parameters; NothingChangedError if it is false. It is a part of
    the INSERT, so checking it takes no additional round trip.
    """
    sql = f"{_INSERT} WHERE {only_if}" if only_if else _INSERT
    return Statement(sql, {"org_id": org_id, "at_ms": at_ms, "line": line, **params}, must_change=True)


async def newest(db: Database, org_id: str) -> int:
    """Return the number of the organization's newest event; 0 if it has none."""
    row = await db.read_one("SELECT MAX(seq) FROM organization_events WHERE org_id = :org_id", {"org_id": org_id})
    return 0 if row is None else msgspec.convert(row[0], int | None) or 0


async def newest_of(db: Database, org_ids: Sequence[str]) -> dict[str, int]:
    """Return the number of each organization's newest event; organizations without events are left out."""
    found: dict[str, int] = {}
    for start in range(0, len(org_ids), _ORGS_PER_QUERY):
        _, params = parameter_list("org", org_ids[start : start + _ORGS_PER_QUERY])
        # A subquery per organization reads a single index entry; MAX with GROUP BY would read all entries.
        rows = await db.read(
            "SELECT column1, (SELECT MAX(seq) FROM organization_events WHERE org_id = column1)"
            f" FROM (VALUES {', '.join(f'(:{name})' for name in params)}) AS wanted",
            params,
        )
        read = msgspec.convert(rows, list[tuple[str, int | None]])
        found |= {org_id: seq for org_id, seq in read if seq is not None}
    return found


async def read_after(db: Database, org_id: str, seq: int, *, limit: int) -> list[tuple[int, bytes]]:
    """Return at most `limit` events after a number, in order, as (number, JSON) pairs."""
    rows = await db.read(
        "SELECT seq, line FROM organization_events WHERE org_id = :org_id AND seq > :seq ORDER BY seq LIMIT :limit",
        {"org_id": org_id, "seq": seq, "limit": limit},
    )
    return msgspec.convert(rows, list[tuple[int, bytes]])


# --- upkeep -------------------------------------------------------------------------------------------------------


async def prune(db: Database, before_ms: int) -> int:
    """Delete each organization's events before its first event since `before_ms`, not its newest; return how many."""
    deleted = 0
    org_id = await _next_org(db, "")
    while org_id is not None:
        first, end = await _prunable(db, org_id, before_ms)
        while first < end:
            last = min(first + PRUNE_EVENTS, end)
            delete = "DELETE FROM organization_events WHERE org_id = :org_id AND seq < :last"
            await write_one(db, delete, {"org_id": org_id, "last": last})
            deleted += last - first
            first = last
        org_id = await _next_org(db, org_id)
    return deleted


async def count_prunable(db: Database, before_ms: int) -> int:
    """Return how many events `prune` would delete."""
    count = 0
    org_id = await _next_org(db, "")
    while org_id is not None:
        first, end = await _prunable(db, org_id, before_ms)
        count += end - first
        org_id = await _next_org(db, org_id)
    return count


async def _next_org(db: Database, org_id: str) -> str | None:
    """Return the id of the next organization that has events; the index finds it without reading the events."""
    rows = await db.read("SELECT MIN(org_id) FROM organization_events WHERE org_id > :org_id", {"org_id": org_id})
    return msgspec.convert(rows[0][0], str | None)


async def _prunable(db: Database, org_id: str, before_ms: int) -> tuple[int, int]:
    """Return the number of the oldest event, and the number of the oldest event to keep."""
    rows = await db.read(  # two subqueries, because SQLite uses an index only for a query with a single MIN or MAX
        "SELECT (SELECT MIN(seq) FROM organization_events WHERE org_id = :org_id),"
        " (SELECT MAX(seq) FROM organization_events WHERE org_id = :org_id)",
        {"org_id": org_id},
    )
    first, last = msgspec.convert(rows[0], tuple[int, int])
    kept = await db.read(
        "SELECT seq FROM organization_events WHERE org_id = :org_id AND at_ms >= :before_ms ORDER BY seq LIMIT 1",
        {"org_id": org_id, "before_ms": before_ms},
    )
    return first, msgspec.convert(kept[0][0], int) if kept else last
