"""Log posts and reports that are lost, late or out of order: the match still has its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from cs2_simulator.play.flow.game import GamePhase
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import SeriesFormat
from matchpod.core.views.timeline_items import MapEndItem, TimelineItem
from matchpod.ports import Database
from matchpod.service.ingest.posts import RawHeaders, Receipt
from matchpod.service.match_log.entries import EntryKind
from matchpod.storage import history, raw_log
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.history_checks import timeline_of
from tests.contract.same_result import assert_same_match
from tests.contract.world import SETTINGS, Between, Process, World, callback_fields, play_undisturbed

harness = databases.sqlite_harness

SEED = 5
BO3 = msgspec.structs.replace(SETTINGS, series_format=SeriesFormat.BO3, maps=("de_nuke", "de_inferno", "de_overpass"))
LAST_ROUND = b'"score":3,'
"""A team has won three of four rounds: the map is decided."""


# --- a proxy ----------------------------------------------------------------------------------------------------------


class _SwappingProxy(Between):
    """Answers posts at once, and forwards some only after the next one."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._random = Random(SEED)
        self._delayed: tuple[str, RawHeaders, bytes] | None = None
        self.swapped = 0

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        if self._delayed is None and self._random.random() < 0.5:
            self._delayed = (token, headers, body)
            return Receipt.STORED
        status = await self.ingest.store_log(token, headers, body)
        if self._delayed is not None:
            delayed, self._delayed = self._delayed, None
            await self.ingest.store_log(*delayed)
            self.swapped += 1
        return status


class _LosingProxy(Between):
    """Loses the next post if it is told to, and calls `on_gap` with the one after it."""

    def __init__(self, process: Process, on_gap: Callable[[], None]) -> None:
        super().__init__(process)
        self.loses_next = self._has_lost = False
        self._on_gap = on_gap

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        if self.loses_next:
            self.loses_next, self._has_lost = False, True
            return Receipt.STORED
        if self._has_lost:
            self._has_lost = False
            self._on_gap()
        return await self.ingest.store_log(token, headers, body)


async def test_match_has_the_same_result_if_posts_are_swapped(db: Database, world: World) -> None:
    expected = await play_undisturbed(db, SEED, BO3)
    proxy = _SwappingProxy(world.start())
    await world.create(seed=SEED, game=BO3)
    found = callback_fields(await world.outcome())
    assert proxy.swapped > 10
    assert_same_match(found, expected)


async def test_lost_post_delays_a_match_only_shortly(db: Database, world: World) -> None:
    process = world.start()
    process.db.is_shared = False

    def pause() -> None:
        world.region.is_paused = True  # so that no other post ends the wait

    proxy = _LosingProxy(process, pause)
    await world.create(seed=SEED)
    await world.until_live()
    proxy.loses_next = True
    ledger = (await world.until_driven()).fold.match.current_map.ledger
    await world.until(lambda: world.region.is_paused and not ledger.is_complete, "the post after the lost one is read")
    assert await raw_log.has_kind(db, "srv_1", EntryKind.DEADLINE, after_seq=0)
    world.region.is_paused = False
    assert (await world.outcome()).kind == "match_over"


# --- a service that dies ----------------------------------------------------------------------------------------------


class _DyingIngest(Between):
    """Its process dies after the last log post is stored; the plugin's report of the last round finds it dead."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self.is_over = asyncio.Event()

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        status = await self.ingest.store_log(token, headers, body)
        if b"Game Over" in body:
            self.process.db.die()
            self.is_over.set()
        return status

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        if LAST_ROUND in body:
            await self.is_over.wait()
        return await super().store_report(token, body)


async def test_mvp_of_the_last_round_is_unknown_if_its_report_is_lost(db: Database, world: World) -> None:
    expected = await play_undisturbed(db, SEED)
    dead = world.start("dead")
    dying = _DyingIngest(dead)
    await world.create(seed=SEED)
    await dying.is_over.wait()
    await world.replace(dead)
    found: dict[str, Any] = callback_fields(await world.outcome())
    assert_same_match(found, expected)
    (played,) = found["result"]["maps"]
    unknown = [player["team"] for player in played["players"] if not player["mvpsComplete"]]
    assert unknown in (["team1"] * 2, ["team2"] * 2), "only the two players who won the last round"


def _scores(callback: dict[str, Any]) -> tuple[object, ...]:
    result = callback["result"]
    return result["winner"], result["team1"]["seriesScore"], result["team2"]["seriesScore"]


async def test_series_has_its_winner_if_a_map_ended_while_no_process_ran(db: Database, world: World) -> None:
    expected = await play_undisturbed(db, SEED, BO3)
    dead = await world.live_match(seed=SEED, game=BO3)
    await dead.kill()
    machine = world.region.running["srv_1"].machine

    def is_paused_on_the_second_map() -> bool:
        world.region.is_paused = (machine.arena.map_name, machine.game.phase) == (BO3.maps[1], GamePhase.LIVE)
        return world.region.is_paused

    await world.until(is_paused_on_the_second_map, "the second map is live")
    world.clock.at_ms += LEASE_MS
    world.start()  # at the same URL, to which the plugin reports
    await world.until_driven()
    world.region.is_paused = False
    assert _scores(callback_fields(await world.outcome())) == _scores(expected)
    row = await world.row()
    maps = await history.maps_of(db, row.id)
    assert [one.map_name for one in maps] == list(BO3.maps)
    assert maps[0].winner is not None
    last = msgspec.json.decode((await timeline_of(db, row))[1][-1], type=TimelineItem)
    assert isinstance(last, MapEndItem)
    assert (last.status, last.winner) == (MapStatus.FINISHED, None)
