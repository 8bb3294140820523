"""A match from the first player to its end: start, end, cancellation and detections."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, EndMatch, Kick, StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.played_map import MapStatus
from matchpod.core.match.presence import NOT_LISTED
from matchpod.core.model import GameSettings, SeriesFormat, TeamRoster, Winner
from matchpod.core.outcome import Outcome
from tests.unit.core.match_driver import ANN, BEN, CAT, EVE, MAPS, MatchDriver, deathmatch, duel, live_duel, open_match

BO3 = SeriesFormat.BO3


# --- start ------------------------------------------------------------------------------------------------------


def test_competitive_match_waits_until_all_players_have_a_side() -> None:
    driver = MatchDriver(duel())
    assert driver.join(ANN).effects + driver.connect(BEN).effects + driver.enter(BEN).effects == []
    assert driver.join_side(BEN, Side.T).effects == [StartPlay(1)]


def test_competitive_match_starts_without_sides_after_the_time_to_choose() -> None:
    driver = MatchDriver(duel())
    for player in (ANN, BEN):
        driver.connect(player).enter(player)
    assert driver.match.next_deadline_ms() == driver.now_ms + 20_000
    assert driver.wait(19.9) == []
    assert driver.wait(0.1) == [StartPlay(1)]


def test_deathmatch_starts_when_the_last_listed_player_has_entered() -> None:
    driver = MatchDriver(deathmatch(ANN, BEN)).connect(ANN).connect(BEN)
    assert driver.enter(ANN).effects == []
    assert driver.enter(BEN).effects == [StartPlay(1)]


def test_start_is_requested_again_until_the_map_is_live() -> None:
    driver = MatchDriver(duel()).join(ANN, BEN)
    assert driver.wait(59) == []
    assert driver.wait(1) == [StartPlay(1)]
    assert driver.wait(59) == []
    assert driver.wait(1) == [StartPlay(1)]
    driver.live()
    assert driver.wait(120) == []


def test_start_is_requested_again_at_once_after_a_resume() -> None:
    driver = MatchDriver(duel()).join(ANN, BEN)
    assert driver.wait(5) == []
    driver.match.resume(driver.now_ms)
    driver.match.resume(driver.now_ms + 5_000)
    assert driver.match.next_deadline_ms() == driver.now_ms, "more resumes do not postpone it"
    assert driver.wait(0) == [StartPlay(1)]
    assert driver.wait(59) == []


@pytest.mark.parametrize("players", [(), (ANN,), (ANN, BEN)])
def test_map_may_go_live_without_a_start_request(players: tuple[str, ...]) -> None:
    driver = MatchDriver(duel()).join(*players)
    assert driver.live("de_other").effects == []
    assert driver.match.phase is MatchPhase.LIVE
    assert (driver.match.current_map.played_name, driver.match.current_map.status) == ("de_other", MapStatus.LIVE)


def test_unlisted_player_is_kicked_on_every_event_and_never_counts() -> None:
    driver = MatchDriver(duel())
    assert driver.join(EVE).effects == [Kick(EVE, 1, NOT_LISTED)] * 3
    driver.join(ANN, BEN).live().join(EVE)
    assert set(driver.match.current_map.names) == {ANN, BEN}
    assert driver.match.presence.ever_connected == [ANN, BEN]


def test_live_map_has_the_names_of_players_who_connected_before() -> None:
    driver = MatchDriver(open_match()).join(ANN, BEN)
    driver.apply(ev.PlayerRenamed(driver.now_ms, BEN, "benny"))
    driver.apply(ev.RoundStarted(driver.now_ms, 1, (CAT,), (), Side.CT)).live()
    assert driver.match.current_map.names == {ANN: "name of 1", BEN: "benny"}


# --- end --------------------------------------------------------------------------------------------------------


def test_end_of_the_map_of_a_bo1_ends_the_match() -> None:
    driver = live_duel()
    assert driver.end_map(13, 5).effects == [EndMatch()]
    match = driver.match
    assert (match.phase, match.winner, match.map_number) == (MatchPhase.OVER, Winner.TEAM1, 1)
    assert match.outcome == Outcome(at_ms=driver.now_ms)
    assert match.next_deadline_ms() is None


def test_live_match_has_no_winner() -> None:
    assert live_duel().match.winner is None


def test_map_end_with_another_map_name_ends_the_current_map() -> None:
    driver = live_duel()
    assert driver.end_map(13, 5, "de_other").effects == [EndMatch()]
    assert driver.match.current_map.name == MAPS[0]


def test_map_end_is_ignored_if_no_map_is_live() -> None:
    driver = MatchDriver(duel())
    assert driver.end_map().effects == []
    driver.join(ANN, BEN)
    assert driver.end_map().effects == []
    assert driver.match.current_map.status is MapStatus.UPCOMING


# --- cancel, teams, detections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [phase for phase in MatchPhase if phase is not MatchPhase.OVER])
def test_match_can_be_canceled_in_every_phase_before_its_end(phase: MatchPhase) -> None:
    driver = live_duel(BO3)
    driver.match.phase = phase
    assert driver.match.cancel(CancelReason.SERVER_LOST, driver.now_ms) == [CancelMatch(CancelReason.SERVER_LOST)]
    outcome = Outcome(at_ms=driver.now_ms, reason=CancelReason.SERVER_LOST, is_log_complete=True)
    assert driver.match.outcome == outcome
    assert driver.match.current_map.status is MapStatus.CANCELLED
    assert driver.match.winner is None


def test_team_comes_from_the_game_without_a_roster() -> None:
    driver = MatchDriver(open_match()).join_side(ANN, Side.T, Team.TEAM2)
    assert driver.match.team_of(ANN) is Team.TEAM2


def test_players_have_no_team_in_free_for_all() -> None:
    driver = MatchDriver(deathmatch()).join_side(ANN, Side.T, Team.TEAM2)
    assert driver.match.team_of(ANN) is None


def suspect(driver: MatchDriver, player: str, kind: str = "Aimbot") -> None:
    driver.apply(ev.CheatSuspected(driver.now_ms, player, kind, "why", "ak47"))


def test_detection_has_player_map_and_round() -> None:
    driver = live_duel()
    driver.apply(ev.RoundStarted(driver.now_ms, 3, (ANN,), (BEN,), Side.CT))
    suspect(driver, BEN)
    suspect(driver, BEN)
    (found,) = driver.match.detections
    assert (found.player_id, found.name, found.team) == (BEN, "name of 2", Team.TEAM2)
    assert (found.kind, found.reason, found.weapon) == ("Aimbot", "why", "ak47")
    assert (found.map_number, found.round_number, found.detected_at_ms) == (1, 3, driver.now_ms)


def test_detection_of_a_player_who_left_has_their_name() -> None:
    driver = live_duel().leave(BEN)
    suspect(driver, BEN)
    assert driver.match.detections[0].name == "name of 2"


def test_detections_of_bots_and_unlisted_players_are_ignored() -> None:
    driver = live_duel()
    suspect(driver, "BOT:Han")
    suspect(driver, EVE)
    assert driver.match.detections == []


def test_detection_belongs_to_the_old_map_until_the_next_one_loads() -> None:
    driver = live_duel(BO3)
    driver.apply(ev.RoundStarted(driver.now_ms, 24, (ANN,), (BEN,), Side.CT)).end_map()
    suspect(driver, ANN)
    driver.change_map(MAPS[1], ANN, BEN)
    suspect(driver, ANN)
    assert [(found.map_number, found.round_number) for found in driver.match.detections] == [(1, 24), (2, None)]


# --- spectators and coaches ---------------------------------------------------------------------------------------


def test_guest_alone_is_nobody_who_joined() -> None:
    driver = MatchDriver(watched_duel()).enter(EVE).enter(CAT)
    assert driver.wait(300) == [CancelMatch(CancelReason.NO_PLAYERS_JOINED)]


def test_guests_are_kicked_with_the_others_and_in_no_list_of_the_outcome() -> None:
    driver = MatchDriver(watched_duel()).join(ANN).connect(EVE, 9)
    kick_ann, kick_eve, cancel = driver.wait(300)
    assert isinstance(kick_ann, Kick)
    assert isinstance(kick_eve, Kick)
    assert (kick_ann.player_id, kick_eve.player_id, kick_eve.user_id) == (ANN, EVE, 9)
    assert isinstance(cancel, CancelMatch)
    assert (cancel.missing_players, cancel.connected_players, cancel.absent_players) == ((BEN,), (ANN,), (BEN,))


def watched_duel() -> GameSettings:
    """Ann, coached by Cat, against Ben; Eve watches."""
    return msgspec.structs.replace(duel(), team1=TeamRoster("Reds", (ANN,), (CAT,)), spectators=(EVE,))
