"""Timeouts of a match."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, EndMatch, Kick
from matchpod.core.match import ROSTER_INCOMPLETE, MatchPhase
from matchpod.core.model import GameSettings, SeriesFormat
from matchpod.core.played_map import MapStatus
from matchpod.core.timers import Timers
from tests.unit.core.match_driver import (
    ANN,
    BEN,
    EVE,
    MAPS,
    START_MS,
    MatchDriver,
    deathmatch,
    duel,
    live_duel,
    open_match,
)

ALL_LEFT = [CancelMatch(CancelReason.ALL_PLAYERS_LEFT)]
IDLE = [CancelMatch(CancelReason.IDLE_TIMEOUT)]
NO_PLAYERS = [CancelMatch(CancelReason.NO_PLAYERS_JOINED)]


# --- joining ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [duel(), deathmatch(ANN), open_match()])
def test_match_without_players_is_canceled(settings: GameSettings) -> None:
    driver = MatchDriver(settings)
    assert driver.match.next_deadline_ms() == START_MS + 300_000
    assert driver.wait(299.999) == []
    assert driver.wait(0.001) == NO_PLAYERS
    assert driver.match.maps[0].status is MapStatus.CANCELLED


def test_join_timeout_of_a_pending_match_starts_at_allocation() -> None:
    driver = MatchDriver(duel())
    driver.match.set_allocated(START_MS + 200_000, was_pending=True)
    assert driver.wait(499) == []
    assert driver.wait(1) == NO_PLAYERS


def test_join_timeout_starts_at_creation_if_the_match_was_not_pending() -> None:
    driver = MatchDriver(duel())
    driver.match.set_allocated(START_MS + 20_000)
    assert driver.wait(299) == []
    assert driver.wait(1) == NO_PLAYERS


def test_match_without_players_is_canceled_even_if_a_map_went_live() -> None:
    driver = MatchDriver(duel())
    driver.live()
    assert driver.wait(300) == NO_PLAYERS


def test_unlisted_player_does_not_count_as_joined() -> None:
    driver = MatchDriver(duel())
    driver.join(EVE)
    assert driver.wait(300) == NO_PLAYERS


def test_connected_player_counts_as_joined() -> None:
    driver = MatchDriver(open_match())
    driver.connect(ANN)
    assert driver.wait(300) == []


def test_match_with_an_incomplete_roster_kicks_connected_players_and_is_canceled() -> None:
    driver = MatchDriver(duel())
    driver.connect(ANN, user_id=4)
    cancel = CancelMatch(CancelReason.INCOMPLETE_ROSTER, missing_players=(BEN,), connected_players=(ANN,))
    assert driver.wait(300) == [Kick(ANN, 4, ROSTER_INCOMPLETE), cancel]
    outcome = driver.match.outcome
    assert outcome is not None
    assert (outcome.missing_players, outcome.connected_players) == ((BEN,), (ANN,))


def test_listed_player_who_joined_and_left_is_not_missing() -> None:
    driver = MatchDriver(duel())
    driver.join(BEN)
    driver.leave(BEN)
    assert driver.wait(300) == [CancelMatch(CancelReason.INCOMPLETE_ROSTER, (ANN,), (BEN,))]


def test_match_is_not_canceled_as_incomplete_if_every_listed_player_joined_once() -> None:
    driver = MatchDriver(duel())
    driver.join(ANN)
    driver.leave(ANN)
    driver.join(BEN)
    assert driver.wait(300) == []
    assert driver.match.phase is MatchPhase.WARMUP


def test_match_with_an_incomplete_roster_is_not_canceled_once_a_map_is_live() -> None:
    driver = MatchDriver(duel())
    driver.join(ANN)
    driver.live()
    assert driver.wait(300) == []


# --- leaving ----------------------------------------------------------------------------------------------------


def test_live_match_is_canceled_a_grace_period_after_all_players_left() -> None:
    driver = live_duel()
    driver.leave(ANN, BEN)
    assert driver.wait(29.9) == []
    assert driver.wait(0.1) == ALL_LEFT
    assert driver.match.current_map.status is MapStatus.CANCELLED


def test_match_continues_while_one_player_stays_or_returns() -> None:
    driver = live_duel()
    driver.leave(ANN)
    assert driver.wait(3600) == []
    driver.leave(BEN)
    assert driver.wait(29) == []
    driver.connect(ANN)
    assert driver.wait(3600) == []


def test_unlisted_player_does_not_keep_an_empty_match_alive() -> None:
    driver = live_duel()
    driver.leave(ANN, BEN)
    driver.join(EVE)
    assert driver.wait(30) == ALL_LEFT


@pytest.mark.parametrize("settings", [deathmatch(ANN, minutes=None), open_match()])
def test_other_modes_are_canceled_after_all_players_left(settings: GameSettings) -> None:
    driver = MatchDriver(settings)
    driver.join(ANN)
    driver.live()
    driver.leave(ANN)
    assert driver.wait(30) == ALL_LEFT


def test_players_have_two_minutes_to_return_after_a_map_change_during_play() -> None:
    driver = live_duel()
    driver.leave(ANN, BEN, is_map_change=True)
    driver.load()
    assert driver.wait(119) == []
    assert driver.wait(1) == ALL_LEFT


def test_players_have_two_minutes_to_return_after_a_server_restart() -> None:
    driver = live_duel()
    driver.apply(ev.ServerRestarted(driver.now_ms))
    assert driver.wait(119) == []
    assert driver.wait(1) == ALL_LEFT


def test_player_leaving_during_a_map_change_does_not_shorten_the_wait_for_others() -> None:
    driver = live_duel(SeriesFormat.BO3)
    driver.end_map()
    driver.load(MAPS[1])
    driver.wait(30)
    driver.connect(ANN)
    driver.leave(ANN)
    assert driver.wait(60) == []
    assert driver.join(BEN) == []
    assert driver.wait(300) == []


def test_match_is_canceled_if_no_player_returns_for_the_next_map() -> None:
    driver = live_duel(SeriesFormat.BO3)
    driver.end_map()
    driver.load(MAPS[1])
    assert driver.wait(119) == []
    assert driver.wait(1) == ALL_LEFT
    assert [played.status for played in driver.match.maps] == [MapStatus.FINISHED]


def test_players_who_quit_between_maps_have_the_map_change_grace_period() -> None:
    driver = live_duel(SeriesFormat.BO3)
    driver.end_map()
    driver.load(MAPS[1])
    driver.join(ANN)
    driver.wait(200)
    driver.leave(ANN)
    assert driver.wait(119) == []
    assert driver.wait(1) == ALL_LEFT


@pytest.mark.parametrize("settings", [duel(), open_match()])
def test_empty_warmup_is_canceled_as_idle(settings: GameSettings) -> None:
    driver = MatchDriver(settings)
    driver.join(ANN, BEN)
    driver.leave(ANN, BEN)
    assert driver.wait(599) == []
    assert driver.wait(1) == IDLE


# --- duration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [duel(SeriesFormat.BO3), open_match()])
def test_match_is_canceled_after_the_maximum_duration(settings: GameSettings) -> None:
    driver = MatchDriver(settings)
    driver.match.set_allocated(START_MS + 1_000)
    driver.join(ANN, BEN)
    driver.live()
    assert driver.match.next_deadline_ms() == START_MS + 1_000 + 6 * 3_600_000
    assert driver.wait(6 * 3600) == []
    assert driver.wait(1) == [CancelMatch(CancelReason.MAX_DURATION_EXCEEDED)]


def test_late_tick_has_the_same_effect_as_a_punctual_one() -> None:
    driver = live_duel()
    driver.leave(ANN, BEN)
    assert driver.wait(10 * 3600) == ALL_LEFT


def test_deathmatch_without_a_logged_end_ends_by_our_clock() -> None:
    driver = MatchDriver(deathmatch(ANN, BEN))
    driver.join(ANN, BEN)
    driver.live()
    driver.wait(9 * 60)
    driver.apply(ev.Kill(driver.now_ms, ANN, BEN, "ak47", is_enemy=True))
    assert driver.wait(60 + 29) == []
    assert driver.wait(1) == [EndMatch()]
    assert (driver.match.current_map.status, driver.match.current_map.duration_s) == (MapStatus.FINISHED, 9 * 60)


def test_time_spent_waiting_for_a_logged_end_is_not_part_of_the_duration() -> None:
    driver = MatchDriver(deathmatch(ANN))
    driver.join(ANN)
    driver.live()
    driver.wait(10 * 60 + 20)
    driver.apply(ev.ChatMessage(driver.now_ms, ANN, "ann", is_team_only=False, text="gg"))
    assert driver.wait(10) == [EndMatch()]
    assert driver.match.current_map.duration_s == 10 * 60


def test_restarted_deathmatch_gets_its_full_time() -> None:
    driver = MatchDriver(deathmatch(ANN))
    driver.join(ANN)
    driver.live()
    driver.wait(600)
    driver.live()
    assert driver.wait(600) == []
    assert driver.wait(30) == [EndMatch()]


def test_deathmatch_lasts_ten_minutes_by_default() -> None:
    driver = MatchDriver(deathmatch(ANN, minutes=None))
    driver.join(ANN)
    driver.live()
    assert driver.wait(10 * 60) == []
    assert driver.wait(60) == [EndMatch()]


def test_deathmatch_may_exceed_the_maximum_duration_of_a_match() -> None:
    driver = MatchDriver(deathmatch(ANN, minutes=400))
    driver.join(ANN)
    driver.live()
    assert driver.wait(6 * 3600 + 1) == []
    assert driver.wait(3600) == [EndMatch()]


def test_timeouts_are_shorter_with_accelerated_time() -> None:
    driver = MatchDriver(deathmatch(ANN), Timers().at_speed(30))
    assert driver.match.next_deadline_ms() == START_MS + 10_000
    driver.join(ANN)
    driver.live()
    assert driver.wait(20.9) == []
    assert driver.wait(0.1) == [EndMatch()]
