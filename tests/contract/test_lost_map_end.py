"""A series gets its result even if no process runs when one of its maps ends and the log of that end is lost."""

from __future__ import annotations

import msgspec

from cs2_simulator.play.flow.game import GamePhase
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import SeriesFormat
from matchpod.core.views.timeline_items import MapEndItem, TimelineItem
from matchpod.ports import Database
from matchpod.storage import history
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.driven_matches import SETTINGS, World, callback_fields, open_world
from tests.contract.history_checks import timeline_of

harness = databases.sqlite_harness

BO3 = msgspec.structs.replace(SETTINGS, series_format=SeriesFormat.BO3, maps=("de_nuke", "de_inferno", "de_overpass"))
SEED = 5


async def _until_second_map(world: World) -> None:
    """Wait until the second map is live, then pause the server."""
    server = world.region.running["srv_1"]

    async def is_live() -> bool:
        game = server.machine.game
        world.region.is_paused = server.machine.arena.map_name == BO3.maps[1] and game.phase is GamePhase.LIVE
        return world.region.is_paused

    await world.until(is_live, "the second map is live")


async def _until_taken_over(world: World) -> None:
    """Wait until a new process drives the match, then let the server continue."""

    async def has_match() -> bool:
        return world.processes[-1].live.get("srv_1") is not None

    await world.until(has_match, "the match is driven")
    world.region.is_paused = False


def _scores(result: dict[str, object]) -> tuple[object, ...]:
    series = msgspec.convert(result["result"], dict[str, object])
    teams = (msgspec.convert(series[team], dict[str, object])["seriesScore"] for team in ("team1", "team2"))
    return series["winner"], *teams


async def test_series_has_its_winner_if_a_map_ended_while_no_process_ran(db: Database) -> None:
    async with open_world(db) as undisturbed:
        undisturbed.start("undisturbed")
        await undisturbed.create("srv_undisturbed", seed=SEED, game=BO3)
        expected = callback_fields(await undisturbed.outcome("srv_undisturbed"))
    async with open_world(db) as world:
        dead = world.start()
        await world.create(seed=SEED, game=BO3)
        await world.until_live()
        await dead.kill()
        await _until_second_map(world)
        world.clock.ahead_ms += LEASE_MS
        world.start()  # at the same URL, to which the plugin reports
        await _until_taken_over(world)
        outcome = callback_fields(await world.outcome())
        assert _scores(outcome) == _scores(expected)
        row = await world.row()
        maps = await history.maps_of(db, row.id)
        assert [one.map_name for one in maps] == list(BO3.maps)
        assert maps[0].winner is not None
        last = msgspec.json.decode((await timeline_of(db, row))[1][-1], type=TimelineItem)
        assert isinstance(last, MapEndItem)
        assert (last.status, last.winner) == (MapStatus.FINISHED, None)
