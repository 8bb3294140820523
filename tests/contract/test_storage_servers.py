"""Servers are created once, found by each of their ids, and leased to one owner at a time."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, NothingChangedError, Statement
from matchpod.storage import api_keys, servers
from matchpod.storage.api_keys import ApiKey
from matchpod.storage.servers import LEASE_MS, Idempotency, ServerRow
from tests.contract import databases
from tests.server_rows import server_row

harness = databases.harness


def server(name: str = "srv_1", **fields: object) -> ServerRow:
    new = {"phase": ServerPhase.ALLOCATING, "status": ServerStatus.ALLOCATING, "next_at_ms": 100}
    new |= {"log_token": b"sealed", "report_token": b"sealed too"}
    return server_row(name, **({"plugin_match_id": 2**31 - 1, "created_at_ms": 1_700_000_000_000} | new | fields))


async def create(db: Database, *rows: ServerRow) -> None:
    for row in rows:
        await servers.create(db, row, idempotency=None)


async def take_slot(db: Database, region: str, slot: str, server_id: str) -> None:
    """Give a slot to a server, which need not exist."""
    insert = "INSERT INTO slots (region, slot, server_id) VALUES (:region, :slot, :server_id)"
    await db.write([Statement(insert, {"region": region, "slot": slot, "server_id": server_id})])


def idempotency(**fields: object) -> Idempotency:
    key = Idempotency(org_id="org_1", key="once", body_hash="aa", created_at_ms=5)
    return msgspec.structs.replace(key, **fields)


async def test_due_servers_without_lease_are_claimed_longest_overdue_first(db: Database) -> None:
    await create(
        db,
        server("srv_later", next_at_ms=1_001),
        server("srv_done", phase=ServerPhase.RELEASED),
        server("srv_held", lease_owner="you", lease_until_ms=1_001),
        server("srv_b", next_at_ms=1_000),
        server("srv_a", next_at_ms=500, lease_owner="you", lease_until_ms=1_000, fence=7),
    )
    first = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
    assert [(row.id, row.lease_owner, row.lease_until_ms, row.fence) for row in first] == [
        ("srv_a", "me", 1_000 + LEASE_MS, 8)
    ]
    assert first == [await servers.get(db, "srv_a")]
    assert [row.id for row in await servers.claim_due(db, owner="me", now_ms=1_000, limit=9)] == ["srv_b"]
    assert await servers.claim_due(db, owner="me", now_ms=1_000, limit=9) == []


async def test_concurrent_claims_never_return_the_same_server(replicas: databases.Replicas) -> None:
    db, peer = replicas
    await create(db, *(server(f"srv_{number}", next_at_ms=number) for number in range(60)))

    async def claim_all(handle: Database, owner: str) -> list[str]:
        claimed: list[str] = []
        for _ in range(30):
            claimed += [row.id for row in await servers.claim_due(handle, owner=owner, now_ms=1_000, limit=7)]
        return claimed

    claims = await asyncio.gather(*(claim_all((db, peer)[number % 2], f"owner {number}") for number in range(6)))
    ids = [server_id for claimed in claims for server_id in claimed]
    assert len(ids) == len(set(ids)) == 60


async def test_lease_is_renewed_until_another_owner_claims_the_server(db: Database) -> None:
    await create(db, server())
    (mine,) = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
    assert await servers.renew(db, owner="me", until_ms=50_000) == {mine.id: mine.fence}
    assert await servers.claim_due(db, owner="you", now_ms=49_999, limit=1) == []
    (yours,) = await servers.claim_due(db, owner="you", now_ms=50_000, limit=1)
    assert await servers.renew(db, owner="me", until_ms=90_000) == {}
    assert await servers.get(db, mine.id) == yours
    assert await servers.renew(db, owner="you", until_ms=90_000) == {mine.id: mine.fence + 1}


async def test_renewal_extends_all_leases_of_one_owner_only(db: Database) -> None:
    await create(db, *(server(f"srv_{number}", next_at_ms=number) for number in range(4)))
    mine = await servers.claim_due(db, owner="me", now_ms=1_000, limit=2)
    (yours,) = await servers.claim_due(db, owner="you", now_ms=1_000, limit=1)
    assert await servers.renew(db, owner="me", until_ms=50_000) == {row.id: row.fence for row in mine}
    assert await servers.get(db, yours.id) == yours
    assert await servers.get(db, "srv_3") == server("srv_3", next_at_ms=3)
    await db.write([servers.mark_released(mine[0].id, mine[0].fence)])
    assert await servers.renew(db, owner="me", until_ms=60_000) == {mine[1].id: mine[1].fence}


async def test_writes_with_an_outdated_fence_are_rejected(db: Database) -> None:
    await create(db, server(), server("srv_2", next_at_ms=10**9))
    (mine,) = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
    await db.write([servers.change(mine.id, mine.fence, phase=ServerPhase.RUNNING, was_pending=True, slot="a")])
    (yours,) = await servers.claim_due(db, owner="you", now_ms=1_000 + LEASE_MS, limit=1)
    assert (yours.phase, yours.was_pending, yours.slot) == (ServerPhase.RUNNING, True, "a")
    for statement in (
        servers.change(mine.id, mine.fence, slot="b"),
        servers.release_lease(mine.id, mine.fence, 5),
        servers.mark_released(mine.id, mine.fence),
    ):
        with pytest.raises(NothingChangedError):
            await db.write([servers.change("srv_2", 0, slot="never"), statement])
    assert await servers.get(db, mine.id) == yours
    other = await servers.get(db, "srv_2")
    assert other is not None
    assert other.slot is None


async def test_server_with_a_released_lease_is_not_due_before_its_next_time_unless_woken(db: Database) -> None:
    await create(db, server())
    (mine,) = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
    await db.write([servers.release_lease(mine.id, mine.fence, 3_000)])
    assert await servers.claim_due(db, owner="you", now_ms=2_999, limit=1) == []
    await servers.wake(db, mine.id, 2_000)
    assert len(await servers.claim_due(db, owner="you", now_ms=2_000, limit=1)) == 1


async def test_released_server_has_no_secrets_and_is_never_due(db: Database) -> None:
    await create(db, server(rcon_password=b"r", server_password=b"s", callback_auth=b"a"))
    (mine,) = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
    await db.write([servers.mark_released(mine.id, mine.fence)])
    row = await servers.get(db, mine.id)
    assert row is not None
    assert row.phase is ServerPhase.RELEASED
    assert (row.rcon_password, row.server_password, row.callback_auth, row.lease_owner) == (None,) * 4
    assert (row.log_token, row.report_token) == (None, None)
    assert await servers.by_log_token(db, "log-srv_1") == row, "its late posts are answered 410, not 401"
    assert await servers.claim_due(db, owner="you", now_ms=10**12, limit=1) == []


async def test_servers_can_be_claimed_at_once_after_leases_are_dropped(db: Database) -> None:
    await create(db, server())
    (mine,) = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
    await servers.drop_leases(db, 1_000)
    (yours,) = await servers.claim_due(db, owner="you", now_ms=1_000, limit=1)
    assert yours.fence == mine.fence + 1


async def test_servers_can_be_claimed_at_once_after_a_restart_with_the_clock_set_back(db: Database) -> None:
    hour_ms = 3_600_000
    await create(db, server("srv_1", next_at_ms=hour_ms), server("srv_2", next_at_ms=hour_ms + 500))
    (mine,) = await servers.claim_due(db, owner="me", now_ms=hour_ms, limit=1)
    await servers.drop_leases(db, 1_000)
    claimed = await servers.claim_due(db, owner="you", now_ms=1_000, limit=10)
    assert [(row.id, row.fence) for row in claimed] == [("srv_1", mine.fence + 1), ("srv_2", 1)]


async def test_times_of_a_clock_that_was_set_back_are_repaired_and_valid_leases_kept(db: Database) -> None:
    hour_ms = 3_600_000
    await create(db, server("srv_1", next_at_ms=hour_ms), server("srv_2", next_at_ms=0), server("srv_3", next_at_ms=0))
    assert len(await servers.claim_due(db, owner="past", now_ms=hour_ms, limit=1)) == 1
    now_ms = 1_000
    (kept,) = await servers.claim_due(db, owner="alive", now_ms=now_ms, limit=1)
    await servers.repair_times(db, now_ms)
    claimed = await servers.claim_due(db, owner="new", now_ms=now_ms, limit=10)
    assert {row.id for row in claimed} == {"srv_1", "srv_2", "srv_3"} - {kept.id}


@pytest.mark.parametrize(("ahead_ms", "is_kept"), [(30_000, True), (59_000, True), (61_000, False)])
async def test_lease_of_a_process_whose_clock_is_somewhat_ahead_is_kept(
    db: Database, ahead_ms: int, is_kept: bool
) -> None:
    await create(db, server(next_at_ms=0))
    await servers.claim_due(db, owner="ahead", now_ms=1_000 + ahead_ms, limit=1)
    await servers.repair_times(db, 1_000)
    row = await servers.get(db, "srv_1")
    assert row is not None
    assert row.lease_owner == ("ahead" if is_kept else None)


def test_only_changeable_columns_are_accepted() -> None:
    for column in ("id", "colour", "slot = 1; --"):
        with pytest.raises(ValueError, match="unknown or read-only columns"):
            servers.change("srv_1", 1, **{column: 1})
    with pytest.raises(ValueError, match="no columns to change"):
        servers.change("srv_1", 1)


# --- API keys -----------------------------------------------------------------------------------------------------


KEY = ApiKey(
    id="key_1", org_id="org_1", name="ci", prefix="mk_live_ab", key_hash="ff00", role="member",
    scopes=("matches:read", "matches:write"), created_at_ms=1,
)  # fmt: skip


async def test_revoked_key_is_not_replaced(db: Database) -> None:
    await db.write([api_keys.insert(KEY)])
    await api_keys.revoke(db, "key_1", 5)
    new = api_keys.insert(msgspec.structs.replace(KEY, id="key_2", key_hash="ff01"))
    assert not await api_keys.expire_by(db, "key_1", 40, new)
    assert await api_keys.get(db, "key_2") is None


async def test_last_use_of_a_key_only_moves_forward(db: Database) -> None:
    await db.write([api_keys.insert(KEY)])
    assert await api_keys.mark_used(db, "key_1", 50)
    assert not await api_keys.mark_used(db, "key_1", 40)
    assert await api_keys.by_hash(db, "ff00") == msgspec.structs.replace(KEY, last_used_at_ms=50)
