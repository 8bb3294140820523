"""What happens if players do not come: the match is canceled, or their team forfeits it."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, EndMatch
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.timers import Timers
from matchpod.core.model import GameSettings, OnNoShow, SeriesFormat, TeamRoster, Winner
from tests.unit.core.match_driver import ANN, BEN, MAPS, START_MS, MatchDriver, duel

JOIN_S = 300


def forfeited(series_format: SeriesFormat = SeriesFormat.BO1, **changes: object) -> GameSettings:
    return msgspec.structs.replace(duel(series_format), on_no_show=OnNoShow.FORFEIT, **changes)


def reason_of(driver: MatchDriver) -> CancelReason | None:
    [*_, last] = driver.effects
    assert isinstance(last, CancelMatch)
    return last.reason


# --- the time to join ---------------------------------------------------------------------------------------------


def test_caller_sets_the_time_to_join() -> None:
    settings = msgspec.structs.replace(duel(), join_seconds=90)
    driver = MatchDriver(settings).connect(ANN)
    assert driver.wait(89.999) == []
    assert driver.after(0.001).effects[-1] == CancelMatch(CancelReason.INCOMPLETE_ROSTER, (BEN,), (ANN,), (BEN,))


def test_time_to_join_of_a_fast_game_is_shorter() -> None:
    assert Timers.of(msgspec.structs.replace(duel(), join_seconds=90)).at_speed(30).join_s == 3


# --- a team does not come -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("present", "winner"), [(ANN, Winner.TEAM1), (BEN, Winner.TEAM2)])
def test_team_that_is_complete_wins_if_the_other_is_not(present: str, winner: Winner) -> None:
    driver = MatchDriver(forfeited()).join(present)
    assert driver.wait(JOIN_S - 0.001) == []
    assert driver.wait(0.001) == [EndMatch()]
    match = driver.match
    assert (match.winner, match.series_score, match.phase) == (winner, (0, 0), MatchPhase.OVER)
    assert match.outcome is not None
    assert match.outcome.is_finished


def test_match_is_canceled_unless_the_caller_asked_for_a_forfeit() -> None:
    assert reason_of(MatchDriver(duel()).join(ANN).after(JOIN_S)) is CancelReason.INCOMPLETE_ROSTER


def test_nobody_wins_if_no_team_is_complete() -> None:
    driver = MatchDriver(forfeited()).join(ANN).leave(ANN)
    assert reason_of(driver.after(JOIN_S)) is CancelReason.INCOMPLETE_ROSTER


def test_team_that_left_before_play_forfeits() -> None:
    driver = MatchDriver(forfeited()).join(ANN, BEN).after(60).leave(ANN).after(JOIN_S)
    assert (driver.effects, driver.match.winner) == ([EndMatch()], Winner.TEAM2)


def test_team_that_does_not_come_to_the_next_map_forfeits_the_rest_of_the_series() -> None:
    driver = MatchDriver(forfeited(SeriesFormat.BO3)).join(ANN, BEN).live().end_map(13, 5).change_map(MAPS[1], BEN)
    driver.after(JOIN_S)
    match = driver.match
    assert (driver.effects, match.winner, match.series_score) == ([EndMatch()], Winner.TEAM2, (1, 0))
    assert [(played.number, played.winner) for played in match.maps] == [(1, Winner.TEAM1)]


def test_player_who_is_still_loading_when_the_time_ends_has_come() -> None:
    assert MatchDriver(forfeited()).after(JOIN_S - 10).connect(ANN).after(10).match.winner is Winner.TEAM1


def test_player_whose_client_never_finishes_loading_has_not_come() -> None:
    driver = MatchDriver(forfeited()).join(ANN).connect(BEN).after(JOIN_S)
    assert driver.match.winner is Winner.TEAM1


@pytest.mark.parametrize("present", [(), (ANN,)])
def test_match_without_a_team_of_listed_players_is_canceled(present: tuple[str, ...]) -> None:
    settings = forfeited(team2=TeamRoster("Blues"))  # an action may take all players out
    assert MatchDriver(settings).join(*present).after(JOIN_S).match.winner is None


# --- the players may not be to blame ----------------------------------------------------------------------------------


def test_nobody_forfeits_if_lines_were_lost_within_the_time_to_join() -> None:
    driver = MatchDriver(forfeited()).join(ANN).apply(ev.LogGap(START_MS, 10))
    driver.after(60).apply(ev.PlayersSeen(driver.now_ms, {ANN: "Ann"}, 60_000))
    assert reason_of(driver.after(JOIN_S)) is CancelReason.INCOMPLETE_ROSTER


def test_nobody_forfeits_if_the_server_was_silent_within_the_time_to_join() -> None:
    driver = MatchDriver(forfeited()).join(ANN).after(60)
    driver.match.disturb(driver.now_ms)
    assert reason_of(driver.after(JOIN_S)) is CancelReason.INCOMPLETE_ROSTER


def test_extended_time_to_join_begins_when_it_would_have() -> None:
    driver = MatchDriver(forfeited()).join(ANN)
    driver.match.disturb(driver.now_ms)
    driver.match.extra_join_ms = 60_000
    assert driver.wait(JOIN_S) == []
    assert reason_of(driver.after(60)) is CancelReason.INCOMPLETE_ROSTER


def test_what_was_lost_before_the_time_to_join_does_not_count() -> None:
    driver = MatchDriver(forfeited(SeriesFormat.BO3)).join(ANN, BEN).live()
    driver.match.disturb(driver.now_ms)
    driver.after(60).end_map(13, 5).change_map(MAPS[1], ANN).after(JOIN_S)
    assert driver.match.winner is Winner.TEAM1
