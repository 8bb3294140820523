"""What a person may order: play begins without those who are missing, or a team forfeits the match."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, EndMatch, StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import SeriesFormat, TeamRoster, Winner
from tests.unit.core.match_driver import ANN, BEN, CAT, MAPS, MatchDriver, deathmatch, duel, live_duel, open_match

BO3 = SeriesFormat.BO3


def order_start(driver: MatchDriver) -> MatchDriver:
    driver.effects = driver.match.start(driver.now_ms)
    return driver


def forfeit_to(driver: MatchDriver, winner: Team) -> MatchDriver:
    driver.effects = driver.match.forfeit(winner, driver.now_ms)
    return driver


def decided(driver: MatchDriver) -> ev.RoundDecided:
    reason = RoundEndReason.UNKNOWN
    return ev.RoundDecided(driver.now_ms, 1, Team.TEAM1, Side.CT, reason, 1, 0)


# --- start --------------------------------------------------------------------------------------------------------


def test_nobody_leaving_revokes_an_ordered_start() -> None:
    driver = order_start(MatchDriver(duel()).join(ANN, BEN).leave(BEN)).join(BEN).leave(ANN)
    assert driver.match.phase is MatchPhase.STARTING


def test_start_that_nobody_ordered_is_revoked_on_the_next_map() -> None:
    driver = order_start(MatchDriver(duel(BO3)).join(ANN)).live().join(BEN).end_map().change_map(MAPS[1], ANN, BEN)
    assert driver.effects == [StartPlay(2)]
    assert driver.leave(ANN).match.phase is MatchPhase.WARMUP


def test_next_map_does_not_wait_for_a_player_who_never_came() -> None:
    driver = order_start(MatchDriver(duel(BO3)).join(ANN)).live().end_map().change_map(MAPS[1], ANN)
    assert driver.effects == [StartPlay(2)]


def test_next_map_waits_for_a_player_who_came_in_late() -> None:
    driver = order_start(MatchDriver(duel(BO3)).join(ANN)).live().join(BEN).end_map().change_map(MAPS[1], ANN)
    assert driver.effects == []
    [*_, cancel] = driver.wait(300)
    assert isinstance(cancel, CancelMatch)
    assert (cancel.missing_players, cancel.absent_players) == ((), (BEN,))


def test_player_without_whom_play_was_started_is_absent_at_the_end() -> None:
    settings = msgspec.structs.replace(duel(BO3), team2=TeamRoster("Blues", (BEN, CAT)))
    driver = order_start(MatchDriver(settings).join(ANN, BEN)).live().end_map().change_map(MAPS[1], ANN)
    [*_, cancel] = driver.wait(300)
    assert isinstance(cancel, CancelMatch)
    assert (cancel.missing_players, cancel.connected_players) == ((CAT,), (ANN, BEN))
    assert cancel.absent_players == (BEN, CAT)


@pytest.mark.parametrize(
    "driver",
    [
        MatchDriver(duel()),
        MatchDriver(duel()).join(ANN, BEN),
        live_duel(),
        live_duel().end_map(),
        live_duel(BO3).end_map(),
        live_duel(BO3).end_map().change_map(MAPS[1]),
    ],
    ids=["empty", "starting", "live", "over", "map not changed", "map loading"],
)
def test_start_is_not_possible_without_players_in_a_warmup(driver: MatchDriver) -> None:
    before = driver.match.phase
    assert order_start(driver).effects == []
    assert driver.match.phase is before


def test_start_ends_the_warmup_of_a_match_without_a_roster() -> None:
    assert order_start(MatchDriver(open_match()).join(ANN)).effects == [StartPlay(1)]


# --- forfeit ------------------------------------------------------------------------------------------------------


def test_forfeit_before_play_has_a_winner_and_no_maps() -> None:
    match = forfeit_to(MatchDriver(duel(BO3)).join(ANN), Team.TEAM1).match
    assert (match.phase, match.winner, match.series_score) == (MatchPhase.OVER, Winner.TEAM1, (0, 0))
    assert [played.status for played in match.maps] == [MapStatus.CANCELLED]


def test_forfeit_during_play_keeps_the_score_of_the_map_that_is_cut() -> None:
    driver = live_duel(BO3).end_map(13, 5).change_map(MAPS[1], ANN, BEN).live(MAPS[1])
    rounds = [ev.RoundStarted(driver.now_ms, number, (ANN,), (BEN,), Side.CT) for number in (1, 2)]
    driver.apply(rounds[0], decided(driver), rounds[1])
    match = forfeit_to(driver, Team.TEAM2).match
    assert driver.effects == [EndMatch()]
    assert (match.winner, match.series_score) == (Winner.TEAM2, (1, 0))
    cut = match.current_map
    assert (cut.status, cut.team1_score, cut.team2_score, cut.winner) == (MapStatus.FINISHED, 1, 0, None)
    assert cut.is_complete, "a round that is not played to its end is no lost log"


@pytest.mark.parametrize("is_forfeit_first", [True, False])
def test_forfeit_and_end_of_play_in_the_same_moment_give_one_outcome(is_forfeit_first: bool) -> None:
    driver = live_duel()
    effects = [] if is_forfeit_first else driver.end_map(13, 5).effects
    effects += forfeit_to(driver, Team.TEAM2).effects
    effects += driver.end_map(13, 5).effects if is_forfeit_first else []
    assert effects == [EndMatch()]
    assert driver.match.winner is (Winner.TEAM2 if is_forfeit_first else Winner.TEAM1)


def test_series_that_the_plugin_has_reported_over_cannot_be_forfeited() -> None:
    driver = live_duel()
    driver.apply(ev.SeriesReported(driver.now_ms, 1, 0))
    assert forfeit_to(driver, Team.TEAM2).effects == []


def test_canceled_match_cannot_be_forfeited() -> None:
    driver = MatchDriver(duel())
    driver.match.cancel(CancelReason.CANCELED_BY_USER, driver.now_ms)
    assert forfeit_to(driver, Team.TEAM1).effects == []


def test_deathmatch_cannot_be_forfeited() -> None:
    assert forfeit_to(MatchDriver(deathmatch(ANN, BEN)).join(ANN, BEN).live(), Team.TEAM1).effects == []
