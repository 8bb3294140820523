"""Statistics of regions are those of the matches created in the last 24 hours."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure, sentence
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service.identity.identifiers import new_server_id
from matchpod.service.regions.regions import Region, Regions
from matchpod.service.regions.statistics import DAY_MS, RegionDay, RegionStatistics, percentile
from matchpod.storage.servers import ServerRow
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.test_access import START_MS
from tests.contract.test_storage_servers import create, server
from tests.unused_fleet import UnusedFleet

harness = databases.harness

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
