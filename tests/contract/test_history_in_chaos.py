"""Readers get the complete history despite random crashes, failed and slow writes, stalls and cancellations.

The disturbances are random and their timing depends on the machine, so it runs only in `make soak`.
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
from matchpod.ports import Database, DatabaseUnavailableError, NothingChangedError, Row, Statement
from matchpod.service.runner.intervals import Intervals
from matchpod.service.streams.readers import PollPace
from matchpod.storage import history, map_events, servers
from matchpod.storage.history import MapRow
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.driven_matches import SETTINGS, Process, World, open_world
from tests.contract.history_checks import ALL_ITEMS
from tests.contract.match_histories import stored_counts, true_counts
from tests.effort import seeds

pytestmark = [pytest.mark.law, pytest.mark.soak]

harness = databases.sqlite_harness

CHAOS_S = 3.0
FAST = 20.0
"""Speed of the region: a lost command is repeated after three seconds."""
NAMES = ("srv_0", "srv_1", "srv_2")
SERIES = msgspec.structs.replace(SETTINGS, maps=("de_nuke", "de_vertigo", "de_inferno"), series_format=SeriesFormat.BO3)


class Chaos:
    """Disturbs the processes of a world and their writes."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._started = 0
        self._is_on = True
        self._killable: list[Process] = []

    def start(self) -> Process:
        """Start a process whose writes may be slow, or fail before or after they are done."""
        self._started += 1
        process = self._world.start(f"process-{self._started}", intervals=Intervals(crash_ms=100))
        process.deps.streams.pace = PollPace(poll_s=0.1)
        write = process.db.write

        async def unreliable_write(statements: Sequence[Statement]) -> list[list[Row]]:
            chance = self._rng.random() if self._is_on else 1.0
            if chance < 0.02:
                raise DatabaseUnavailableError("before it was written")
            if chance < 0.12:
                await asyncio.sleep(self._rng.random() * 0.4)
            rows = await write(statements)
            if 0.12 <= chance < 0.14:
                raise DatabaseUnavailableError("after it was written")
            return rows

        process.db.write = unreliable_write  # type: ignore[method-assign]
        return process

    async def run(self) -> None:
        """Cause random disturbances for CHAOS_S."""
        self._killable.append(self.start())
        deadline = monotonic() + CHAOS_S
        while monotonic() < deadline:
            await asyncio.sleep(self._rng.random() * 0.5)
            chosen = self._rng.choices(
                (self._kill, self._cancel, self._end_server, self._stall), weights=(35, 8, 5, 10)
            )
            await chosen[0]()
        self._is_on = False
        await asyncio.sleep(0.5)  # for the last slow writes
        # A lease whose claim failed after it was written must expire: its owner does not know that it has it.
        self._world.clock.ahead_ms += LEASE_MS

    async def _kill(self) -> None:
        await self._killable.pop().kill()
        if self._rng.random() < 0.7:
            await servers.drop_leases(self._world.db, self._world.clock.now_ms())
        else:
            self._world.clock.ahead_ms += LEASE_MS
        self._killable.append(self.start())

    async def _cancel(self) -> None:
        name = self._rng.choice(NAMES)
        with suppress(NothingChangedError):
            await self._world.cancel(name)
            for process in self._world.processes[self._rng.randrange(2) :]:
                process.supervisor.notify(name)

    async def _end_server(self) -> None:
        server = self._world.region.running.get(self._rng.choice(NAMES))
        if server is not None:
            server.is_over = True

    async def _stall(self) -> None:
        self._world.clock.ahead_ms += self._rng.choice((1_000, 5_000, 15_000))


class Readers:
    """One reader that polls all maps, and one reader per map that reads its stream."""

    def __init__(self, db: Database, rng: random.Random) -> None:
        self._db = db
        self._rng = rng
        self.polled: dict[str, list[bytes]] = {}
        self.streamed: dict[str, list[bytes]] = {}

    async def poll(self, maps: Sequence[MapRow]) -> None:
        """Read all new items, page by page."""
        for one in maps:
            got = self.polled.setdefault(one.id, [])
            while items := await map_events.read_after(self._db, one.id, len(got), limit=self._rng.choice((1, 3, 100))):
                assert [seq for seq, _ in items] == list(range(len(got) + 1, len(got) + 1 + len(items)))
                got += [line for _, line in items]

    async def poll_forever(self, maps: Sequence[MapRow]) -> None:
        while True:
            await self.poll(maps)
            await asyncio.sleep(0.02)

    async def stream(self, process: Process, one: MapRow) -> None:
        """Read a stream until it ends."""
        got = self.streamed.setdefault(one.id, [])
        reader = await process.deps.streams.open_map(one, 0)
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
async def test_readers_get_the_complete_history_of_matches_despite_failures(db: Database, seed: int) -> None:
    rng = random.Random(seed)
    async with open_world(db, speed=FAST) as world:
        chaos = Chaos(world, rng)
        survivor = chaos.start()
        for name in NAMES:
            await world.create(name, seed=rng.randrange(100), game=rng.choice((SETTINGS, SERIES)))
        maps = [one for name in NAMES for one in await history.maps_of(db, name)]
        readers = Readers(db, rng)
        async with asyncio.TaskGroup() as reading:
            polling = reading.create_task(readers.poll_forever(maps))
            for one in maps:
                reading.create_task(readers.stream(survivor, one))
            await chaos.run()
            for name in NAMES:
                await world.outcome(name)
            polling.cancel()
        await readers.poll(maps)
        for one in maps:
            stored = [line for _, line in await map_events.read_after(db, one.id, 0, limit=ALL_ITEMS)]
            assert readers.polled[one.id] == stored
            assert readers.streamed[one.id] == stored
        assert await stored_counts(db) == await true_counts(db)
