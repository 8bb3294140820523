"""Delivery of callbacks with retries, limits, restarts and several processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec
import pytest

from matchpod.core.requests.callback_query import CallbackState
from matchpod.ports import Database, DatabaseUnavailableError, Delivery, Statement
from matchpod.service.access.webhook_signature import verify
from matchpod.service.callbacks.dispatcher import RETRY_AFTER_MS
from matchpod.storage import outbox
from matchpod.storage.outbox import CALLBACK_LEASE_MS, REPEAT_AFTER_MS, AttemptRow
from tests.contract import databases
from tests.contract.callback_world import BEGAN_MS, GOOD, SECRET, SLOW, World, running
from tests.contract.databases import HookedDatabase
from tests.waiting import until

harness = databases.mostly_sqlite_harness


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


@databases.on_both
async def test_callback_is_delivered_once_with_signature_and_authorization(world: World) -> None:
    world.wall_s = BEGAN_MS / 1000 + 7200.9  # receivers compare the timestamp with the system time
    await world.add("cb_1", auth="Bearer t")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        assert world.metrics.callback_attempts.value("delivered") == world.metrics.callback_s.count() == 1
        assert world.metrics.callback_delay_s.count() == 1
        await world.poll(dispatcher)
    (request,) = world.receivers.requests
    assert (request.url, request.body) == (GOOD, b'{"of":"cb_1"}')
    assert request.headers["Authorization"] == "Bearer t"
    assert request.headers["webhook-id"] == "cb_1"
    assert request.headers["User-Agent"] == "Matchpod/1.2"
    assert verify([SECRET], request.headers, request.body, now_s=BEGAN_MS // 1000 + 7200, tolerance_s=0)
    assert world.receivers.attempts == ["1"]
    row = await world.row()
    assert (row.delivered_at_ms, row.next_at_ms, row.lease_owner) == (BEGAN_MS, None, None)
    assert await outbox.attempts_of(world.db, "cb_1") == [
        AttemptRow(
            callback_id="cb_1",
            number=1,
            at_ms=BEGAN_MS,
            status=200,
            duration_ms=30,
            headers=msgspec.json.encode({**request.headers, "webhook-signature": "v1,***", "Authorization": "***"}),
        )
    ]


async def test_failed_attempt_is_repeated_after_5_s_with_the_same_id_and_bytes(world: World) -> None:
    world.receivers.fail(503)
    await world.add("cb_1", auth="Bearer t")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        assert (await world.row()).next_at_ms == BEGAN_MS + RETRY_AFTER_MS
        world.clock.at_ms += RETRY_AFTER_MS - 1
        await world.poll(dispatcher)
        assert world.receivers.attempts == ["1"]
        world.clock.at_ms += 1
        dispatcher.wake()
        await world.until_attempts(2)
    first, second = world.receivers.requests
    assert world.receivers.attempts == ["1", "2"]
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert second.headers["Authorization"] == "Bearer t"
    assert verify([SECRET], second.headers, second.body, now_s=world.clock.at_ms // 1000, tolerance_s=0)
    assert await world.state() is CallbackState.DELIVERED


async def test_callback_is_given_up_after_the_second_failure_also_across_a_restart(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.receivers.fail(None, 302)
    await world.add("cb_1", auth="Bearer t")
    async with running(world.dispatcher("before")):
        await world.until_attempts(1)
    dispatcher = world.dispatcher("after")
    world.retry(dispatcher)
    async with running(dispatcher):
        await world.until_attempts(2)
        world.clock.at_ms += 3_600_000
        await world.poll(dispatcher)
    assert world.receivers.attempts == ["1", "2"]
    assert await world.state() is CallbackState.GIVEN_UP
    assert [(one.status, one.error) for one in await outbox.attempts_of(world.db, "cb_1")] == [
        (None, "refused"),
        (302, None),
    ]
    assert world.metrics.callback_attempts.value("no_answer") == 1
    assert world.metrics.callback_attempts.value("refused") == 1
    assert world.metrics.callbacks_given_up.value() == 1
    assert world.metrics.callback_delay_s.count() == world.metrics.callback_attempts.value("delivered")
    failures = [record for record in caplog.records if record.getMessage() == "callback attempt failed"]
    assert [getattr(record, "is_given_up", None) for record in failures] == [False, True]
    assert all(record.levelno == logging.WARNING for record in failures)
    assert "Bearer" not in caplog.text


async def test_number_of_attempts_in_flight_is_limited(world: World) -> None:
    gate = world.receivers.block(SLOW)
    await world.add("a", "b", "c", url=SLOW)
    await world.add("d", "e", "f", url=SLOW, org_id="org_2")
    world.receivers.capacity = 7
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await until(lambda: len(world.receivers.requests) == 4)
        await world.poll(dispatcher)
        assert {request.headers["webhook-id"] for request in world.receivers.requests} == {"a", "b", "d", "e"}
        # The others are available to other processes.
        others = await outbox.due_callbacks(world.db, now_ms=world.clock.at_ms, limit=9)
        assert [one.id for one in others] == ["c", "f"]
        gate.set()
        await until(lambda: len(world.receivers.requests) == 6)


@databases.on_both
async def test_callbacks_beyond_the_limit_of_a_host_wait_and_those_to_other_hosts_do_not(world: World) -> None:
    gate = world.receivers.block(SLOW)
    await world.add(*(f"slow_{number:02}" for number in range(20)), url=SLOW)
    await world.add("cb_1")
    await world.add("cb_2", url=SLOW, org_id="org_2")
    dispatcher = world.dispatcher(max_per_host=3, page=2, candidates=4, poll_s=3600.0)
    async with running(dispatcher):
        await world.until_attempts(1)
        await until(lambda: len(world.receivers.requests) == 5)
        await world.poll(dispatcher)
        names = [request.headers["webhook-id"] for request in world.receivers.requests]
        assert sorted(names) == ["cb_1", "cb_2", "slow_00", "slow_01", "slow_02"]
        gate.set()  # each attempt that ends makes room for the next one
        for number in range(20):
            await world.until_attempts(1, f"slow_{number:02}")


async def test_organization_with_many_slow_hosts_leaves_room_for_others(world: World) -> None:
    urls = [f"https://slow{number}.example/" for number in range(20)]
    for number, url in enumerate(urls):
        world.receivers.block(url)
        await world.add(f"slow_{number}", url=url)
    await world.add("cb_1", org_id="org_2")
    world.receivers.capacity = 10
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        await until(lambda: len(world.receivers.requests) == 6)
        await world.poll(dispatcher)
        assert len(world.receivers.requests) == 6
        for url in urls:
            world.receivers.gates[url].set()
        await until(lambda: len(world.receivers.requests) == 21)


async def test_receiver_that_answered_is_before_unknown_ones_and_those_that_did_not(world: World) -> None:
    claimed: list[object] = []

    async def note(statements: Sequence[Statement]) -> None:
        claimed.extend(value for name, value in statements[0].params.items() if name == "id_0")

    world.receivers.fail(None, url=SLOW)
    await world.add("cb_1")
    await world.add("slow_1", url=SLOW)
    dispatcher = world.dispatcher(db=HookedDatabase(world.db, before_write=note), page=1)
    async with running(dispatcher):
        await world.until_attempts(1)
        await world.until_attempts(1, "slow_1")
        claimed.clear()
        await world.add("slow_2", url=SLOW, due_in_ms=1)
        await world.add("new_1", url="https://new.example/", due_in_ms=1)
        await world.add("cb_2", due_in_ms=1)
        world.clock.at_ms += 1
        dispatcher.wake()
        await world.until_attempts(1, "slow_2")
    assert claimed == ["cb_2", "new_1", "slow_2"]


async def test_attempt_interrupted_by_crashes_is_not_counted_and_postponed_if_it_happens_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.receivers.block(GOOD)
    await world.add("cb_1", auth="Bearer t")
    for count in (1, 2):
        task = asyncio.create_task(world.dispatcher(f"process {count}").run())
        await until(lambda count=count: len(world.receivers.requests) == count)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await world.row()).attempts == 0
        world.clock.at_ms += CALLBACK_LEASE_MS
    world.receivers.gates.clear()
    dispatcher = world.dispatcher("last process")
    async with running(dispatcher):
        await world.poll(dispatcher)
        assert len(world.receivers.requests) == 2
        world.clock.at_ms += REPEAT_AFTER_MS[1] - CALLBACK_LEASE_MS
        dispatcher.wake()
        await world.until_attempts(1)
    assert world.receivers.attempts == ["1", "1", "1"]
    sent = {(one.body, one.headers["webhook-id"], one.headers["Authorization"]) for one in world.receivers.requests}
    assert sent == {(b'{"of":"cb_1"}', "cb_1", "Bearer t")}
    assert await world.state() is CallbackState.DELIVERED
    assert caplog.text.count("callback repeated, its attempt was not recorded") == 2


@databases.on_both
async def test_two_processes_on_one_database_send_each_callback_once(replicas: databases.Replicas) -> None:
    db, other = replicas
    world = World(db)
    names = [f"cb_{number}" for number in range(40)]
    dispatchers = [world.dispatcher("me"), world.dispatcher("you", other)]
    async with running(*dispatchers):
        for begin in range(0, 40, 8):
            await world.add(*names[begin : begin + 8])
            for dispatcher in dispatchers:
                dispatcher.wake()
        for name in names:
            await world.until_attempts(1, name)
    assert sorted(request.headers["webhook-id"] for request in world.receivers.requests) == sorted(names)


async def test_attempt_recorded_by_another_process_is_not_overwritten(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    gate = world.receivers.block(GOOD)
    await world.add("cb_1")
    async with running(world.dispatcher()):
        await until(lambda: len(world.receivers.requests) == 1)
        await world.db.write(
            outbox.record_attempt("cb_1", Delivery(status=200, duration_ms=1), number=1, at_ms=7, next_at_ms=None)
        )
        gate.set()
        await until(lambda: "duplicate callback delivery" in caplog.text)
    assert (await world.row()).delivered_at_ms == 7


@databases.on_both
@pytest.mark.parametrize(
    ("answers", "state"), [((500, 500, 500), CallbackState.GIVEN_UP), ((500, 200, 200), CallbackState.DELIVERED)]
)
async def test_redelivery_requested_during_the_last_attempt_follows_it_once(
    replicas: databases.Replicas, answers: Sequence[int], state: CallbackState
) -> None:
    db, other = replicas
    world = World(db)
    world.receivers.fail(*answers)
    await world.add("cb_1")
    dispatchers = [world.dispatcher("me"), world.dispatcher("you", other)]
    async with running(*dispatchers):
        await world.until_attempts(1)
        gate = world.receivers.block(GOOD)
        world.clock.at_ms += RETRY_AFTER_MS
        for dispatcher in dispatchers:
            dispatcher.wake()
        await until(lambda: len(world.receivers.requests) == 2)
        for _ in range(2):  # a second request during the same attempt asks for nothing more
            assert await outbox.redeliver(db, "cb_1", world.clock.at_ms)
        gate.set()
        await world.until_attempts(3)
        world.clock.at_ms += 2 * CALLBACK_LEASE_MS
        for dispatcher in dispatchers:
            await world.poll(dispatcher)
    assert world.receivers.attempts == ["1", "2", "3"]
    assert await world.state() is state


async def test_redelivery_requested_while_an_attempt_waits_to_be_recorded_is_not_lost(world: World) -> None:
    failures, may_record = 0, False

    async def fail(statements: Sequence[Statement]) -> None:
        nonlocal failures
        if statements[-1].params.get("callback_id") == "cb_1" and not may_record:
            failures += 1
            raise DatabaseUnavailableError("unavailable")

    late = HookedDatabase(world.db, before_write=fail)
    await world.add("cb_1")
    dispatcher = world.dispatcher(db=late, database_retry_s=0.02)
    async with running(dispatcher):
        await until(lambda: failures > 0)
        await outbox.redeliver(world.db, "cb_1", world.clock.at_ms)
        world.clock.at_ms += CALLBACK_LEASE_MS
        await world.poll(dispatcher)  # the lease has expired, so the dispatcher finds its own callback due
        assert await outbox.due_callbacks(world.db, now_ms=world.clock.at_ms, limit=9) == []
        may_record = True
        await world.until_attempts(2)
        await world.poll(dispatcher)
    assert world.receivers.attempts == ["1", "2"]


async def test_redelivery_requested_before_a_process_died_is_the_repeated_attempt(world: World) -> None:
    gate = world.receivers.block(GOOD)
    await world.add("cb_1")
    task = asyncio.create_task(world.dispatcher("dead").run())
    await until(lambda: len(world.receivers.requests) == 1)
    await outbox.redeliver(world.db, "cb_1", world.clock.at_ms)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    gate.set()
    world.clock.at_ms += CALLBACK_LEASE_MS
    dispatcher = world.dispatcher("next")
    async with running(dispatcher):
        await world.until_attempts(1)
        world.clock.at_ms += CALLBACK_LEASE_MS
        await world.poll(dispatcher)
    assert world.receivers.attempts == ["1", "1"]
    assert await world.state() is CallbackState.DELIVERED


async def test_retry_does_not_wait_for_the_next_poll(world: World) -> None:
    world.receivers.fail(500)
    await world.add("cb_1")
    async with running(world.dispatcher(poll_s=3600.0, retry_after_ms=100)):
        await world.until_attempts(1)
        world.clock.at_ms += 100
        await world.until_attempts(2)


async def test_attempt_times_out(world: World) -> None:
    world.receivers.block(GOOD)
    await world.add("cb_1")
    async with running(world.dispatcher(attempt_s=0.05)):
        await world.until_attempts(1)
    (attempt,) = await outbox.attempts_of(world.db, "cb_1")
    assert (attempt.status, attempt.error) == (None, "attempt timed out")
