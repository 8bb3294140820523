"""Processes die, writes fail or take long, machines stand still, callers cancel: readers get the one whole history.

What happens is drawn at random; when it happens depends on the machine, so no two runs are the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

import msgspec
import pytest

from matchpod.core.model import SeriesFormat
from matchpod.ports import Database, DatabaseAwayError, NothingChangedError, Row, Statement
from matchpod.service import supervisor
from matchpod.service.history import streams
from matchpod.storage import history, map_events, servers
from matchpod.storage.history import MapRow
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.driven_matches import SETTINGS, Process, World, world
from tests.contract.match_histories import stored_counts, true_counts
from tests.contract.told_history import ALL_ITEMS
from tests.effort import seeds

pytestmark = pytest.mark.law

home = databases.sqlite_home

CHAOS_S = 3.0
FAST = 20.0
"""A command that was lost is repeated after three seconds."""
NAMES = ("srv_0", "srv_1", "srv_2")
SERIES = msgspec.structs.replace(SETTINGS, maps=("de_nuke", "de_vertigo", "de_inferno"), series_format=SeriesFormat.BO3)


class Chaos:
    """What happens to the processes of a world, and to what they write."""

    def __init__(self, around: World, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self._around = around
        self._rng = rng
        self._monkeypatch = monkeypatch
        self._started = 0
        self._is_on = True
        self._mortals: list[Process] = []

    def start(self) -> Process:
        """One more process, whose writes may fail before and after they are done."""
        self._started += 1
        process = self._around.start(f"process-{self._started}")
        write = process.db.write

        async def write_somehow(statements: Sequence[Statement]) -> list[list[Row]]:
            chance = self._rng.random() if self._is_on else 1.0
            if chance < 0.02:
                raise DatabaseAwayError("before it was written")
            if chance < 0.12:
                await asyncio.sleep(self._rng.random() * 0.4)
            rows = await write(statements)
            if 0.12 <= chance < 0.14:
                raise DatabaseAwayError("after it was written")
            return rows

        self._monkeypatch.setattr(process.db, "write", write_somehow)
        return process

    async def reign(self) -> None:
        """Let things happen for a while."""
        self._mortals.append(self.start())
        deadline = monotonic() + CHAOS_S
        while monotonic() < deadline:
            await asyncio.sleep(self._rng.random() * 0.5)
            happen = self._rng.choices(
                (self._kill, self._cancel, self._end_server, self._stand_still), weights=(35, 8, 5, 10)
            )
            await happen[0]()
        self._is_on = False
        await asyncio.sleep(0.5)  # the last slow writes; then claims run out of which nobody knows that he has them
        self._around.clock.ahead_ms += LEASE_MS

    async def _kill(self) -> None:
        await self._mortals.pop().die()
        if self._rng.random() < 0.7:
            await servers.drop_leases(self._around.db)
        else:
            self._around.clock.ahead_ms += LEASE_MS
        self._mortals.append(self.start())

    async def _cancel(self) -> None:
        name = self._rng.choice(NAMES)
        with suppress(NothingChangedError):
            await self._around.cancel(name)
            for process in self._around.processes[self._rng.randrange(2) :]:
                process.supervisor.notify(name)

    async def _end_server(self) -> None:
        server = self._around.region.running.get(self._rng.choice(NAMES))
        if server is not None:
            server.is_over = True

    async def _stand_still(self) -> None:
        self._around.clock.ahead_ms += self._rng.choice((1_000, 5_000, 15_000))


class Readers:
    """Somebody who reads all maps after a cursor, and somebody who listens to each."""

    def __init__(self, db: Database, rng: random.Random) -> None:
        self._db = db
        self._rng = rng
        self.read: dict[str, list[bytes]] = {}
        self.heard: dict[str, list[bytes]] = {}

    async def poll(self, maps: Sequence[MapRow]) -> None:
        """Read on, page by page, as far as there is something."""
        for one in maps:
            got = self.read.setdefault(one.id, [])
            while items := await map_events.read_after(self._db, one.id, len(got), limit=self._rng.choice((1, 3, 100))):
                assert [seq for seq, _ in items] == list(range(len(got) + 1, len(got) + 1 + len(items)))
                got += [line for _, line in items]

    async def poll_for_ever(self, maps: Sequence[MapRow]) -> None:
        while True:
            await self.poll(maps)
            await asyncio.sleep(0.02)

    async def listen(self, process: Process, one: MapRow) -> None:
        """Until the stream says that it is over."""
        got = self.heard.setdefault(one.id, [])
        reader = await process.around.streams.open_map(one, 0)
        assert reader is not None
        try:
            while (frames := await reader.next(1.0)) is not None:
                for frame in filter(None, frames.split(b"\n\n")):
                    head, _, line = frame.partition(b"data: ")
                    assert head.startswith(b"id: %d\n" % (len(got) + 1))
                    got.append(line)
            assert reader.is_over
        finally:
            reader.close()


@pytest.mark.parametrize("seed", seeds(1))
def test_readers_get_the_whole_history_of_matches_whatever_happens(
    home: databases.Home, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "CRASH_MS", 100)
    monkeypatch.setattr(streams, "POLL_S", 0.1)

    async def scenario(db: Database) -> None:
        rng = random.Random(seed)
        async with world(db, speed=FAST) as around:
            chaos = Chaos(around, rng, monkeypatch)
            survivor = chaos.start()
            for name in NAMES:
                await around.create(name, seed=rng.randrange(100), game=rng.choice((SETTINGS, SERIES)))
            maps = [one for name in NAMES for one in await history.maps_of(db, name)]
            readers = Readers(db, rng)
            async with asyncio.TaskGroup() as reading:
                polling = reading.create_task(readers.poll_for_ever(maps))
                for one in maps:
                    reading.create_task(readers.listen(survivor, one))
                await chaos.reign()
                for name in NAMES:
                    await around.outcome(name)
                polling.cancel()
            await readers.poll(maps)
            for one in maps:
                stored = [line for _, line in await map_events.read_after(db, one.id, 0, limit=ALL_ITEMS)]
                assert readers.read[one.id] == stored
                assert readers.heard[one.id] == stored
            assert await stored_counts(db) == await true_counts(db)

    home.run(scenario)
