"""Callbacks that cannot be signed or recorded, outages of the database, errors in the dispatcher, and its end."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Sequence

import msgspec
import pytest

from matchpod.core.requests.callback_query import CallbackState
from matchpod.ports import CallbackRequest, Database, DatabaseError, Delivery, Row, Statement
from matchpod.service.access.webhook_signature import SIGNATURE_HEADER, TIMESTAMP_HEADER, new_secret, verify
from matchpod.storage import organizations, outbox
from matchpod.storage.outbox import CALLBACK_LEASE_MS
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.callback_world import (
    BEGAN_MS,
    GOOD,
    SECRET,
    SLOW,
    TIMEOUT_S,
    VAULT,
    FlakyDatabase,
    Receivers,
    World,
    running,
)
from tests.contract.databases import HookedDatabase
from tests.waiting import until

harness = databases.sqlite_harness
OTHER_KEY = b"\x01 of another key"


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


# --- signatures -------------------------------------------------------------------------------------------------------


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno == logging.ERROR]


@pytest.mark.parametrize("fault", ["secret", "authorization"])
async def test_undecryptable_secret_uses_no_attempt_and_delivery_follows_once_it_is_fixed(
    world: World, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    await world.add("cb_bad", auth="Bearer t")
    right = (await world.row("cb_bad")).auth
    if fault == "secret":
        await organizations.set_webhook_secret(world.db, "org_1", OTHER_KEY)
    else:
        await world.db.write([Statement("UPDATE callbacks SET auth = :auth", {"auth": OTHER_KEY})])
    dispatcher = world.dispatcher()

    async def is_left() -> bool:
        return (await world.row("cb_bad")).unrecorded == 0

    async with running(dispatcher):
        for count in range(1, 4):  # more often than there are attempts
            world.clock.at_ms += CALLBACK_LEASE_MS
            dispatcher.wake()
            await until(lambda count=count: len(errors(caplog)) == count)
            await until(is_left)
            await world.poll(dispatcher)  # while an attempt goes on, its lease is extended
            assert (await world.row("cb_bad")).attempts == 0
        await organizations.set_webhook_secret(world.db, "org_1", VAULT.seal(SECRET))
        await world.db.write([Statement("UPDATE callbacks SET auth = :auth", {"auth": right})])
        world.clock.at_ms += CALLBACK_LEASE_MS
        dispatcher.wake()
        await world.until_attempts(1, "cb_bad")
    (request,) = world.receivers.requests
    assert request.headers["Authorization"] == "Bearer t"
    assert await world.state("cb_bad") is CallbackState.DELIVERED
    assert {record.getMessage() for record in errors(caplog)} == {"callback cannot be signed"}
    assert base64.b64encode(b"of another key").decode() not in caplog.text


@pytest.mark.parametrize("fault", ["organization", "secret"])
async def test_callback_that_cannot_be_signed_is_a_failed_attempt_and_does_not_block_others(
    world: World, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    await world.add("cb_bad", org_id="org_none" if fault == "organization" else "org_1")
    await organizations.set_webhook_secret(world.db, "org_1", VAULT.seal("no secret"))
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1, "cb_bad")
        await organizations.set_webhook_secret(world.db, "org_1", VAULT.seal(SECRET))
        await world.add("cb_1")
        dispatcher.wake()
        await world.until_attempts(1)
    assert [request.headers["webhook-id"] for request in world.receivers.requests] == ["cb_1"]
    (attempt,) = await outbox.attempts_of(world.db, "cb_bad")
    assert (attempt.status, attempt.headers) == (None, None)
    assert (attempt.error or "").startswith("not sent: ")
    assert await world.state("cb_bad") is CallbackState.WAITING
    assert [record.getMessage() for record in errors(caplog)] == ["callback cannot be signed"]


async def test_callbacks_are_signed_with_an_old_secret_too_until_its_time(world: World) -> None:
    new = new_secret(b"n" * 32)
    sealed, now_ms = VAULT.seal(new), world.clock.now_ms()
    await world.add("cb_1")
    await organizations.set_webhook_secret(world.db, "org_1", sealed, old_until_ms=now_ms + 1)
    async with running(world.dispatcher()):
        await world.until_attempts(1, "cb_1")
    world.clock.at_ms += 1
    await world.add("cb_2")
    async with running(world.dispatcher()):
        await world.until_attempts(1, "cb_2")
    both, one = world.receivers.requests

    def signs(secret: str, request: CallbackRequest) -> bool:
        return verify([secret], request.headers, request.body, now_s=int(request.headers[TIMESTAMP_HEADER]))

    assert [signs(SECRET, both), signs(new, both)] == [True, True]
    assert [signs(SECRET, one), signs(new, one)] == [False, True]


async def test_old_secret_that_cannot_be_decrypted_is_not_used(world: World) -> None:
    await world.add("cb_1")
    await organizations.set_webhook_secret(world.db, "org_1", OTHER_KEY)
    until_ms = world.clock.now_ms() + 60_000
    await organizations.set_webhook_secret(world.db, "org_1", VAULT.seal(SECRET), old_until_ms=until_ms)
    async with running(world.dispatcher()):
        await world.until_attempts(1, "cb_1")
    (request,) = world.receivers.requests
    assert request.headers[SIGNATURE_HEADER].count("v1,") == 1


# --- outages and errors -----------------------------------------------------------------------------------------------


async def test_database_outage_neither_loses_nor_repeats_a_callback(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    flaky = FlakyDatabase(world.db)
    gate = world.receivers.block(GOOD)
    await world.add("cb_1")
    dispatcher = world.dispatcher(db=flaky, database_retry_s=0.02)
    async with running(dispatcher):
        await until(lambda: len(world.receivers.requests) == 1)
        flaky.is_unavailable = True
        gate.set()
        dispatcher.wake()
        await until(lambda: flaky.failures > 4)
        world.clock.at_ms += 2 * CALLBACK_LEASE_MS  # longer than the lease
        flaky.is_unavailable = False
        await world.until_attempts(1)
        await world.poll(dispatcher)
    assert world.receivers.attempts == ["1"]
    assert await world.state() is CallbackState.DELIVERED
    assert caplog.text.count("database unavailable, callbacks are delayed") == 1


async def test_attempt_that_would_outlive_its_lease_is_left_to_the_next_claim(world: World) -> None:
    class UnavailableAfterClaim(FlakyDatabase):
        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            rows = await super().write(statements)
            self.is_unavailable = self.failures == 0 and any(rows)
            return rows

    flaky = UnavailableAfterClaim(world.db)
    await world.add("cb_1")

    async def is_left() -> bool:
        return (await world.row()).unrecorded == 0

    async with running(world.dispatcher(db=flaky, database_retry_s=0.02)):
        await until(lambda: flaky.failures > 1)
        world.clock.at_ms += CALLBACK_LEASE_MS - 1_000
        flaky.is_unavailable = False
        await until(is_left)
        assert world.receivers.requests == []
        world.clock.at_ms += 1_000
        await world.until_attempts(1)
    assert world.receivers.attempts == ["1"]


async def test_exception_in_the_sender_is_a_failed_attempt(world: World, caplog: pytest.LogCaptureFixture) -> None:
    class BrokenSender(Receivers):
        async def send(self, request: CallbackRequest) -> Delivery:
            self.requests.append(request)
            raise RuntimeError("sender bug")

    world.receivers = BrokenSender()
    await world.add("cb_1")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        world.retry(dispatcher)
        await world.until_attempts(2)
    assert await world.state() is CallbackState.GIVEN_UP
    assert world.metrics.crashes.value("callbacks") == 2
    assert "sender bug" in caplog.text


async def test_dispatcher_survives_unexpected_errors(world: World) -> None:
    class FailingClock(ManualClock):
        faults = 2

        def now_ms(self) -> int:
            if self.faults:
                self.faults -= 1
                raise ZeroDivisionError("clock bug")
            return super().now_ms()

    await world.add("cb_1")
    world.clock = FailingClock(BEGAN_MS)
    async with running(world.dispatcher(database_retry_s=0.02)):
        await world.until_attempts(1)
    assert world.metrics.crashes.value("callbacks") == 2


async def test_attempt_that_cannot_be_recorded_does_not_block_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def reject(statements: Sequence[Statement]) -> None:
        if len(statements) == 2 and statements[0].params["id"] == "cb_bad":
            raise DatabaseError("attempt rejected")

    await world.add("cb_bad", "cb_1")
    async with running(world.dispatcher(db=HookedDatabase(world.db, before_write=reject))):
        await world.until_attempts(1)
        await until(lambda: "attempt rejected" in caplog.text)
    assert (await world.row("cb_bad")).attempts == 0
    assert world.metrics.crashes.value("callbacks") == 1


# --- draining ---------------------------------------------------------------------------------------------------------


async def test_draining_waits_for_attempts_in_flight_and_starts_no_new_ones(world: World) -> None:
    gate = world.receivers.block(SLOW)
    await world.add("cb_slow", url=SLOW)
    dispatcher = world.dispatcher()
    run = asyncio.create_task(dispatcher.run())
    await until(lambda: len(world.receivers.requests) == 1)
    draining = asyncio.create_task(dispatcher.drain(TIMEOUT_S))
    await run
    await world.add("cb_1")
    assert not draining.done()
    gate.set()
    await draining
    assert await world.state("cb_slow") is CallbackState.DELIVERED
    assert (await world.row()).lease_owner is None


async def test_draining_cancels_attempts_after_its_timeout(world: World) -> None:
    world.receivers.block(GOOD)
    await world.add("cb_1")
    dispatcher = world.dispatcher()
    run = asyncio.create_task(dispatcher.run())
    await until(lambda: len(world.receivers.requests) == 1)
    await dispatcher.drain(0.05)
    await run
    row = await world.row()
    assert row == msgspec.structs.replace(row, attempts=0, delivered_at_ms=None, next_at_ms=BEGAN_MS)


async def test_callback_claimed_after_draining_is_not_sent(world: World) -> None:
    is_writing, may_return = asyncio.Event(), asyncio.Event()

    async def wait(_: object) -> None:
        is_writing.set()
        await may_return.wait()

    await world.add("cb_1")
    dispatcher = world.dispatcher(db=HookedDatabase(world.db, before_write=wait))
    run = asyncio.create_task(dispatcher.run())
    await is_writing.wait()
    await dispatcher.drain(0)
    may_return.set()
    await run
    assert len(asyncio.all_tasks()) == 1
    assert world.receivers.requests == []
    assert (await world.row()).attempts == 0


async def test_draining_a_dispatcher_that_never_ran_ends_at_once(world: World) -> None:
    await world.dispatcher().drain(TIMEOUT_S)
