"""A snapshot that was written with other types is not used: the state is rebuilt from the log."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import matchpod
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.effects import CancelReason
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.timers import Timers
from matchpod.ports import Database
from matchpod.service.ingest.posts import Receipt
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import CATCH_UP_MS, Fold
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.replay import open_match
from matchpod.storage import raw_log, servers, snapshots
from matchpod.storage.migrate import migrate
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import LEASE_MS
from matchpod.storage.snapshots import Snapshot
from tests.clocks import ManualClock
from tests.contract import databases, live_database
from tests.contract.ended_matches import store
from tests.contract.parts import Parts
from tests.contract.same_numbers import current_numbers
from tests.contract.test_remote_matches import create_match, middle, save_snapshot
from tests.contract.world import SETTINGS, SPEED, open_world
from tests.unit.service.history.sample_log import first_round, log_post, players_join
from tests.unit.service.match_log.test_fold import recorded, row_of
from tests.vaults import VAULT, tokens_of

harness = databases.sqlite_harness

REPLAYED = "snapshot rejected, replaying the log"

OPEN_MATCH = """
import asyncio, sys, msgspec
from pathlib import Path
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.service.match_log.replay import open_match, replay
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.storage import servers
from tests.contract.same_numbers import current_numbers

async def main():
    db = await SqliteDatabase.open(Path(sys.argv[1]))
    fold, seq = await open_match(db, await servers.get(db, "srv_1"), 1.0, turns=FoldTurns())
    await db.close()
    print(msgspec.json.encode({"seq": seq, "current_numbers": current_numbers(fold.match)}).decode())

asyncio.run(main())
"""


def as_json(value: object) -> object:
    return json.loads(msgspec.json.encode(value))


REVISED = {"deaths", "kdRatio", "firstDeaths", "entryDeaths", "mvps"}
"""Numbers that the last release counted by other rules: a death by the bomb after the decision, unknown MVPs."""


def without_new_fields(value: object, published: object) -> object:
    """Return a value without the fields that the old version did not publish."""
    if isinstance(value, dict) and isinstance(published, dict):
        kept = {name: without_new_fields(value[name], old) for name, old in published.items() if name in value}
        return {name: published[name] if name in REVISED else one for name, one in kept.items()}
    if isinstance(value, list) and isinstance(published, list) and len(value) == len(published):
        return [without_new_fields(new, old) for new, old in zip(value, published, strict=True)]
    return value


# --- changed types --------------------------------------------------------------------------------------------------


def another_version(folder: Path, path: str, old: str, new: str) -> Path:
    """Copy the source and change one line; return the folder to import it from."""
    package = Path(matchpod.__file__).parent
    shutil.copytree(package, folder / "matchpod")  # with what is compiled: compiling takes most of the time
    file = folder / "matchpod" / path
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    return folder


def run_version(source: Path, database: Path) -> tuple[dict[str, object], str]:
    """Open the match of a database with the version in `source`; return its numbers and the log output."""
    checkout = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", OPEN_MATCH, str(database)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (source, checkout)))},
        cwd=source,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


async def write_live_match(path: Path) -> Fold:
    """Write a database with a live match and its snapshot."""
    db = await SqliteDatabase.open(path)
    await migrate(db, VAULT.seal)
    row = await create_match(db)
    await store(db, recorded().entries[: middle()])
    fold = await save_snapshot(db, row)
    await db.close()
    return fold


@pytest.mark.parametrize(
    ("path", "old", "new", "is_read"),
    [
        pytest.param(
            "core/stats/player_round.py",
            "    decoy_thrown: int = 0\n",
            "    decoy_thrown: int = 0\n    counter_of_tomorrow: int = 0\n",
            False,
            id="other types",
        ),
        pytest.param("core/stats/round_record.py", "trades, KAST)", "trades and KAST)", True, id="the same types"),
    ],
)
def test_snapshot_of_another_version_is_read_only_if_its_types_are_the_same(
    tmp_path: Path, path: str, old: str, new: str, is_read: bool
) -> None:
    database = tmp_path / "matchpod.sqlite"
    fold = asyncio.run(write_live_match(database))
    found, logs = run_version(another_version(tmp_path / "other", path, old, new), database)
    assert found == {"seq": middle(), "current_numbers": as_json(current_numbers(fold.match))}
    assert (REPLAYED in logs) is not is_read
    assert not is_read or logs == ""


async def test_replay_does_not_end_an_open_match_by_a_deadline_that_never_fired(db: Database) -> None:
    """The process that wrote the snapshot had stalled; the players joined before it noticed the deadline."""
    row = row_of(SETTINGS)
    await servers.create(db, row, idempotency=None)
    late_ms = row.created_at_ms + round(Timers().join_s * 1000) + CATCH_UP_MS
    entries = [
        RawEntry(
            server_id=row.id, seq=seq, kind=EntryKind.LOG, received_ms=late_ms, headers=b"{}", body=log_post(*lines)
        )
        for seq, lines in enumerate((players_join(), first_round()), 1)
    ]
    await store(db, entries)
    await db.write(snapshots.save(row.id, row.fence, Snapshot(len(entries), b"of another version")))
    fold, seq = await open_match(db, row, 1.0, turns=FoldTurns())
    assert (fold.match.phase, seq) == (MatchPhase.LIVE, len(entries))


# --- the last release -----------------------------------------------------------------------------------------------


def test_live_matches_of_the_last_release_have_the_published_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    published = live_database.published()

    async def main() -> None:
        db = await SqliteDatabase.open(live_database.unpack(tmp_path))
        await migrate(db, VAULT.seal)
        for name in live_database.MATCHES:
            row = await servers.get(db, name)
            assert row is not None
            opened, seq = await open_match(db, row, SPEED, turns=FoldTurns())
            for entry in await raw_log.read_after(db, name, seq, limit=10_000):
                opened.apply(entry)
            numbers = as_json(current_numbers(opened.match))
            assert without_new_fields(numbers, published[name]) == published[name]
        await db.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    replayed = [REPLAYED] * len(live_database.MATCHES)
    # Right after a release, the types are still those of its snapshots.
    assert [record.message for record in caplog.records] in ([], replayed)


async def test_servers_of_the_last_release_go_on_posting_with_their_tokens(tmp_path: Path) -> None:
    db = await SqliteDatabase.open(live_database.unpack(tmp_path))
    await migrate(db, VAULT.seal)
    ingest = Parts(db, clock=ManualClock.of_now()).ingest
    for name in (*live_database.MATCHES, live_database.PLAYED):
        row = await servers.get(db, name)
        assert row is not None
        tokens = tokens_of(row)
        log_token, report_token = tokens.log, tokens.report
        assert await ingest.store_log(log_token, (), log_post(*players_join())) is Receipt.STORED
        assert await ingest.store_report(report_token, b"{}") is Receipt.STORED
        assert (await raw_log.read_after(db, name, 0, limit=10_000))[-1].kind == EntryKind.REPORT
        for token in (log_token, report_token):
            assert token not in str(await db.read("SELECT * FROM servers WHERE id = :id", {"id": name}))
    await db.close()


async def test_matches_of_the_last_release_are_driven_to_their_end(tmp_path: Path) -> None:
    """Their servers no longer exist: the match that was over has its result, the others are canceled as server_lost."""
    published = live_database.published()
    db = await SqliteDatabase.open(live_database.unpack(tmp_path))
    await migrate(db, VAULT.seal)
    async with open_world(db) as world:
        world.clock.at_ms = msgspec.convert(published["now_ms"], int) + LEASE_MS
        world.start("new version")
        over = await world.outcome(live_database.PLAYED, is_same_version=False)
        assert over.result is not None
        expected = published[live_database.PLAYED]
        assert without_new_fields(json.loads(over.result), expected) == expected
        for name in live_database.MATCHES:
            assert (await world.outcome(name, is_same_version=False)).reason == CancelReason.SERVER_LOST
    await db.close()
