"""Snapshots are saved only by the lease holder."""

from __future__ import annotations

import pytest

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, NothingChangedError
from matchpod.storage import raw_log, servers, snapshots
from matchpod.storage.servers import LEASE_MS
from matchpod.storage.snapshots import Snapshot
from tests.contract import databases
from tests.contract.test_storage_servers import create, server

harness = databases.harness


async def test_snapshot_cannot_be_saved_after_the_lease_was_lost(db: Database) -> None:
    await create(db, server())
    (mine,) = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
    await db.write(snapshots.save(mine.id, mine.fence, Snapshot(1, b"mine")))
    (yours,) = await servers.claim_due(db, owner="you", now_ms=1_000 + LEASE_MS, limit=1)
    await db.write(snapshots.save(yours.id, yours.fence, Snapshot(5, b"yours")))
    with pytest.raises(NothingChangedError):
        await db.write(snapshots.save(mine.id, mine.fence, Snapshot(2, b"mine")))
    with pytest.raises(NothingChangedError):
        await db.write(snapshots.save("srv_none", 0, Snapshot(2, b"none")))
    assert await snapshots.load(db, mine.id) == Snapshot(5, b"yours")
    assert await snapshots.load(db, "srv_none") is None
    assert await servers.get(db, yours.id) == yours, "saving changes nothing but the snapshot"


async def test_snapshot_is_not_saved_if_its_last_entry_is_no_longer_the_stored_one(db: Database) -> None:
    await create(db, server())
    await db.write(raw_log.append("srv_1", "log", received_ms=10, headers=b"{}", body=b"x"))
    await db.write(snapshots.save("srv_1", 0, Snapshot(1, b"right", received_ms=10)))
    await db.write(snapshots.save("srv_1", 0, Snapshot(1, b"of another entry", received_ms=9)))
    await db.write(snapshots.save("srv_1", 0, Snapshot(2, b"ahead", received_ms=10)))
    assert await snapshots.load(db, "srv_1") == Snapshot(1, b"right")
    with pytest.raises(NothingChangedError):
        await db.write(snapshots.save("srv_1", 7, Snapshot(1, b"lease lost", received_ms=10)))


async def test_newest_entry_number_survives_pruning(db: Database) -> None:
    await create(db, server("srv_1", phase=ServerPhase.RELEASED))
    assert await raw_log.newest_seq(db, "srv_1") == 0
    for number in (1, 2, 3):
        await db.write(raw_log.append("srv_1", "log", received_ms=number, headers=b"{}", body=b"x"))
        assert await raw_log.newest_seq(db, "srv_1") == number
    assert await raw_log.newest_seq(db, "srv_2") == 0
    assert await raw_log.prune(db, 10) == 3
    assert await raw_log.newest_seq(db, "srv_1") == 3
