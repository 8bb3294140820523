"""Matches in progress are read with all that their page needs, and recent ends are found."""

from __future__ import annotations

import itertools

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service.end_match import end_match
from matchpod.storage import match_lists, servers
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
    found = await match_lists.open_of(db, "org_1")
    assert [row.id for row in found] == ["srv_2", "srv_3", "srv_4", "srv_1"]
    pending, running, starting, _ = found
    assert (pending.was_pending, running.was_pending) == (True, False)
    assert (running.allocated_at_ms, starting.tries, starting.error) == (2, 2, "connection refused")
    assert await match_lists.open_of(db, "org_3") == []


async def test_finished_matches_are_found_from_a_time_on(db: Database) -> None:
    outcomes = [
        Outcome(at_ms=NOW_MS - HOUR_MS - 1),
        Outcome(at_ms=NOW_MS - HOUR_MS),
        Outcome(at_ms=NOW_MS),
        Outcome(at_ms=NOW_MS, reason=CancelReason.SERVER_FAILED, failure=Failure.START_FAILED),
        Outcome(at_ms=NOW_MS),
    ]
    rows = [server(f"srv_{number}") for number in range(6)]
    rows[4] = server("srv_4", org_id="org_2")
    await create(db, *rows)
    for row, outcome in zip(rows, outcomes, strict=False):
        await end(db, row, outcome)
    assert await match_lists.finished_ids(db, "org_1", NOW_MS - HOUR_MS, limit=9) == ["srv_2", "srv_1"]
    assert await match_lists.finished_ids(db, "org_1", 0, limit=2) == ["srv_2", "srv_1"]
    assert await match_lists.finished_ids(db, "org_3", 0, limit=9) == []
    assert {row.id for row in await match_lists.summaries_of(db, ["srv_2", "srv_4", "srv_9"])} == {"srv_2", "srv_4"}
    assert [row.id for row in await match_lists.open_of(db, "org_1")] == ["srv_5"]
    assert await servers.open_ids(db) == {row.id for row in rows}
