"""A match over several maps: map changes, the start of the next map, and restored backups."""

from __future__ import annotations

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import EndMatch, LoadMap, StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.played_map import MapStatus, winners_of
from matchpod.core.model import SeriesFormat, Winner
from tests.unit.core.match_driver import ANN, BEN, MAPS, MatchDriver, live_duel

BO3 = SeriesFormat.BO3


def test_undecided_series_loads_the_next_map() -> None:
    driver = live_duel(BO3)
    assert driver.end_map(13, 5).effects == [LoadMap(2, MAPS[1])]
    match = driver.match
    assert (match.phase, match.map_number) == (MatchPhase.BETWEEN_MAPS, 2)
    assert [played.status for played in match.maps] == [MapStatus.FINISHED]


def test_joining_sides_on_the_old_map_does_not_start_the_next() -> None:
    driver = live_duel(BO3).end_map()
    assert driver.join_side(ANN, Side.T).effects + driver.join_side(BEN, Side.CT).effects + driver.wait(30) == []
    assert driver.match.phase is MatchPhase.BETWEEN_MAPS


def test_next_map_starts_even_if_the_loading_line_was_lost() -> None:
    driver = live_duel(BO3).end_map()
    assert driver.join(ANN, BEN).effects == [StartPlay(2)]


def test_next_map_is_requested_again_until_a_map_loads() -> None:
    driver = live_duel(BO3).end_map()
    assert driver.wait(60) == [LoadMap(2, MAPS[1])]
    driver.load(MAPS[1]).connect(ANN)
    assert driver.wait(60) == []


def test_tied_series_goes_to_its_last_map() -> None:
    driver = live_duel(BO3).end_map(13, 5).live(MAPS[1])
    assert driver.end_map(5, 13).effects == [LoadMap(3, MAPS[2])]
    driver.live(MAPS[2])
    assert driver.end_map(12, 12).effects == [EndMatch()]
    assert driver.match.winner is Winner.TIE


def test_backup_restored_between_maps_reopens_the_last_map() -> None:
    driver = live_duel(BO3).end_map()
    assert driver.restore(10, 6, 4).effects == []
    current = driver.match.current_map
    assert (driver.match.phase, current.status, current.team1_score) == (MatchPhase.LIVE, MapStatus.LIVE, 6)
    assert not driver.match.presence.is_map_over
    assert driver.wait(60) == []
    assert driver.end_map(5, 13).effects == [LoadMap(2, MAPS[1])]
    assert winners_of(driver.match.maps) == [Winner.TEAM2]


def test_restore_in_the_warmup_of_the_next_map_does_not_reopen_the_last_map() -> None:
    driver = live_duel(BO3).end_map().change_map(MAPS[1], ANN, BEN).restore(0, 0, 0)
    assert driver.match.maps[0].is_finished
    assert driver.match.phase is MatchPhase.STARTING


def played_round() -> MatchDriver:
    """A match in which Ann and Ben played one round and the map ended."""
    driver = live_duel(BO3)
    driver.apply(ev.RoundStarted(driver.now_ms, 1, (ANN,), (BEN,), Side.CT))
    driver.apply(ev.RoundDecided(driver.now_ms, 1, Team.TEAM1, Side.CT, RoundEndReason.CTS_WIN, 1, 0))
    driver.end_map(1, 0)
    return driver


def mvps_of_ann(driver: MatchDriver) -> list[int | None]:
    return [line.mvps for line in driver.match.maps[0].ledger.lines() if line.player_id == ANN]


def test_mvp_report_after_the_next_map_loads_does_not_count_for_the_old_map() -> None:
    driver = played_round()
    before = mvps_of_ann(driver)
    driver.load(MAPS[1])
    driver.apply(ev.MvpNamed(driver.now_ms, 1, ANN, 1))
    assert mvps_of_ann(driver) == before
