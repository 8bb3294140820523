"""Matches in progress are read with all that their page needs, and recent ends are counted."""

from __future__ import annotations

import itertools

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service.end_match import end_match
from matchpod.storage import open_servers, servers
from matchpod.storage.open_servers import EndedCounts
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.contract.test_storage_servers import create, server

harness = databases.harness

NOW_MS = 1_800_000_000_000
HOUR_MS = 60 * 60 * 1000
_numbers = itertools.count(1)


async def end(db: Database, row: ServerRow, outcome: Outcome) -> None:
    result = b"{}" if outcome.is_finished else None
    await db.write(end_match(row, outcome, result=result, fence=None, callback_id=f"msg_{next(_numbers)}"))


async def test_open_servers_are_those_without_an_outcome_newest_first(db: Database) -> None:
    open_rows = [
        server("srv_1", created_at_ms=1),
        server("srv_2", created_at_ms=3, phase=ServerPhase.PENDING, status=ServerStatus.PENDING, was_pending=True),
        server("srv_3", created_at_ms=2, phase=ServerPhase.RUNNING, status=ServerStatus.RUNNING, allocated_at_ms=2),
        server("srv_4", created_at_ms=2, tries=2, error="connection refused"),
    ]
    others = [
        server("srv_5", phase=ServerPhase.RELEASED, status=ServerStatus.STOPPED),
        server("srv_6", phase=ServerPhase.ENDING, status=ServerStatus.FAILED),
        server("srv_7", org_id="org_2"),
    ]
    await create(db, *open_rows, *others)
    found = await open_servers.open_of(db, "org_1")
    assert [row.id for row in found] == ["srv_2", "srv_3", "srv_4", "srv_1"]
    pending, running, starting, _ = found
    assert (pending.was_pending, running.was_pending) == (True, False)
    assert (running.allocated_at_ms, starting.tries, starting.error) == (2, 2, "connection refused")
    assert await open_servers.open_of(db, "org_3") == []


async def test_match_is_no_longer_open_once_it_has_ended(db: Database) -> None:
    await create(db, server())
    await end(db, server(), Outcome(at_ms=NOW_MS, reason=CancelReason.CANCELED_BY_USER))
    assert await open_servers.open_of(db, "org_1") == []


async def test_ends_are_counted_from_a_time_on(db: Database) -> None:
    failed = Outcome(at_ms=NOW_MS, reason=CancelReason.SERVER_FAILED, failure=Failure.START_FAILED)
    outcomes = [
        Outcome(at_ms=NOW_MS - HOUR_MS - 1, reason=CancelReason.SERVER_LOST),
        Outcome(at_ms=NOW_MS - HOUR_MS, reason=CancelReason.CANCELED_BY_USER),
        Outcome(at_ms=NOW_MS),
        failed,
    ]
    rows = [server(f"srv_{number}") for number in range(6)]
    rows[5] = server("srv_5", org_id="org_2")
    await create(db, *rows)
    for row, outcome in zip([*rows[:4], rows[5]], [*outcomes, failed], strict=True):
        await end(db, row, outcome)
    assert await open_servers.count_ended(db, "org_1", NOW_MS - HOUR_MS) == EndedCounts(ended=3, failed=1)
    assert await open_servers.count_ended(db, "org_1", 0) == EndedCounts(ended=4, failed=2)
    assert await open_servers.count_ended(db, "org_3", 0) == EndedCounts(ended=0, failed=0)
    assert [row.id for row in await open_servers.open_of(db, "org_1")] == ["srv_4"]
    assert await servers.open_ids(db) == {row.id for row in rows}
