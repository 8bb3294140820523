"""Count the matches, keys, callbacks and stored data of the whole installation."""

from __future__ import annotations

import msgspec

from matchpod.core.requests.callback_query import CallbackState
from matchpod.ports import Database
from matchpod.storage.outbox import STATE_CONDITIONS
from matchpod.storage.rows import read_number


class LeaseCount(msgspec.Struct, frozen=True):
    """The number of matches that a process has leased, and the time when the last lease expires."""

    owner: str
    matches: int
    until_ms: int


class StoredData(msgspec.Struct, frozen=True, kw_only=True):
    """The number of stored matches, and the times of the oldest stored log entry and the oldest stored event."""

    matches: int
    oldest_log_ms: int | None
    """When the oldest log entry was received; None if there is none."""
    oldest_event_ms: int | None


async def lease_counts(db: Database) -> list[LeaseCount]:
    """Return, per process, the number of its leases and when the last of them expires, including expired leases."""
    found = await db.read(
        "SELECT lease_owner, COUNT(*), MAX(COALESCE(lease_until_ms, 0)) FROM servers"
        " WHERE lease_owner IS NOT NULL GROUP BY lease_owner ORDER BY lease_owner"
    )
    return [LeaseCount(*row) for row in msgspec.convert(found, list[tuple[str, int, int]])]


async def live_counts(db: Database) -> dict[str, int]:
    """Return, by organization, the number of matches without an outcome."""
    found = await db.read(
        "SELECT org_id, COUNT(*) FROM servers WHERE phase <> 'released' AND phase <> 'ending' GROUP BY org_id"
    )
    return dict(msgspec.convert(found, list[tuple[str, int]]))


async def active_key_counts(db: Database, now_ms: int) -> dict[str, int]:
    """Return, by organization, the number of keys that are neither expired nor revoked."""
    found = await db.read(
        "SELECT org_id, COUNT(*) FROM api_keys"
        " WHERE revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms) GROUP BY org_id",
        {"now_ms": now_ms},
    )
    return dict(msgspec.convert(found, list[tuple[str, int]]))


async def count_callbacks(db: Database, state: CallbackState) -> int:
    """Return the number of callbacks in this state, over all organizations."""
    return await read_number(db, f"SELECT COUNT(*) FROM callbacks WHERE {STATE_CONDITIONS[state]}")


async def stored_data(db: Database) -> StoredData:
    """Count the stored matches, and return the times of the oldest stored log entry and the oldest stored event."""
    return StoredData(
        matches=await read_number(db, "SELECT COUNT(*) FROM servers"),
        oldest_log_ms=await _oldest(
            db,  # ids sort by time of creation
            "SELECT MIN(received_ms) FROM raw_log WHERE server_id = (SELECT MIN(server_id) FROM raw_log)",
        ),
        oldest_event_ms=await _oldest(db, "SELECT MIN(at_ms) FROM map_events"),
    )


async def _oldest(db: Database, sql: str) -> int | None:
    ((at_ms,),) = await db.read(sql)
    return msgspec.convert(at_ms, int | None)
