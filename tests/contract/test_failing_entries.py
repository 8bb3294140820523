"""An error while an entry is applied costs the entry, not the match; nor does an error in a view end it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.match.match import Match
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DatabaseUnavailableError, Statement
from matchpod.service.history import recorder
from matchpod.service.history.recomputing import Verdict
from matchpod.service.match_log import live
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.replay import as_lost
from matchpod.service.match_log.suspects import Suspects
from matchpod.service.reading.match_details import read_progress
from matchpod.service.runner.intervals import Intervals
from matchpod.service.streams import organization_event_lines
from matchpod.storage import history, outbox
from tests.contract import databases
from tests.contract.buggy_fold import KILL, break_kills, failing_seq, set_aside
from tests.contract.ended_matches import store, store_match
from tests.contract.test_recompute import recompute_one
from tests.contract.test_remote_matches import create_match, remote_matches
from tests.contract.world import World, play_undisturbed
from tests.unit.service.match_log.test_fold import recorded

harness = databases.sqlite_harness

RETRY_AT_ONCE = Intervals(crash_ms=0, poll_s=0.05)
SET_ASIDE = "entry set aside: it cannot be applied"


async def until_released(world: World) -> None:
    """Wait until the match has ended; deadlines wait for seconds after each failure, so the clock runs faster."""
    await world.until_row(lambda row: row.phase is ServerPhase.RELEASED, "the match has ended", step_ms=500)


# --- driven matches ---------------------------------------------------------------------------------------------------


async def test_match_goes_on_without_an_entry_that_raises(
    db: Database, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected: dict[str, Any] = await play_undisturbed(db, 5)
    bug = break_kills(monkeypatch, KILL)
    process = world.start(intervals=RETRY_AT_ONCE)
    await world.create()
    await until_released(world)
    (played,), (undisturbed,) = (await world.result())["maps"], expected["result"]["maps"]
    assert process.matches_ended == 1
    assert (undisturbed["complete"], played["complete"]) == (True, False)
    for field in ("team1Score", "team2Score", "winner"):
        assert played[field] == undisturbed[field]
    assert len(played["missingRounds"]) in (1, 2), "later rounds count"
    assert len(await set_aside(db)) == 1
    assert bug.raised == 1
    assert caplog.messages.count(SET_ASIDE) == 1


async def store_only_the_log(statements: Sequence[Statement]) -> None:
    if any("INTO map_events" in one.sql or "INTO snapshots" in one.sql for one in statements):
        raise DatabaseUnavailableError("no items and no snapshots")


async def test_history_of_a_canceled_match_lacks_only_the_entry_that_raises(
    db: Database, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = world.start()
    process.db.before_write = store_only_the_log  # so that what follows is read from it, however long this takes
    await world.create()
    await world.until_live()
    await process.kill()
    break_kills(monkeypatch, 1)
    await world.cancel()
    world.clock.at_ms += 60_000
    world.start("two")
    assert (await world.outcome()).reason == CancelReason.CANCELED_BY_USER
    assert len(await set_aside(db)) == 1
    (played,) = await history.maps_of(db, "srv_1")
    assert await history.stats_of(db, played.id) is not None


async def test_deadline_that_always_raises_ends_the_match(
    db: Database, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is appended again each time: without an end, the match would never have an outcome."""

    def tick(_match: Match, _now_ms: int) -> object:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Match, "tick", tick)
    world.speed = 1000.0
    world.start(intervals=RETRY_AT_ONCE)
    await world.create(scenario="no_show")
    await until_released(world)
    outcome = await outbox.outcome_of(db, "srv_1")
    assert outcome is not None
    assert outcome.reason == CancelReason.SERVER_FAILED


async def test_error_in_the_history_does_not_end_a_match(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def history_of(*_args: object, **_options: object) -> object:
        raise RuntimeError("a bug")

    monkeypatch.setattr(recorder, "history_of", history_of)
    world.start()
    await world.create()
    outcome = await world.outcome()
    assert outcome.kind == "match_over"
    assert json.loads(outcome.result or b"")["maps"][0]["complete"] is True


async def test_timeline_is_complete_after_an_error_in_the_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    events_of, calls = organization_event_lines.map_events_of, 0

    def map_events_of(*args: object) -> object:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise RuntimeError("a bug")
        return events_of(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(recorder, "map_events_of", map_events_of)
    world.start(intervals=Intervals(history_retry_ms=100))
    await world.create()
    assert (await world.outcome()).kind == "match_over"  # and the stored timeline equals that of a replay
    assert calls > 3


# --- reading ----------------------------------------------------------------------------------------------------------


async def test_reader_of_another_process_goes_on_without_the_entry(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, entries = await create_match(db), recorded().entries
    break_kills(monkeypatch, KILL)
    seq = failing_seq(entries, row)
    await store(db, entries[: seq + 20])
    remote = remote_matches(db)
    state = await remote.state(row)
    fold = Fold.begin(row, 1.0)
    for entry in entries[: seq + 20]:
        fold.apply(as_lost(entry) if entry.seq == seq else entry)
    assert state == fold.state()
    assert await set_aside(db) == [], "only the process that drives the match decides"
    await Suspects(db, FoldTurns()).set_aside(entries[seq - 1])
    assert await remote.state(row) == state


async def test_error_in_a_view_is_logged(
    db: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def progress(_fold: Fold) -> object:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Fold, "progress", progress)
    row = await create_match(db)
    assert await read_progress(row, live=LocalMatches(), remote=remote_matches(db)) is None
    assert caplog.messages == ["match view could not be built"]
    assert live._log.name == caplog.records[0].name


async def test_recomputing_a_match_that_raises_changes_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await store_match(db)
    break_kills(monkeypatch, KILL)
    found = await recompute_one(db, write=True)
    assert found.verdict is Verdict.FAILED
    assert await set_aside(db) == []
