"""A match that another process follows is seen as it stands, from its snapshot and its log."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from matchpod.core.match import Phase
from matchpod.core.result import live_match
from matchpod.core.server_status import ServerPhase
from matchpod.core.timers import Timers
from matchpod.ports import Database, Row, Statement, Value
from matchpod.service.folding import HEARING_MS, LOG, RESUMED, Fold
from matchpod.service.regions import Regions
from matchpod.service.spectators import MAX_MATCHES, READ_ENTRIES, Spectators
from matchpod.storage import raw_log, servers, snapshots
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from matchpod.storage.snapshots import Snapshot
from tests.contract import databases
from tests.contract.driven_matches import SETTINGS
from tests.unit.service.history.spoken_lines import coming, first_round, logged
from tests.unit.service.test_folding import recorded, row_of

home = databases.sqlite_home


class Counted(databases.PassedOn):
    """A database that notes how many entries are read from it."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.entries_read = 0

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        rows = await super().read(sql, params)
        if "FROM raw_log " in sql:
            self.entries_read += len(rows)
        return rows


async def store(db: Database, entries: Sequence[RawEntry], server_id: str = "srv_1") -> None:
    statements: list[Statement] = []
    for entry in entries:
        statements += raw_log.append(
            server_id, entry.kind, received_ms=entry.received_ms, headers=entry.headers, body=entry.body
        )
    await db.write(statements)


async def created(db: Database, **fields: object) -> ServerRow:
    row = row_of(recorded().settings, **fields)
    await servers.create(db, row, idempotency=None)
    return row


def spectators(db: Database) -> Spectators:
    return Spectators(db=db, regions=Regions([], db))


def expected(entries: Sequence[RawEntry]) -> bytes:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    for entry in entries:
        fold.take(entry)
    return msgspec.json.encode(live_match(fold.reader.match))


def middle() -> int:
    """A number of entries after which the match is well under way."""
    return len(recorded().entries) * 3 // 4


def test_the_log_is_enough(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        row = await created(db)
        seen = spectators(db)
        assert await seen.view(row) == expected([])
        entries = recorded().entries
        assert len(entries) > READ_ENTRIES or len(entries) > 10
        await store(db, entries[: middle()])
        assert await seen.view(row) == expected(entries[: middle()])
        await store(db, entries[middle() :])
        assert await seen.view(row) == expected(entries)
        assert await seen.view(row) != expected([])

    home.run(scenario)


def test_a_caller_who_looks_again_costs_the_new_entries_only(home: databases.Home) -> None:
    async def scenario(plain: Database) -> None:
        row = await created(plain)
        db = Counted(plain)
        seen = spectators(db)
        await store(db, recorded().entries[:20])
        first = await seen.view(row)
        assert db.entries_read == 20
        assert await seen.view(row) is first
        assert db.entries_read == 20
        await store(db, recorded().entries[20:23])
        await seen.view(row)
        assert db.entries_read == 23

    home.run(scenario)


def test_what_is_in_the_snapshot_is_not_read_again(home: databases.Home) -> None:
    async def scenario(plain: Database) -> None:
        row = await created(plain)
        entries = recorded().entries
        fold = Fold.begin(row, 1.0)
        for entry in entries[: middle()]:
            fold.take(entry)
        await plain.write(snapshots.save(row.id, row.fence, Snapshot(middle(), fold.to_bytes())))
        db = Counted(plain)
        await store(db, entries)
        assert await spectators(db).view(row) == expected(entries)
        assert db.entries_read == len(entries) - middle()

    home.run(scenario)


def test_a_snapshot_of_another_version_is_passed_over(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        row = await created(db)
        await db.write(snapshots.save(row.id, row.fence, Snapshot(5, b"\x80")))
        await store(db, recorded().entries)
        assert await spectators(db).view(row) == expected(recorded().entries)

    home.run(scenario)


def test_what_a_server_said_that_was_given_up_does_not_count(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        row = await created(db)
        entries = recorded().entries
        seen = spectators(db)
        await store(db, entries[: middle()])
        before = await seen.view(row)
        fold = Fold.begin(row, 1.0)
        for entry in entries[: middle()]:
            fold.take(entry)
        await db.write(snapshots.save(row.id, row.fence, Snapshot(middle(), fold.to_bytes())))
        await db.write([snapshots.forget(row.id)])
        replaced = msgspec.structs.replace(row, log_from_seq=middle())
        assert await seen.view(replaced) == expected([]) != before
        # Neither does a snapshot from before that.
        await db.write(snapshots.save(row.id, row.fence, Snapshot(middle() - 1, fold.to_bytes())))
        assert await spectators(db).view(replaced) == expected([])

    home.run(scenario)


def test_callers_who_look_at_once_see_the_same_and_count_nothing_twice(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        row = await created(db)
        await store(db, recorded().entries)
        seen = spectators(db)
        views = await asyncio.gather(*(seen.view(row) for _ in range(5)))
        views += await asyncio.gather(*(seen.view(row) for _ in range(5)))
        assert set(views) == {expected(recorded().entries)}

    home.run(scenario)


def test_matches_that_nobody_asks_for_are_forgotten(home: databases.Home) -> None:
    async def scenario(plain: Database) -> None:
        db = Counted(plain)
        first = row_of(recorded().settings, id="srv_first")
        await store(db, recorded().entries[:10], first.id)
        seen = spectators(db)
        await seen.view(first)
        for number in range(MAX_MATCHES - 1):
            await seen.view(row_of(recorded().settings, id=f"srv_{number}"))
        await seen.view(first)
        assert db.entries_read == 10
        for number in range(MAX_MATCHES):
            await seen.view(row_of(recorded().settings, id=f"srv_{number}"))
        await seen.view(first)
        assert db.entries_read == 20

    home.run(scenario)


def test_an_alarm_that_its_follower_slept_through_is_taken_back(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        row = row_of(SETTINGS)
        await servers.create(db, row, idempotency=None)
        late_ms = row.created_at_ms + round(Timers().join_s * 1000) + HEARING_MS
        said = [
            RawEntry(server_id=row.id, seq=seq, kind=LOG, received_ms=late_ms, headers=b"{}", body=logged(*lines))
            for seq, lines in enumerate((coming(), first_round()), 1)
        ]
        await store(db, said)
        seen = spectators(db)
        assert (await seen.match(row)).phase is Phase.OVER, "nothing that is stored says otherwise yet"
        follower = Fold.begin(row, 1.0)
        follower.take(msgspec.structs.replace(said[0], kind=RESUMED))
        for entry in said:
            follower.take(entry)
        await db.write(snapshots.save(row.id, row.fence, Snapshot(len(said), follower.to_bytes())))
        assert await seen.view(row) == msgspec.json.encode(live_match(follower.reader.match))
        assert (await seen.match(row)).phase is Phase.LIVE

    home.run(scenario)


def test_a_match_that_is_over_everywhere_is_not_read_again(home: databases.Home) -> None:
    async def scenario(plain: Database) -> None:
        row = await created(plain)
        db = Counted(plain)
        await store(db, recorded().entries)
        ending = msgspec.structs.replace(row, phase=ServerPhase.ENDING)
        seen = spectators(db)
        first = await seen.view(ending)
        assert (await seen.match(ending)).phase is Phase.OVER
        assert await seen.view(ending) is first
        assert db.entries_read == len(recorded().entries)

    home.run(scenario)


def test_a_match_is_there_to_be_looked_at_and_keeps_no_items(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        row = await created(db)
        await store(db, recorded().entries[: middle()])
        seen = spectators(db)
        match = await seen.match(row)
        assert (
            msgspec.json.encode(live_match(match)) == await seen.view(row) == expected(recorded().entries[: middle()])
        )
        (watched,) = seen._watched.values()
        assert watched.fold.reader.timeline.take() == []

    home.run(scenario)
