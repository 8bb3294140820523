"""Every reader gets every item once and in order: whenever he joins, however often he comes back, whoever writes."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest
from msgspec.structs import replace

from matchpod.ports import Database
from matchpod.service.folding import Fold
from matchpod.service.history import streams as streams_module
from matchpod.service.history.streams import Reader, Streams
from matchpod.service.live import LiveMatch, LiveMatches
from matchpod.storage import history, map_events
from matchpod.storage.history import MatchHistory
from tests.contract import databases
from tests.contract.databases import Home
from tests.contract.match_histories import MapState, create_server, map_id, match_history

home = databases.home

SERVER = "srv_1"
MAPS = 3
PATIENCE_S = 200.0
READERS = 12

Position = tuple[int, ...]


class Match:
    """A match that is written by one process and read in two; not everything that is written is told."""

    def __init__(self, first: Database, second: Database, rng: random.Random) -> None:
        self.rng = rng
        self.db = first
        self.here = LiveMatches()
        self.processes = (Streams(db=first, live=self.here), Streams(db=second, live=LiveMatches()))
        self.last = [0] * MAPS

    async def begin(self) -> None:
        await create_server(self.db, SERVER)
        await self.db.write(history.begin(match_history(SERVER, [MapState()] * MAPS)))

    async def append(self, number: int) -> None:
        """The next few items of a map; the other process is never told of them, ours not always, and late or twice."""
        size = self.rng.choice((1, 1, 2, 5, 300))
        first = self.last[number] + 1
        lines = [b'{"type":"kill","seq":%d}' % seq for seq in range(first, first + size)]
        of_map = map_id(SERVER, number + 1)
        await self.db.write([map_events.append(of_map, first, lines, at_ms=1)])
        self.last[number] += size
        for _ in range(self.rng.choice((0, 1, 1, 1, 2))):
            self.processes[0].publish(of_map, first, lines)
            await asyncio.sleep(0)

    async def play(self) -> None:
        for _ in range(40):
            await self.append(self.rng.choice((0, 0, 0, 1, 2)))
            await asyncio.sleep(self.rng.choice((0, 0, 0.001, 0.01)))
            if self.rng.random() < 0.1:  # the first process takes over, or gives the match away
                live = self.here.get(SERVER)
                if live is None:
                    self.here.add(LiveMatch(SERVER, cast(Fold, None), 0))
                else:
                    self.here.remove(live)
        rows = [replace(row, is_final=True) for row in await history.maps_of(self.db, SERVER)]
        await self.db.write(history.refresh(MatchHistory(tuple(rows))))
        if self.rng.random() < 0.7:
            for row in rows:
                self.processes[0].finish(row.id)
        await map_events.compact(self.db, SERVER)

    async def read(self, number: int | None) -> list[str]:
        """The ids that a caller sees who comes and goes until there is nothing more, of one map or of all."""
        found: list[str] = []
        await asyncio.sleep(self.rng.random() * 0.1)
        while True:
            reader = await self._open(number, tuple(map(int, found[-1].split("."))) if found else ())
            if reader is None:
                return found
            for _ in range(self.rng.choice((1, 2, 5, 10**6))):
                frames = await reader.next(PATIENCE_S)
                if frames is None:
                    break
                assert frames, "nothing came for a long time"
                got = [part.partition(b"\n")[0].removeprefix(b"id: ").decode() for part in frames.split(b"\n\n")[:-1]]
                # A connection may break anywhere within what was sent.
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


@pytest.mark.parametrize("seed", range(4))
def test_readers_get_every_item_once_and_in_order(home: Home, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "POLL_S", 0.02)

    async def scenario(first: Database, second: Database) -> None:
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
        await asyncio.sleep(0.05)
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("stream")] == []

    home.run_replicas(scenario)


def check(ids: list[str], last: list[int]) -> None:
    """Each id is one step from the one before, on one map, and the last one is the end of all."""
    before = [0] * len(last)
    for one in ids:
        parts = [int(part) for part in one.split(".")]
        assert parts[-1] or len(parts) == 1
        now = [*parts, *[0] * (len(last) - len(parts))]
        assert sorted(after - earlier for after, earlier in zip(now, before, strict=True))[-2:] in ([0, 1], [1])
        assert sum(now) == sum(before) + 1
        before = now
    assert before == last


def test_other_process_hears_of_items_and_of_the_end(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "POLL_S", 0.02)

    async def scenario(first: Database, second: Database) -> None:
        match = Match(first, second, random.Random(1))
        await match.begin()
        rows = await history.maps_of(first, SERVER)
        reader = await match.processes[1].open_map(rows[0], 0)
        assert reader is not None
        for seq in (1, 2, 3):
            await first.write([map_events.append(rows[0].id, seq, [b'{"type":"chat"}'], at_ms=1)])
            assert await reader.next(PATIENCE_S) == b'id: %d\nevent: chat\ndata: {"type":"chat"}\n\n' % seq
        await first.write(history.refresh(MatchHistory((replace(rows[0], is_final=True),))))
        assert await reader.next(PATIENCE_S) is None
        assert reader.is_over
        reader.close()

    home.run_replicas(scenario)
