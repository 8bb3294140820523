"""What people see of regions: statistics of the matches of the last 24 hours, and alerts.

A region that does not start matches is one alert with the number of matches behind it, for every page.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure, sentence
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service.identity.identifiers import new_server_id
from matchpod.service.regions.alerts import KEPT_MS, AlertKind, RegionAlert, RegionAlerts
from matchpod.service.regions.regions import Region, RegionCondition, Regions
from matchpod.service.regions.statistics import DAY_MS, RegionDay, RegionStatistics, percentile
from matchpod.storage.servers import ServerRow
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.test_access import START_MS
from tests.contract.test_storage_servers import create, server
from tests.unused_fleet import UnusedFleet

harness = databases.mostly_sqlite_harness

SINCE_MS = START_MS - DAY_MS


def match(number: int, created_at_ms: int, *, bring_up_ms: int | None = None, **fields: object) -> ServerRow:
    running_at_ms = None if bring_up_ms is None else created_at_ms + bring_up_ms
    server_id = new_server_id(created_at_ms, number.to_bytes(10, "big"))
    return server(server_id, created_at_ms=created_at_ms, running_at_ms=running_at_ms, **fields)


def failed(number: int, created_at_ms: int, ended_at_ms: int, failure: Failure | None = None, **f: object) -> ServerRow:
    fields = {"phase": ServerPhase.RELEASED, "status": ServerStatus.FAILED, "reason": CancelReason.SERVER_FAILED, **f}
    row = match(number, created_at_ms, ended_at_ms=ended_at_ms, failure=failure)
    return msgspec.structs.replace(row, **fields)


def statistics(db: Database) -> RegionStatistics:
    fleet = UnusedFleet()
    regions = [Region(code=code, name=code, location="", fleet=fleet) for code in ("us", "eu")]
    return RegionStatistics(db=db, clock=ManualClock(START_MS), regions=Regions(regions, db))


@databases.on_both
async def test_matches_of_the_last_day_are_counted_by_region(db: Database) -> None:
    await create(
        db,
        match(1, SINCE_MS - 1, bring_up_ms=9_000),
        match(2, SINCE_MS, bring_up_ms=3_000),
        match(3, START_MS, bring_up_ms=1_000),
        match(4, START_MS),
        match(5, START_MS, bring_up_ms=2_000),
        match(6, START_MS, region="removed", bring_up_ms=5_000),
        match(7, START_MS, org_id="org_2", bring_up_ms=7_000),
    )
    us = RegionDay(code="us")
    removed = RegionDay(code="removed", created=1, bring_up_p50_ms=5_000, bring_up_p95_ms=5_000)
    assert await statistics(db).last_day("org_1") == [
        us, RegionDay(code="eu", created=4, bring_up_p50_ms=2_000, bring_up_p95_ms=3_000), removed,
    ]  # fmt: skip
    assert await statistics(db).last_day(None) == [
        us, RegionDay(code="eu", created=5, bring_up_p50_ms=2_000, bring_up_p95_ms=7_000), removed,
    ]  # fmt: skip
    assert await statistics(db).last_day("org_3") == [us, RegionDay(code="eu")]


@databases.on_both
async def test_last_failure_is_the_one_that_ended_last(db: Database) -> None:
    await create(
        db,
        failed(1, SINCE_MS - 1, START_MS),
        failed(2, START_MS - 9, START_MS - 1, Failure.MAP_NOT_LOADED),
        failed(3, START_MS - 8, START_MS - 5, Failure.START_FAILED),
        match(4, START_MS - 7, ended_at_ms=START_MS, status=ServerStatus.STOPPED, reason=CancelReason.CANCELED_BY_USER),
        failed(5, START_MS - 6, START_MS - 2, region="us", reason=CancelReason.NO_CAPACITY),
    )
    us, eu = await statistics(db).last_day("org_1")
    assert (us.created, us.failures, us.last_failure_at_ms) == (1, 1, START_MS - 2)
    assert us.last_failure == sentence(CancelReason.NO_CAPACITY, None)
    assert (eu.created, eu.failures, eu.last_failure_at_ms) == (3, 2, START_MS - 1)
    assert eu.last_failure == sentence(CancelReason.SERVER_FAILED, Failure.MAP_NOT_LOADED)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, None),
        ([7], 50, 7),
        ([7], 95, 7),
        ([2, 1], 50, 1),
        ([3, 1, 2], 50, 2),
        ([*range(1, 101)], 95, 95),
        ([*range(1, 21)], 95, 19),
        ([*range(1, 22)], 95, 20),
    ],
)
def test_percentile_is_the_nearest_rank(values: list[int], percent: int, expected: int | None) -> None:
    assert percentile(values, percent) == expected


# --- alerts -----------------------------------------------------------------------------------------------------------

PENDING: dict[str, Any] = {"phase": ServerPhase.PENDING, "status": ServerStatus.PENDING}
STARTING: dict[str, Any] = {"phase": ServerPhase.ALLOCATING, "status": ServerStatus.ALLOCATING, "tries": 1}


class World:
    """The region `eu`, which has two servers unless it is full, and the clock."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = ManualClock(START_MS)
        self.fleet = UnusedFleet()
        self.fleet.slots = ("a", "b")
        regions = Regions([Region(code="eu", name="", location="", fleet=self.fleet)], db)
        self.alerts = RegionAlerts(db=db, clock=self.clock, regions=regions)

    async def found(self, org_id: str | None = "org_1") -> list[RegionAlert]:
        self.clock.at_ms += KEPT_MS
        return list(await self.alerts.read(org_id))


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


def brief(alerts: list[RegionAlert]) -> list[tuple[str, AlertKind, int]]:
    return [(one.region, one.kind, one.count) for one in alerts]


async def test_region_that_works_has_none(world: World) -> None:
    await create(
        world.db, match(1, START_MS, bring_up_ms=1_000), match(2, START_MS, **PENDING), match(3, START_MS, **STARTING)
    )
    assert await world.found() == []


@databases.on_both
async def test_matches_that_wait_for_a_minute_are_those_of_their_region(world: World) -> None:
    await create(
        world.db,
        match(1, START_MS - 61_000, **PENDING),
        match(2, START_MS, **PENDING),
        match(3, START_MS - 90_000, region="removed", **PENDING),
        match(4, START_MS, org_id="org_2", **PENDING),
    )
    (here, removed) = await world.found()
    assert (here.region, here.kind, here.count, here.since_ms) == ("eu", AlertKind.PENDING, 2, START_MS - 61_000)
    assert (here.condition, here.is_urgent) == (RegionCondition.ON, True)
    assert (removed.region, removed.condition, removed.count) == ("removed", None, 1)
    assert await world.found("org_2") == []
    assert [one.count for one in await world.found(None)] == [3, 1]


async def test_full_region_is_told_also_if_no_match_waits(world: World) -> None:
    world.fleet.slots = ()
    (full,) = await world.found()
    assert (full.kind, full.count, full.is_urgent) == (AlertKind.FULL, 0, False)
    await create(world.db, match(1, world.clock.at_ms, **PENDING))
    assert brief(await world.found()) == [("eu", AlertKind.FULL, 1)]
    world.clock.at_ms += 60_000
    assert brief(await world.found()) == [("eu", AlertKind.PENDING, 1)]


async def test_second_tries_of_several_matches_are_those_of_their_region(world: World) -> None:
    await create(world.db, match(1, START_MS - 5_000, **STARTING))
    assert await world.found() == []
    await create(
        world.db,
        match(2, START_MS, **STARTING),
        match(3, START_MS, bring_up_ms=9, **{**STARTING, "phase": ServerPhase.RUNNING}),
    )
    (found,) = await world.found()
    assert (found.kind, found.count, found.since_ms) == (AlertKind.TRIES, 2, START_MS - 5_000)


@databases.on_both
async def test_region_whose_last_creations_failed_is_told_until_one_works(world: World) -> None:
    begin_ms = START_MS - 600_000
    await create(
        world.db,
        failed(1, begin_ms, begin_ms + 10),
        match(2, begin_ms + 1, bring_up_ms=5),
        failed(3, begin_ms + 2, begin_ms + 20),
    )
    assert await world.found() == [], "one failure may have any cause"
    await create(
        world.db,
        failed(4, begin_ms + 3, begin_ms + 30, reason=CancelReason.NO_CAPACITY),
        failed(5, begin_ms + 4, begin_ms + 40, reason=CancelReason.CANCELED_BY_USER),
        match(6, begin_ms + 5, **PENDING | {"phase": ServerPhase.ALLOCATING}),
        failed(7, begin_ms + 6, begin_ms + 50, org_id="org_2"),
    )
    (found,) = await world.found()
    assert (found.kind, found.count, found.since_ms) == (AlertKind.FAILED, 2, begin_ms + 30)
    assert brief(await world.found(None)) == [("eu", AlertKind.FAILED, 3)]
    await create(world.db, match(8, begin_ms + 7, bring_up_ms=5))
    assert await world.found() == []
    world.clock.at_ms += 3_600_000


async def test_lines_are_read_again_only_after_a_while(world: World) -> None:
    assert await world.alerts.read("org_1") == ()
    world.fleet.slots = ()
    world.clock.at_ms += KEPT_MS - 1
    assert await world.alerts.read("org_1") == ()
    world.clock.at_ms += 1
    assert len(await world.alerts.read("org_1")) == 1
