"""Every reader gets every item once and in order, even if it reconnects or another process writes."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest
from msgspec.structs import replace

from matchpod.ports import Database
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch, LocalMatches
from matchpod.service.streams.map_streams import Reader, Streams
from matchpod.service.streams.readers import PollPace
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage import history, map_events
from matchpod.storage.history import MatchHistory
from tests import effort
from tests.contract import databases
from tests.contract.match_histories import MapState, create_server, insert_counted, map_id, match_history

harness = databases.harness

SERVER = "srv_1"
MAPS = 3
TIMEOUT_S = 200.0
READERS = 12
PACE = PollPace(poll_s=0.02)

Position = tuple[int, ...]


class Match:
    """A match that one process writes and two processes read; not all items are published."""

    def __init__(self, first: Database, second: Database, rng: random.Random) -> None:
        self.rng = rng
        self.db = first
        self.local = LocalMatches()
        self.processes = (
            Streams(db=first, live=self.local, metrics=Metrics(Registry()), pace=PACE),
            Streams(db=second, live=LocalMatches(), metrics=Metrics(Registry()), pace=PACE),
        )
        self.last = [0] * MAPS

    async def begin(self) -> None:
        await create_server(self.db, SERVER)
        await self.db.write(insert_counted(match_history(SERVER, [MapState()] * MAPS)))

    async def append(self, number: int) -> None:
        """Store the next items of a map. They are published in the first process only: once, twice, or not at all."""
        size = self.rng.choice((1, 1, 2, 5, 300))
        first = self.last[number] + 1
        lines = [b'{"type":"kill","seq":%d}' % seq for seq in range(first, first + size)]
        written_map = map_id(SERVER, number + 1)
        await self.db.write([map_events.append(written_map, first, lines, at_ms=1)])
        self.last[number] += size
        for _ in range(self.rng.choice((0, 1, 1, 1, 2))):
            self.processes[0].publish(written_map, first, lines)
            await asyncio.sleep(0)

    async def play(self) -> None:
        for _ in range(40):
            await self.append(self.rng.choice((0, 0, 0, 1, 2)))
            await asyncio.sleep(self.rng.choice((0, 0, 0.001, 0.01)))
            if self.rng.random() < 0.1:  # the first process acquires or releases the match
                live = self.local.get(SERVER)
                if live is None:
                    self.local.add(LocalMatch(SERVER, cast(Fold, None), 0))
                else:
                    self.local.remove(live)
        rows = [replace(row, is_final=True) for row in await history.maps_of(self.db, SERVER)]
        await self.db.write(history.refresh(MatchHistory(tuple(rows))))
        if self.rng.random() < 0.7:
            for row in rows:
                self.processes[0].finish(row.id)
        await map_events.compact(self.db, SERVER)

    async def read(self, number: int | None) -> list[str]:
        """Read one map or all maps to the end, with reconnects; return the ids."""
        found: list[str] = []
        await asyncio.sleep(self.rng.random() * 0.1)
        while True:
            reader = await self._open(number, tuple(map(int, found[-1].split("."))) if found else ())
            if reader is None:
                return found
            for _ in range(self.rng.choice((1, 2, 5, 10**6))):
                frames = await reader.next(TIMEOUT_S)
                if frames is None:
                    break
                assert frames, "timeout"
                got = [part.partition(b"\n")[0].removeprefix(b"id: ").decode() for part in frames.split(b"\n\n")[:-1]]
                # A connection may break in the middle of the frames.
                found += got if self.rng.random() < 0.7 else got[: self.rng.randint(1, len(got))]
                if found[-1] != got[-1]:
                    break
            reader.close()

    async def _open(self, number: int | None, after: Position) -> Reader | None:
        streams = self.rng.choice(self.processes)
        rows = await history.maps_of(self.db, SERVER)
        if number is None:
            return await streams.open_server(rows, after)
        return await streams.open_map(rows[number], after[0] if after else 0)


@pytest.mark.parametrize("seed", effort.seeds(2))
async def test_readers_get_every_item_once_and_in_order(replicas: databases.Replicas, seed: int) -> None:
    first, second = replicas
    match = Match(first, second, random.Random(seed))
    await match.begin()
    wanted = [match.rng.choice((0, 1, None, None)) for _ in range(READERS)]
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(match.read(number)) for number in wanted]
        group.create_task(match.play())
    for number, reader in zip(wanted, readers, strict=True):
        check(reader.result(), match.last if number is None else [match.last[number]])
    for streams in match.processes:
        assert not streams
    async with asyncio.timeout(TIMEOUT_S):
        while any(task.get_name().startswith("stream") for task in asyncio.all_tasks()):
            await asyncio.sleep(0)


def check(ids: list[str], last: list[int]) -> None:
    """Each id is one step after the previous one, on one map, and the last id is the end of all maps."""
    before = [0] * len(last)
    for one in ids:
        parts = [int(part) for part in one.split(".")]
        assert parts[-1] or len(parts) == 1
        now = [*parts, *[0] * (len(last) - len(parts))]
        assert sorted(after - earlier for after, earlier in zip(now, before, strict=True))[-2:] in ([0, 1], [1])
        assert sum(now) == sum(before) + 1
        before = now
    assert before == last
