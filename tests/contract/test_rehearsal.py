"""Entries that failed or killed a process are tried on a copy, and set aside if they fail again."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from matchpod.ports import Database
from matchpod.service.match_log.entries import NO_HEADERS, EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.rehearsal import rehearse
from matchpod.service.match_log.replay import as_lost, replay
from matchpod.service.match_log.turns import MAX_BEGUN, EntryFailedError, FoldTurns
from matchpod.storage import raw_log, snapshots, unfinished
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import LEASE_MS
from matchpod.storage.snapshots import Snapshot
from matchpod.storage.unfinished import RESUMING
from tests.contract import databases
from tests.contract.buggy_fold import KILL, break_kills, failing_seq, set_aside
from tests.contract.driven_matches import open_world
from tests.contract.test_remote_matches import create_match, store
from tests.unit.service.match_log.test_fold import recorded

harness = databases.mostly_sqlite_harness


async def test_rehearsal_sets_aside_all_entries_that_raise(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    row, entries = await create_match(db), recorded().entries
    await store(db, entries)
    break_kills(monkeypatch, KILL, KILL + 9, KILL + 20)
    await unfinished.count(db, "srv_1", failing_seq(entries, row))
    await rehearse(db, row, 1.0, turns=FoldTurns(db))
    assert len(await set_aside(db)) >= 2
    fold = await replay(db, row, 1.0, turns=FoldTurns(db))
    assert fold.match.is_log_complete is False


async def test_rehearsal_begins_at_the_snapshot(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
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
    await unfinished.count(db, "srv_1", seq + 1)
    await rehearse(db, row, 1.0, turns=FoldTurns(db))
    assert bug.raised == raised
    await rehearse(db, row, 1.0, turns=FoldTurns(db), from_start=True)
    assert await set_aside(db) == [seq]


async def test_nothing_is_tried_without_a_failure(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    row, entries = await create_match(db), recorded().entries
    bug = break_kills(monkeypatch, KILL)
    await store(db, entries)
    await rehearse(db, row, 1.0, turns=FoldTurns(db))
    assert bug.raised == 0


async def test_memory_that_is_short_is_not_the_fault_of_an_entry(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(_fold: Fold, _entry: RawEntry) -> object:
        raise MemoryError

    row, turns = await create_match(db), FoldTurns(db)
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


# --- deaths without a data folder ---------------------------------------------------------------------------------------


class KilledError(BaseException):
    """Stands for the death of the process: nothing after it runs."""


async def test_entry_that_kills_every_process_is_found_without_a_folder(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, entries = await create_match(db), recorded().entries
    await store(db, entries[:60])
    deadly, apply = 37, Fold.apply

    def apply_or_die(fold: Fold, entry: RawEntry) -> object:
        if entry.seq == deadly and entry.kind != EntryKind.SET_ASIDE:
            raise KilledError
        return apply(fold, entry)

    monkeypatch.setattr(Fold, "apply", apply_or_die)
    await unfinished.count(db, row.id, RESUMING)  # left by a process that died while it resumed the match
    for _ in range(MAX_BEGUN - 1):
        with pytest.raises(KilledError):
            await rehearse(db, row, 1.0, turns=FoldTurns(db))
    assert await set_aside(db) == []
    await rehearse(db, row, 1.0, turns=FoldTurns(db))
    assert await set_aside(db) == [deadly]
    assert await unfinished.begun_of(db, "srv_1") == set(), "no other entry is suspected"
    await replay(db, row, 1.0, turns=FoldTurns(db))


async def test_resuming_is_recorded_only_while_it_lasts(db: Database) -> None:
    await create_match(db)
    turns = FoldTurns(db)
    async with turns.resuming("srv_1"):
        assert await unfinished.begun_of(db, "srv_1") == ({RESUMING} if db.is_shared else set())
    assert await unfinished.begun_of(db, "srv_1") == set()
    with pytest.raises(RuntimeError):
        async with turns.resuming("srv_1"):
            raise RuntimeError("an error is not a death")
    assert await unfinished.begun_of(db, "srv_1") == set()


async def test_deaths_for_other_reasons_cost_no_entry(db: Database) -> None:
    row, entries = await create_match(db), recorded().entries
    await store(db, entries[:40])
    for _ in range(MAX_BEGUN + 2):
        await unfinished.count(db, row.id, RESUMING)
        await rehearse(db, row, 1.0, turns=FoldTurns(db))
    assert await set_aside(db) == []


@databases.on_both
async def test_match_survives_an_entry_that_kills_every_process_that_resumes_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a data folder that outlives the processes, as in containers."""
    async with open_world(db) as world:
        process = world.start()
        await world.create()
        await world.until_live()
        await process.kill()
        seq = await raw_log.newest_seq(db, "srv_1")
        apply, deaths = Fold.apply, 0

        def apply_or_die(fold: Fold, entry: RawEntry) -> object:
            nonlocal deaths
            if entry.seq == seq and entry.kind != EntryKind.SET_ASIDE:
                deaths += 1
                for one in world.processes:
                    one.db.is_dead = True
                raise KilledError
            return apply(fold, entry)

        async def has_died(times: int) -> bool:
            return deaths >= times

        monkeypatch.setattr(Fold, "apply", apply_or_die)
        for number in range(MAX_BEGUN):
            world.clock.ahead_ms += LEASE_MS + 1
            dying = world.start(f"dying {number}")
            await world.until(partial(has_died, number + 1), "the process died")
            await dying.kill()
        world.clock.ahead_ms += LEASE_MS + 1
        world.start("last")
        outcome = await world.outcome()
    assert outcome.kind == "match_over"
    assert await set_aside(db) == [seq]
    assert deaths == MAX_BEGUN
