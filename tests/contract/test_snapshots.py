"""How far a match was read is kept by whoever drives it, and what nobody drives any more leaves nothing behind."""

from __future__ import annotations

import pytest

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, NothingChangedError
from matchpod.storage import raw_log, servers, slots, snapshots
from matchpod.storage.servers import LEASE_MS
from matchpod.storage.snapshots import Snapshot
from tests.contract import databases
from tests.contract.test_storage_servers import create, server

home = databases.home


# --- snapshots ------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_replaced_by_the_next(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await create(db, server("srv_1", fence=3), server("srv_2", fence=3))
        assert await snapshots.load(db, "srv_1") is None
        await db.write(snapshots.save("srv_1", 3, Snapshot(7, b"\x00\xff seven")))
        assert await snapshots.load(db, "srv_1") == Snapshot(7, b"\x00\xff seven")
        await db.write(snapshots.save("srv_1", 3, Snapshot(9, b"nine")))
        assert await snapshots.load(db, "srv_1") == Snapshot(9, b"nine")
        assert await snapshots.load(db, "srv_2") is None

    home.run(scenario)


def test_who_lost_a_match_cannot_replace_its_snapshot(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await create(db, server())
        (mine,) = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
        await db.write(snapshots.save(mine.id, mine.fence, Snapshot(1, b"mine")))
        (yours,) = await servers.claim_due(db, owner="you", now_ms=1_000 + LEASE_MS, limit=1)
        await db.write(snapshots.save(yours.id, yours.fence, Snapshot(5, b"yours")))
        with pytest.raises(NothingChangedError):
            await db.write(snapshots.save(mine.id, mine.fence, Snapshot(2, b"mine")))
        with pytest.raises(NothingChangedError):
            await db.write(snapshots.save("srv_none", 0, Snapshot(2, b"nobody's")))
        assert await snapshots.load(db, mine.id) == Snapshot(5, b"yours")
        assert await snapshots.load(db, "srv_none") is None
        assert await servers.get(db, yours.id) == yours, "saving changes nothing but the snapshot"

    home.run(scenario)


def test_a_snapshot_is_forgotten_alone(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await create(db, server("srv_1"), server("srv_2"))
        for name in ("srv_1", "srv_2"):
            await db.write(snapshots.save(name, 0, Snapshot(1, name.encode())))
        await db.write([snapshots.forget("srv_1"), snapshots.forget("srv_1"), snapshots.forget("srv_none")])
        assert await snapshots.load(db, "srv_1") is None
        assert await snapshots.load(db, "srv_2") == Snapshot(1, b"srv_2")

    home.run(scenario)


# --- the newest entry -----------------------------------------------------------------------------------------------


def test_the_newest_entry_is_known_even_when_it_was_deleted(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await create(db, server("srv_1", phase=ServerPhase.RELEASED))
        assert await raw_log.newest_seq(db, "srv_1") == 0
        for number in (1, 2, 3):
            await db.write(raw_log.append("srv_1", "log", received_ms=number, headers=b"{}", body=b"x"))
            assert await raw_log.newest_seq(db, "srv_1") == number
        assert await raw_log.newest_seq(db, "srv_2") == 0
        assert await raw_log.prune(db, 10) == 3
        assert await raw_log.newest_seq(db, "srv_1") == 3

    home.run(scenario)


# --- forgotten places -----------------------------------------------------------------------------------------------


def test_places_of_servers_that_are_gone_become_free(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        kept = {}
        for number, phase in enumerate(ServerPhase):
            await create(db, server(f"srv_{phase}", phase=phase))
            await slots.reserve(db, "eu", f"srv_{phase}", [f"slot {number}"])
            if phase is not ServerPhase.RELEASED:
                kept[f"slot {number}"] = f"srv_{phase}"
        await slots.reserve(db, "us", "srv_nobody", ["slot 1"])
        assert await slots.free_forgotten(db) == 2
        assert await slots.taken(db) == {"eu": kept}
        assert await slots.free_forgotten(db) == 0

    home.run(scenario)
