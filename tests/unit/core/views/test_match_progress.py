"""Where a running match stands."""

from __future__ import annotations

from cs2_protocol.game import Side
from matchpod.core.anticheat.detection import Detection
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.actions import ActionRequest, ActionState, ActionType
from matchpod.core.model import SeriesFormat
from matchpod.core.views.attention import Signals
from matchpod.core.views.match_progress import MatchProgress, progress_of
from matchpod.core.views.progress import PublicPhase, Stays, WaitingFor
from tests.unit.core.match_driver import ANN, BEN, MAPS, START_MS, MatchDriver, deathmatch, duel, live_duel


def progress(
    driver: MatchDriver, signals: Signals | None = None, *, deadline: tuple[int, WaitingFor] | None = None
) -> MatchProgress:
    stays = Stays()
    stays.update(driver.match, driver.now_ms, match_ms=driver.now_ms)
    return progress_of(driver.match, stays, signals or Signals(), heard_ms=7, deadline=deadline)


def test_match_that_waits_for_players() -> None:
    driver = MatchDriver(duel()).connect(ANN)
    found = progress(driver, deadline=(START_MS + 5, WaitingFor.PLAYERS_TO_JOIN))
    assert (found.phase, len(found.missing), found.score) == (PublicPhase.WAITING_FOR_PLAYERS, 1, (0, 0))
    assert (found.waiting_for, found.until_ms, found.heard_ms) == (WaitingFor.PLAYERS_TO_JOIN, START_MS + 5, 7)
    assert (found.round, found.live_ms, found.team1_side) == (None, None, None)


def test_player_without_whom_play_was_started_is_not_missing_until_they_came_once() -> None:
    driver = MatchDriver(duel()).join(ANN)
    driver.match.presence.excuse_absent()
    assert progress(driver).missing == ()
    driver.join(BEN).leave(BEN)
    assert [player.steam_id for player in progress(driver).missing] == [BEN]


def test_live_match_of_a_series() -> None:
    driver = live_duel(SeriesFormat.BO3)
    found = progress(driver)
    assert (found.phase, found.map_name, found.map_number, found.maps_won) == (PublicPhase.LIVE, MAPS[0], 1, (0, 0))
    assert (found.missing, found.live_ms) == ((), driver.match.current_map.started_at_ms)


def test_second_map_follows_the_first() -> None:
    driver = live_duel(SeriesFormat.BO3).end_map(13, 5)
    found = progress(driver)
    assert (found.phase, found.map_number, found.maps_won) == (PublicPhase.BETWEEN_MAPS, 2, (1, 0))
    assert (found.map_name, found.score) == (MAPS[1], (0, 0))


def test_deathmatch_has_no_score_and_no_sides() -> None:
    driver = MatchDriver(deathmatch(ANN, BEN)).join(ANN, BEN).live()
    found = progress(driver)
    assert (found.phase, found.score, found.team1_side) == (PublicPhase.LIVE, None, None)


def test_sides_are_shown_while_a_map_is_live() -> None:
    driver = live_duel()
    driver.match.current_map.team1_side = Side.CT
    assert progress(driver).team1_side is Side.CT
    driver.end_map()
    assert progress(driver).team1_side is None


def test_signals_and_detections_are_counted() -> None:
    driver = live_duel()
    driver.match.detections.append(
        Detection(
            player_id=ANN,
            name="Ann",
            team=None,
            kind="Wallhack",
            reason="",
            weapon="ak47",
            map_number=1,
            round_number=1,
            detected_at_ms=START_MS,
        )
    )
    found = progress(driver, Signals(paused_ms=3, called_ms=4))
    assert (found.detections, found.called_ms) == (1, 4)
    assert found.paused_ms is None  # the map is not paused any longer
    driver.match.current_map.has_pause = True
    assert progress(driver, Signals(paused_ms=3)).paused_ms == 3


def test_newest_action_that_has_not_ended_is_pending() -> None:
    driver = live_duel()
    assert progress(driver).pending_action is None
    for number in (1, 2):
        asked = ActionRequest(id=f"action_{number}", type=ActionType.SAY, text="Hello")
        driver.match.request_action(asked, driver.now_ms)
    found = progress(driver).pending_action
    assert found is not None
    assert (found.action_id, found.type, found.state) == ("action_2", ActionType.SAY, ActionState.REQUESTED)
    assert found.requested_at == iso_time(driver.now_ms)


def test_deadline_has_both_its_parts_or_is_none() -> None:
    assert progress(live_duel()).deadline is None
    waiting = progress(MatchDriver(duel()), deadline=(START_MS, WaitingFor.PLAYERS_TO_JOIN)).deadline
    assert waiting is not None
    assert waiting.until == iso_time(START_MS)
