"""Store snapshots of matches, so that a restart need not read the log from its beginning."""

from __future__ import annotations

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage import servers


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a match after entry `seq` of its log."""

    seq: int
    state: bytes


def save(server_id: str, fence: int, snapshot: Snapshot) -> list[Statement]:
    """Replace the snapshot; NothingChangedError if the lease was lost."""
    return [
        servers.check_fence(server_id, fence),
        Statement(
            "INSERT INTO snapshots (server_id, seq, state) VALUES (:server_id, :seq, :state)"
            " ON CONFLICT (server_id) DO UPDATE SET seq = excluded.seq, state = excluded.state",
            {"server_id": server_id, "seq": snapshot.seq, "state": snapshot.state},
        ),
    ]


async def load(db: Database, server_id: str) -> Snapshot | None:
    """Return the snapshot of a match; None if there is none."""
    row = await db.read_one("SELECT seq, state FROM snapshots WHERE server_id = :id", {"id": server_id})
    return None if row is None else Snapshot(*msgspec.convert(row, tuple[int, bytes]))


def delete(server_id: str) -> Statement:
    """Delete the snapshot of a match that has ended, if there is one."""
    return Statement("DELETE FROM snapshots WHERE server_id = :id", {"id": server_id})
