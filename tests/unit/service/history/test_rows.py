"""Rows of the history, built from a match."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import Side
from matchpod.core import events as ev
from matchpod.core.effects import CancelReason
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import DmSubMode, GameSettings, MatchType, SeriesFormat
from matchpod.service.history.rows import history_of, initial_history
from tests.unit.core.match_driver import ANN, BEN, MAPS, MatchDriver, deathmatch, duel
from tests.unit.service.match_log.test_fold import row_of

GAME_ID = "0b1b5b0e-3c5f-4bd0-9b7f-3d1d9e2a4c11"


def play_map(driver: MatchDriver, name: str, played_name: str | None = None) -> None:
    now_ms = driver.now_ms
    driver.apply(ev.MapLoading(now_ms, name)).join(ANN, BEN)
    driver.apply(ev.MapLive(now_ms, played_name or name, now_ms, Side.CT))
    driver.apply(ev.MapEnded(now_ms, played_name or name, 13, 5))


def test_maps_that_a_decided_series_does_not_need_are_marked() -> None:
    settings = duel(SeriesFormat.BO5)
    driver = MatchDriver(settings)
    for name in MAPS[:3]:
        play_map(driver, name)
    maps = history_of(row_of(settings, game_id=GAME_ID), driver.match, server_name="Europe 1").maps
    assert [one.status for one in maps] == [MapStatus.FINISHED] * 3 + [MapStatus.CANCELLED] * 2
    assert [one.is_needed for one in maps] == [True] * 3 + [False] * 2


def test_maps_of_a_canceled_series_were_needed() -> None:
    settings = duel(SeriesFormat.BO3)
    driver = MatchDriver(settings)
    play_map(driver, MAPS[0])
    driver.match.cancel(CancelReason.SERVER_LOST, driver.now_ms)
    maps = history_of(row_of(settings, game_id=GAME_ID), driver.match, server_name="Europe 1").maps
    assert [one.status for one in maps] == [MapStatus.FINISHED, MapStatus.CANCELLED, MapStatus.CANCELLED]
    assert all(one.is_needed for one in maps)


@pytest.mark.parametrize(
    "settings",
    [
        duel(SeriesFormat.BO5),
        msgspec.structs.replace(duel(SeriesFormat.BO3), maps=("x" * 200, "de_nuke")),
        msgspec.structs.replace(duel(), match_type=MatchType.WINGMAN, team1=None, team2=None),
        msgspec.structs.replace(duel(), match_type=MatchType.CUSTOM),
        deathmatch(),
        msgspec.structs.replace(deathmatch(), dm_sub_mode=DmSubMode.TEAM),
    ],
)
def test_rows_of_a_new_match_are_those_of_its_initial_state(settings: GameSettings) -> None:
    row = row_of(settings, game_id=GAME_ID)
    match = Match.create(settings, row.created_at_ms)
    assert initial_history(row, settings, "Europe 1") == history_of(row, match, server_name="Europe 1")


def test_workshop_map_keeps_the_requested_name_and_has_that_of_the_server_too() -> None:
    settings = msgspec.structs.replace(duel(), maps=("workshop/3070244462",))
    row = row_of(settings, game_id=GAME_ID)
    (before,) = initial_history(row, settings, "Europe 1").maps
    driver = MatchDriver(settings)
    play_map(driver, "de_cache")
    (after,) = history_of(row, driver.match, server_name="Europe 1").maps
    assert (before.map_name, before.played_map_name) == ("workshop/3070244462", None)
    assert (after.map_name, after.played_map_name) == ("workshop/3070244462", "de_cache")
