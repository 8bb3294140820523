"""A match ends once, with outcome and callback in one transaction; callbacks are claimed and attempts recorded."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import msgspec
import pytest

from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, Delivery, NothingChangedError, Statement
from matchpod.storage import outbox, servers
from matchpod.storage.outbox import CALLBACK_LEASE_MS, REPEAT_AFTER_MS, CallbackRow, OutcomeRow
from matchpod.storage.servers import HANDOVER_MS, ServerRow
from tests.contract import databases
from tests.server_rows import server_row

harness = databases.harness


def callback(name: str = "cb_1", **fields: object) -> CallbackRow:
    row = CallbackRow(
        id=name,
        server_id=f"server of {name}",
        org_id="org_1",
        url="https://caller.example/over",
        auth=b"sealed",
        body=b'{"a":1}',
        created_at_ms=50,
        next_at_ms=50,
    )
    return msgspec.structs.replace(row, **fields)


async def running_server(db: Database) -> ServerRow:
    await servers.create(db, server_row(callback_auth=b"sealed", rcon_password=b"r"), idempotency=None)
    (claimed,) = await servers.claim_due(db, owner="me", now_ms=10, limit=1)
    return claimed


def end_statements(fence: int | None, *, kind: str = "match_over", callback_id: str = "cb_1") -> list[Statement]:
    outcome = OutcomeRow(server_id="srv_1", kind=kind, at_ms=50, result=b"{}", callback_body=b"[]")
    ended = callback(callback_id, server_id="srv_1")
    return outbox.end_statements(outcome, ended, status=ServerStatus.STOPPED, fence=fence)


async def store(db: Database, *rows: CallbackRow) -> None:
    for row in rows:
        names = row.__struct_fields__
        sql = f"INSERT INTO callbacks ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"
        await db.write([Statement(sql, {name: getattr(row, name) for name in names})])


async def record(db: Database, number: int, *, next_at_ms: int | None = None, delivered: bool = False) -> None:
    delivery = Delivery(status=200, duration_ms=7) if delivered else Delivery(duration_ms=7, error="timeout")
    await db.write(outbox.record_attempt("cb_1", delivery, number=number, at_ms=60, next_at_ms=next_at_ms))


async def claim(db: Database, *, owner: str, now_ms: int, limit: int) -> list[CallbackRow]:
    """Claim what is due, without any limits for receivers."""
    due = await outbox.due_callbacks(db, now_ms=now_ms, limit=limit)
    return await outbox.claim_callbacks(db, [one.id for one in due], owner=owner, now_ms=now_ms) if due else []


async def only_callback(db: Database) -> CallbackRow:
    (row,) = await outbox.list_callbacks(db, org_id=None, state=None, limit=10)
    return row


async def test_ending_a_match_updates_the_server_and_stores_outcome_and_callback(db: Database) -> None:
    mine = await running_server(db)
    assert await outbox.outcome_of(db, "srv_1") is None
    await db.write(end_statements(mine.fence))
    row = await servers.get(db, "srv_1")
    assert row == msgspec.structs.replace(
        mine, phase=ServerPhase.ENDING, status=ServerStatus.STOPPED, match_phase=PublicPhase.ENDED, ended_at_ms=50,
        next_at_ms=50, lease_owner=None, lease_until_ms=None, fence=mine.fence + 1, callback_auth=None,
    )  # fmt: skip
    expected = OutcomeRow(server_id="srv_1", kind="match_over", at_ms=50, result=b"{}", callback_body=b"[]")
    assert await outbox.outcome_of(db, "srv_1") == expected
    assert await only_callback(db) == callback(server_id="srv_1")
    with pytest.raises(NothingChangedError):
        await db.write([servers.change("srv_1", mine.fence, slot="late")])
    assert len(await servers.claim_due(db, owner="you", now_ms=50, limit=1)) == 1


@pytest.mark.parametrize(
    ("is_holder", "lease_until_ms", "next_at_ms"), [(True, 60, 50), (False, 60, 50 + HANDOVER_MS), (False, 50, 50)]
)
async def test_release_is_delayed_if_another_process_holds_the_lease(
    db: Database, is_holder: bool, lease_until_ms: int, next_at_ms: int
) -> None:
    row = await running_server(db)
    await db.write([servers.change(row.id, row.fence, lease_until_ms=lease_until_ms)])
    await db.write(end_statements(row.fence if is_holder else None))
    ended = await servers.get(db, "srv_1")
    assert ended is not None
    assert (ended.lease_owner, ended.next_at_ms) == (None, next_at_ms)


async def test_match_without_callback_has_only_an_outcome(db: Database) -> None:
    await running_server(db)
    outcome = OutcomeRow(server_id="srv_1", kind="match_canceled", at_ms=50, callback_body=b"[]")
    await db.write(outbox.end_statements(outcome, None, status=ServerStatus.FAILED, fence=None))
    assert await outbox.outcome_of(db, "srv_1") == outcome
    assert await outbox.list_callbacks(db, org_id=None, state=None, limit=10) == []


async def test_wrong_phase_or_outdated_fence_does_not_end_the_match(db: Database) -> None:
    mine = await running_server(db)
    with pytest.raises(NothingChangedError):
        await db.write(end_statements(mine.fence - 1))
    await db.write([servers.change("srv_1", mine.fence, phase=ServerPhase.ENDING)])
    for fence in (mine.fence, None):
        with pytest.raises(NothingChangedError):
            await db.write(end_statements(fence))
    assert await outbox.outcome_of(db, "srv_1") is None
    assert await outbox.list_callbacks(db, org_id=None, state=None, limit=10) == []


async def test_only_one_of_several_concurrent_ends_is_stored(replicas: databases.Replicas) -> None:
    db, peer = replicas
    mine = await running_server(db)
    kinds = ["match_over", "match_canceled"] * 4
    writes = [
        (db, peer)[number % 2].write(
            end_statements(None if number % 2 else mine.fence, kind=kind, callback_id=f"cb_{number}")
        )
        for number, kind in enumerate(kinds)
    ]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(result, NothingChangedError) for result in results) == len(kinds) - 1
    (winner,) = [number for number, result in enumerate(results) if isinstance(result, list)]
    outcome = await outbox.outcome_of(db, "srv_1")
    assert outcome is not None
    assert outcome.kind == kinds[winner]
    assert (await only_callback(db)).id == f"cb_{winner}"


async def test_concurrent_claims_never_return_the_same_callback(replicas: databases.Replicas) -> None:
    db, peer = replicas
    await store(db, *(callback(f"cb_{number}", next_at_ms=number) for number in range(40)))

    async def claim_all(handle: Database, owner: str) -> list[str]:
        claimed: list[str] = []
        for _ in range(20):
            claimed += [row.id for row in await claim(handle, owner=owner, now_ms=99, limit=5)]
        return claimed

    claims = await asyncio.gather(*(claim_all((db, peer)[number % 2], f"owner {number}") for number in range(6)))
    ids = [callback_id for claimed in claims for callback_id in claimed]
    assert len(ids) == len(set(ids)) == 40


async def test_claimed_callback_can_be_claimed_again_after_its_lease(db: Database) -> None:
    await store(db, callback("cb_1"), callback("cb_done", next_at_ms=None), callback("cb_later", next_at_ms=50_000))
    assert await claim(db, owner="me", now_ms=49, limit=9) == []
    (mine,) = await claim(db, owner="me", now_ms=50, limit=9)
    assert mine == callback("cb_1", lease_owner="me", lease_until_ms=50 + CALLBACK_LEASE_MS, unrecorded=1)
    assert await claim(db, owner="you", now_ms=49 + CALLBACK_LEASE_MS, limit=9) == []
    (yours,) = await claim(db, owner="you", now_ms=50 + CALLBACK_LEASE_MS, limit=9)
    assert (yours.id, yours.attempts) == ("cb_1", 0)


async def test_due_callbacks_skip_full_organizations_and_hosts(db: Database) -> None:
    receivers = [("org_1", "x"), ("org_1", "y"), ("org_2", "x"), ("org_2", "y"), ("org_3", ""), ("org_3", "x")]
    rows = [
        callback(f"cb_{number}", org_id=org_id, host=host, next_at_ms=number)
        for number, (org_id, host) in enumerate(receivers * 2)
    ]
    await store(db, *reversed(rows))

    async def due(orgs: list[str], hosts: list[tuple[str, str]], limit: int = 99) -> list[tuple[str, str]]:
        found = await outbox.due_callbacks(db, now_ms=99, limit=limit, without_orgs=orgs, without_hosts=hosts)
        return [(one.org_id, one.host) for one in found]

    assert await due([], []) == receivers * 2
    assert await due(["org_1"], []) == receivers[2:] * 2
    assert await due(["org_1", "org_3"], [("org_2", "y")]) == [("org_2", "x")] * 2
    assert await due([], receivers[:3], limit=4) == [*receivers[3:], receivers[3]]
    assert await due(["org_1", "org_2", "org_3"], []) == []
    assert await due([], [("org_3", "")]) == [*receivers[:4], receivers[5]] * 2


async def test_only_callbacks_that_are_still_due_and_without_a_lease_are_claimed(db: Database) -> None:
    await store(
        db, callback("a"), callback("leased", lease_until_ms=99), callback("later", next_at_ms=99), callback("b")
    )
    ids = ["b", "leased", "none", "later", "a"]
    claimed = await outbox.claim_callbacks(db, ids, owner="me", now_ms=50)
    assert [row.id for row in claimed] == ["b", "a"]
    assert await outbox.claim_callbacks(db, ids, owner="you", now_ms=50) == []


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://caller.example/over", "caller.example:443"),
        ("http://caller.example", "caller.example:80"),
        ("HTTPS://Caller.Example.:8443/over?a=b:1#c", "caller.example:8443"),
        ("http://127.0.0.1:9000/", "127.0.0.1:9000"),
        ("https://[2606:4700::1111]/", "2606:4700::1111:443"),
    ],
)
def test_host_of_a_url_has_its_port(url: str, host: str) -> None:
    assert outbox.host_of(url) == host


async def test_callback_is_due_after_a_restart_with_the_clock_set_back(db: Database) -> None:
    await store(db, callback("cb_1", next_at_ms=3_600_000))
    await servers.drop_leases(db, 1_000)
    (claimed,) = await claim(db, owner="me", now_ms=1_000, limit=9)
    assert claimed.id == "cb_1"


async def begin_until_dead(db: Database, from_ms: int, until_ms: int, step_ms: int) -> list[int]:
    """Let processes start again and again and die during an attempt; return the times of the attempts."""
    begun = []
    for now_ms in range(from_ms, until_ms, step_ms):
        await servers.drop_leases(db, now_ms)
        begun += [now_ms for _ in await claim(db, owner="me", now_ms=now_ms, limit=1)]
    return begun


async def test_repeats_in_a_crash_loop_become_rare_and_end_with_delivery(db: Database) -> None:
    minute, hour = 60_000, 3_600_000
    await store(db, callback(next_at_ms=0))
    begun = await begin_until_dead(db, 0, 80 * minute, minute // 2)
    # The first repeat is immediate, that is, at the next start.
    assert [at_ms / minute for at_ms in begun[:8]] == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 30.5, 45.5]
    assert {after - before for before, after in pairwise(begun[5:])} == {REPEAT_AFTER_MS[-1]}
    for start_ms in begun:
        assert sum(start_ms < at_ms <= start_ms + hour for at_ms in begun) <= 8
    # The retry after the recorded attempt is due as usual. It was not begun before, and is not lost either.
    retry_ms = 2 * hour + 5_000
    await record(db, 1, next_at_ms=retry_ms)
    assert await begin_until_dead(db, retry_ms - 1, retry_ms + 1, 1) == [retry_ms]
    assert len(await begin_until_dead(db, retry_ms + minute, retry_ms + hour, minute)) == 3
    await servers.drop_leases(db, 4 * hour)
    assert len(await claim(db, owner="me", now_ms=4 * hour, limit=1)) == 1
    await record(db, 2, delivered=True)
    assert await claim(db, owner="me", now_ms=9 * hour, limit=1) == []
    assert (await only_callback(db)).delivered_at_ms == 60


async def test_claim_without_an_attempt_is_not_counted(db: Database) -> None:
    await store(db, callback(next_at_ms=0))
    for now_ms in range(0, 10 * CALLBACK_LEASE_MS, CALLBACK_LEASE_MS):
        (claimed,) = await claim(db, owner="me", now_ms=now_ms, limit=1)
        assert claimed.unrecorded == 1
        assert await claim(db, owner="you", now_ms=now_ms, limit=1) == []
        await db.write([outbox.unclaim(claimed, now_ms + 1)])
        # Its lease lasts: another process would not be able to decrypt it either.
        assert await claim(db, owner="you", now_ms=now_ms + 1, limit=1) == []


async def test_lost_lease_cannot_be_unclaimed(db: Database) -> None:
    await store(db, callback())
    (lost,) = await claim(db, owner="me", now_ms=50, limit=1)
    await claim(db, owner="you", now_ms=50 + CALLBACK_LEASE_MS, limit=1)
    before = await only_callback(db)
    await db.write([outbox.unclaim(lost, 60)])
    assert await only_callback(db) == before


async def test_requested_redelivery_is_due_even_if_it_was_postponed(db: Database) -> None:
    await store(db, callback(next_at_ms=0))
    last_ms = (await begin_until_dead(db, 0, 3_600_000, 60_000))[-1]
    await servers.drop_leases(db, last_ms)
    assert await claim(db, owner="me", now_ms=last_ms, limit=1) == []
    await outbox.redeliver(db, "cb_1", last_ms)
    (claimed,) = await claim(db, owner="me", now_ms=last_ms, limit=1)
    assert claimed.unrecorded == 1


async def test_attempts_are_recorded_once_and_in_order(db: Database) -> None:
    await store(db, callback())
    await record(db, 1, next_at_ms=5_060)
    for number in (1, 3):
        with pytest.raises(NothingChangedError):
            await record(db, number)
    assert (await only_callback(db)).auth == b"sealed"
    assert len(await outbox.attempts_of(db, "cb_1")) == 1


async def test_redelivery_requested_during_a_claim_without_an_attempt_is_due_after_its_lease(db: Database) -> None:
    await store(db, callback())
    (claimed,) = await claim(db, owner="me", now_ms=50, limit=1)
    assert await outbox.redeliver(db, "cb_1", 60)
    await db.write([outbox.unclaim(claimed, 70)])
    assert await claim(db, owner="you", now_ms=49 + CALLBACK_LEASE_MS, limit=1) == []
    (again,) = await claim(db, owner="you", now_ms=50 + CALLBACK_LEASE_MS, limit=1)
    assert again.unrecorded == 1
    await record(db, 1, delivered=True)
    assert await only_callback(db) == callback(attempts=1, next_at_ms=None, delivered_at_ms=60)


async def test_lease_of_an_attempt_with_a_requested_redelivery_ends_with_its_process(db: Database) -> None:
    await store(db, callback())
    await claim(db, owner="me", now_ms=50, limit=1)
    assert await outbox.redeliver(db, "cb_1", 60)
    await servers.drop_leases(db, 70)
    assert len(await claim(db, owner="you", now_ms=70, limit=1)) == 1
