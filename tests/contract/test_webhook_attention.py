"""Matches that need attention are raised once, in any process, until the reason is gone."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.attention import PENDING_MS
from matchpod.core.views.organization_event_shapes import AttentionRaisedEvent
from matchpod.ports import Database, Statement
from matchpod.service.regions.regions import Regions
from matchpod.service.webhooks.attention_watch import AttentionWatch
from matchpod.service.webhooks.bodies import read_event
from matchpod.storage import organization_events
from tests.contract import databases
from tests.contract.webhook_world import World

harness = databases.mostly_sqlite_harness


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


def watch(world: World) -> AttentionWatch:
    return AttentionWatch(
        db=world.db, clock=world.clock, live=world.live, regions=Regions([], world.db), metrics=world.metrics
    )


async def raised(world: World) -> list[tuple[str, str]]:
    lines = await organization_events.read_after(world.db, "org_1", 0, limit=100)
    events = [event for _, line in lines if isinstance(event := read_event(line), AttentionRaisedEvent)]
    return [(event.server_id, event.attention.kind) for event in events]


async def add_pending(world: World) -> None:
    """Add a match that has waited for a server for too long."""
    created_at_ms = world.clock.at_ms - PENDING_MS
    await world.add_match(
        phase=ServerPhase.PENDING, status=ServerStatus.PENDING, running_at_ms=None, created_at_ms=created_at_ms
    )


@databases.on_both
async def test_attention_is_raised_once_by_all_processes_and_sent(world: World) -> None:
    webhook = await world.add("attention.raised")
    await add_pending(world)
    for one in (watch(world), watch(world), watch(world)):
        await one.look()
    assert await raised(world) == [("srv_1", "pending")]
    await world.feed().feed()
    (delivery,) = await world.deliveries(webhook)
    body = msgspec.json.decode(bytes((await world.delivery(webhook, delivery.id)).body))
    assert (body["type"], body["data"]["kind"], body["data"]["urgency"]) == ("attention.raised", "pending", "soon")


async def test_a_reason_that_comes_back_is_raised_again(world: World) -> None:
    await world.add("*")
    await add_pending(world)
    looks = watch(world)
    for at_ms in (world.clock.at_ms - PENDING_MS, world.clock.at_ms, world.clock.at_ms - PENDING_MS):
        change = "UPDATE servers SET created_at_ms = :at_ms WHERE id = 'srv_1'"
        await world.db.write([Statement(change, {"at_ms": at_ms})])
        await looks.look()
    assert await raised(world) == [("srv_1", "pending")] * 2


async def test_nothing_is_raised_that_no_webhook_sends(world: World) -> None:
    await world.add("map.ended")
    await add_pending(world)
    await watch(world).look()
    assert await raised(world) == []


async def test_a_running_match_that_another_process_drives_is_left_to_it(world: World) -> None:
    await world.add("*")
    await add_pending(world)
    await watch(world).look()
    running = "UPDATE servers SET phase = 'running', status = 'running' WHERE id = 'srv_1'"
    await world.db.write([Statement(running, {})])
    await watch(world).look()
    assert await world.db.read("SELECT kind FROM raised_attention") != []
    await world.end_match()
    await watch(world).look()
    assert await world.db.read("SELECT kind FROM raised_attention") == []
