"""Callbacks on their way: two attempts, no more, on both databases, through restarts and next to other processes."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest

from matchpod.adapters.vault import KeyFileVault
from matchpod.ports import CallbackRequest, Database, DatabaseAwayError, DatabaseError, Delivery, Row, Statement, Value
from matchpod.service import callbacks
from matchpod.service.callbacks import MAX_UNDER_WAY, RETRY_AFTER_MS, Outbox
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.service.webhook_signature import new_secret, verify
from matchpod.storage import organizations, outbox
from matchpod.storage.organizations import Organization
from matchpod.storage.outbox import CALLBACK_LEASE_MS, AttemptRow, CallbackRow, CallbackState
from matchpod.storage.rows import column_list, parameter_list, to_params
from tests.contract import databases

home = databases.home

BEGAN_MS = 1_800_000_000_000
SECRET = new_secret(bytes(range(32)))
VAULT = KeyFileVault(b"k" * 32)
GOOD = "https://good.example/over"
SLOW = "https://slow.example/over"
LIMIT_S = 120.0


class ManualClock:
    def __init__(self) -> None:
        self.ms = BEGAN_MS

    def now_ms(self) -> int:
        return self.ms


class Receivers:
    """Everybody who gets callbacks: answers 200 unless told otherwise, and not before its gate is open."""

    def __init__(self) -> None:
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


class ClosedForAWhile(databases.PassedOn):
    """A database that is away when told so."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.is_away = False
        self.refusals = 0

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self._ask()
        return await super().read(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self._ask()
        return await super().write(statements)

    def _ask(self) -> None:
        if self.is_away:
            self.refusals += 1
            raise DatabaseAwayError("away")


class Desk:
    """One database with callbacks, and whoever sends them."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = ManualClock()
        self.receivers = Receivers()
        self.measures = Measures(Metrics())
        self.wall_s: float | None = None

    def outbox(self, owner: str = "me", db: Database | None = None) -> Outbox:
        return Outbox(
            db=db or self.db, clock=self.clock, vault=VAULT, sender=self.receivers, measures=self.measures,
            owner=owner, version="1.2",
            wall_s=lambda: self.clock.ms / 1000 if self.wall_s is None else self.wall_s,
        )  # fmt: skip

    async def add(self, *names: str, url: str = GOOD, auth: str | None = None, org_id: str = "org_1") -> None:
        if await organizations.get(self.db, "org_1") is None:
            sealed = VAULT.seal(SECRET)
            await organizations.create(
                self.db, Organization(id="org_1", name="acme", webhook_secret=sealed, created_at_ms=1)
            )
        for name in names:
            row = CallbackRow(
                id=name, server_id=f"srv_{name}", org_id=org_id, url=url, auth=VAULT.seal(auth) if auth else None,
                body=b'{"of":"%b"}' % name.encode(), created_at_ms=self.clock.ms, next_at_ms=self.clock.ms,
            )  # fmt: skip
            insert = f"INSERT INTO callbacks ({column_list(CallbackRow)}) VALUES ({parameter_list(CallbackRow)})"
            await self.db.write([Statement(insert, to_params(row))])

    async def row(self, name: str = "cb_1") -> CallbackRow:
        rows = await outbox.list_callbacks(self.db, org_id=None, state=None, limit=1000)
        return next(row for row in rows if row.id == name)

    async def has_attempts(self, number: int, name: str = "cb_1") -> None:
        async def are_recorded() -> bool:
            return (await self.row(name)).attempts == number

        await until(are_recorded)

    async def state(self, name: str = "cb_1") -> CallbackState:
        for state in CallbackState:
            rows = await outbox.list_callbacks(self.db, org_id=None, state=state, limit=1000)
            if any(row.id == name for row in rows):
                return state
        raise AssertionError("a callback is in one of the states")


async def until(holds: Callable[[], Awaitable[bool]] | Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(*outboxes: Outbox) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.run()) for one in outboxes]
    try:
        yield
    finally:
        await asyncio.gather(*(one.drain(0) for one in outboxes))
        await asyncio.gather(*tasks)


async def looks_again(box: Outbox) -> None:
    """Give the outbox the time for a look in which it finds nothing."""
    box.wake()
    await asyncio.sleep(0.2)


def test_a_callback_is_delivered_once_signed_and_with_its_authorization(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        await desk.add("cb_1", auth="Bearer t")
        box = desk.outbox()
        async with running(box):
            await desk.has_attempts(1)
            await looks_again(box)
        (request,) = desk.receivers.requests
        assert (request.url, request.body) == (GOOD, b'{"of":"cb_1"}')
        assert request.headers["Authorization"] == "Bearer t"
        assert request.headers["webhook-id"] == "cb_1"
        assert request.headers["User-Agent"] == "Matchpod/1.2"
        assert verify([SECRET], request.headers, request.body, now_s=BEGAN_MS // 1000)
        assert desk.receivers.attempts == ["1"]
        row = await desk.row()
        assert (row.delivered_at_ms, row.next_at_ms, row.auth, row.lease_owner) == (BEGAN_MS, None, None, None)
        assert await outbox.attempts_of(db, "cb_1") == [
            AttemptRow(callback_id="cb_1", number=1, at_ms=BEGAN_MS, status=200, duration_ms=30)
        ]
        assert desk.measures.callback_attempts.value("delivered") == 1
        assert desk.measures.callback_s.count() == 1

    home.run(scenario)


def test_a_failed_attempt_is_repeated_5_s_later_with_the_same_id_and_bytes(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers.fail(503)
        await desk.add("cb_1", auth="Bearer t")
        box = desk.outbox()
        async with running(box):
            await desk.has_attempts(1)
            assert (await desk.row()).next_at_ms == BEGAN_MS + RETRY_AFTER_MS
            desk.clock.ms += RETRY_AFTER_MS - 1
            await looks_again(box)
            assert desk.receivers.attempts == ["1"]
            desk.clock.ms += 1
            box.wake()
            await desk.has_attempts(2)
        first, second = desk.receivers.requests
        assert desk.receivers.attempts == ["1", "2"]
        assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
        assert second.headers["Authorization"] == "Bearer t"
        assert verify([SECRET], second.headers, second.body, now_s=desk.clock.ms // 1000, tolerance_s=0)
        assert await desk.state() is CallbackState.DELIVERED

    home.run(scenario)


def test_a_second_failure_is_the_last(home: databases.Home, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers.fail(None, 302)
        await desk.add("cb_1", auth="Bearer t")
        box = desk.outbox()
        async with running(box):
            await desk.has_attempts(1)
            desk.clock.ms += RETRY_AFTER_MS
            box.wake()
            await desk.has_attempts(2)
            desk.clock.ms += 3_600_000
            await looks_again(box)
        assert desk.receivers.attempts == ["1", "2"]
        assert await desk.state() is CallbackState.GIVEN_UP
        assert (await desk.row()).auth is None
        assert [(one.status, one.error) for one in await outbox.attempts_of(db, "cb_1")] == [
            (None, "refused"),
            (302, None),
        ]
        assert desk.measures.callback_attempts.value("no_answer") == 1
        assert desk.measures.callback_attempts.value("refused") == 1

    home.run(scenario)
    failures = [record for record in caplog.records if record.getMessage() == "callback attempt failed"]
    assert [getattr(record, "is_given_up", None) for record in failures] == [False, True]
    assert all(record.levelno == logging.WARNING for record in failures)
    assert "Bearer" not in caplog.text


def test_a_slow_receiver_delays_nobody_else(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        gate = desk.receivers.block(SLOW)
        await desk.add(*(f"slow_{number}" for number in range(20)), url=SLOW)
        box = desk.outbox()
        async with running(box):
            await until(lambda: len(desk.receivers.requests) == 20)
            await desk.add("cb_1")
            box.wake()
            await desk.has_attempts(1)
            assert (await desk.row("slow_0")).attempts == 0
            gate.set()
            await desk.has_attempts(1, "slow_19")

    home.run(scenario)


def test_no_more_are_claimed_than_there_is_room_for(home: databases.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "MAX_UNDER_WAY", 2)

    async def scenario(db: Database) -> None:
        desk = Desk(db)
        gate = desk.receivers.block(SLOW)
        await desk.add("a", "b", "c", "d", "e", url=SLOW)
        box = desk.outbox()
        async with running(box):
            await until(lambda: len(desk.receivers.requests) == 2)
            await looks_again(box)
            assert len(desk.receivers.requests) == 2
            # What is left is free for other processes.
            assert len(await outbox.claim_callbacks(db, owner="you", now_ms=desk.clock.ms, limit=1)) == 1
            gate.set()
            await until(lambda: len(desk.receivers.requests) == 4)

    assert MAX_UNDER_WAY > 2
    home.run(scenario)


def test_a_restart_between_the_attempts_keeps_the_count(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers.fail(500, 500)
        await desk.add("cb_1")
        async with running(desk.outbox("before")):
            await desk.has_attempts(1)
        desk.clock.ms += RETRY_AFTER_MS
        box = desk.outbox("after")
        async with running(box):
            await desk.has_attempts(2)
            desk.clock.ms += 3_600_000
            await looks_again(box)
        assert desk.receivers.attempts == ["1", "2"]
        assert await desk.state() is CallbackState.GIVEN_UP

    home.run(scenario)


def test_an_attempt_that_our_death_cut_off_is_repeated_and_not_counted(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers.block(GOOD)
        await desk.add("cb_1", auth="Bearer t")
        dying = asyncio.create_task(desk.outbox("before").run())
        await until(lambda: len(desk.receivers.requests) == 1)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        assert (await desk.row()).attempts == 0
        desk.receivers.gates.clear()
        desk.clock.ms += CALLBACK_LEASE_MS
        async with running(desk.outbox("after")):
            await desk.has_attempts(1)
        first, second = desk.receivers.requests
        assert desk.receivers.attempts == ["1", "1"]
        assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
        assert second.headers["Authorization"] == "Bearer t"

    home.run(scenario)


def test_two_processes_on_one_database_send_each_callback_once(home: databases.Home) -> None:
    async def scenario(db: Database, other: Database) -> None:
        desk = Desk(db)
        names = [f"cb_{number}" for number in range(40)]
        boxes = [desk.outbox("me"), desk.outbox("you", other)]
        async with running(*boxes):
            for begin in range(0, 40, 8):
                await desk.add(*names[begin : begin + 8])
                for box in boxes:
                    box.wake()
            for name in names:
                await desk.has_attempts(1, name)
        assert sorted(request.headers["webhook-id"] for request in desk.receivers.requests) == sorted(names)

    home.run_replicas(scenario)


@pytest.mark.parametrize("answer", [200, 500])
def test_an_operator_gets_exactly_one_more_attempt(home: databases.Home, answer: int) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers.fail(500, 500, answer)
        await desk.add("cb_1", auth="Bearer t")
        box = desk.outbox()
        async with running(box):
            await desk.has_attempts(1)
            desk.clock.ms += RETRY_AFTER_MS
            box.wake()
            await desk.has_attempts(2)
            assert await outbox.redeliver(db, "cb_1", desk.clock.ms)
            box.wake()
            await desk.has_attempts(3)
            desk.clock.ms += 3_600_000
            await looks_again(box)
        assert desk.receivers.attempts == ["1", "2", "3"]
        third = desk.receivers.requests[-1]
        assert (third.body, third.headers["webhook-id"]) == (b'{"of":"cb_1"}', "cb_1")
        assert "Authorization" not in third.headers
        assert await desk.state() is (CallbackState.DELIVERED if answer == 200 else CallbackState.GIVEN_UP)

    home.run(scenario)


@pytest.mark.parametrize("fault", ["secret", "authorization"])
def test_what_cannot_be_opened_uses_up_no_attempt_and_is_delivered_once_it_can(
    home: databases.Home, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        await desk.add("cb_bad", auth="Bearer t")
        right = (await desk.row("cb_bad")).auth
        sealed = b"\x01 of another key"
        if fault == "secret":
            await organizations.set_webhook_secret(db, "org_1", sealed)
        else:
            await db.write([Statement("UPDATE callbacks SET auth = :auth", {"auth": sealed})])
        box = desk.outbox()
        async with running(box):
            for turn in range(1, 4):  # more often than there are attempts
                await until(lambda turn=turn: len(errors(caplog)) == turn)
                assert (await desk.row("cb_bad")).attempts == 0
                if turn < 3:
                    desk.clock.ms += CALLBACK_LEASE_MS
                    box.wake()
            await organizations.set_webhook_secret(db, "org_1", VAULT.seal(SECRET))
            await db.write([Statement("UPDATE callbacks SET auth = :auth", {"auth": right})])
            desk.clock.ms += CALLBACK_LEASE_MS
            box.wake()
            await desk.has_attempts(1, "cb_bad")
        (request,) = desk.receivers.requests
        assert request.headers["Authorization"] == "Bearer t"
        assert await desk.state("cb_bad") is CallbackState.DELIVERED

    home.run(scenario)
    assert {record.getMessage() for record in errors(caplog)} == {"a callback cannot be signed"}
    assert base64.b64encode(b"of another key").decode() not in caplog.text


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno == logging.ERROR]


@pytest.mark.parametrize("fault", ["organization", "secret"])
def test_what_can_never_be_signed_is_recorded_as_a_failed_attempt_and_hinders_no_other(
    home: databases.Home, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        await desk.add("cb_bad", org_id="org_none" if fault == "organization" else "org_1")
        await organizations.set_webhook_secret(db, "org_1", VAULT.seal("no secret"))
        box = desk.outbox()
        async with running(box):
            await desk.has_attempts(1, "cb_bad")
            await organizations.set_webhook_secret(db, "org_1", VAULT.seal(SECRET))
            await desk.add("cb_1")
            box.wake()
            await desk.has_attempts(1)
        assert [request.headers["webhook-id"] for request in desk.receivers.requests] == ["cb_1"]
        (attempt,) = await outbox.attempts_of(db, "cb_bad")
        assert attempt.status is None
        assert (attempt.error or "").startswith("not sent: ")
        assert await desk.state("cb_bad") is CallbackState.WAITING

    home.run(scenario)
    assert [record.getMessage() for record in errors(caplog)] == ["a callback cannot be signed"]


def test_a_signature_has_the_time_of_the_wall_however_far_our_clock_is_from_it(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.wall_s = BEGAN_MS / 1000 + 7200.9
        await desk.add("cb_1")
        async with running(desk.outbox()):
            await desk.has_attempts(1)
        (request,) = desk.receivers.requests
        assert request.headers["webhook-timestamp"] == str(BEGAN_MS // 1000 + 7200)

    home.run(scenario)


def test_a_database_that_goes_away_loses_no_callback_and_repeats_none(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(callbacks, "AWAY_S", 0.02)

    async def scenario(db: Database) -> None:
        closing = ClosedForAWhile(db)
        desk = Desk(db)
        gate = desk.receivers.block(GOOD)
        await desk.add("cb_1")
        box = desk.outbox(db=closing)
        async with running(box):
            await until(lambda: len(desk.receivers.requests) == 1)
            closing.is_away = True
            gate.set()
            box.wake()
            await until(lambda: closing.refusals > 4)
            desk.clock.ms += 2 * CALLBACK_LEASE_MS  # longer than the lease
            closing.is_away = False
            await desk.has_attempts(1)
            await looks_again(box)
        assert desk.receivers.attempts == ["1"]
        assert await desk.state() is CallbackState.DELIVERED

    home.run(scenario)
    assert caplog.text.count("callbacks wait for the database") == 1


def test_an_attempt_that_outlives_its_lease_is_not_made_twice_at_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        gate = desk.receivers.block(GOOD)
        await desk.add("cb_1")
        box = desk.outbox()
        async with running(box):
            await until(lambda: len(desk.receivers.requests) == 1)
            desk.clock.ms += CALLBACK_LEASE_MS
            await looks_again(box)
            gate.set()
            await desk.has_attempts(1)
        assert desk.receivers.attempts == ["1"]

    home.run(scenario)


def test_an_attempt_whose_lease_would_end_under_way_is_left_to_the_next_claim(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "AWAY_S", 0.02)

    class AwayAfterClaim(ClosedForAWhile):
        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            rows = await super().write(statements)
            self.is_away = self.refusals == 0 and any(rows)
            return rows

    async def scenario(db: Database) -> None:
        closing = AwayAfterClaim(db)
        desk = Desk(db)
        await desk.add("cb_1")
        async with running(desk.outbox(db=closing)):
            await until(lambda: closing.refusals > 1)
            desk.clock.ms += CALLBACK_LEASE_MS - 1_000
            closing.is_away = False
            await asyncio.sleep(0.2)
            assert desk.receivers.requests == []
            desk.clock.ms += 1_000
            await desk.has_attempts(1)
        assert desk.receivers.attempts == ["1"]

    home.run(scenario)


def test_a_callback_that_another_process_sent_meanwhile_is_left_as_that_one_recorded_it(
    home: databases.Home, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        gate = desk.receivers.block(GOOD)
        await desk.add("cb_1")
        async with running(desk.outbox()):
            await until(lambda: len(desk.receivers.requests) == 1)
            await db.write(
                outbox.attempted(
                    "cb_1", number=1, at_ms=7, status=200, duration_ms=1, error=None, next_at_ms=None, delivered=True
                )
            )
            gate.set()
            await until(lambda: "a callback was sent by two" in caplog.text)
        assert (await desk.row()).delivered_at_ms == 7

    home.run(scenario)


def test_a_sender_that_breaks_its_promise_uses_up_the_attempts(
    home: databases.Home, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Receivers):
        async def send(self, request: CallbackRequest) -> Delivery:
            self.requests.append(request)
            raise RuntimeError("of the sender")

    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers = Broken()
        await desk.add("cb_1")
        box = desk.outbox()
        async with running(box):
            await desk.has_attempts(1)
            desk.clock.ms += RETRY_AFTER_MS
            box.wake()
            await desk.has_attempts(2)
        assert await desk.state() is CallbackState.GIVEN_UP
        assert desk.measures.crashes.value("callbacks") == 2

    home.run(scenario)
    assert "of the sender" in caplog.text


def test_the_loop_survives_what_nobody_thought_of(home: databases.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "AWAY_S", 0.02)

    class Jumping(ManualClock):
        faults = 2

        def now_ms(self) -> int:
            if self.faults:
                self.faults -= 1
                raise ZeroDivisionError("of the clock")
            return super().now_ms()

    async def scenario(db: Database) -> None:
        desk = Desk(db)
        await desk.add("cb_1")
        desk.clock = Jumping()
        async with running(desk.outbox()):
            await desk.has_attempts(1)
        assert desk.measures.crashes.value("callbacks") == 2

    home.run(scenario)


def test_a_retry_is_not_late_by_the_polling_time(home: databases.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "POLL_S", 3600.0)
    monkeypatch.setattr(callbacks, "RETRY_AFTER_MS", 100)

    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers.fail(500)
        await desk.add("cb_1")
        async with running(desk.outbox()):
            await desk.has_attempts(1)
            desk.clock.ms += 100
            await desk.has_attempts(2)

    home.run(scenario)


def test_an_attempt_that_never_ends_is_ended(home: databases.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "ATTEMPT_S", 0.05)

    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers.block(GOOD)
        await desk.add("cb_1")
        async with running(desk.outbox()):
            await desk.has_attempts(1)
        (attempt,) = await outbox.attempts_of(db, "cb_1")
        assert (attempt.status, attempt.error) == (None, "no end within the limit")

    home.run(scenario)


def test_an_attempt_that_cannot_be_recorded_hurts_no_other(
    home: databases.Home, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgetful(ClosedForAWhile):
        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            if len(statements) == 2 and statements[0].params["id"] == "cb_bad":
                raise DatabaseError("of the record")
            return await super().write(statements)

    async def scenario(db: Database) -> None:
        desk = Desk(db)
        await desk.add("cb_bad", "cb_1")
        async with running(desk.outbox(db=Forgetful(db))):
            await desk.has_attempts(1)
            await until(lambda: "of the record" in caplog.text)
        assert (await desk.row("cb_bad")).attempts == 0
        assert desk.measures.crashes.value("callbacks") == 1

    home.run(scenario)


def test_draining_waits_for_attempts_under_way_and_takes_no_new_ones(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        gate = desk.receivers.block(SLOW)
        await desk.add("cb_slow", url=SLOW)
        box = desk.outbox()
        run = asyncio.create_task(box.run())
        await until(lambda: len(desk.receivers.requests) == 1)
        draining = asyncio.create_task(box.drain(LIMIT_S))
        await run
        await desk.add("cb_1")
        assert not draining.done()
        gate.set()
        await draining
        assert await desk.state("cb_slow") is CallbackState.DELIVERED
        assert (await desk.row()).lease_owner is None

    home.run(scenario)


def test_draining_cuts_off_what_does_not_end_in_time(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db)
        desk.receivers.block(GOOD)
        await desk.add("cb_1")
        box = desk.outbox()
        run = asyncio.create_task(box.run())
        await until(lambda: len(desk.receivers.requests) == 1)
        await box.drain(0.05)
        await run
        row = await desk.row()
        assert row == msgspec.structs.replace(row, attempts=0, delivered_at_ms=None, next_at_ms=BEGAN_MS)

    home.run(scenario)


def test_what_is_claimed_after_the_end_of_draining_is_not_sent(home: databases.Home) -> None:
    class Slow(ClosedForAWhile):
        def __init__(self, db: Database) -> None:
            super().__init__(db)
            self.is_asked = asyncio.Event()
            self.may_answer = asyncio.Event()

        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            self.is_asked.set()
            await self.may_answer.wait()
            return await super().write(statements)

    async def scenario(db: Database) -> None:
        desk = Desk(db)
        slow = Slow(db)
        await desk.add("cb_1")
        box = desk.outbox(db=slow)
        run = asyncio.create_task(box.run())
        await slow.is_asked.wait()
        await box.drain(0)
        slow.may_answer.set()
        await run
        assert len(asyncio.all_tasks()) == 1
        assert desk.receivers.requests == []
        assert (await desk.row()).attempts == 0

    home.run(scenario)


def test_draining_an_outbox_that_never_ran_ends_at_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await Desk(db).outbox().drain(LIMIT_S)

    home.run(scenario)
