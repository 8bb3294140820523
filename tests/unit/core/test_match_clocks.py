"""What time alone does to a match."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, EndMatch, Kick
from matchpod.core.match import ROSTER_INCOMPLETE, Phase
from matchpod.core.model import GameSettings, SeriesFormat
from matchpod.core.played_map import MapStatus
from matchpod.core.timers import Timers
from tests.unit.core.match_builder import ANN, BEN, EVE, MAPS, START_MS, Story, deathmatch, duel, live_duel, open_match

ALL_LEFT = [CancelMatch(CancelReason.ALL_PLAYERS_LEFT)]
IDLE = [CancelMatch(CancelReason.IDLE_TIMEOUT)]
NOBODY = [CancelMatch(CancelReason.NO_PLAYERS_JOINED)]


# --- joining ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [duel(), deathmatch(ANN), open_match()])
def test_match_that_nobody_joins_is_canceled(settings: GameSettings) -> None:
    story = Story(settings)
    assert story.match.next_deadline_ms() == START_MS + 300_000
    assert story.wait(299.999) == []
    assert story.wait(0.001) == NOBODY
    assert story.match.maps[0].status is MapStatus.CANCELLED


def test_join_time_of_a_pending_match_counts_from_allocation() -> None:
    story = Story(duel())
    story.match.allocated(START_MS + 200_000, was_pending=True)
    assert story.wait(499) == []
    assert story.wait(1) == NOBODY


def test_time_for_anybody_to_join_counts_from_creation_where_nothing_was_pending() -> None:
    story = Story(duel())
    story.match.allocated(START_MS + 20_000)
    assert story.wait(299) == []
    assert story.wait(1) == NOBODY


def test_nobody_joins_although_the_server_played_an_empty_round() -> None:
    story = Story(duel())
    story.live()
    assert story.wait(300) == NOBODY


def test_unlisted_player_does_not_count_as_joined() -> None:
    story = Story(duel())
    story.join(EVE)
    assert story.wait(300) == NOBODY


def test_player_who_only_opened_a_connection_has_joined() -> None:
    story = Story(open_match())
    story.connect(ANN)
    assert story.wait(300) == []


def test_incomplete_roster_kicks_those_who_came_and_cancels() -> None:
    story = Story(duel())
    story.connect(ANN, user_id=4)
    cancel = CancelMatch(CancelReason.INCOMPLETE_ROSTER, missing_players=(BEN,), connected_players=(ANN,))
    assert story.wait(300) == [Kick(ANN, 4, ROSTER_INCOMPLETE), cancel]
    outcome = story.match.outcome
    assert outcome is not None
    assert (outcome.missing_players, outcome.connected_players) == ((BEN,), (ANN,))


def test_listed_player_who_came_and_left_is_not_missing() -> None:
    story = Story(duel())
    story.join(BEN)
    story.leave(BEN)
    assert story.wait(300) == [CancelMatch(CancelReason.INCOMPLETE_ROSTER, (ANN,), (BEN,))]


def test_roster_that_was_complete_once_is_not_canceled_as_incomplete() -> None:
    story = Story(duel())
    story.join(ANN)
    story.leave(ANN)
    story.join(BEN)
    assert story.wait(300) == []
    assert story.match.phase is Phase.WARMUP


def test_join_clock_stops_when_a_map_is_live() -> None:
    story = Story(duel())
    story.join(ANN)
    story.live()
    assert story.wait(300) == []


# --- leaving ----------------------------------------------------------------------------------------------------


def test_live_match_that_everyone_left_is_canceled_after_a_grace_time() -> None:
    story = live_duel()
    story.leave(ANN, BEN)
    assert story.wait(29.9) == []
    assert story.wait(0.1) == ALL_LEFT
    assert story.match.current_map.status is MapStatus.CANCELLED


def test_one_who_stays_or_returns_keeps_the_match() -> None:
    story = live_duel()
    story.leave(ANN)
    assert story.wait(3600) == []
    story.leave(BEN)
    assert story.wait(29) == []
    story.connect(ANN)
    assert story.wait(3600) == []


def test_unlisted_player_does_not_keep_the_match() -> None:
    story = live_duel()
    story.leave(ANN, BEN)
    story.join(EVE)
    assert story.wait(30) == ALL_LEFT


@pytest.mark.parametrize("settings", [deathmatch(ANN, minutes=None), open_match()])
def test_other_modes_are_left_alike(settings: GameSettings) -> None:
    story = Story(settings)
    story.join(ANN)
    story.live()
    story.leave(ANN)
    assert story.wait(30) == ALL_LEFT


def test_map_change_during_play_is_not_leaving() -> None:
    story = live_duel()
    story.leave(ANN, BEN, is_map_change=True)
    story.load()
    assert story.wait(119) == []
    assert story.wait(1) == ALL_LEFT


def test_new_server_process_is_not_leaving() -> None:
    story = live_duel()
    story.tell(ev.ServerRestarted(story.now_ms))
    assert story.wait(119) == []
    assert story.wait(1) == ALL_LEFT


def test_player_who_gives_up_during_a_map_change_does_not_end_it_for_the_others() -> None:
    story = live_duel(SeriesFormat.BO3)
    story.end_map()
    story.load(MAPS[1])
    story.wait(30)
    story.connect(ANN)
    story.leave(ANN)
    assert story.wait(60) == []
    assert story.join(BEN) == []
    assert story.wait(300) == []


def test_nobody_returns_for_the_next_map() -> None:
    story = live_duel(SeriesFormat.BO3)
    story.end_map()
    story.load(MAPS[1])
    assert story.wait(119) == []
    assert story.wait(1) == ALL_LEFT
    assert [played.status for played in story.match.maps] == [MapStatus.FINISHED]


def test_players_who_quit_between_maps_have_as_long_as_for_a_map_change() -> None:
    story = live_duel(SeriesFormat.BO3)
    story.end_map()
    story.load(MAPS[1])
    story.join(ANN)
    story.wait(200)
    story.leave(ANN)
    assert story.wait(119) == []
    assert story.wait(1) == ALL_LEFT


@pytest.mark.parametrize("settings", [duel(), open_match()])
def test_warmup_that_everyone_left_is_canceled_as_idle(settings: GameSettings) -> None:
    story = Story(settings)
    story.join(ANN, BEN)
    story.leave(ANN, BEN)
    assert story.wait(599) == []
    assert story.wait(1) == IDLE


# --- duration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [duel(SeriesFormat.BO3), open_match()])
def test_match_that_lasts_too_long_is_canceled(settings: GameSettings) -> None:
    story = Story(settings)
    story.match.allocated(START_MS + 1_000)
    story.join(ANN, BEN)
    story.live()
    assert story.match.next_deadline_ms() == START_MS + 1_000 + 6 * 3_600_000
    assert story.wait(6 * 3600) == []
    assert story.wait(1) == [CancelMatch(CancelReason.MAX_DURATION_EXCEEDED)]


def test_late_tick_decides_as_a_punctual_one() -> None:
    story = live_duel()
    story.leave(ANN, BEN)
    assert story.wait(10 * 3600) == ALL_LEFT


def test_deathmatch_that_prints_no_end_ends_by_our_clock() -> None:
    story = Story(deathmatch(ANN, BEN))
    story.join(ANN, BEN)
    story.live()
    story.wait(9 * 60)
    story.tell(ev.Kill(story.now_ms, ANN, BEN, "ak47", is_enemy=True))
    assert story.wait(60 + 29) == []
    assert story.wait(1) == [EndMatch()]
    assert (story.match.current_map.status, story.match.current_map.duration_s) == (MapStatus.FINISHED, 9 * 60)


def test_margin_of_our_clock_is_no_playing_time() -> None:
    story = Story(deathmatch(ANN))
    story.join(ANN)
    story.live()
    story.wait(10 * 60 + 20)
    story.tell(ev.ChatSaid(story.now_ms, ANN, "ann", is_team_only=False, text="gg"))
    assert story.wait(10) == [EndMatch()]
    assert story.match.current_map.duration_s == 10 * 60


def test_restarted_deathmatch_has_its_whole_time() -> None:
    story = Story(deathmatch(ANN))
    story.join(ANN)
    story.live()
    story.wait(600)
    story.live()
    assert story.wait(600) == []
    assert story.wait(30) == [EndMatch()]


def test_deathmatch_without_a_limit_lasts_ten_minutes() -> None:
    story = Story(deathmatch(ANN, minutes=None))
    story.join(ANN)
    story.live()
    assert story.wait(10 * 60) == []
    assert story.wait(60) == [EndMatch()]


def test_deathmatch_longer_than_any_match_should_be_gets_its_time() -> None:
    story = Story(deathmatch(ANN, minutes=400))
    story.join(ANN)
    story.live()
    assert story.wait(6 * 3600 + 1) == []
    assert story.wait(3600) == [EndMatch()]


def test_faster_world_has_shorter_clocks() -> None:
    story = Story(deathmatch(ANN), Timers().at_speed(30))
    assert story.match.next_deadline_ms() == START_MS + 10_000
    story.join(ANN)
    story.live()
    assert story.wait(20.9) == []
    assert story.wait(0.1) == [EndMatch()]
