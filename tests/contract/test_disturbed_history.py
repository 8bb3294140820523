"""The history of a match is whole and says what its outcome says, whatever disturbed whoever followed it.

Machines stand still, clocks are set back, databases refuse, versions change, servers talk on after the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.played_map import MapStatus
from matchpod.core.server_status import ServerPhase
from matchpod.core.timers import Timers
from matchpod.ports import Database, DatabaseError, Row, Statement
from matchpod.service import supervisor
from matchpod.service.conclusion import Ending, conclude
from matchpod.service.folding import HEARING_MS, LOG, RESUMED, Fold
from matchpod.service.history.reading import History
from matchpod.service.history.recomputing import Place, Recompute, Verdict
from matchpod.service.history.rows import history_of
from matchpod.service.history.settling import settle
from matchpod.service.history.streams import Reader, Streams
from matchpod.service.ingest import Ingest
from matchpod.service.live import LiveMatches
from matchpod.service.principals import Principal, Role, Scope
from matchpod.service.runner.follow import SNAPSHOT_MS
from matchpod.service.spectators import Spectators
from matchpod.storage import history, outbox, raw_log, snapshots
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import LEASE_MS
from matchpod.storage.snapshots import Snapshot
from tests.contract import databases, ended_matches
from tests.contract.driven_matches import SETTINGS, SPEED, Process, World, world
from tests.contract.told_history import assert_told, timeline_of
from tests.unit.service.history.spoken_lines import coming, first_round, logged
from tests.unit.service.test_folding import recorded, row_of
from tests.unit.simulator.played_match import START_MS

home = databases.sqlite_home

FAST = 40.0
JOIN_MS = round(Timers().at_speed(FAST).join_s * 1000)
"""Players of a fast region have seven and a half seconds to come."""
OWNER = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))
STREAM_S = 120.0


async def count_items(db: Database, around: World) -> int:
    return len((await timeline_of(db, await around.row())).get(1, []))


async def types_of(db: Database, around: World) -> list[str]:
    """What is told of the first map."""
    return [json.loads(line)["type"] for line in (await timeline_of(db, await around.row()))[1]]


def ingest_of(around: World, process: Process) -> Ingest:
    ingest = around.region.listener(process.base)
    assert ingest is not None
    return ingest


async def read_to_end(reader: Reader) -> int:
    """How many items a stream gives until it ends."""
    count = 0
    async with asyncio.timeout(STREAM_S):
        while (frames := await reader.next(1.0)) is not None:
            count += frames.count(b"\n\n")
    assert reader.is_over
    return count


# --- time -------------------------------------------------------------------------------------------------------------


def test_a_match_that_went_on_after_an_alarm_was_slept_through_keeps_its_history_when_it_is_canceled(
    home: databases.Home,
) -> None:
    async def scenario(db: Database) -> None:
        async with world(db, speed=FAST) as around:
            process = around.start()
            process.db.is_shared = False  # so that the entry is what wakes it
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            around.region.is_still = True
            row, ingest = await around.row(), ingest_of(around, process)

            async def is_followed() -> bool:
                return process.live.get("srv_1") is not None

            await around.until(is_followed, "it is followed")
            await asyncio.sleep(0.3)
            around.clock.ahead_ms += JOIN_MS + HEARING_MS
            assert await ingest.take_log(row.log_token, {}, logged(*coming(), *first_round())) == 200
            await around.live()
            assert not await raw_log.has_kind(db, "srv_1", RESUMED, after_seq=0), "nothing in the log says so"
            await around.cancel()
            process.supervisor.notify("srv_1")
            assert (await around.outcome()).reason == CancelReason.CANCELED_BY_USER
            (only,) = await history.maps_of(db, "srv_1")
            assert (only.status, only.team1_score, only.player_count) == (MapStatus.CANCELLED, 1, 4)
            assert only.started_at_ms is not None
            assert (await types_of(db, around))[-4:] == ["round_start", "kill", "round_end", "map_end"]

    home.run(scenario)


def test_one_slow_write_does_not_delay_an_alarm_that_is_due_later(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(db: Database) -> None:
        async with world(db, speed=FAST) as around:
            process = around.start()
            process.db.is_shared = False
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            around.region.is_still = True
            row, ingest = await around.row(), ingest_of(around, process)
            write = process.db.write
            delayed: list[Sequence[Statement]] = []

            async def write_slowly(statements: Sequence[Statement]) -> list[list[Row]]:
                if not delayed and any("INTO map_events" in one.sql for one in statements):
                    delayed.append(statements)
                    around.clock.ahead_ms += 2_500  # of the seven and a half seconds
                return await write(statements)

            monkeypatch.setattr(process.db, "write", write_slowly)
            assert await ingest.take_log(row.log_token, {}, logged(coming()[0])) == 200
            live = process.live.get("srv_1")
            assert live is not None

            async def is_due() -> bool:
                return bool(delayed)

            await around.until(is_due, "an item was written slowly")
            due_ms = live.fold.next_deadline_ms()
            assert due_ms is not None
            outcome = await around.outcome()
            assert outcome.reason == CancelReason.INCOMPLETE_ROSTER
            assert outcome.at_ms - due_ms < HEARING_MS // 2

    home.run(scenario)


def test_a_clock_that_is_set_back_keeps_nothing_from_readers(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.clock.ahead_ms = 600_000
            process = around.start()
            await around.create(seed=3, game=msgspec.structs.replace(SETTINGS, max_rounds=30))
            await around.live()
            around.clock.ahead_ms -= 60_000
            before = await count_items(db, around)

            async def is_told_on() -> bool:
                return await count_items(db, around) > before

            await around.until(is_told_on, "more is told", within_s=10.0)
            (only,) = await history.maps_of(db, "srv_1")
            assert only.status is MapStatus.LIVE, "not only when it had ended"
            await around.cancel()
            process.supervisor.notify("srv_1")
            await around.outcome()

    home.run(scenario)


# --- other versions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_canceled", [False, True])
def test_a_match_from_before_there_were_timelines_is_told_from_its_start(
    home: databases.Home, *, is_canceled: bool
) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            dead = around.start("dead")
            await around.create()
            await around.live()
            around.clock.ahead_ms += SNAPSHOT_MS

            async def is_kept() -> bool:
                return await snapshots.load(db, "srv_1") is not None

            await around.until(is_kept, "a snapshot is kept")
            around.region.is_still = is_canceled
            await dead.die()
            await forget_history(db, around)
            around.clock.ahead_ms += LEASE_MS
            heir = around.start("heir")
            if is_canceled:

                async def is_told() -> bool:
                    return await count_items(db, around) > 0

                await around.until(is_told, "something is told")
                await around.cancel()
                heir.supervisor.notify("srv_1")
            await around.outcome()
            types = await types_of(db, around)
            assert types[0] == "player_connected"
            assert types.count("map_live") == types.count("map_end") == 1
            assert types.count("round_start") >= 1

    home.run(scenario)


async def forget_history(db: Database, around: World) -> None:
    """Leave a match as a version without history stored it."""
    row, snapshot = await around.row(), await snapshots.load(db, "srv_1")
    assert snapshot is not None
    _, state = msgspec.msgpack.decode(snapshot.state)
    del state["reader"]["timeline"]
    old = Snapshot(snapshot.seq, msgspec.msgpack.encode(state))
    tables = ("maps", "series", "map_events", "history_counts")
    await db.write([*snapshots.save(row.id, row.fence, old), *(Statement(f"DELETE FROM {name}") for name in tables)])


# --- what cannot be stored, or not be read ----------------------------------------------------------------------------

LONG = "".join(chr(0x4E00 + 37 * number % 20_000) for number in range(1_200))
"""Longer than an index of PostgreSQL takes, however it is compressed."""


@pytest.mark.parametrize(
    ("map_name", "team_name", "stored"),
    [
        ("de_\0", "Reds", ("de_\ufffd", "Reds")),
        ("de_nuke", "Re\0ds", ("de_nuke", "Re\ufffdds")),
        (LONG, "Reds", (LONG[:128], "Reds")),
    ],
    ids=["map", "team", "long"],
)
def test_names_that_a_database_refuses_are_stored_without_what_it_refuses(
    home: databases.Home, map_name: str, team_name: str, stored: tuple[str, str]
) -> None:
    async def scenario(db: Database) -> None:
        row = row_of(msgspec.structs.replace(SETTINGS, team1=None, team2=None), game_id=ended_matches.game_id("srv_1"))
        fold = Fold.begin(row, 1.0)
        body = logged(f'Loading map "{map_name}"', *coming(), *first_round(map_name, team_name))
        fold.take(RawEntry(server_id=row.id, seq=1, kind=LOG, received_ms=START_MS + 1_000, headers=b"{}", body=body))
        await db.write(history.replace(history_of(row, fold.reader.match, server_name="Europe 1")))
        (only,) = await history.maps_of(db, row.id)
        series = await history.series_of(db, row.id)
        assert series is not None
        assert (only.map_name, only.team1_name) == stored
        assert series.team1_name == stored[1]

    home.run(scenario)


def test_a_match_whose_history_the_database_refuses_ends_all_the_same(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_fast(monkeypatch)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            write = process.db.write

            async def refuse(statements: Sequence[Statement]) -> list[list[Row]]:
                if any(name.startswith("team1_name") for one in statements for name in one.params):
                    raise DatabaseError("a character that is in no repertoire")
                return await write(statements)

            monkeypatch.setattr(process.db, "write", refuse)
            await around.create()
            await around.phase(ServerPhase.RELEASED)
            outcome = await outbox.outcome_of(db, "srv_1")
            assert outcome is not None
            assert outcome.reason == CancelReason.SERVER_FAILED
            (only,) = await history.maps_of(db, "srv_1")
            assert (only.status, only.is_final) == (MapStatus.CANCELLED, True)
            assert process.around.measures.crashes.value("history") == 1

    home.run(scenario)


def test_a_history_that_cannot_be_settled_is_given_up_until_it_is_read_again(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_fast(monkeypatch)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create()
            await around.live()
            around.region.is_still = True
            await asyncio.sleep(0.3)
            (only,) = await history.maps_of(db, "srv_1")
            reader = await process.around.streams.open_map(only, 0)
            assert reader is not None
            streaming = asyncio.create_task(read_to_end(reader))
            with monkeypatch.context() as patched:
                await misread_from(db, patched)
                around.region.is_still = False
                await around.phase(ServerPhase.RELEASED)
                told = await count_items(db, around)
                assert await streaming == told
                reader.close()
                (only,) = await history.maps_of(db, "srv_1")
                assert (only.status, only.is_final) == (MapStatus.CANCELLED, True)
                spectators = Spectators(db=db, regions=process.around.regions)
                detail = await History(db=db, live=process.live, spectators=spectators).map(OWNER, only.id)
                assert (detail.status, bytes(detail.players)) == (MapStatus.CANCELLED, b"[]")
            found = await Recompute(db=db, places={"eu": Place("Europe", SPEED)}, events_since_ms=0).one(
                "srv_1", write=True
            )
            assert found is not None
            assert (found.verdict, found.is_written) == (Verdict.CHANGED, True)
            assert await count_items(db, around) > told
            await assert_told(db, await around.row(), SPEED)

    home.run(scenario)


def fail_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try a match again at once whose step failed, until it is given up."""
    monkeypatch.setattr(supervisor, "CRASH_MS", 0)
    monkeypatch.setattr(supervisor, "POLL_S", 0.05)


async def misread_from(db: Database, patched: pytest.MonkeyPatch) -> None:
    """Have a mistake of ours in reading what the server says from now on."""
    read, newest = Fold._read, await raw_log.newest_seq(db, "srv_1")

    def misread(fold: Fold, entry: RawEntry) -> object:
        if entry.kind == LOG and entry.seq > newest:
            raise RuntimeError("a mistake of ours")
        return read(fold, entry)

    patched.setattr(Fold, "_read", misread)


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [0, 100])
def test_what_a_server_says_after_the_end_changes_nothing(home: databases.Home, entries: int) -> None:
    """Neither when it is said before the history is final, nor when it is said later."""

    async def scenario(db: Database) -> None:
        row = await ended_matches.play(db, entries=entries, phase=ServerPhase.RUNNING)
        now_ms = recorded().entries[entries].received_ms
        ending = Ending(reason=CancelReason.CANCELED_BY_USER)
        await db.write(conclude(row, ending, fence=None, now_ms=now_ms, callback_id="cb"))
        row = await ended_matches.stored(db, "srv_1")
        await say_on(db, entries, entries + 50)
        streams = Streams(db=db, live=LiveMatches())
        await settle(db, row, speed=1.0, server_name="Europe 1", streams=streams, now_ms=now_ms)
        await assert_told(db, row, 1.0)
        maps = await history.maps_of(db, "srv_1")
        assert max((one.finished_at_ms or 0 for one in maps), default=0) <= now_ms
        told = await timeline_of(db, row)
        await db.write([Statement("UPDATE servers SET phase = 'released'")])
        await say_on(db, entries + 50, len(recorded().entries))
        found = await Recompute(db=db, places={"eu": Place("Europe", 1.0)}, events_since_ms=0).one("srv_1", write=True)
        assert found is not None
        assert found.verdict is Verdict.UNCHANGED
        assert await timeline_of(db, row) == told
        assert await history.maps_of(db, "srv_1") == maps

    home.run(scenario)


async def say_on(db: Database, start: int, end: int) -> None:
    statements: list[Statement] = []
    for one in recorded().entries[start:end]:
        statements += raw_log.append("srv_1", one.kind, received_ms=one.received_ms, headers=one.headers, body=one.body)
    await db.write(statements)


def test_the_history_of_a_match_whose_region_was_removed_is_final(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            await around.create(
                game=recorded().settings,
                region="away",
                phase=ServerPhase.RUNNING,
                slot="a",
                created_at_ms=START_MS,
                allocated_at_ms=START_MS,
            )
            await say_on(db, 0, 100)
            around.start()
            await around.phase(ServerPhase.ENDING)

            async def is_final() -> bool:
                return all(one.is_final for one in await history.maps_of(db, "srv_1"))

            await around.until(is_final, "its history is final", within_s=10.0)
            outcome = await outbox.outcome_of(db, "srv_1")
            assert outcome is not None
            assert outcome.reason == CancelReason.SERVER_LOST
            await assert_told(db, await around.row(), 1.0)
            assert (await types_of(db, around))[-1] == "map_end"

    home.run(scenario)
