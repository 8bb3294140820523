"""The history of a match is complete and consistent with its outcome, regardless of disturbances.

Machines stall, clocks are set back, databases reject writes, versions change, servers post after the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.match.played_map import MapStatus
from matchpod.core.match.timers import Timers
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase
from matchpod.cs2.map_flow import CONFIRM_TIMEOUT_MS
from matchpod.ports import Database, DatabaseError, Statement
from matchpod.service.end_match import end_match
from matchpod.service.history.recomputing import Verdict
from matchpod.service.history.rows import history_of
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import CATCH_UP_MS, Fold
from matchpod.service.runner.intervals import Intervals
from matchpod.service.streams.map_streams import Reader
from matchpod.storage import history, outbox, raw_log
from matchpod.storage.raw_log import RawEntry
from tests.contract import databases, ended_matches
from tests.contract.history_checks import assert_final_history, timeline_of
from tests.contract.test_recompute import recompute_one
from tests.contract.world import SETTINGS, SPEED, Process, World
from tests.unit.service.history.sample_log import first_round, log_post, players_join
from tests.unit.service.match_log.test_fold import recorded, row_of
from tests.unit.simulator.played_match import START_MS

harness = databases.sqlite_harness

FAST = 40.0
JOIN_MS = round(Timers().at_speed(FAST).join_s * 1000)
"""Players of a fast region have seven and a half seconds to join."""
OWNER = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))
STREAM_S = 120.0
FAIL_FAST = Intervals(crash_ms=0, poll_s=0.05)
"""Failed steps of a match are retried at once, so that it fails soon."""


async def count_items(db: Database, world: World) -> int:
    return len((await timeline_of(db, await world.row())).get(1, []))


async def types_of(db: Database, world: World) -> list[str]:
    """The types of the stored items of the first map."""
    return [json.loads(line)["type"] for line in (await timeline_of(db, await world.row()))[1]]


async def read_to_end(reader: Reader) -> int:
    """Read a stream to its end; return the number of its items."""
    count = 0
    async with asyncio.timeout(STREAM_S):
        while (frames := await reader.next(1.0)) is not None:
            count += frames.count(b"\n\n")
    assert reader.is_over
    return count


# --- time -------------------------------------------------------------------------------------------------------------


async def begin_waiting(world: World) -> Process:
    """Drive a match that waits for its players, whose server posts nothing more."""
    world.speed = FAST
    process = world.start()
    process.db.is_shared = False  # so that only the log entry wakes the runner
    await world.create(scenario="no_show")
    await world.until_phase(ServerPhase.RUNNING)
    world.region.is_paused = True
    return process


async def test_canceled_match_keeps_its_history_after_a_deadline_that_was_missed(db: Database, world: World) -> None:
    process = await begin_waiting(world)
    await world.until_applied()
    world.clock.at_ms += JOIN_MS + CATCH_UP_MS
    await world.post(log_post(*players_join(), *first_round()))
    await world.until_live()
    assert not await raw_log.has_kind(db, "srv_1", EntryKind.DEADLINE, after_seq=0)
    await world.cancel(notified=process)
    assert (await world.outcome()).reason == CancelReason.CANCELED_BY_USER
    (only,) = await history.maps_of(db, "srv_1")
    assert (only.status, only.team1_score, only.player_count) == (MapStatus.CANCELLED, 1, 4)
    assert only.started_at_ms is not None
    assert (await types_of(db, world))[-4:] == ["round_start", "kill", "round_end", "map_end"]


async def test_replay_does_not_end_a_map_by_a_timeout_that_its_runner_missed(db: Database, world: World) -> None:
    process = await begin_waiting(world)
    await world.until_driven()
    game_over = "Game Over: competitive  de_nuke score 3:1 after 1 min"
    await world.post(log_post(*players_join(), *first_round(), game_over))
    await world.until_live()
    # Nothing else confirms the end, and the process stalls until its timeout has passed. But play goes on.
    world.clock.at_ms += CONFIRM_TIMEOUT_MS + CATCH_UP_MS // 2
    await world.post(log_post('World triggered "Round_Start"', *first_round()[-3:]))
    await world.until_applied()
    await world.cancel(notified=process)
    await world.outcome()  # compares the stored history with a replay
    assert (await types_of(db, world)).count("kill") == 2


async def test_slow_write_does_not_delay_a_later_deadline(world: World) -> None:
    process = await begin_waiting(world)
    delayed: list[Sequence[Statement]] = []

    async def write_slowly(statements: Sequence[Statement]) -> None:
        if not delayed and any("INTO map_events" in one.sql for one in statements):
            delayed.append(statements)
            world.clock.at_ms += 2_500  # of the 7.5 s to join

    process.db.before_write = write_slowly
    live = await world.until_driven()
    await world.post(log_post(players_join()[0]))
    await world.until(lambda: bool(delayed), "an item was written slowly")
    due_ms = live.fold.due_ms()
    assert due_ms is not None
    outcome = await world.outcome()
    assert outcome.reason == CancelReason.INCOMPLETE_ROSTER
    assert outcome.at_ms - due_ms < CATCH_UP_MS // 2


# --- rejected writes and errors ---------------------------------------------------------------------------------------

LONG = "".join(chr(0x4E00 + 37 * number % 20_000) for number in range(1_200))
"""A name that is too long for an index of PostgreSQL, even compressed."""


@pytest.mark.parametrize(
    ("map_name", "team_name", "stored"),
    [
        ("de_\0", "Reds", ("de_\ufffd", "Reds")),
        ("de_nuke", "Re\0ds", ("de_nuke", "Re\ufffdds")),
        (LONG, "Reds", (LONG[:128], "Reds")),
    ],
    ids=["map", "team", "long"],
)
async def test_names_are_sanitized_and_truncated_for_the_database(
    db: Database, map_name: str, team_name: str, stored: tuple[str, str]
) -> None:
    row = row_of(msgspec.structs.replace(SETTINGS, team1=None, team2=None), game_id=ended_matches.game_id("srv_1"))
    fold = Fold.begin(row, 1.0)
    body = log_post(f'Loading map "{map_name}"', *players_join(), *first_round(map_name, team_name))
    fold.apply(
        RawEntry(server_id=row.id, seq=1, kind=EntryKind.LOG, received_ms=START_MS + 1_000, headers=b"{}", body=body)
    )
    await db.write(history.replace(history_of(row, fold.match, server_name="Europe 1")))
    (only,) = await history.maps_of(db, row.id)
    series = await history.series_of(db, row.id)
    assert series is not None
    assert (only.played_map_name, only.team1_name) == stored
    assert series.team1_name == stored[1]


async def test_match_ends_even_if_the_database_rejects_its_history(db: Database, world: World) -> None:
    process = world.start(intervals=FAIL_FAST)

    async def reject(statements: Sequence[Statement]) -> None:
        if any(name.startswith("team1_name") for one in statements for name in one.params):
            raise DatabaseError("invalid character")

    process.db.before_write = reject
    await world.create()
    await world.until_phase(ServerPhase.RELEASED)
    outcome = await outbox.outcome_of(db, "srv_1")
    assert outcome is not None
    assert outcome.reason == CancelReason.SERVER_FAILED
    (only,) = await history.maps_of(db, "srv_1")
    assert (only.status, only.is_final) == (MapStatus.CANCELLED, True)
    assert process.deps.metrics.crashes.value("history") == 1


async def test_history_that_cannot_be_finalized_is_repaired_by_recompute(
    db: Database, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await world.live_match(intervals=FAIL_FAST)
    world.region.is_paused = True
    (only,) = await history.maps_of(db, "srv_1")
    reader = await process.deps.streams.open_map(only, 0)
    assert reader is not None
    streaming = asyncio.create_task(read_to_end(reader))
    with monkeypatch.context() as patched:
        break_finalizing(patched)
        await world.cancel(notified=process)
        world.region.is_paused = False
        await world.until_phase(ServerPhase.RELEASED)
        stored = await count_items(db, world)
        assert await streaming == stored
        reader.close()
        (only,) = await history.maps_of(db, "srv_1")
        assert (only.status, only.is_final) == (MapStatus.CANCELLED, True)
        detail = await process.history.map(OWNER, only.id)
        assert (detail.status, bytes(detail.players)) == (MapStatus.CANCELLED, b"[]")
    found = await recompute_one(db, write=True, speed=SPEED)
    assert (found.verdict, found.is_written) == (Verdict.CHANGED, True)
    assert await count_items(db, world) > stored
    await assert_final_history(db, await world.row(), SPEED)


def break_finalizing(patched: pytest.MonkeyPatch) -> None:
    """Raise an error when the history of an ended match is built."""

    def broken(*_args: object, **_options: object) -> object:
        raise RuntimeError("a bug")

    patched.setattr("matchpod.service.history.finalize.history_of", broken)


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [0, 100])
async def test_log_after_the_end_changes_nothing(db: Database, entries: int) -> None:
    """Neither log that is stored before the history is final, nor log that is stored later."""
    row = await ended_matches.store_match(db, entries=entries, phase=ServerPhase.RUNNING)
    now_ms = recorded().entries[entries].received_ms
    outcome = Outcome(at_ms=now_ms, reason=CancelReason.CANCELED_BY_USER)
    await db.write(end_match(row, outcome, fence=None, callback_id="cb"))
    row = await ended_matches.server_row(db, "srv_1")
    await ended_matches.store(db, recorded().entries[entries : entries + 50])
    await ended_matches.finalize_match(db, row, now_ms)
    await assert_final_history(db, row, 1.0)
    maps = await history.maps_of(db, "srv_1")
    assert max((one.finished_at_ms or 0 for one in maps), default=0) <= now_ms
    before = await timeline_of(db, row)
    await db.write([Statement("UPDATE servers SET phase = 'released'")])
    await ended_matches.store(db, recorded().entries[entries + 50 :])
    found = await recompute_one(db, write=True)
    assert found.verdict is Verdict.UNCHANGED
    assert await timeline_of(db, row) == before
    assert await history.maps_of(db, "srv_1") == maps


async def test_history_is_finalized_if_the_region_was_removed(db: Database, world: World) -> None:
    await world.create(
        game=recorded().settings,
        region="unknown",
        phase=ServerPhase.RUNNING,
        slot="a",
        created_at_ms=START_MS,
        allocated_at_ms=START_MS,
    )
    await ended_matches.store(db, recorded().entries[:100])
    world.start()
    await world.until_phase(ServerPhase.ENDING)

    async def is_final() -> bool:
        return all(one.is_final for one in await history.maps_of(db, "srv_1"))

    await world.until(is_final, "its history is final")
    outcome = await outbox.outcome_of(db, "srv_1")
    assert outcome is not None
    assert outcome.reason == CancelReason.SERVER_LOST
    await assert_final_history(db, await world.row(), 1.0)
    assert (await types_of(db, world))[-1] == "map_end"
