"""Webhooks send each event of their organization at least once, and what they share delays neither each other nor
callbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.errors import NotFoundError, RateLimitError, UnavailableError
from matchpod.core.match.actions import ActionRequest, ActionState, ActionType
from matchpod.core.match.match_actions import AT_END
from matchpod.core.views.organization_event_shapes import MatchEventBase
from matchpod.core.webhook_events import FAILING_ATTEMPTS, FAILING_MS, RETRY_AFTER_MS
from matchpod.ports import Database, DatabaseUnavailableError, Statement, Value
from matchpod.service.identity.principals import Role
from matchpod.service.streams.organization_event_lines import action_changed
from matchpod.service.webhooks.discord import GATHER_MS, PAUSE_MS
from matchpod.service.webhooks.dispatcher import WebhookDispatcher
from matchpod.service.webhooks.feed import MAX_PREPARED, MAX_ROWS
from matchpod.service.webhooks.views import CreatedWebhook
from matchpod.storage import match_actions, organization_events, outbox, webhook_deliveries, webhooks
from matchpod.storage.match_actions import ActionRow
from matchpod.storage.outbox import CALLBACK_LEASE_MS
from matchpod.storage.webhook_deliveries import WEBHOOKS, DeliveryRow
from tests.contract import databases
from tests.contract.callback_world import BEGAN_MS, running
from tests.contract.databases import Replicas
from tests.contract.test_storage_servers import server
from tests.contract.webhook_world import URL, World, principal
from tests.contract.world import CrashableDatabase
from tests.waiting import until

harness = databases.mostly_sqlite_harness

OTHER_URL = "https://other.example/in"
DISCORD = "https://discord.example/api/webhooks/123/very-secret"
DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


async def happen_and_feed(world: World, *events: MatchEventBase, org_id: str = "org_1") -> None:
    await world.happen(*events, org_id=org_id)
    await world.feed().feed()


async def with_deliveries(world: World, count: int) -> CreatedWebhook:
    """Return a webhook with this number of deliveries that wait."""
    webhook = await world.add()
    await world.add_match()
    await happen_and_feed(world, *(world.paused() for _ in range(count)))
    return webhook


@databases.on_both
async def test_the_end_of_a_match_is_sent_signed_with_the_secret_of_the_webhook(world: World) -> None:
    webhook = await world.add("match.ended")
    await world.add_match()
    await world.end_match()
    assert await world.feed().feed()
    async with running(world.dispatcher()):
        await world.until_states(webhook, "delivered")
    (body,) = world.bodies
    assert (body["type"], body["sequence"], body["serverId"]) == ("match.ended", 1, "srv_1")
    assert (body["data"]["serverId"], body["data"]["result"]) == ("srv_1", {})
    assert world.are_signed([webhook.secret])
    (delivery,) = await world.deliveries(webhook)
    assert world.receivers.requests[0].headers["webhook-id"] == delivery.id
    found = await world.delivery(webhook, delivery.id)
    assert bytes(found.body) == world.receivers.requests[0].body
    assert [(one.number, one.status) for one in found.attempts] == [(1, 200)]


async def test_a_webhook_sends_only_the_types_that_it_chose_and_only_what_happens_after_its_creation(
    world: World,
) -> None:
    await world.add_match()
    await world.happen(world.running())
    chosen, every = await world.add("match.paused"), await world.add("*", url=OTHER_URL)
    await happen_and_feed(world, world.running(), world.paused())
    assert [one.event_type for one in await world.deliveries(chosen)] == ["match.paused"]
    assert {one.event_type for one in await world.deliveries(every)} == {"match.paused", "server.running"}
    assert {one.sequence for one in await world.deliveries(every)} == {2, 3}


async def test_bodies_have_no_secrets_of_the_callback_url(world: World) -> None:
    webhook = await world.add("server.running")
    await world.add_match(callback_url="https://caller.example/over?code=s3cret")
    await happen_and_feed(world, world.running())
    (delivery,) = await world.deliveries(webhook)
    body = bytes((await world.delivery(webhook, delivery.id)).body)
    assert msgspec.json.decode(body)["data"]["callbackUrl"] == "https://caller.example/over?code=***"


async def test_events_of_another_organization_are_not_sent(world: World) -> None:
    webhook = await world.add()
    await world.add_match("srv_2", org_id="org_2")
    await happen_and_feed(world, world.running("srv_2"), org_id="org_2")
    assert await world.deliveries(webhook) == []


@databases.on_both
async def test_processes_that_read_the_same_events_store_their_deliveries_once(replicas: Replicas) -> None:
    first, second = World(replicas[0]), World(replicas[1])
    webhook = await first.add()
    await first.add_match()
    await first.happen(*(first.paused() for _ in range(20)))
    feeds = [first.feed("a"), second.feed("b"), first.feed("c")]
    await asyncio.gather(*(feed.feed() for feed in feeds))
    assert sorted(one.sequence for one in await first.deliveries(webhook)) == list(range(1, 21))


@pytest.mark.parametrize("crashes", ["before", "after"])
async def test_a_process_that_dies_while_it_stores_deliveries_loses_none_and_makes_none_twice(
    world: World, crashes: str
) -> None:
    webhook = await world.add()
    await world.add_match()
    await world.happen(world.paused(), world.paused())
    dying = CrashableDatabase(world.db)
    setattr(dying, f"crashes_{crashes}", "UPDATE webhook_positions")
    with pytest.raises(DatabaseUnavailableError):
        await world.feed("dying", dying).feed()
    world.clock.at_ms += webhooks.LEASE_MS
    await world.feed("next").feed()
    assert sorted(one.sequence for one in await world.deliveries(webhook)) == [1, 2]


async def test_scores_are_read_once_and_move_no_position(world: World) -> None:
    await world.add()
    feed, writes = world.feed(), []
    line = b'{"type":"score_changed"}'  # of no type that is sent
    await world.db.write(organization_events.append("org_1", [line] * 3, at_ms=1))
    before = await world.db.read("SELECT seq FROM webhook_positions")
    await feed.feed()
    assert await world.db.read("SELECT seq FROM webhook_positions") == before
    await world.add_match()
    await world.happen(world.paused())
    await feed.feed()
    writes = await world.db.read("SELECT seq FROM webhook_positions")
    assert [tuple(row) for row in writes] == [(4,)]


async def test_actions_that_fail_because_a_match_is_canceled_are_sent_once(world: World) -> None:
    webhook = await world.add("action.failed")
    await world.add_match()
    known = ActionRequest(id="action_known", type=ActionType.PAUSE)
    open_one = ActionRequest(id="action_open", type=ActionType.PAUSE)
    requests = {one.id: msgspec.json.encode(one) for one in (known, open_one)}
    requests["action_later"] = b'{"id":"action_later","type":"later"}'  # of a later version
    for name, request in requests.items():
        row = ActionRow(
            id=name, server_id="srv_1", requested_at_ms=1, changed_at_ms=1, created_by="key_1", request=request
        )
        await world.db.write([match_actions.insert(row)])
    line = action_changed(server(), known, ActionState.FAILED, detail=AT_END, at_ms=world.clock.at_ms)
    await world.db.write(organization_events.append("org_1", [line], at_ms=world.clock.at_ms))
    await world.end_match(reason=CancelReason.CANCELED_BY_USER)
    feed = world.feed()
    for _ in range(3):
        await feed.feed()
    found = [await world.delivery(webhook, one.id) for one in await world.deliveries(webhook)]
    bodies = [msgspec.json.decode(bytes(one.body)) for one in found]
    assert sorted(body["data"]["actionId"] for body in bodies) == ["action_known", "action_open"]
    assert {body["data"]["state"] for body in bodies} == {"failed"}
    assert {body["data"]["requestedBy"] for body in bodies} == {None}


async def test_an_event_whose_body_cannot_be_read_during_an_outage_is_read_again(world: World) -> None:
    await world.add()
    await world.add_match()
    await world.happen(world.map_ended())
    broken = CrashableDatabase(world.db)

    async def fail(sql: str) -> None:
        if "FROM maps" in sql:
            raise DatabaseUnavailableError("gone")

    broken.before_read = fail
    with pytest.raises(UnavailableError):
        await world.feed(db=broken).feed()
    assert await positions(world) == [("org_1", 0)]


async def positions(world: World) -> list[tuple[object, ...]]:
    found = await world.db.read("SELECT org_id, seq FROM webhook_positions ORDER BY org_id")
    return [tuple(row) for row in found]


async def test_organizations_take_turns_and_one_that_fails_stops_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    turns: list[object] = []

    async def note(statements: Sequence[Statement]) -> None:
        turns.extend(one.params["org_id"] for one in statements if "UPDATE webhook_positions" in one.sql)

    noted = CrashableDatabase(world.db)
    noted.after_write = note
    for org_id in ("org_0", "org_1", "org_2"):
        await world.add(org_id=org_id)
        await world.add_match(f"srv_{org_id[-1]}", org_id=org_id)
    await world.db.write([Statement("UPDATE webhooks SET format = 'unknown' WHERE org_id = 'org_0'", {})])
    await world.happen(world.paused("srv_0"), org_id="org_0")
    await world.happen(*(world.paused() for _ in range(MAX_PREPARED + 1)))
    await world.happen(world.paused("srv_2"), org_id="org_2")
    assert await world.feed(db=noted).feed()
    assert turns == ["org_1", "org_2", "org_1"]
    assert "webhook events not read" in caplog.text


async def test_a_webhook_begins_at_the_newest_event_unless_another_needs_earlier_ones(world: World) -> None:
    webhook = await world.add()
    off, on = (msgspec.json.encode({"enabled": enabled}) for enabled in (False, True))
    await world.webhooks.change(principal(), webhook.id, off)
    await world.add_match()
    for expected in (1, 2):
        await world.happen(world.paused())
        await (world.webhooks.change(principal(), webhook.id, on) if expected == 1 else world.add(url=OTHER_URL))
        assert await positions(world) == [("org_1", 1)]
    await world.webhooks.change(principal(), webhook.id, on)  # it is on already
    assert await positions(world) == [("org_1", 1)]


# --- attempts -----------------------------------------------------------------------------------------------------


async def test_a_delivery_whose_last_attempt_fails_is_given_up(world: World) -> None:
    webhook = await with_deliveries(world, 1)
    await set_attempts(world, len(RETRY_AFTER_MS))
    world.receivers.fail(500, url=URL)
    async with running(world.dispatcher()):
        await world.until_states(webhook, "given_up")
    assert world.receivers.attempts == [str(len(RETRY_AFTER_MS) + 1)]
    assert world.metrics.webhooks_given_up.value() == 1


async def set_attempts(world: World, number: int) -> None:
    await world.db.write([Statement("UPDATE webhook_deliveries SET attempts = :number", {"number": number})])


async def until_later(
    world: World,
    dispatcher: WebhookDispatcher,
    state: str,
    webhook: CreatedWebhook,
    *,
    step_ms: int = CALLBACK_LEASE_MS,
) -> None:
    async def is_there() -> bool:
        world.clock.at_ms += step_ms
        dispatcher.wake()
        return [one.state.value for one in await world.deliveries(webhook)] == [state]

    await until(is_there)


async def test_what_was_given_up_is_sent_again_on_request_with_the_same_id_and_body(world: World) -> None:
    webhook = await with_deliveries(world, 2)
    await world.db.write([*webhooks.switch_off(webhook.id, webhooks.OffBecause.REQUEST, 1)])
    body = msgspec.json.encode({"since": "2020-01-01"})
    assert (await world.webhooks.redeliver_given_up(principal(), webhook.id, body)).count == 2
    async with running(world.dispatcher()):
        await world.until_states(webhook, "delivered", "delivered")
        one = (await world.deliveries(webhook))[0]
        await world.webhooks.redeliver(principal(), webhook.id, one.id)
        await until(lambda: len(world.receivers.requests) == 3)
    again = [request for request in world.receivers.requests if request.headers["webhook-id"] == one.id]
    assert again[0].body == again[1].body
    assert [request.headers["X-Matchpod-Attempt"] for request in again] == ["1", "2"]


async def test_a_webhook_that_failed_for_three_days_is_switched_off_and_what_waits_is_given_up(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    webhook = await with_deliveries(world, 1)
    await world.db.write(
        [*webhooks.note_failure(webhook.id, "none", attempts=1, now_ms=world.clock.at_ms - FAILING_MS)]
    )
    await happen_and_feed(world, world.paused())
    await set_attempts(world, FAILING_ATTEMPTS - 1)
    assert (await world.webhooks.get(principal(), webhook.id)).enabled
    world.receivers.fail(*[500] * 2, url=URL)
    async with running(world.dispatcher(max_per_host=1)):
        await world.until_states(webhook, "given_up", "given_up")
        await until(lambda: "webhook switched off" in caplog.text)
    found = await world.webhooks.get(principal(), webhook.id)
    assert (found.enabled, found.disabled_reason) == (False, "failing")
    assert await webhooks.count_failing_off(world.db) == 1
    await world.happen(world.paused())
    assert not await world.feed().feed()
    on = await world.webhooks.change(principal(), webhook.id, b'{"enabled":true}')
    assert (on.enabled, on.disabled_reason, on.failing_since) == (True, None, None)
    await happen_and_feed(world, world.paused())
    assert sorted(one.sequence for one in await world.deliveries(webhook)) == [1, 2, 4], "not what happened meanwhile"


async def test_a_single_failure_days_after_the_last_one_switches_nothing_off(world: World) -> None:
    webhook = await world.add()
    await world.add_match()
    await world.db.write([*webhooks.note_failure(webhook.id, "none", attempts=1, now_ms=BEGAN_MS - 9 * DAY_MS)])
    await happen_and_feed(world, world.paused())
    world.receivers.fail(500, url=URL)
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await until_later(world, dispatcher, "delivered", webhook)
    assert world.receivers.attempts == ["1", "2"]
    found = await world.webhooks.get(principal(), webhook.id)
    assert (found.enabled, found.failing_since) == (True, None)


async def test_an_old_secret_signs_too_for_a_day(world: World) -> None:
    webhook = await world.add()
    await world.add_match()
    new = await world.webhooks.rotate_secret(principal(), webhook.id)
    assert new.secret != webhook.secret
    feed, dispatcher = world.feed(), world.dispatcher()
    async with running(dispatcher):
        await world.happen(world.paused())
        await feed.feed()
        dispatcher.wake()
        await world.until_states(webhook, "delivered")
        assert world.are_signed([webhook.secret])
        assert world.are_signed([new.secret])
        world.receivers.requests.clear()
        world.clock.at_ms += DAY_MS
        await world.happen(world.paused())
        await feed.feed()
        dispatcher.wake()
        await world.until_states(webhook, "delivered", "delivered")
    assert world.are_signed([new.secret])
    assert not world.are_signed([webhook.secret])


async def test_a_webhook_whose_receiver_hangs_holds_a_limited_number_of_places(world: World) -> None:
    slow, fast = await world.add(), await world.add(url=OTHER_URL)
    await world.add_match()
    gate = world.receivers.block(URL)
    await happen_and_feed(world, *(world.paused() for _ in range(10)))
    async with running(world.dispatcher(max_per_host=4)):
        await world.until_states(fast, *["delivered"] * 10)
        assert sum(request.url == URL for request in world.receivers.requests) == 4
        gate.set()
        await world.until_states(slow, *["delivered"] * 10)


async def test_deliveries_beyond_the_limit_are_given_up_and_can_be_sent_again(world: World) -> None:
    webhook = await world.add()
    await world.add_match()
    await world.happen(world.paused(), world.paused(), world.paused())
    dying = CrashableDatabase(world.db)
    dying.crashes_before = "UPDATE webhook_positions"
    with pytest.raises(DatabaseUnavailableError):
        await world.feed(db=dying, max_waiting=2).feed()
    assert world.metrics.webhooks_given_up.value() == 0
    await world.feed(max_waiting=2).feed()
    assert sorted(one.state for one in await world.deliveries(webhook)) == ["given_up", "waiting", "waiting"]
    assert world.metrics.webhooks_given_up.value() == 1


# --- management ---------------------------------------------------------------------------------------------------


@databases.on_both
async def test_an_organization_has_a_limited_number_of_webhooks(db: Database) -> None:
    world = World(db, max_webhooks=2)
    await world.add()
    second = await world.add()
    await world.add(org_id="org_2")
    with pytest.raises(RateLimitError, match="2 webhooks, which is its limit"):
        await world.add()
    await world.webhooks.delete(principal(), second.id)
    await world.add()


async def test_a_webhook_of_another_organization_does_not_exist(world: World) -> None:
    webhook = await world.add()
    stranger = principal("org_2")
    for attempt in (
        world.webhooks.get(stranger, webhook.id),
        world.webhooks.delete(stranger, webhook.id),
        world.webhooks.test(stranger, webhook.id),
        world.webhooks.rotate_secret(stranger, webhook.id),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    assert (await world.webhooks.list(stranger)).items == ()


async def test_a_deleted_webhook_sends_nothing_and_leaves_nothing(world: World) -> None:
    webhook = await with_deliveries(world, 1)
    other = await world.add(url=OTHER_URL)
    await happen_and_feed(world, world.paused())
    await world.webhooks.delete(principal(), webhook.id)
    async with running(world.dispatcher()):
        await world.until_states(other, "delivered")
    assert [request.url for request in world.receivers.requests] == [OTHER_URL]
    assert await webhook_deliveries.count_prunable(world.db, 0) == 2
    assert await webhook_deliveries.prune(world.db, 0) == 2
    assert len(await world.db.read("SELECT 1 FROM webhook_deliveries")) == 1


async def test_an_attempt_that_was_put_off_stays_given_up(world: World) -> None:
    webhook = await world.add()
    await world.webhooks.test(principal(), webhook.id)
    (one,) = await world.deliveries(webhook)
    now_ms = world.clock.at_ms
    (row,) = await outbox.claim(world.db, WEBHOOKS, DeliveryRow, [one.id], owner="me", now_ms=now_ms)
    await world.webhooks.change(principal(), webhook.id, b'{"enabled":false}')
    put_back = outbox.put_back(WEBHOOKS, row.id, lease_until_ms=row.lease_until_ms, due_ms=now_ms)
    await world.db.write([put_back])
    assert [one.state for one in await world.deliveries(webhook)] == ["given_up"]


async def test_a_transaction_has_a_limited_number_of_deliveries(db: Database) -> None:
    world, sizes = World(db, max_webhooks=5), []
    for _ in range(5):
        await world.add()
    await world.add_match()
    await world.happen(*(world.paused() for _ in range(MAX_ROWS // 5 + 1)))

    async def note(statements: Sequence[Statement]) -> None:
        sizes.append(sum("INTO webhook_deliveries" in one.sql for one in statements))

    noted = CrashableDatabase(db)
    noted.after_write = note
    await world.feed(db=noted).feed()
    assert sizes == [MAX_ROWS, 5]


@databases.on_both
async def test_what_was_raised_is_forgotten_while_no_webhook_sends_it(db: Database) -> None:
    for org_id in ("org_1", "org_2"):
        values: dict[str, Value] = {"server_id": f"srv_{org_id}", "kind": "pause", "org_id": org_id, "raised_at_ms": 1}
        assert await webhooks.raise_attention(db, values)
    await webhooks.end_unwatched_attention(db, ["org_1"])
    assert await webhooks.raised_of(db, ["org_1", "org_2"]) == {("srv_org_1", "pause")}


async def test_a_test_is_sent_also_to_a_webhook_that_is_off(world: World) -> None:
    webhook = await world.add()
    await world.webhooks.change(principal(), webhook.id, b'{"enabled":false}')
    await world.webhooks.test(principal(), webhook.id)
    async with running(world.dispatcher()):
        await world.until_states(webhook, "delivered")
    assert world.types == ["webhook.test"]


async def test_what_waits_goes_to_the_new_url(world: World) -> None:
    webhook = await with_deliveries(world, 1)
    await world.db.write([*webhooks.note_failure(webhook.id, "none", attempts=1, now_ms=1)])
    changed = await world.webhooks.change(principal(), webhook.id, msgspec.json.encode({"url": OTHER_URL}))
    assert changed.failing_since is None
    async with running(world.dispatcher()):
        await world.until_states(webhook, "delivered")
    assert [request.url for request in world.receivers.requests] == [OTHER_URL]


async def test_the_url_is_stored_sealed_and_shown_without_its_secrets(world: World) -> None:
    webhook = await world.add(url=DISCORD, format="discord")
    assert webhook.url == "https://discord.example/api/webhooks/123/***"
    member = msgspec.structs.replace(principal(), role=Role.MEMBER)
    shown = [await world.webhooks.get(member, webhook.id), *(await world.webhooks.list(member)).items]
    assert [one.url for one in shown] == ["https://discord.example/***"] * 2
    assert b"very-secret" not in repr(await world.db.read("SELECT * FROM webhooks")).encode()


# --- messages -----------------------------------------------------------------------------------------------------


async def test_messages_group_events_and_are_sent_at_most_once_a_minute(world: World) -> None:
    webhook = await world.add(url=DISCORD, format="discord")
    await world.add_match()
    feed, dispatcher = world.feed(), world.dispatcher()
    async with running(dispatcher):
        await world.happen(world.running(), world.paused())
        await feed.feed()
        assert len(await world.deliveries(webhook)) == 1
        world.clock.at_ms += GATHER_MS
        dispatcher.wake()
        await world.until_states(webhook, "delivered")
        for _ in range(3):
            await world.happen(world.paused())
            await feed.feed()
        await world.until_states(webhook, "waiting", "delivered")
        world.clock.at_ms += PAUSE_MS - GATHER_MS - 1
        dispatcher.wake()
        await world.until_states(webhook, "waiting", "delivered")
        world.clock.at_ms += GATHER_MS + 1
        dispatcher.wake()
        await world.until_states(webhook, "delivered", "delivered")
    first, second = (str(body["content"]).splitlines() for body in world.bodies)
    assert len(first) == 2
    assert second == ["**srv\\_1**: paused"] * 3


async def test_a_failed_message_waits_for_its_minute_too(world: World) -> None:
    webhook = await world.add(url=DISCORD, format="discord")
    await world.webhooks.test(principal(), webhook.id)
    world.receivers.fail(429, url=DISCORD)
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await until_later(world, dispatcher, "delivered", webhook, step_ms=2_000)
    first, second = (int(request.headers["webhook-timestamp"]) for request in world.receivers.requests)
    assert second - first >= PAUSE_MS // 1000 - 4  # the clock moves on while an attempt is prepared


async def test_events_are_added_to_a_message_that_failed_unless_its_next_attempt_is_far(world: World) -> None:
    webhook = await world.add(url=DISCORD, format="discord")
    await world.add_match()
    feed, dispatcher = world.feed(), world.dispatcher()
    world.receivers.fail(429, url=DISCORD)
    await world.happen(world.paused())
    await feed.feed()
    world.clock.at_ms += GATHER_MS
    async with running(dispatcher):
        await until(lambda: len(world.receivers.requests) == 1)
        for rows in (1, 2):
            await until_idle(world)
            await world.happen(world.paused())
            await feed.feed()
            assert len(await world.deliveries(webhook)) == rows
            await world.db.write([Statement("UPDATE webhook_deliveries SET next_at_ms = next_at_ms + 7200000", {})])
    found = await world.delivery(webhook, (await world.deliveries(webhook))[-1].id)
    assert len(msgspec.json.decode(bytes(found.body))["content"].splitlines()) == 2


async def until_idle(world: World) -> None:
    async def is_idle() -> bool:
        return not await world.db.read("SELECT 1 FROM webhook_deliveries WHERE lease_owner IS NOT NULL")

    await until(is_idle)


async def test_detections_are_never_sent_as_messages(world: World) -> None:
    message, other = await world.add(url=DISCORD, format="discord"), await world.add("anticheat.detected")
    await world.add_match()
    await happen_and_feed(world, world.detected(), world.needs_attention("leads"))
    assert await world.deliveries(message) == []
    (delivery,) = await world.deliveries(other)
    body: Mapping[str, object] = msgspec.json.decode(bytes((await world.delivery(other, delivery.id)).body))
    assert (body["type"], body["data"]["type"]) == ("anticheat.detected", "aimbot")  # type: ignore[index]
