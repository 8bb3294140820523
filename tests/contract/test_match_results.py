"""Callers cancel matches and read their results; both fail as unavailable during a database outage."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from matchpod.core.errors import (
    ServerNotRunningError,
    UnavailableError,
)
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.storage import outbox
from tests.contract import databases
from tests.contract.test_matches import (
    NOW_MS,
    OWNER,
    READER,
    InterleavingDatabase,
    InterruptedDatabase,
    World,
)
from tests.vaults import VAULT

harness = databases.mostly_sqlite_harness


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


# --- cancel -------------------------------------------------------------------------------------------------------


@databases.on_both
@pytest.mark.parametrize("phase", [ServerPhase.ALLOCATING, ServerPhase.PENDING, ServerPhase.RUNNING])
async def test_match_can_be_canceled_in_every_open_phase(world: World, phase: ServerPhase) -> None:
    created = await world.create(
        callbackUrl="https://a.example/cb", callbackAuthToken="s3cret", externalMatchId="cup-7"
    )
    await world.change(created.server_id, phase=phase, status=ServerStatus(phase.value))
    world.clock.at_ms += 5_000
    await world.matches.cancel(OWNER, created.server_id)
    row = await world.row(created.server_id)
    assert (row.phase, row.status) == (ServerPhase.ENDING, ServerStatus.STOPPED)
    assert (row.ended_at_ms, row.next_at_ms) == (NOW_MS + 5_000, NOW_MS + 5_000)
    (callback,) = await outbox.list_callbacks(world.db, org_id="org_1", state=None, limit=10)
    assert callback.auth is not None
    assert VAULT.open(callback.auth) == "s3cret"
    sent = msgspec.json.decode(callback.body)
    assert (sent["eventType"], sent["reason"]) == ("match_canceled", "canceled_by_user")
    assert (sent["externalMatchId"], sent["sessionId"]) == ("cup-7", created.game_id)
    assert world.notified == [created.server_id] * 2
    assert world.metrics.matches_ended.value("eu", "canceled_by_user") == 1


async def test_cancellation_is_logged_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    server_id = (await world.create()).server_id
    with caplog.at_level(logging.INFO, "matchpod.service.cancellation"):
        await world.matches.cancel(OWNER, server_id)
        await world.matches.cancel(OWNER, server_id)
    (record,) = caplog.records
    assert record.getMessage() == "match canceled"
    assert vars(record)["server_id"] == server_id


@databases.on_both
async def test_repeated_cancellation_succeeds_and_sends_one_callback(world: World) -> None:
    server_id = (await world.create(callbackUrl="https://a.example/cb")).server_id
    for _ in range(3):
        await world.matches.cancel(OWNER, server_id)
    assert await world.count("callbacks") == 1
    assert await world.count("outcomes") == 1
    assert world.notified == [server_id] * 2


async def test_match_that_ends_during_a_cancellation_keeps_its_result(world: World) -> None:
    server_id = (await world.create(callbackUrl="https://a.example/cb")).server_id
    late = World(InterleavingDatabase(world.db, lambda: world.end(server_id, result=b'{"winner":"team1"}')))
    with pytest.raises(ServerNotRunningError):
        await late.matches.cancel(OWNER, server_id)
    outcome = await outbox.outcome_of(world.db, server_id)
    assert outcome is not None
    assert outcome.kind == "match_over"
    assert await world.count("callbacks") == 1
    assert late.notified == []


@databases.on_both
async def test_concurrent_cancellations_succeed_and_end_the_match_once(replicas: databases.Replicas) -> None:
    first, second = replicas
    worlds = [World(first), World(second)]
    server_id = (await worlds[0].create(callbackUrl="https://a.example/cb")).server_id
    await asyncio.gather(*(world.matches.cancel(OWNER, server_id) for world in worlds * 3))
    assert await worlds[0].count("callbacks") == 1
    assert len(worlds[0].notified + worlds[1].notified) == 2


# --- by external id -----------------------------------------------------------------------------------------------


async def test_result_equals_that_of_the_callback_byte_for_byte(world: World) -> None:
    server_id = (await world.create(externalMatchId="cup", callbackUrl="https://a.example/cb")).server_id
    result = b'{"winner": "team1",  "adr": 81.20}'
    await world.end(server_id, result=result)
    view = await world.matches.by_external_id(READER, "cup")
    assert view.status is ServerStatus.STOPPED
    assert view.result is not None
    assert bytes(view.result) == result
    (callback,) = await outbox.list_callbacks(world.db, org_id=None, state=None, limit=10)
    assert result in callback.body
    assert result in msgspec.json.encode(view)


# --- database outage ----------------------------------------------------------------------------------------------


async def test_match_whose_commit_was_interrupted_is_created_once(world: World) -> None:
    interrupted = World(InterruptedDatabase(world.db))
    first = await interrupted.create()
    assert (await world.matches.get(OWNER, first.server_id)).server_id == first.server_id
    assert await world.count("servers") == 1
    assert interrupted.notified == [first.server_id]


async def test_request_whose_commit_was_interrupted_can_be_repeated(world: World) -> None:
    with pytest.raises(UnavailableError):
        await World(InterruptedDatabase(world.db, failing_reads=1)).create("once")
    again = await world.create("once")
    assert await world.count("servers") == 1
    with pytest.raises(UnavailableError):
        await World(InterruptedDatabase(world.db)).matches.cancel(OWNER, again.server_id)
    await world.matches.cancel(OWNER, again.server_id)
    assert await world.count("outcomes") == 1
