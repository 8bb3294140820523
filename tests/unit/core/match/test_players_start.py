"""Matches that the service does not start: the players do by being ready, or a person orders it."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.model import GameSettings, SeriesFormat, StartSides
from matchpod.core.views.progress import WaitingFor, next_deadline
from tests.unit.core.match_driver import ANN, BEN, MAPS, MatchDriver, duel, open_match

JOIN_S = 300
IDLE = [CancelMatch(CancelReason.IDLE_TIMEOUT)]


def without_start(settings: GameSettings | None = None, **changes: object) -> GameSettings:
    return msgspec.structs.replace(settings or duel(), auto_start=False, **changes)


def test_play_does_not_start_when_all_have_joined() -> None:
    driver = MatchDriver(without_start()).join(ANN, BEN)
    assert (driver.effects, driver.wait(60), driver.match.phase) == ([], [], MatchPhase.WARMUP)
    assert driver.live().match.phase is MatchPhase.LIVE


def test_person_may_order_the_start() -> None:
    driver = MatchDriver(without_start()).join(ANN, BEN)
    assert driver.match.start(driver.now_ms) == [StartPlay(1)]
    assert driver.wait(60) == [StartPlay(1)]


def test_players_who_are_not_ready_in_twice_the_time_to_join_are_idle() -> None:
    driver = MatchDriver(without_start()).after(200).join(ANN, BEN)
    assert next_deadline(driver.match) == (driver.now_ms + 2_000 * JOIN_S, WaitingFor.START)
    assert driver.wait(2 * JOIN_S - 0.001) == []
    assert driver.wait(0.001) == IDLE


def test_player_who_comes_and_goes_does_not_restart_the_time_to_be_ready() -> None:
    driver = MatchDriver(without_start()).join(ANN, BEN).after(JOIN_S).leave(ANN).after(60).join(ANN)
    assert driver.wait(JOIN_S - 60) == IDLE


def test_player_who_returns_after_the_time_to_be_ready_has_a_minute() -> None:
    driver = MatchDriver(without_start()).join(ANN, BEN).after(2 * JOIN_S - 1).leave(ANN).after(60).join(ANN)
    assert driver.wait(59.9) == []
    assert driver.wait(0.1) == IDLE


def test_time_to_be_ready_runs_anew_on_the_next_map() -> None:
    driver = MatchDriver(without_start(duel(SeriesFormat.BO3))).join(ANN, BEN).after(JOIN_S).live().end_map()
    driver.change_map(MAPS[1], ANN, BEN)
    assert (driver.effects, driver.wait(2 * JOIN_S - 1), driver.wait(1)) == ([], [], IDLE)


def test_players_who_begin_the_knife_round_are_ready() -> None:
    driver = MatchDriver(without_start(sides=(StartSides.KNIFE,))).join(ANN, BEN).live()
    assert (driver.match.phase, driver.wait(3 * JOIN_S)) == (MatchPhase.STARTING, [])
    driver.apply(ev.RoundDecided(driver.now_ms, 1, Team.TEAM1, Side.CT, RoundEndReason.UNKNOWN, 1, 0))
    assert driver.live().match.phase is MatchPhase.LIVE


def test_match_without_a_roster_waits_for_a_person() -> None:
    driver = MatchDriver(without_start(open_match())).join(ANN)
    assert driver.wait(2 * JOIN_S - 1) == []
    assert driver.match.start(driver.now_ms) == [StartPlay(1)]
    assert MatchDriver(without_start(open_match())).join(ANN).wait(2 * JOIN_S) == IDLE
