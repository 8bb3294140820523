"""A match is counted and reported although its task is stopped before the last write of its lease is answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence

import pytest

from matchpod.ports import Database, DatabaseUnavailableError, Span, Statement
from matchpod.service.end_match import MATCH_OVER
from matchpod.service.runner.intervals import Intervals
from matchpod.service.telemetry.match_spans import MatchSpans
from tests.contract import databases
from tests.contract.world import Process, open_world
from tests.waiting import until

harness = databases.sqlite_harness

NO_PAUSES = Intervals(watch_s=3_600.0, probe_s=0.01, quiet_ms=0, log_gap_ms=0)
"""The server is probed all the time, and nothing but a test compares the matches with the database."""


def before_answer_to(process: Process, text: str, action: Callable[[], Coroutine[None, None, None]]) -> list[str]:
    """Run an action in another task once a write with this text is committed, before it is answered."""
    written: list[str] = []

    async def run_once(statements: Sequence[Statement]) -> None:
        if not written and any(text in one.sql for one in statements):
            written.append(text)
            await asyncio.create_task(action())

    process.db.after_write = run_once
    return written


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records]


async def test_end_of_a_match_is_counted_although_its_task_is_stopped_before_the_answer(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with open_world(db) as world:
        process = world.start(intervals=NO_PAUSES)

        async def watch() -> None:
            for _ in range(3):
                await process.supervisor._watch()

        written = before_answer_to(process, "INSERT INTO outcomes", watch)
        await world.create()
        assert (await world.outcome()).kind == MATCH_OVER
        assert written
        assert process.matches_ended == 1
        assert process.deps.metrics.matches_ended.value("eu", MATCH_OVER) == 1
        assert messages(caplog).count("match ended") == 1


async def test_end_of_a_match_is_counted_although_its_probe_notices_first_that_the_lease_has_ended(
    db: Database,
) -> None:
    async with open_world(db) as world:
        process = world.start(intervals=NO_PAUSES)

        async def lose_lease() -> None:
            (drive,) = process.supervisor._drives.values()
            drive.lease.lose()
            await until(drive.task.cancelling)

        written = before_answer_to(process, "INSERT INTO outcomes", lose_lease)
        await world.create()
        assert (await world.outcome()).kind == MATCH_OVER
        assert written
        assert process.matches_ended == 1


async def test_release_is_logged_and_its_spans_are_sent_although_its_task_is_stopped_before_the_answer(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    spans: list[Span] = []
    async with open_world(db) as world:
        process = world.start(intervals=NO_PAUSES, spans=MatchSpans(spans.append))
        written = before_answer_to(process, "rcon_password = ", process.supervisor._watch)
        await world.create()
        await world.outcome()
        await world.until(lambda: len(process.supervisor) == 0, "the task has ended")
        assert written
        assert [span.name for span in spans] == ["match start", "match play", "match"]
        assert messages(caplog).count("server released") == 1


async def test_end_whose_write_fails_while_its_task_is_stopped_is_repeated(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start(intervals=NO_PAUSES)
        failed: list[str] = []

        async def stop_and_fail(statements: Sequence[Statement]) -> None:
            if not failed and any("INSERT INTO outcomes" in one.sql for one in statements):
                failed.append("not written")
                (drive,) = process.supervisor._drives.values()
                for _ in range(3):
                    drive.stop()
                    await asyncio.sleep(0)
                raise DatabaseUnavailableError("no connection")

        process.db.before_write = stop_and_fail
        await world.create()
        assert (await world.outcome()).kind == MATCH_OVER
        assert failed
        assert process.matches_ended == 1
