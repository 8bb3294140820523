"""Store snapshots of matches, so that after a restart a log need not be read from its beginning."""

from __future__ import annotations

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage import servers


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a match after log entry `seq`."""

    seq: int
    state: bytes
    received_ms: int | None = None
    """Time when entry `seq` was received; None if unknown."""


def save(server_id: str, fence: int, snapshot: Snapshot) -> list[Statement]:
    """Store a snapshot in place of the previous one; NothingChangedError if the lease was lost.

    If the log has no entry `seq`, the previous snapshot is kept: a failover of the database may lose the newest
    entries.
    """
    params: dict[str, Value] = {"server_id": server_id, "seq": snapshot.seq, "state": snapshot.state}
    values = "VALUES (:server_id, :seq, :state)"
    if snapshot.received_ms is not None:
        params["received_ms"] = snapshot.received_ms
        values = (
            "SELECT :server_id, :seq, :state WHERE EXISTS (SELECT 1 FROM raw_log"
            " WHERE server_id = :server_id AND seq = :seq AND received_ms = :received_ms)"
        )
    replace = (
        f"INSERT INTO snapshots (server_id, seq, state) {values}"
        " ON CONFLICT (server_id) DO UPDATE SET seq = excluded.seq, state = excluded.state"
    )
    return [servers.check_fence(server_id, fence), Statement(replace, params)]


async def load(db: Database, server_id: str) -> Snapshot | None:
    row = await db.read_one("SELECT seq, state FROM snapshots WHERE server_id = :id", {"id": server_id})
    return None if row is None else Snapshot(*msgspec.convert(row, tuple[int, bytes]))


def delete(server_id: str) -> Statement:
    """Delete the snapshot of a match that has ended; no effect if there is none."""
    return Statement("DELETE FROM snapshots WHERE server_id = :id", {"id": server_id})
