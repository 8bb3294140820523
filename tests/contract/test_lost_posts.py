"""Log posts and reports that are lost, late or out of order: the match still has its result."""

from __future__ import annotations

from collections.abc import Callable
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
from tests.contract.world import SETTINGS, Between, Process, World, callback_fields, play_undisturbed

harness = databases.sqlite_harness

SEED = 5
BO3 = msgspec.structs.replace(SETTINGS, series_format=SeriesFormat.BO3, maps=("de_nuke", "de_inferno", "de_overpass"))


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
