"""Delivery of callbacks on both databases, with retries, restarts and several processes."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.requests.callback_query import CallbackState
from matchpod.ports import (
    CallbackRequest,
    Database,
    DatabaseError,
    DatabaseUnavailableError,
    Delivery,
    Row,
    Statement,
    Value,
)
from matchpod.service.access.webhook_signature import SIGNATURE_HEADER, TIMESTAMP_HEADER, new_secret, verify
from matchpod.service.callbacks.dispatcher import RETRY_AFTER_MS, CallbackDispatcher, DispatchLimits
from matchpod.service.common.metrics import Metrics
from matchpod.service.common.prometheus import Registry
from matchpod.storage import organizations, outbox
from matchpod.storage.organizations import Organization
from matchpod.storage.outbox import CALLBACK_LEASE_MS, REPEAT_AFTER_MS, AttemptRow, CallbackRow
from matchpod.storage.rows import insert
from tests.contract import databases

harness = databases.harness

BEGAN_MS = 1_800_000_000_000
SECRET = new_secret(bytes(range(32)))
VAULT = KeyFileVault(b"k" * 32)
GOOD = "https://good.example/over"
SLOW = "https://slow.example/over"
TIMEOUT_S = 120.0


class ManualClock:
    def __init__(self) -> None:
        self.ms = BEGAN_MS

    def now_ms(self) -> int:
        return self.ms


class Receivers:
    """Fake receivers: they answer 200 unless configured otherwise, and only after their gate, if any, is open."""

    def __init__(self) -> None:
        self.capacity = 1_000
        self.requests: list[CallbackRequest] = []
        self.answers: dict[str, list[Delivery]] = {}
        self.gates: dict[str, asyncio.Event] = {}

    def fail(self, *statuses: int | None, url: str = GOOD) -> None:
        self.answers[url] = [Delivery(status=s, duration_ms=30, error=None if s else "refused") for s in statuses]

    def block(self, url: str) -> asyncio.Event:
        self.gates[url] = asyncio.Event()
        return self.gates[url]

    async def send(self, request: CallbackRequest) -> Delivery:
        self.requests.append(request)
        if request.url in self.gates:
            await self.gates[request.url].wait()
        answers = self.answers.get(request.url)
        return answers.pop(0) if answers else Delivery(status=200, duration_ms=30)

    async def close(self) -> None:
        pass

    @property
    def attempts(self) -> list[str]:
        return [request.headers["X-Matchpod-Attempt"] for request in self.requests]


class FlakyDatabase(databases.DelegatingDatabase):
    """A database that can be made unavailable."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.is_unavailable = False
        self.failures = 0

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self._check()
        return await super().read(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self._check()
        return await super().write(statements)

    def _check(self) -> None:
        if self.is_unavailable:
            self.failures += 1
            raise DatabaseUnavailableError("unavailable")


class World:
    """A database with callbacks, and their receivers."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = ManualClock()
        self.receivers = Receivers()
        self.metrics = Metrics(Registry())
        self.wall_s: float | None = None

    def dispatcher(self, owner: str = "me", db: Database | None = None, **limits: float) -> CallbackDispatcher:
        return CallbackDispatcher(
            db=db or self.db, clock=self.clock, vault=VAULT, sender=self.receivers, metrics=self.metrics,
            owner=owner, version="1.2",
            wall_s=lambda: self.clock.ms / 1000 if self.wall_s is None else self.wall_s,
            limits=msgspec.convert(limits, DispatchLimits),
        )  # fmt: skip

    async def add(
        self, *names: str, url: str = GOOD, auth: str | None = None, org_id: str = "org_1", due_in_ms: int = 0
    ) -> None:
        for known in ("org_1", "org_2"):
            if await organizations.get(self.db, known) is None:
                sealed = VAULT.seal(SECRET)
                await organizations.create(
                    self.db, Organization(id=known, name=known, webhook_secret=sealed, created_at_ms=1)
                )
        for name in names:
            row = CallbackRow(
                id=name, server_id=f"srv_{name}", org_id=org_id, host=outbox.host_of(url), url=url,
                auth=VAULT.seal(auth) if auth else None, body=b'{"of":"%b"}' % name.encode(),
                created_at_ms=self.clock.ms, next_at_ms=self.clock.ms + due_in_ms,
            )  # fmt: skip
            await self.db.write([insert("callbacks", row)])

    async def row(self, name: str = "cb_1") -> CallbackRow:
        rows = await outbox.list_callbacks(self.db, org_id=None, state=None, limit=1000)
        return next(row for row in rows if row.id == name)

    async def until_attempts(self, number: int, name: str = "cb_1") -> None:
        async def are_recorded() -> bool:
            return (await self.row(name)).attempts == number

        await until(are_recorded)

    async def state(self, name: str = "cb_1") -> CallbackState:
        for state in CallbackState:
            rows = await outbox.list_callbacks(self.db, org_id=None, state=state, limit=1000)
            if any(row.id == name for row in rows):
                return state
        raise AssertionError(f"{name} has no state")


async def until(condition: Callable[[], Awaitable[bool]] | Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            answer = condition()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(*dispatchers: CallbackDispatcher) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.run()) for one in dispatchers]
    try:
        yield
    finally:
        await asyncio.gather(*(one.drain(0) for one in dispatchers))
        await asyncio.gather(*tasks)


async def poll_without_result(dispatcher: CallbackDispatcher) -> None:
    """Let the dispatcher poll, and wait for a moment; it should find nothing."""
    dispatcher.wake()
    await asyncio.sleep(0.2)


async def test_callback_is_delivered_once_with_signature_and_authorization(db: Database) -> None:
    world = World(db)
    await world.add("cb_1", auth="Bearer t")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        await poll_without_result(dispatcher)
    (request,) = world.receivers.requests
    assert (request.url, request.body) == (GOOD, b'{"of":"cb_1"}')
    assert request.headers["Authorization"] == "Bearer t"
    assert request.headers["webhook-id"] == "cb_1"
    assert request.headers["User-Agent"] == "Matchpod/1.2"
    assert verify([SECRET], request.headers, request.body, now_s=BEGAN_MS // 1000)
    assert world.receivers.attempts == ["1"]
    row = await world.row()
    assert (row.delivered_at_ms, row.next_at_ms, row.lease_owner) == (BEGAN_MS, None, None)
    assert await outbox.attempts_of(db, "cb_1") == [
        AttemptRow(
            callback_id="cb_1",
            number=1,
            at_ms=BEGAN_MS,
            status=200,
            duration_ms=30,
            headers=msgspec.json.encode({**request.headers, "webhook-signature": "v1,***", "Authorization": "***"}),
        )
    ]
    assert world.metrics.callback_attempts.value("delivered") == 1
    assert world.metrics.callback_s.count() == 1


async def test_failed_attempt_is_repeated_after_5_s_with_the_same_id_and_bytes(db: Database) -> None:
    world = World(db)
    world.receivers.fail(503)
    await world.add("cb_1", auth="Bearer t")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        assert (await world.row()).next_at_ms == BEGAN_MS + RETRY_AFTER_MS
        world.clock.ms += RETRY_AFTER_MS - 1
        await poll_without_result(dispatcher)
        assert world.receivers.attempts == ["1"]
        world.clock.ms += 1
        dispatcher.wake()
        await world.until_attempts(2)
    first, second = world.receivers.requests
    assert world.receivers.attempts == ["1", "2"]
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert second.headers["Authorization"] == "Bearer t"
    assert verify([SECRET], second.headers, second.body, now_s=world.clock.ms // 1000, tolerance_s=0)
    assert await world.state() is CallbackState.DELIVERED


async def test_callback_is_given_up_after_the_second_failure(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    world = World(db)
    world.receivers.fail(None, 302)
    await world.add("cb_1", auth="Bearer t")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        world.clock.ms += RETRY_AFTER_MS
        dispatcher.wake()
        await world.until_attempts(2)
        world.clock.ms += 3_600_000
        await poll_without_result(dispatcher)
    assert world.receivers.attempts == ["1", "2"]
    assert await world.state() is CallbackState.GIVEN_UP
    assert [(one.status, one.error) for one in await outbox.attempts_of(db, "cb_1")] == [
        (None, "refused"),
        (302, None),
    ]
    assert world.metrics.callback_attempts.value("no_answer") == 1
    assert world.metrics.callback_attempts.value("refused") == 1
    failures = [record for record in caplog.records if record.getMessage() == "callback attempt failed"]
    assert [getattr(record, "is_given_up", None) for record in failures] == [False, True]
    assert all(record.levelno == logging.WARNING for record in failures)
    assert "Bearer" not in caplog.text


async def test_slow_receiver_does_not_delay_others(db: Database) -> None:
    world = World(db)
    gate = world.receivers.block(SLOW)
    await world.add(*(f"slow_{number}" for number in range(20)), url=SLOW)
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await until(lambda: len(world.receivers.requests) == 20)
        await world.add("cb_1")
        dispatcher.wake()
        await world.until_attempts(1)
        assert (await world.row("slow_0")).attempts == 0
        gate.set()
        await world.until_attempts(1, "slow_19")


async def test_number_of_attempts_in_flight_is_limited(db: Database) -> None:
    world = World(db)
    gate = world.receivers.block(SLOW)
    await world.add("a", "b", "c", url=SLOW)
    await world.add("d", "e", "f", url=SLOW, org_id="org_2")
    world.receivers.capacity = 7
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await until(lambda: len(world.receivers.requests) == 4)
        await poll_without_result(dispatcher)
        assert {request.headers["webhook-id"] for request in world.receivers.requests} == {"a", "b", "d", "e"}
        # The others are available to other processes.
        others = await outbox.due_callbacks(db, now_ms=world.clock.ms, limit=9)
        assert [one.id for one in others] == ["c", "f"]
        gate.set()
        await until(lambda: len(world.receivers.requests) == 6)


async def test_callbacks_beyond_the_limit_of_a_host_wait_and_those_to_other_hosts_do_not(db: Database) -> None:

    world = World(db)
    gate = world.receivers.block(SLOW)
    await world.add(*(f"slow_{number:02}" for number in range(20)), url=SLOW)
    await world.add("cb_1")
    await world.add("cb_2", url=SLOW, org_id="org_2")
    dispatcher = world.dispatcher(max_per_host=3, page=2, candidates=4, poll_s=3600.0)
    async with running(dispatcher):
        await world.until_attempts(1)
        await until(lambda: len(world.receivers.requests) == 5)
        await poll_without_result(dispatcher)
        names = [request.headers["webhook-id"] for request in world.receivers.requests]
        assert sorted(names) == ["cb_1", "cb_2", "slow_00", "slow_01", "slow_02"]
        gate.set()  # each attempt that ends makes room for the next one
        for number in range(20):
            await world.until_attempts(1, f"slow_{number:02}")


async def test_organization_with_many_slow_hosts_leaves_room_for_others(db: Database) -> None:
    world = World(db)
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
        await poll_without_result(dispatcher)
        assert len(world.receivers.requests) == 6
        for url in urls:
            world.receivers.gates[url].set()
        await until(lambda: len(world.receivers.requests) == 21)


async def test_receiver_that_answered_is_before_unknown_ones_and_those_that_did_not(db: Database) -> None:
    claimed: list[Value] = []

    class ClaimLog(FlakyDatabase):
        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            claimed.extend(value for name, value in statements[0].params.items() if name == "id_0")
            return await super().write(statements)

    world = World(db)
    world.receivers.fail(None, url=SLOW)
    await world.add("cb_1")
    await world.add("slow_1", url=SLOW)
    dispatcher = world.dispatcher(db=ClaimLog(db), page=1)
    async with running(dispatcher):
        await world.until_attempts(1)
        await world.until_attempts(1, "slow_1")
        claimed.clear()
        await world.add("slow_2", url=SLOW, due_in_ms=1)
        await world.add("new_1", url="https://new.example/", due_in_ms=1)
        await world.add("cb_2", due_in_ms=1)
        world.clock.ms += 1
        dispatcher.wake()
        await world.until_attempts(1, "slow_2")
    assert claimed == ["cb_2", "new_1", "slow_2"]


async def test_attempts_are_counted_across_a_restart(db: Database) -> None:
    world = World(db)
    world.receivers.fail(500, 500)
    await world.add("cb_1")
    async with running(world.dispatcher("before")):
        await world.until_attempts(1)
    world.clock.ms += RETRY_AFTER_MS
    dispatcher = world.dispatcher("after")
    async with running(dispatcher):
        await world.until_attempts(2)
        world.clock.ms += 3_600_000
        await poll_without_result(dispatcher)
    assert world.receivers.attempts == ["1", "2"]
    assert await world.state() is CallbackState.GIVEN_UP


async def test_attempt_interrupted_by_a_crash_is_repeated_and_not_counted(db: Database) -> None:
    world = World(db)
    world.receivers.block(GOOD)
    await world.add("cb_1", auth="Bearer t")
    task = asyncio.create_task(world.dispatcher("before").run())
    await until(lambda: len(world.receivers.requests) == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (await world.row()).attempts == 0
    world.receivers.gates.clear()
    world.clock.ms += CALLBACK_LEASE_MS
    async with running(world.dispatcher("after")):
        await world.until_attempts(1)
    first, second = world.receivers.requests
    assert world.receivers.attempts == ["1", "1"]
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert second.headers["Authorization"] == "Bearer t"


async def test_attempt_interrupted_repeatedly_is_postponed_and_then_delivered(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(db)
    world.receivers.block(GOOD)
    await world.add("cb_1")
    for count in (1, 2):
        task = asyncio.create_task(world.dispatcher(f"process {count}").run())
        await until(lambda count=count: len(world.receivers.requests) == count)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        world.clock.ms += CALLBACK_LEASE_MS
    world.receivers.gates.clear()
    dispatcher = world.dispatcher("last process")
    async with running(dispatcher):
        await poll_without_result(dispatcher)
        assert len(world.receivers.requests) == 2
        world.clock.ms += REPEAT_AFTER_MS[1] - CALLBACK_LEASE_MS
        dispatcher.wake()
        await world.until_attempts(1)
    assert world.receivers.attempts == ["1", "1", "1"]
    assert len({(request.body, request.headers["webhook-id"]) for request in world.receivers.requests}) == 1
    assert await world.state() is CallbackState.DELIVERED
    assert caplog.text.count("callback repeated, its attempt was not recorded") == 2


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


@pytest.mark.parametrize("answer", [200, 500])
async def test_redelivery_makes_exactly_one_more_attempt(db: Database, answer: int) -> None:
    world = World(db)
    world.receivers.fail(500, 500, answer)
    await world.add("cb_1", auth="Bearer t")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        world.clock.ms += RETRY_AFTER_MS
        dispatcher.wake()
        await world.until_attempts(2)
        assert await outbox.redeliver(db, "cb_1", world.clock.ms)
        dispatcher.wake()
        await world.until_attempts(3)
        world.clock.ms += 3_600_000
        await poll_without_result(dispatcher)
    assert world.receivers.attempts == ["1", "2", "3"]
    third = world.receivers.requests[-1]
    assert (third.body, third.headers["webhook-id"]) == (b'{"of":"cb_1"}', "cb_1")
    assert third.headers["Authorization"] == "Bearer t"
    assert await world.state() is (CallbackState.DELIVERED if answer == 200 else CallbackState.GIVEN_UP)


@pytest.mark.parametrize("fault", ["secret", "authorization"])
async def test_undecryptable_secret_uses_no_attempt_and_delivery_follows_once_it_is_fixed(
    db: Database, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(db)
    await world.add("cb_bad", auth="Bearer t")
    right = (await world.row("cb_bad")).auth
    sealed = b"\x01 of another key"
    if fault == "secret":
        await organizations.set_webhook_secret(db, "org_1", sealed)
    else:
        await db.write([Statement("UPDATE callbacks SET auth = :auth", {"auth": sealed})])
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        for count in range(1, 4):  # more often than there are attempts
            await until(lambda count=count: len(errors(caplog)) == count)
            assert (await world.row("cb_bad")).attempts == 0
            if count < 3:
                world.clock.ms += CALLBACK_LEASE_MS
                dispatcher.wake()
        await organizations.set_webhook_secret(db, "org_1", VAULT.seal(SECRET))
        await db.write([Statement("UPDATE callbacks SET auth = :auth", {"auth": right})])
        world.clock.ms += CALLBACK_LEASE_MS
        dispatcher.wake()
        await world.until_attempts(1, "cb_bad")
    (request,) = world.receivers.requests
    assert request.headers["Authorization"] == "Bearer t"
    assert await world.state("cb_bad") is CallbackState.DELIVERED
    assert {record.getMessage() for record in errors(caplog)} == {"callback cannot be signed"}
    assert base64.b64encode(b"of another key").decode() not in caplog.text


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno == logging.ERROR]


@pytest.mark.parametrize("fault", ["organization", "secret"])
async def test_callback_that_cannot_be_signed_is_a_failed_attempt_and_does_not_block_others(
    db: Database, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(db)
    await world.add("cb_bad", org_id="org_none" if fault == "organization" else "org_1")
    await organizations.set_webhook_secret(db, "org_1", VAULT.seal("no secret"))
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1, "cb_bad")
        await organizations.set_webhook_secret(db, "org_1", VAULT.seal(SECRET))
        await world.add("cb_1")
        dispatcher.wake()
        await world.until_attempts(1)
    assert [request.headers["webhook-id"] for request in world.receivers.requests] == ["cb_1"]
    (attempt,) = await outbox.attempts_of(db, "cb_bad")
    assert attempt.status is None
    assert (attempt.error or "").startswith("not sent: ")
    assert await world.state("cb_bad") is CallbackState.WAITING
    assert [record.getMessage() for record in errors(caplog)] == ["callback cannot be signed"]


async def test_signature_uses_the_system_time(db: Database) -> None:
    world = World(db)
    world.wall_s = BEGAN_MS / 1000 + 7200.9
    await world.add("cb_1")
    async with running(world.dispatcher()):
        await world.until_attempts(1)
    (request,) = world.receivers.requests
    assert request.headers["webhook-timestamp"] == str(BEGAN_MS // 1000 + 7200)


async def test_database_outage_neither_loses_nor_repeats_a_callback(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    flaky = FlakyDatabase(db)
    world = World(db)
    gate = world.receivers.block(GOOD)
    await world.add("cb_1")
    dispatcher = world.dispatcher(db=flaky, database_retry_s=0.02)
    async with running(dispatcher):
        await until(lambda: len(world.receivers.requests) == 1)
        flaky.is_unavailable = True
        gate.set()
        dispatcher.wake()
        await until(lambda: flaky.failures > 4)
        world.clock.ms += 2 * CALLBACK_LEASE_MS  # longer than the lease
        flaky.is_unavailable = False
        await world.until_attempts(1)
        await poll_without_result(dispatcher)
    assert world.receivers.attempts == ["1"]
    assert await world.state() is CallbackState.DELIVERED
    assert caplog.text.count("database unavailable, callbacks are delayed") == 1


async def test_attempt_that_outlives_its_lease_is_not_repeated(db: Database) -> None:
    world = World(db)
    gate = world.receivers.block(GOOD)
    await world.add("cb_1")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await until(lambda: len(world.receivers.requests) == 1)
        world.clock.ms += CALLBACK_LEASE_MS
        await poll_without_result(dispatcher)
        gate.set()
        await world.until_attempts(1)
    assert world.receivers.attempts == ["1"]


async def test_attempt_that_would_outlive_its_lease_is_left_to_the_next_claim(db: Database) -> None:

    class UnavailableAfterClaim(FlakyDatabase):
        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            rows = await super().write(statements)
            self.is_unavailable = self.failures == 0 and any(rows)
            return rows

    flaky = UnavailableAfterClaim(db)
    world = World(db)
    await world.add("cb_1")
    async with running(world.dispatcher(db=flaky, database_retry_s=0.02)):
        await until(lambda: flaky.failures > 1)
        world.clock.ms += CALLBACK_LEASE_MS - 1_000
        flaky.is_unavailable = False
        await asyncio.sleep(0.2)
        assert world.receivers.requests == []
        world.clock.ms += 1_000
        await world.until_attempts(1)
    assert world.receivers.attempts == ["1"]


async def test_attempt_recorded_by_another_process_is_not_overwritten(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(db)
    gate = world.receivers.block(GOOD)
    await world.add("cb_1")
    async with running(world.dispatcher()):
        await until(lambda: len(world.receivers.requests) == 1)
        await db.write(
            outbox.record_attempt("cb_1", Delivery(status=200, duration_ms=1), number=1, at_ms=7, next_at_ms=None)
        )
        gate.set()
        await until(lambda: "duplicate callback delivery" in caplog.text)
    assert (await world.row()).delivered_at_ms == 7


async def test_exception_in_the_sender_is_a_failed_attempt(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    class BrokenSender(Receivers):
        async def send(self, request: CallbackRequest) -> Delivery:
            self.requests.append(request)
            raise RuntimeError("sender bug")

    world = World(db)
    world.receivers = BrokenSender()
    await world.add("cb_1")
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(1)
        world.clock.ms += RETRY_AFTER_MS
        dispatcher.wake()
        await world.until_attempts(2)
    assert await world.state() is CallbackState.GIVEN_UP
    assert world.metrics.crashes.value("callbacks") == 2
    assert "sender bug" in caplog.text


async def test_dispatcher_survives_unexpected_errors(db: Database) -> None:

    class FailingClock(ManualClock):
        faults = 2

        def now_ms(self) -> int:
            if self.faults:
                self.faults -= 1
                raise ZeroDivisionError("clock bug")
            return super().now_ms()

    world = World(db)
    await world.add("cb_1")
    world.clock = FailingClock()
    async with running(world.dispatcher(database_retry_s=0.02)):
        await world.until_attempts(1)
    assert world.metrics.crashes.value("callbacks") == 2


async def test_retry_does_not_wait_for_the_next_poll(db: Database) -> None:
    world = World(db)
    world.receivers.fail(500)
    await world.add("cb_1")
    async with running(world.dispatcher(poll_s=3600.0, retry_after_ms=100)):
        await world.until_attempts(1)
        world.clock.ms += 100
        await world.until_attempts(2)


async def test_attempt_times_out(db: Database) -> None:
    world = World(db)
    world.receivers.block(GOOD)
    await world.add("cb_1")
    async with running(world.dispatcher(attempt_s=0.05)):
        await world.until_attempts(1)
    (attempt,) = await outbox.attempts_of(db, "cb_1")
    assert (attempt.status, attempt.error) == (None, "attempt timed out")


async def test_attempt_that_cannot_be_recorded_does_not_block_others(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    class RejectingDatabase(FlakyDatabase):
        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            if len(statements) == 2 and statements[0].params["id"] == "cb_bad":
                raise DatabaseError("attempt rejected")
            return await super().write(statements)

    world = World(db)
    await world.add("cb_bad", "cb_1")
    async with running(world.dispatcher(db=RejectingDatabase(db))):
        await world.until_attempts(1)
        await until(lambda: "attempt rejected" in caplog.text)
    assert (await world.row("cb_bad")).attempts == 0
    assert world.metrics.crashes.value("callbacks") == 1


async def test_draining_waits_for_attempts_in_flight_and_starts_no_new_ones(db: Database) -> None:
    world = World(db)
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


async def test_draining_cancels_attempts_after_its_timeout(db: Database) -> None:
    world = World(db)
    world.receivers.block(GOOD)
    await world.add("cb_1")
    dispatcher = world.dispatcher()
    run = asyncio.create_task(dispatcher.run())
    await until(lambda: len(world.receivers.requests) == 1)
    await dispatcher.drain(0.05)
    await run
    row = await world.row()
    assert row == msgspec.structs.replace(row, attempts=0, delivered_at_ms=None, next_at_ms=BEGAN_MS)


async def test_callback_claimed_after_draining_is_not_sent(db: Database) -> None:
    class SlowDatabase(FlakyDatabase):
        def __init__(self, db: Database) -> None:
            super().__init__(db)
            self.is_writing = asyncio.Event()
            self.may_return = asyncio.Event()

        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            self.is_writing.set()
            await self.may_return.wait()
            return await super().write(statements)

    world = World(db)
    slow = SlowDatabase(db)
    await world.add("cb_1")
    dispatcher = world.dispatcher(db=slow)
    run = asyncio.create_task(dispatcher.run())
    await slow.is_writing.wait()
    await dispatcher.drain(0)
    slow.may_return.set()
    await run
    assert len(asyncio.all_tasks()) == 1
    assert world.receivers.requests == []
    assert (await world.row()).attempts == 0


async def test_draining_a_dispatcher_that_never_ran_ends_at_once(db: Database) -> None:
    await World(db).dispatcher().drain(TIMEOUT_S)


async def test_callbacks_are_signed_with_an_old_secret_too_until_its_time(db: Database) -> None:
    world = World(db)
    new = new_secret(b"n" * 32)
    sealed, now_ms = VAULT.seal(new), world.clock.now_ms()
    await world.add("cb_1")
    await organizations.set_webhook_secret(db, "org_1", sealed, old_until_ms=now_ms + 1)
    async with running(world.dispatcher()):
        await world.until_attempts(1, "cb_1")
    world.clock.ms += 1
    await world.add("cb_2")
    async with running(world.dispatcher()):
        await world.until_attempts(1, "cb_2")
    both, one = world.receivers.requests

    def signs(secret: str, request: CallbackRequest) -> bool:
        return verify([secret], request.headers, request.body, now_s=int(request.headers[TIMESTAMP_HEADER]))

    assert [signs(SECRET, both), signs(new, both)] == [True, True]
    assert [signs(SECRET, one), signs(new, one)] == [False, True]


async def test_old_secret_that_cannot_be_decrypted_is_not_used(db: Database) -> None:
    world = World(db)
    await world.add("cb_1")
    await organizations.set_webhook_secret(db, "org_1", b"\x01 of another key")
    until_ms = world.clock.now_ms() + 60_000
    await organizations.set_webhook_secret(db, "org_1", VAULT.seal(SECRET), old_until_ms=until_ms)
    async with running(world.dispatcher()):
        await world.until_attempts(1, "cb_1")
    (request,) = world.receivers.requests
    assert request.headers[SIGNATURE_HEADER].count("v1,") == 1
