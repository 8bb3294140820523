"""Entries that fail or kill processes are found and set aside, and no others are."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from matchpod.app.serving import record_deaths
from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DatabaseUnavailableError, Row, Statement
from matchpod.service.match_log.entries import NO_HEADERS, EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import EntryFailedError, FoldTurns
from matchpod.service.match_log.replay import as_lost, replay
from matchpod.service.match_log.suspects import MAX_DEATHS, MAX_MATCH_DEATHS, DeadlyMatchError, Suspects
from matchpod.storage import heartbeats, raw_log, servers, snapshots, unfinished
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import LEASE_MS, ServerRow
from matchpod.storage.snapshots import Snapshot
from matchpod.storage.unfinished import ALONE, RESUMING
from tests.contract import databases
from tests.contract.buggy_fold import KILL, break_kills, failing_seq, set_aside
from tests.contract.databases import HookedDatabase
from tests.contract.ended_matches import store
from tests.contract.test_remote_matches import create_match
from tests.contract.world import Process, World
from tests.unit.service.match_log.test_fold import recorded

harness = databases.mostly_sqlite_harness

DEADLY = 7
"""The entry that kills."""


class KilledError(BaseException):
    """Stands for the death of the process: nothing after it runs."""


class SharedDatabase(databases.DelegatingDatabase):
    """Shared by several processes; what a dead process would not write is not written."""

    is_shared = True
    is_dead = False
    newest: ClassVar[SharedDatabase]
    """That of the process that runs."""

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if self.is_dead:
            raise DatabaseUnavailableError("this process is dead")
        return await super().write(statements)


async def resume(db: Database, row: ServerRow, owner: str, *, from_start: bool = False) -> Fold:
    """Resume a match as a process of its own; KilledError if that dies."""
    shared, turns = SharedDatabase(db), FoldTurns()
    SharedDatabase.newest = shared
    async with Suspects(shared, turns, owner=owner).resuming(row, 1.0, from_start=from_start):
        return await replay(shared, row, 1.0, turns=turns)


async def stored_match(db: Database, entries: int) -> ServerRow:
    """Store a match with these many entries of its log."""
    row = await create_match(db)
    await store(db, recorded().entries[:entries])
    return row


def kill_at(monkeypatch: pytest.MonkeyPatch, seq: int) -> None:
    """Let an entry kill every process that applies it, unless it is set aside."""
    apply = Fold.apply

    def apply_or_die(fold: Fold, entry: RawEntry) -> object:
        if entry.seq == seq and entry.kind != EntryKind.SET_ASIDE:
            SharedDatabase.newest.is_dead = True
            raise KilledError
        return apply(fold, entry)

    monkeypatch.setattr(Fold, "apply", apply_or_die)


async def die_while_resuming(db: Database, server_id: str, owner: str, number: int = RESUMING) -> None:
    await unfinished.begin(db, server_id, number, owner)


async def counts(db: Database, server_id: str = "srv_1") -> dict[int, int]:
    rows = await db.read(
        "SELECT seq, begun FROM unfinished_entries WHERE kind IS NULL AND server_id = :id", {"id": server_id}
    )
    return dict(msgspec.convert(rows, list[tuple[int, int]]))


# --- errors -----------------------------------------------------------------------------------------------------------


async def test_all_entries_that_raise_are_found_at_once_after_the_first(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, entries = await create_match(db), recorded().entries
    await store(db, entries)
    break_kills(monkeypatch, KILL, KILL + 9, KILL + 20)
    await Suspects(db, FoldTurns()).set_aside(entries[failing_seq(entries, row) - 1])
    fold = await resume(db, row, "one")
    assert len(await set_aside(db)) >= 2
    assert fold.match.is_log_complete is False


async def test_entries_are_tried_from_the_snapshot_on(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    row, entries = await create_match(db), recorded().entries
    bug = break_kills(monkeypatch, KILL)
    seq = failing_seq(entries, row)
    fold = Fold.begin(row, 1.0)
    for entry in entries[:seq]:
        fold.apply(as_lost(entry) if entry.seq == seq else entry)
    await db.write(snapshots.save(row.id, row.fence, Snapshot(seq, fold.dump())))
    await store(db, entries)
    raised = bug.raised
    await unfinished.count(db, "srv_1", seq)
    async with Suspects(db, FoldTurns()).resuming(row, 1.0):
        assert bug.raised == raised
    await unfinished.count(db, "srv_1", seq)
    async with Suspects(db, FoldTurns()).resuming(row, 1.0, from_start=True):
        assert await set_aside(db) == [seq]


async def test_nothing_is_tried_without_a_failure(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    row, entries = await create_match(db), recorded().entries
    bug = break_kills(monkeypatch, KILL)
    await store(db, entries)
    async with Suspects(db, FoldTurns()).resuming(row, 1.0):
        assert bug.raised == 0


async def test_memory_that_is_short_is_not_the_fault_of_an_entry(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(_fold: Fold, _entry: RawEntry) -> object:
        raise MemoryError

    row, turns = await create_match(db), FoldTurns()
    monkeypatch.setattr(Fold, "apply", apply)
    with pytest.raises(MemoryError):
        turns.apply(Fold.begin(row, 1.0), recorded().entries[0])


def test_only_what_the_server_sent_costs_an_entry() -> None:
    sent = recorded().entries[0]
    error = KeyError()
    assert EntryFailedError(sent, error).costs_entry
    assert not EntryFailedError(as_lost(sent), error).costs_entry
    deadline = msgspec.structs.replace(sent, kind=EntryKind.DEADLINE, headers=NO_HEADERS, body=b"")
    assert not EntryFailedError(deadline, error).costs_entry


async def test_entry_that_takes_seconds_is_set_aside_once_it_was_tried(db: Database) -> None:
    row, entries = await create_match(db), recorded().entries
    await store(db, entries[:2])
    turns = FoldTurns(slow_s=0.0)
    suspects = Suspects(db, turns, slow_s=0.0)
    fold = Fold.begin(row, 1.0)
    await turns.run(entries[:1], lambda one: bool(turns.apply(fold, one)))
    assert await counts(db) == {1: 1}
    async with suspects.resuming(row, 1.0):
        assert 1 in await set_aside(db)


# --- deaths -------------------------------------------------------------------------------------------------------------


@databases.on_both
async def test_entry_that_kills_every_process_is_found_without_a_folder(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await stored_match(db, 12)
    kill_at(monkeypatch, DEADLY)
    for number in range(1 + MAX_DEATHS):  # the first one dies while it resumes the match, and tries nothing
        assert await set_aside(db) == []
        with pytest.raises(KilledError):
            await resume(db, row, f"process {number}")
    await resume(db, row, "the last")
    assert await set_aside(db) == [DEADLY]
    assert await counts(db) == {}, "no other entry is suspected"


async def test_deaths_for_other_reasons_cost_no_entry(db: Database) -> None:
    row = await stored_match(db, 12)
    for number in range(MAX_MATCH_DEATHS + 2):
        await die_while_resuming(db, row.id, f"process {number}")
        await resume(db, row, f"next {number}")
    for number in range(MAX_DEATHS + 2):  # killed by chance while this entry was tried, which is then tried to its end
        await unfinished.begin(db, row.id, 7, f"killed {number}")
        await resume(db, row, f"after {number}")
    assert await set_aside(db) == []
    assert await counts(db) == {}


@databases.on_both
async def test_record_of_a_process_that_lives_is_not_a_death(db: Database) -> None:
    """A write that failed on its way back leaves a record."""
    row = await create_match(db)
    if db.is_postgres:
        await heartbeats.beat(db, "alive")
        await unfinished.begin(db, row.id, 5, "alive")
        assert await unfinished.count_deaths(db, row.id, "me") == ({}, False)
    await unfinished.begin(db, row.id, 5, "me")
    assert await unfinished.count_deaths(db, row.id, "me") == ({}, False)
    await unfinished.begin(db, row.id, 5, "dead")
    assert await unfinished.count_deaths(db, row.id, "me") == ({5: 1}, False)
    assert await unfinished.count_deaths(db, row.id, "me") == ({5: 1}, False), "a death counts once"


def losing_answers(db: Database, every: int) -> HookedDatabase:
    """A database that commits every write, and loses some of the answers."""
    writes = itertools.count(1)

    async def lose(_: object) -> None:
        if next(writes) % every == 0:
            raise DatabaseUnavailableError("the answer was lost")

    return HookedDatabase(db, after_write=lose, is_shared=True)


@databases.on_both
async def test_lost_answers_cost_no_entry(db: Database) -> None:
    row = await stored_match(db, 12)
    losing = losing_answers(db, every=3)
    suspects = Suspects(losing, FoldTurns(), owner="me")
    await die_while_resuming(db, row.id, "dead")
    resumed = 0
    for _ in range(60):
        try:
            async with suspects.resuming(row, 1.0):
                resumed += 1
        except DatabaseUnavailableError:
            pass
    assert resumed > 0
    assert await set_aside(db) == []
    async with Suspects(db, FoldTurns(), owner="me").resuming(row, 1.0):
        pass
    assert await counts(db) == {}


async def test_death_that_a_file_tells_of_counts_once_however_often_its_answer_is_lost(
    db: Database, tmp_path: Path
) -> None:
    row = await stored_match(db, 12)
    path = tmp_path / "1-abc.begun"
    path.touch()
    for _ in range(MAX_DEATHS + 1):  # starts
        await record_deaths(Suspects(losing_answers(db, every=1), FoldTurns(), owner="me"), {path: (row.id, DEADLY)})
        assert path.exists(), "it is recorded again at the next start"
    await record_deaths(Suspects(db, FoldTurns(), owner="me"), {path: (row.id, DEADLY)})
    assert not path.exists()
    assert await unfinished.count_deaths(db, row.id, "me") == ({DEADLY: 1}, False)
    await resume(db, row, "me")
    assert await set_aside(db) == []


async def test_file_of_a_process_that_applied_nothing_is_deleted(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "1-abc.begun"
    path.touch()
    await record_deaths(Suspects(db, FoldTurns(), owner="me"), {path: None})
    assert not path.exists()


@databases.on_both
async def test_process_that_stops_during_a_trial_has_not_died_of_it(db: Database) -> None:
    row = await stored_match(db, 12)
    await die_while_resuming(db, row.id, "dead")
    is_trying = asyncio.Event()

    async def hold(statements: Sequence[Statement]) -> None:
        tried = [one.params["seq"] for one in statements if "INSERT INTO unfinished_entries" in one.sql]
        if DEADLY in tried:
            is_trying.set()
            await asyncio.Event().wait()

    held = HookedDatabase(db, after_write=hold, is_shared=True)
    for number in range(MAX_DEATHS + 1):
        is_trying.clear()
        stopping = asyncio.create_task(resume(held, row, f"stopped {number}"))
        await is_trying.wait()
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert await counts(db) == {RESUMING: 1}, "the deaths before it still count"
    await resume(db, row, "the last")
    assert await set_aside(db) == []
    assert await counts(db) == {}


async def test_process_that_stops_leaves_the_records_of_others(db: Database) -> None:
    row = await create_match(db)
    await unfinished.begin(db, row.id, 5, "other")
    await unfinished.count(db, row.id, 7)
    await unfinished.begin(db, row.id, 7, "me")
    await db.write(unfinished.release(row.id, "me"))
    assert await counts(db) == {5: 0, 7: 1}
    deaths, _ = await unfinished.count_deaths(db, row.id, "next")
    assert deaths == {5: 1, 7: 1}


async def copy_match(db: Database, row: ServerRow, name: str) -> ServerRow:
    copy = msgspec.structs.replace(row, id=name, log_token_hash=name, report_token_hash=name)
    await servers.create(db, copy, idempotency=None)
    return copy


async def test_suspect_is_not_tried_while_a_match_beside_it_is_resumed(db: Database) -> None:
    suspect = await create_match(db)
    await store(db, recorded().entries[:5])
    beside = await copy_match(db, suspect, "srv_2")
    await die_while_resuming(db, suspect.id, "dead")
    suspects = Suspects(SharedDatabase(db), FoldTurns(), owner="me")

    async def resume_suspect() -> None:
        async with suspects.resuming(suspect, 1.0):
            pass

    async with asyncio.timeout(60):
        async with suspects.resuming(beside, 1.0):
            resuming = asyncio.create_task(resume_suspect())
            while await counts(db) != {RESUMING: 1}:
                await asyncio.sleep(0)
            for _ in range(50):  # far more than it needs to try its entries
                assert await counts(db) == {RESUMING: 1}, "it waits"
        await resuming
    assert await counts(db) == {}


async def test_suspects_are_tried_one_after_the_other_while_no_other_match_is_resumed(db: Database) -> None:
    shared, turns = SharedDatabase(db), FoldTurns()
    suspects = Suspects(shared, turns, owner="me")
    rows = [await create_match(db)]
    rows += [await copy_match(db, rows[0], name) for name in ("srv_2", "srv_3", "srv_4")]
    for row in rows[:2]:
        await die_while_resuming(db, row.id, "dead")
    now: set[str] = set()
    seen: list[frozenset[str]] = []

    async def resume_one(row: ServerRow) -> None:
        async with suspects.resuming(row, 1.0):
            now.add(row.id)
            seen.append(frozenset(now))
            for _ in range(20):
                await asyncio.sleep(0)
            now.discard(row.id)

    async with asyncio.timeout(60):
        await asyncio.gather(*(resume_one(row) for row in reversed(rows)))
    for found in seen:
        assert not found & {"srv_1", "srv_2"} or len(found) == 1
    assert suspects.resuming_count == 0
    assert not turns.is_resuming


@pytest.mark.parametrize("is_alone", [False, True])
async def test_match_that_kills_for_ever_without_an_entry_to_set_aside_is_given_up(
    db: Database, monkeypatch: pytest.MonkeyPatch, is_alone: bool
) -> None:
    """An entry of the service is never set aside; nor is there one if only resuming as a whole kills."""
    row = await create_match(db)
    entries = [*recorded().entries[:10]]
    entries[4] = msgspec.structs.replace(entries[4], kind=EntryKind.RESUMED, headers=NO_HEADERS, body=b"")
    await store(db, entries)
    if is_alone:
        for number in range(MAX_MATCH_DEATHS):
            await die_while_resuming(db, row.id, f"process {number}", ALONE)
            await unfinished.count_deaths(db, row.id, "me")
    else:
        kill_at(monkeypatch, 5)
        for number in range(1 + MAX_MATCH_DEATHS):
            with pytest.raises(KilledError):
                await resume(db, row, f"process {number}")
    for from_start in (False, True):  # the second time when its history is finalized
        with pytest.raises(DeadlyMatchError):
            await resume(db, row, "the last", from_start=from_start)
    assert await set_aside(db) == []


# --- driven matches -----------------------------------------------------------------------------------------------------


def end_all(world: World) -> None:
    for one in world.processes:
        one.db.die()


async def kill_processes(world: World, has_died: asyncio.Event, count: int) -> None:
    """Start processes that die, one after the other."""
    for number in range(count):
        world.clock.at_ms += LEASE_MS + 1
        dying: Process = world.start(f"dying {number}")
        await world.until(partial(asyncio.Event.is_set, has_died), f"process {number} has died")
        has_died.clear()
        await dying.kill()
        await world.db.write([Statement("DELETE FROM heartbeats")])  # that of a dead process is soon too old
    world.clock.at_ms += LEASE_MS + 1


async def test_match_survives_an_entry_that_kills_every_process_that_resumes_it_and_others_lose_nothing(
    db: Database, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a data folder that outlives the processes, as in containers."""
    names = ("srv_1", "srv_2", "srv_3")
    process = world.start()
    for number, name in enumerate(names):
        await world.create(name, seed=5 + number)
    for name in names:
        await world.until_live(name)
    world.region.is_paused = True
    await process.kill()
    seq, has_died = await raw_log.newest_seq(db, "srv_1"), asyncio.Event()
    apply = Fold.apply

    def apply_or_die(fold: Fold, entry: RawEntry) -> object:
        if entry.server_id == "srv_1" and entry.seq == seq and entry.kind != EntryKind.SET_ASIDE:
            has_died.set()
            end_all(world)
            raise KilledError
        return apply(fold, entry)

    monkeypatch.setattr(Fold, "apply", apply_or_die)
    await kill_processes(world, has_died, 1 + MAX_DEATHS)
    world.region.is_paused = False
    world.start("last")
    outcomes = {name: await world.outcome(name) for name in names}
    assert {outcome.kind for outcome in outcomes.values()} == {"match_over"}
    assert await set_aside(db) == [seq]
    for name in names[1:]:
        assert await set_aside(db, name) == []
        assert b'"complete":true' in (outcomes[name].result or b"")


async def test_match_whose_deadline_kills_every_process_ends_as_failed(
    db: Database, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await world.driven_match(scenario="no_show")
    await process.kill()
    await db.write(
        raw_log.append("srv_1", EntryKind.OBSERVED, received_ms=world.clock.now_ms(), headers=b"{}", body=b"")
    )
    has_died, apply = asyncio.Event(), Fold.apply

    def apply_or_die(fold: Fold, entry: RawEntry) -> object:
        if entry.kind == EntryKind.OBSERVED:
            has_died.set()
            end_all(world)
            raise KilledError
        return apply(fold, entry)

    monkeypatch.setattr(Fold, "apply", apply_or_die)
    await kill_processes(world, has_died, 1 + MAX_MATCH_DEATHS)
    world.start("last")
    row = await world.until_row(lambda row: row.phase is ServerPhase.RELEASED, "the match has ended", step_ms=500)
    assert (row.reason, row.failure) == (CancelReason.SERVER_FAILED, Failure.SERVICE_ERROR)
    assert await counts(db) == {}, "nothing is kept of a match that has ended"
