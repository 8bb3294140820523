"""State that another version of the types wrote is rebuilt from the log, never misread."""

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
from matchpod.core.match import Phase
from matchpod.core.timers import Timers
from matchpod.ports import Database
from matchpod.service.folding import HEARING_MS, LOG, Fold
from matchpod.service.match_log.replay import open_match, replay
from matchpod.storage import raw_log, servers, snapshots
from matchpod.storage.migrate import migrate
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import LEASE_MS
from matchpod.storage.snapshots import Snapshot
from tests.contract import databases, live_database
from tests.contract.driven_matches import SETTINGS, SPEED, world
from tests.contract.test_spectators import created, middle, store
from tests.unit.service.history.spoken_lines import coming, first_round, logged
from tests.unit.service.test_folding import recorded, row_of

home = databases.sqlite_home

REPLAYED = "snapshot of another version, match is replayed"

OPEN_MATCH = """
import asyncio, sys, msgspec
from pathlib import Path
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.service.match_log.replay import open_match, replay
from matchpod.storage import servers
from tests.contract.live_database import standing

async def main():
    db = await SqliteDatabase.open(Path(sys.argv[1]))
    fold, seq = await open_match(db, await servers.get(db, "srv_1"), 1.0)
    await db.close()
    print(msgspec.json.encode({"seq": seq, "standing": standing(fold.reader.match)}).decode())

asyncio.run(main())
"""


def as_json(value: object) -> object:
    return json.loads(msgspec.json.encode(value))


# --- a type that changed --------------------------------------------------------------------------------------------


def another_version(folder: Path, path: str, old: str, new: str) -> Path:
    """A copy of the source in which one line is different; answers the folder to import it from."""
    package = Path(matchpod.__file__).parent
    shutil.copytree(package, folder / "matchpod", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "matchpod" / path
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    return folder


def run_version(source: Path, database: Path) -> tuple[dict[str, object], str]:
    """What that version makes of the match in a database, and what it logs."""
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
    """A database with a match that is well under way, and its snapshot."""
    db = await SqliteDatabase.open(path)
    await migrate(db)
    row = await created(db)
    fold = Fold.begin(row, 1.0)
    for entry in recorded().entries[: middle()]:
        fold.take(entry)
    await store(db, recorded().entries[: middle()])
    await db.write(snapshots.save(row.id, row.fence, Snapshot(middle(), fold.to_bytes())))
    await db.close()
    return fold


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (
            "core/stats/round_record.py",
            "    decoy_thrown: int = 0\n",
            "    decoy_thrown: int = 0\n    zeus_kills: int = 0\n",
        ),
        (
            "core/stats/round_record.py",
            "    headshots: int = 0\n    damage: int = 0\n",
            "    damage: int = 0\n    headshots: int = 0\n",
        ),
        ("core/played_map.py", '    LIVE = "live"\n', '    LIVE = "live"\n    VETO = "veto"\n'),
    ],
    ids=["field added", "fields swapped", "value added"],
)
def test_a_snapshot_of_other_types_is_not_read(tmp_path: Path, path: str, old: str, new: str) -> None:
    database = tmp_path / "matchpod.sqlite"
    fold = asyncio.run(write_live_match(database))
    other = another_version(tmp_path / "other", path, old, new)
    found, said = run_version(other, database)
    assert found == {"seq": middle(), "standing": as_json(live_database.standing(fold.reader.match))}
    assert REPLAYED in said


def test_a_snapshot_of_the_same_types_is_read(tmp_path: Path) -> None:
    database = tmp_path / "matchpod.sqlite"
    fold = asyncio.run(write_live_match(database))
    same = another_version(tmp_path / "same", "core/stats/round_record.py", "trades,\nKAST)", "trades,\nand KAST)")
    found, said = run_version(same, database)
    assert found["standing"] == as_json(live_database.standing(fold.reader.match))
    assert said == ""


def test_a_replayed_match_that_goes_on_is_not_ended_by_an_alarm_that_never_fired(home: databases.Home) -> None:
    """The process that wrote the snapshot had been held up, so it put the alarm off; the log does not tell."""

    async def scenario(db: Database) -> None:
        row = row_of(SETTINGS)
        await servers.create(db, row, idempotency=None)
        late_ms = row.created_at_ms + round(Timers().join_s * 1000) + HEARING_MS
        said = [
            RawEntry(server_id=row.id, seq=seq, kind=LOG, received_ms=late_ms, headers=b"{}", body=logged(*lines))
            for seq, lines in enumerate((coming(), first_round()), 1)
        ]
        await store(db, said)
        assert (await replay(db, row, 1.0)).reader.match.phase is Phase.OVER, "the time to join was over"
        await db.write(snapshots.save(row.id, row.fence, Snapshot(len(said), b"of another version")))
        fold, seq = await open_match(db, row, 1.0)
        assert (fold.reader.match.phase, seq) == (Phase.LIVE, len(said))

    home.run(scenario)


# --- the last release -----------------------------------------------------------------------------------------------


def test_live_matches_of_the_last_release_stand_as_it_published_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    published = live_database.published()

    async def main() -> None:
        db = await SqliteDatabase.open(live_database.unpack(tmp_path))
        await migrate(db)
        for name in live_database.MATCHES:
            row = await servers.get(db, name)
            assert row is not None
            opened, seq = await open_match(db, row, SPEED)
            for entry in await raw_log.read_after(db, name, seq, limit=10_000):
                opened.take(entry)
            assert as_json(live_database.standing(opened.reader.match)) == published[name]
        await db.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert [record.message for record in caplog.records] == [REPLAYED] * len(live_database.MATCHES)


def test_matches_of_the_last_release_are_driven_to_their_end(tmp_path: Path) -> None:
    """Their servers are gone: what was played out has its result, the others are canceled with the right reason."""
    published = live_database.published()

    async def main() -> None:
        db = await SqliteDatabase.open(live_database.unpack(tmp_path))
        await migrate(db)
        async with world(db) as around:
            around.clock.ahead_ms = msgspec.convert(published["now_ms"], int) - around.clock.now_ms() + LEASE_MS
            around.start("new version")
            over = await around.outcome(live_database.PLAYED)
            assert over.result is not None
            assert json.loads(over.result) == published[live_database.PLAYED]
            for name in live_database.MATCHES:
                assert (await around.outcome(name)).reason == CancelReason.SERVER_LOST
        await db.close()

    asyncio.run(main())
