"""A map of a series ends while nobody listens: its server forgets how, and the series is told all the same."""

from __future__ import annotations

import msgspec

from matchpod.core.model import SeriesFormat
from matchpod.core.played_map import MapStatus
from matchpod.core.timeline_items import MapEndItem, TimelineItem
from matchpod.ports import Database
from matchpod.simulator.play.flow.game import Phase
from matchpod.storage import history
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.driven_matches import SETTINGS, World, told, world
from tests.contract.told_history import timeline_of

home = databases.sqlite_home

BO3 = msgspec.structs.replace(SETTINGS, series_format=SeriesFormat.BO3, maps=("de_nuke", "de_inferno", "de_overpass"))
SEED = 5


async def _next_map_is_live(around: World) -> None:
    """Until the server plays its second map; from there on its time stands still."""
    server = around.region.running["srv_1"]

    async def is_live() -> bool:
        game = server.machine.game
        around.region.is_still = server.machine.arena.map_name == BO3.maps[1] and game.phase is Phase.LIVE
        return around.region.is_still

    await around.until(is_live, "the second map is live")


async def _is_followed(around: World) -> None:
    """Until somebody has taken the match over; from there on the server's time goes on."""

    async def has_match() -> bool:
        return around.processes[-1].live.get("srv_1") is not None

    await around.until(has_match, "somebody follows the match")
    around.region.is_still = False


def _scores(result: dict[str, object]) -> tuple[object, ...]:
    series = msgspec.convert(result["result"], dict[str, object])
    teams = (msgspec.convert(series[team], dict[str, object])["seriesScore"] for team in ("team1", "team2"))
    return series["winner"], *teams


def test_a_series_whose_map_ended_while_nobody_listened_has_its_winner(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as calm:
            calm.start("calm")
            await calm.create("srv_calm", seed=SEED, game=BO3)
            expected = told(await calm.outcome("srv_calm"))
        async with world(db) as around:
            dead = around.start()
            await around.create(seed=SEED, game=BO3)
            await around.live()
            await dead.die()
            await _next_map_is_live(around)
            around.clock.ahead_ms += LEASE_MS
            around.start()  # at the same address, to which the plugin reports
            await _is_followed(around)
            outcome = told(await around.outcome())
            assert _scores(outcome) == _scores(expected)
            row = await around.row()
            maps = await history.maps_of(db, row.id)
            assert [one.map_name for one in maps] == list(BO3.maps)
            assert maps[0].winner is not None
            last = msgspec.json.decode((await timeline_of(db, row))[1][-1], type=TimelineItem)
            assert isinstance(last, MapEndItem)
            assert (last.status, last.winner) == (MapStatus.FINISHED, None)

    home.run(scenario)
