"""Callers read the deliveries of their callbacks and have them sent again, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.errors import CallbackWaitingError, RateLimitError
from matchpod.core.outcome import Outcome
from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState
from matchpod.ports import Database, Delivery
from matchpod.service.access.audit import Audit
from matchpod.service.callbacks.deliveries import MANY_PER_MINUTE, SINGLE_PER_MINUTE, CallbackDeliveries
from matchpod.service.end_match import end_match
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.reading.callbacks import CallbacksPage
from matchpod.storage import callback_lists, organizations, outbox
from matchpod.storage.organizations import Organization
from tests.contract import databases
from tests.contract.callback_world import BEGAN_MS, GOOD, SECRET, VAULT, World, running
from tests.contract.test_storage_servers import create, server

harness = databases.mostly_sqlite_harness

RESULT = b'{"gameMode":"competitive","of":"\\u00e9"}'
OURS = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))
THEIRS = msgspec.structs.replace(OURS, org_id="org_2")


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


def deliveries(
    world: World, wake: Callable[[], None] = lambda: None, db: Database | None = None, **limits: int
) -> CallbackDeliveries:
    db = db or world.db
    return CallbackDeliveries(db=db, clock=world.clock, wake=wake, audit=Audit(db=db, clock=world.clock), **limits)


async def add(
    world: World,
    name: str,
    *,
    org_id: str = "org_1",
    created_at_ms: int = BEGAN_MS,
    result: bytes | None = None,
    auth: str | None = None,
) -> None:
    """End a match whose callback has this id."""
    if await organizations.get(world.db, org_id) is None:
        sealed = VAULT.seal(SECRET)
        await organizations.create(
            world.db, Organization(id=org_id, name=org_id, webhook_secret=sealed, created_at_ms=1)
        )
    row = server(
        f"srv_{name}",
        org_id=org_id,
        callback_url=GOOD,
        external_match_id=f"match {name}",
        callback_auth=VAULT.seal(auth) if auth else None,
    )
    await create(world.db, row)
    outcome = Outcome(at_ms=created_at_ms, reason=None if result else CancelReason.SERVER_LOST)
    await world.db.write(end_match(row, outcome, result=result, fence=None, callback_id=name))


async def fail(db: Database, name: str) -> None:
    """Record a failed attempt, after which the callback is given up."""
    record = outbox.record_attempt(name, Delivery(status=500, duration_ms=5), number=1, at_ms=BEGAN_MS, next_at_ms=None)
    await db.write(record)


def ids(page: CallbacksPage) -> list[str]:
    return [item.id for item in page.items]


# --- lists --------------------------------------------------------------------------------------------------------


@databases.on_both
async def test_pages_are_newest_first_and_concatenate_to_the_whole(world: World) -> None:
    # Two of each time: ties are ordered by id.
    names = [f"cb_{number}" for number in range(7)]
    for number, name in enumerate(names):
        await add(world, name, created_at_ms=BEGAN_MS + number // 2)
    await add(world, "cb_theirs", org_id="org_2", created_at_ms=BEGAN_MS + 1)
    service = deliveries(world)
    pages = [await service.list(OURS, CallbacksQuery(page=page, page_size=3)) for page in (1, 2, 3, 4)]
    assert [len(page.items) for page in pages] == [3, 3, 1, 0]
    assert {page.total for page in pages} == {7}
    assert [name for page in pages for name in ids(page)] == names[::-1]
    assert ids(await service.list(THEIRS, CallbacksQuery())) == ["cb_theirs"]


@databases.on_both
async def test_list_ends_after_the_newest_callbacks(world: World) -> None:
    for number in range(5):
        await add(world, f"cb_{number}", created_at_ms=BEGAN_MS + number)

    async def page(query: CallbacksQuery) -> tuple[int, list[str]]:
        total, rows = await callback_lists.list_page(world.db, "org_1", query, max_listed=3)
        return total, [row.id for row in rows]

    assert await page(CallbacksQuery(page_size=2)) == (3, ["cb_4", "cb_3"])
    assert await page(CallbacksQuery(page_size=2, page=2)) == (3, ["cb_2"])
    assert await page(CallbacksQuery(page_size=2, page=3)) == (3, [])
    # The older ones are found by their time.
    assert await page(CallbacksQuery(before_ms=BEGAN_MS + 2)) == (2, ["cb_1", "cb_0"])


@databases.on_both
async def test_list_is_filtered_by_state_time_and_server(world: World) -> None:
    for number, name in enumerate(("waiting", "delivered", "given_up", "waiting_too")):
        await add(world, name, created_at_ms=BEGAN_MS + number)
    await fail(world.db, "given_up")
    success = Delivery(status=204, duration_ms=5)
    await world.db.write(outbox.record_attempt("delivered", success, number=1, at_ms=BEGAN_MS, next_at_ms=None))
    service = deliveries(world)

    async def found(**filters: object) -> list[str]:
        page = await service.list(OURS, msgspec.convert(filters, CallbacksQuery))
        assert page.total == len(page.items)
        return ids(page)

    assert await found(state="waiting") == ["waiting_too", "waiting"]
    assert await found(state="delivered") == ["delivered"]
    assert await found(state="given_up") == ["given_up"]
    assert await found(from_ms=BEGAN_MS + 2) == ["waiting_too", "given_up"]
    assert await found(from_ms=BEGAN_MS + 1, before_ms=BEGAN_MS + 3) == ["given_up", "delivered"]
    assert await found(from_ms=BEGAN_MS + 3, before_ms=BEGAN_MS + 1) == []
    assert await found(state="waiting", from_ms=BEGAN_MS + 1) == ["waiting_too"]
    assert await found(server_id="srv_delivered") == ["delivered"]
    assert await found(server_id="srv_delivered", state="waiting") == []
    assert await found(server_id="srv_none") == []
    listed = await service.list(OURS, CallbacksQuery())
    states = {item.id: (item.state, item.last_status, item.attempt_count) for item in listed.items}
    assert states == {
        "waiting": (CallbackState.WAITING, None, 0),
        "waiting_too": (CallbackState.WAITING, None, 0),
        "delivered": (CallbackState.DELIVERED, 204, 1),
        "given_up": (CallbackState.GIVEN_UP, 500, 1),
    }


# --- details ------------------------------------------------------------------------------------------------------


@databases.on_both
async def test_only_the_last_attempts_are_shown(world: World) -> None:
    await add(world, "cb_1")
    for number in (1, 2, 3):
        delivery = Delivery(status=500 + number, duration_ms=number)
        await world.db.write(
            outbox.record_attempt("cb_1", delivery, number=number, at_ms=BEGAN_MS + number, next_at_ms=BEGAN_MS)
        )
    detail = await deliveries(world, max_shown_attempts=2).get(OURS, "cb_1")
    assert detail.attempt_count == 3
    assert [(one.number, one.status) for one in detail.attempts] == [(2, 502), (3, 503)]
    assert (detail.last_status, detail.last_error) == (503, None)


# --- redelivery ---------------------------------------------------------------------------------------------------


async def test_redelivered_callback_is_sent_once_more_with_the_same_id_and_bytes(world: World) -> None:
    world.receivers.fail(503, None, 500)
    await add(world, "cb_1", result=RESULT, auth="Bearer t")
    dispatcher = world.dispatcher()
    service = deliveries(world, dispatcher.wake)
    async with running(dispatcher):
        await world.until_attempts(1)
        with pytest.raises(CallbackWaitingError):
            await service.redeliver(OURS, "cb_1")
        world.retry(dispatcher)
        await world.until_attempts(2)
        given_up = await service.get(OURS, "cb_1")
        assert given_up.state is CallbackState.GIVEN_UP
        assert (await service.redeliver(OURS, "cb_1")).id == "cb_1"
        await world.until_attempts(3)
        world.clock.at_ms += 3_600_000
        await world.poll(dispatcher)
        detail = await service.get(OURS, "cb_1")
    first, _, third = world.receivers.requests
    assert world.receivers.attempts == ["1", "2", "3"]
    assert third.body == first.body == bytes(detail.body)
    assert third.headers["webhook-id"] == first.headers["webhook-id"] == "cb_1"
    assert third.headers["Authorization"] == first.headers["Authorization"]
    assert (detail.state, detail.event_type, detail.external_match_id) == ("given_up", "match_over", "match cb_1")
    assert [(one.number, one.status, one.error) for one in detail.attempts] == [
        (1, 503, None),
        (2, None, "refused"),
        (3, 500, None),
    ]
    shown = [one.request_headers or {} for one in detail.attempts]
    assert [headers.get("Authorization") for headers in shown] == ["***"] * 3
    assert [headers["X-Matchpod-Attempt"] for headers in shown] == ["1", "2", "3"]
    assert {headers["webhook-signature"] for headers in shown} == {"v1,***"}


@databases.on_both
async def test_concurrent_requests_cause_one_attempt(replicas: databases.Replicas) -> None:
    world = World(replicas[0])
    await add(world, "cb_1")
    await fail(world.db, "cb_1")
    services = [deliveries(world, db=replicas[number % 2]) for number in range(8)]
    results = await asyncio.gather(*(one.redeliver(OURS, "cb_1") for one in services), return_exceptions=True)
    assert sum(isinstance(result, CallbackWaitingError) for result in results) == 7
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        await world.until_attempts(2)
    assert world.receivers.attempts == ["2"]


async def test_requests_to_send_callbacks_again_are_limited_per_organization(world: World) -> None:
    await add(world, "cb_1")
    await fail(world.db, "cb_1")
    service, since = deliveries(world), b'{"since":"2100-01-01"}'
    for _ in range(MANY_PER_MINUTE):
        await service.redeliver_given_up(OURS, since)
    with pytest.raises(RateLimitError, match="6 requests to send callbacks again since a time per minute"):
        await service.redeliver_given_up(OURS, since)
    await service.redeliver_given_up(THEIRS, since)
    await service.redeliver(OURS, "cb_1")
    for _ in range(SINGLE_PER_MINUTE - 1):
        with pytest.raises(CallbackWaitingError):
            await service.redeliver(OURS, "cb_1")
    with pytest.raises(RateLimitError):
        await service.redeliver(OURS, "cb_1")


@databases.on_both
async def test_given_up_callbacks_are_sent_again_in_parts(world: World) -> None:
    for number in range(6):
        await add(world, f"cb_{number}", created_at_ms=BEGAN_MS + 1000 * number)
        if number != 3:
            await fail(world.db, f"cb_{number}")
    service = deliveries(world, max_redelivered=2)

    async def send(since: str) -> tuple[int, str | None, set[str]]:
        done = await service.redeliver_given_up(OURS, msgspec.json.encode({"since": since}))
        return (
            done.count,
            done.next_since,
            set(ids(await service.list(OURS, CallbacksQuery(state=CallbackState.WAITING)))),
        )

    # cb_0 is too old, cb_3 is waiting anyway.
    assert await send("2027-01-15T08:00:00.001Z") == (2, "2027-01-15T08:00:04.000Z", {"cb_1", "cb_2", "cb_3"})
    assert await send("2027-01-15T08:00:04.000Z") == (2, None, {"cb_1", "cb_2", "cb_3", "cb_4", "cb_5"})
    assert (await send("2027-01-15T08:00:00.001Z"))[:2] == (0, None)
    assert (await service.get(OURS, "cb_0")).state is CallbackState.GIVEN_UP


@databases.on_both
async def test_concurrent_requests_send_each_given_up_callback_once(replicas: databases.Replicas) -> None:
    world = World(replicas[0])
    names = {f"cb_{number}" for number in range(12)}
    for name in names:
        await add(world, name)
        await fail(world.db, name)
    services = [deliveries(world, db=replicas[number % 2]) for number in range(4)]
    body = b'{"since":"2000-01-01"}'
    done = await asyncio.gather(*(one.redeliver_given_up(OURS, body) for one in services))
    assert sum(one.count for one in done) == len(names)
    dispatcher = world.dispatcher()
    async with running(dispatcher):
        for name in names:
            await world.until_attempts(2, name)
    assert sorted(request.headers["webhook-id"] for request in world.receivers.requests) == sorted(names)
