"""The alarms of a match: when they are due, and what they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, Effect, EndMatch, Kick, LoadMap, StartPlay
from matchpod.core.match.alarms import Alarm
from matchpod.core.match.match import ROSTER_INCOMPLETE, MatchPhase
from matchpod.core.match.played_map import MapStatus
from matchpod.core.match.timers import Timers
from matchpod.core.model import GameSettings, SeriesFormat, Winner
from matchpod.core.views.progress import WaitingFor, next_deadline
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
KICK_BEN = Kick(BEN, 1, ROSTER_INCOMPLETE)
IDLE = [CancelMatch(CancelReason.IDLE_TIMEOUT)]
NO_PLAYERS = [CancelMatch(CancelReason.NO_PLAYERS_JOINED)]


def incomplete(*, missing: tuple[str, ...] = (), absent: tuple[str, ...]) -> CancelMatch:
    """The end of a duel in which these players never joined, and these were not there."""
    joined = tuple(player for player in (ANN, BEN) if player not in missing)
    return CancelMatch(CancelReason.INCOMPLETE_ROSTER, missing, joined, absent)


# --- joining ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [duel(), deathmatch(ANN), open_match()])
def test_match_without_players_is_canceled(settings: GameSettings) -> None:
    driver = MatchDriver(settings)
    assert driver.match.next_deadline_ms() == START_MS + 300_000
    assert driver.wait(299.999) == []
    assert driver.wait(0.001) == NO_PLAYERS
    assert driver.match.maps[0].status is MapStatus.CANCELLED


# --- one alarm after a time of quiet --------------------------------------------------------------------------------


def waits(settings: GameSettings | None = None) -> MatchDriver:
    return MatchDriver(settings or duel())


def allocated(seconds: float, *, was_pending: bool) -> MatchDriver:
    driver = waits()
    driver.match.set_allocated(START_MS + round(seconds * 1000), was_pending=was_pending)
    return driver


KICK_ANN = Kick(ANN, 1, ROSTER_INCOMPLETE)
ANN_ABSENT: list[Effect] = [KICK_BEN, incomplete(absent=(ANN,))]
BEN_ABSENT: list[Effect] = [KICK_ANN, incomplete(absent=(BEN,))]
BEN_LOADS: list[Effect] = [KICK_ANN, KICK_BEN, incomplete(absent=(BEN,))]
BO3 = SeriesFormat.BO3
RINGS: dict[str, tuple[Callable[[], MatchDriver], float, list[Effect]]] = {
    # joining
    "time to join of a pending match begins at its allocation": (
        lambda: allocated(200, was_pending=True), 500, [*NO_PLAYERS],
    ),
    "time to join of another begins at its creation": (lambda: allocated(20, was_pending=False), 300, [*NO_PLAYERS]),
    "no player came, even if a map went live": (lambda: waits().live(), 300, [*NO_PLAYERS]),
    "unlisted player has not joined": (lambda: waits().join(EVE), 300, [*NO_PLAYERS]),
    "listed player who joined and left is not missing": (
        lambda: waits().join(BEN).leave(BEN), 300, [incomplete(missing=(ANN,), absent=(ANN, BEN))],
    ),
    "player left before the last one joined": (
        lambda: waits().join(ANN).leave(ANN).after(200).join(BEN), 300, ANN_ABSENT,
    ),
    # a roster that breaks
    "second leaver does not extend the time to join": (
        lambda: waits().join(ANN, BEN).leave(ANN).after(100).leave(BEN).after(100).join(ANN), 100, BEN_ABSENT,
    ),
    "empty warmup of a roster": (
        lambda: waits().join(ANN, BEN).leave(ANN, BEN), 300, [incomplete(absent=(ANN, BEN))],
    ),
    "broken roster of a deathmatch": (
        lambda: waits(deathmatch(ANN, BEN)).join(ANN, BEN).leave(ANN), 300, ANN_ABSENT,
    ),
    "player leaves between maps": (
        lambda: live_duel(BO3).end_map().change_map(MAPS[1], ANN, BEN).after(30).leave(ANN), 300, ANN_ABSENT,
    ),
    "map change leaves time to return": (
        lambda: waits().join(ANN, BEN).leave(ANN).after(250).change_map(MAPS[0], BEN), 120, ANN_ABSENT,
    ),
    # clients that load
    "client never finishes loading": (lambda: waits().after(200).join(ANN).connect(BEN), 300, BEN_LOADS),
    "loading is waited for no longer than the load time": (
        lambda: waits().join(ANN, BEN).leave(BEN).after(299).connect(BEN), 60, BEN_LOADS,
    ),
    "loading for longer than the load time is not waited for": (
        lambda: waits().join(ANN, BEN).leave(BEN).after(240).connect(BEN), 60, BEN_LOADS,
    ),
    "loading is not waited for if another one is absent": (
        lambda: waits().join(ANN, BEN).leave(ANN, BEN).after(290).connect(BEN), 10, ANN_ABSENT,
    ),
    # leaving
    "all left a live map": (lambda: live_duel().leave(ANN, BEN), 30, [*ALL_LEFT]),
    "unlisted player does not keep an empty match alive": (
        lambda: live_duel().leave(ANN, BEN).join(EVE), 30, [*ALL_LEFT],
    ),
    "all left a deathmatch": (
        lambda: waits(deathmatch(ANN, minutes=None)).join(ANN).live().leave(ANN), 30, [*ALL_LEFT],
    ),
    "all left an open match": (lambda: waits(open_match()).join(ANN).live().leave(ANN), 30, [*ALL_LEFT]),
    "map change during play": (
        lambda: live_duel().leave(ANN, BEN, is_map_change=True).load(), 120, [*ALL_LEFT],
    ),
    "restart of the server": (lambda: live_duel().apply(ev.ServerRestarted(START_MS)), 120, [*ALL_LEFT]),
    "no player returns for the next map": (lambda: live_duel(BO3).end_map().load(MAPS[1]), 120, [*ALL_LEFT]),
    "all left between maps": (
        lambda: live_duel(BO3).end_map().load(MAPS[1]).join(ANN).after(150).leave(ANN), 120, [*ALL_LEFT],
    ),
    "empty warmup of an open match": (lambda: waits(open_match()).join(ANN, BEN).leave(ANN, BEN), 600, [*IDLE]),
    # the time limit of a deathmatch, and the margin for its end in the log
    "restarted deathmatch has its full time": (
        lambda: waits(deathmatch(ANN)).join(ANN).live().after(600).live(), 630, [EndMatch()],
    ),
    "deathmatch lasts ten minutes by default": (
        lambda: waits(deathmatch(ANN, minutes=None)).join(ANN).live(), 630, [EndMatch()],
    ),
    "deathmatch may exceed the maximum duration of a match": (
        lambda: waits(deathmatch(ANN, minutes=400)).join(ANN).live(), 400 * 60 + 30, [EndMatch()],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("build", "seconds", "effects"), RINGS.values(), ids=RINGS)
def test_alarm_rings_after_its_time_and_not_before(
    build: Callable[[], MatchDriver], seconds: float, effects: list[Effect]
) -> None:
    driver = build()
    assert driver.wait(seconds - 0.001) == []
    assert driver.wait(0.001) == effects


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: waits(open_match()).connect(ANN), id="connected player counts as joined"),
        pytest.param(lambda: waits().join(ANN).live(), id="incomplete roster on a live map"),
        pytest.param(lambda: waits(open_match()).join(ANN, BEN).leave(ANN), id="no player is listed"),
        pytest.param(lambda: live_duel().leave(ANN), id="leaver of a live map"),
        pytest.param(
            lambda: waits(duel(BO3)).join(ANN).live().end_map().change_map(MAPS[1], ANN), id="never joined a played map"
        ),
    ],
)
def test_match_goes_on_without_an_alarm(build: Callable[[], MatchDriver]) -> None:
    driver = build()
    assert driver.wait(3600) == []
    assert driver.match.roster_broken_ms is None or driver.match.presence.ever_connected == [ANN]


# --- a player who comes and goes --------------------------------------------------------------------------------


def crash(driver: MatchDriver, player: str, *, loads_s: float = 25, away_s: float = 15) -> MatchDriver:
    """Connect, crash while the client loads, and stay away for a while."""
    return driver.connect(player).after(loads_s).leave(player).after(away_s)


def test_player_who_comes_and_goes_does_not_stop_the_time_to_join() -> None:
    driver = MatchDriver(duel()).join(ANN).connect(BEN).after(25).leave(BEN)
    until_ms = driver.now_ms + 300_000
    driver.after(15)
    for _ in range(6):
        for step in (driver.connect, driver.leave):
            step(BEN)
            assert next_deadline(driver.match) == (until_ms, WaitingFor.PLAYERS_TO_JOIN)
            assert driver.wait(20) == []
    driver.connect(BEN)
    assert next_deadline(driver.match) == (driver.now_ms + 60_000, WaitingFor.PLAYERS_TO_JOIN)
    driver.after(20).leave(BEN)
    assert next_deadline(driver.match) == (until_ms, WaitingFor.PLAYERS_TO_JOIN)
    assert until_ms - driver.now_ms == 25_000
    assert driver.wait(24.999) == []
    assert driver.wait(0.001) == [Kick(ANN, 1, ROSTER_INCOMPLETE), incomplete(absent=(BEN,))]


def test_deadline_is_shown_from_the_first_connection_until_all_have_entered() -> None:
    driver = MatchDriver(duel())
    first_ms = START_MS + 300_000
    assert next_deadline(driver.match) == (first_ms, WaitingFor.PLAYERS_TO_JOIN)
    driver.after(10).join(ANN)
    assert next_deadline(driver.match) == (first_ms, WaitingFor.PLAYERS_TO_JOIN)
    driver.after(280).connect(BEN)
    assert next_deadline(driver.match) == (driver.now_ms + 300_000, WaitingFor.PLAYERS_TO_JOIN)
    driver.after(30).leave(BEN)
    broken_ms = driver.now_ms
    for step in (driver.connect, driver.leave, driver.connect, driver.enter):
        assert next_deadline(driver.match) == (broken_ms + 300_000, WaitingFor.PLAYERS_TO_JOIN)
        driver.after(15)
        step(BEN)
    assert next_deadline(driver.match) == (driver.now_ms + 20_000, WaitingFor.SIDES)
    driver.join_side(BEN)
    assert driver.match.phase is MatchPhase.STARTING
    assert next_deadline(driver.match) is None


def test_player_who_is_still_loading_when_the_time_to_join_ends_is_waited_for() -> None:
    driver = MatchDriver(duel()).join(ANN, BEN).leave(BEN).after(299).connect(BEN)
    assert next_deadline(driver.match) == (driver.now_ms + 60_000, WaitingFor.PLAYERS_TO_JOIN)
    assert driver.wait(59) == []
    assert driver.enter(BEN).join_side(BEN).effects == [StartPlay(1)]
    assert driver.wait(0) == []


def test_player_who_comes_and_goes_on_the_scoreboard_does_not_stop_the_time_to_join() -> None:
    driver = live_duel(SeriesFormat.BO3).end_map().leave(BEN)
    until_ms = driver.now_ms + 300_000
    driver.after(15)
    crash(driver, BEN)
    assert (until_ms, Alarm.JOIN) in driver.match.alarms()
    driver.connect(BEN).after(10).enter(BEN)
    assert not [due for due in driver.match.alarms() if due[1] is Alarm.JOIN]
    driver.change_map(MAPS[1], ANN)
    assert next_deadline(driver.match) == (driver.now_ms + 300_000, WaitingFor.PLAYERS_TO_JOIN)


def test_player_who_comes_and_goes_and_never_entered_is_not_missing() -> None:
    driver = MatchDriver(duel()).join(ANN).connect(BEN).after(25).leave(BEN).after(300)
    outcome = driver.match.outcome
    assert outcome is not None
    assert (outcome.missing_players, outcome.connected_players, outcome.absent_players) == ((), (ANN, BEN), (BEN,))


# --- lost lines -------------------------------------------------------------------------------------------------


def test_time_to_join_does_not_end_while_it_is_not_known_who_is_there() -> None:
    driver = MatchDriver(duel()).join(ANN, BEN).leave(ANN)
    driver.apply(ev.LogGap(driver.now_ms, 100))
    assert next_deadline(driver.match) == (START_MS + 300_000, WaitingFor.PLAYERS_TO_JOIN)
    assert driver.wait(600) == []
    assert next_deadline(driver.match) == (START_MS + 300_000, WaitingFor.PLAYERS_TO_JOIN)
    driver.apply(ev.PlayersSeen(driver.now_ms, {BEN: "ben"}, load_ms=60_000))
    assert not driver.match.presence.is_doubtful
    assert driver.wait(0) == [KICK_BEN, incomplete(absent=(ANN,))]


def test_deadline_during_doubt_leaves_the_console_time_to_list_the_players() -> None:
    driver = MatchDriver(duel()).join(ANN, BEN).leave(ANN).after(290)
    driver.match.resume(driver.now_ms)
    assert next_deadline(driver.match) == (START_MS + 350_000, WaitingFor.PLAYERS_TO_JOIN)
    assert driver.wait(59) == []
    driver.apply(ev.PlayersSeen(driver.now_ms, {BEN: "ben"}, load_ms=60_000)).after(1)
    driver.apply(ev.PlayersSeen(driver.now_ms, {BEN: "ben"}, load_ms=60_000))
    assert driver.wait(0) == [KICK_BEN, incomplete(absent=(ANN,))]


def test_player_whose_return_was_lost_is_found_on_the_list_of_the_console() -> None:
    driver = MatchDriver(duel()).join(ANN, BEN).leave(ANN)
    driver.apply(ev.LogGap(driver.now_ms, 100)).after(299)
    seen = ev.PlayersSeen(driver.now_ms, {ANN: "ann", BEN: "ben"}, load_ms=60_000)
    driver.apply(seen)
    assert driver.wait(59.999) == []
    assert driver.match.roster_broken_ms is not None
    driver.after(0.001).apply(seen)
    assert driver.match.roster_broken_ms is None
    assert driver.after(20).match.phase is MatchPhase.STARTING


# --- what follows -----------------------------------------------------------------------------------------------


def test_series_that_is_won_ends_with_its_result_if_players_leave() -> None:
    driver = live_duel(SeriesFormat.BO3)
    driver.match.current_map.end_without_result()
    for map_name in MAPS[1:3]:
        driver.live(map_name).end_map(map_name=map_name)
    driver.match.reported.over_since_ms = None  # the wait for the final score is over
    driver.leave(ANN)
    assert driver.wait(300) == [EndMatch()]


# --- leaving ----------------------------------------------------------------------------------------------------


def test_match_continues_while_one_player_stays_or_returns() -> None:
    driver = live_duel().leave(ANN)
    assert driver.wait(3600) == []
    driver.leave(BEN)
    assert driver.wait(29) == []
    driver.connect(ANN)
    assert driver.wait(3600) == []


def decide_last(driver: MatchDriver, *, is_last: bool = True) -> None:
    end = ev.RoundDecided(driver.now_ms, 1, Team.TEAM1, None, RoundEndReason.UNKNOWN, 13, 7, is_last=is_last)
    driver.apply(ev.RoundStarted(driver.now_ms, 1, (ANN,), (BEN,), Side.CT)).apply(end)


def test_leaving_after_the_last_round_is_the_end_of_the_match() -> None:
    driver = live_duel()
    decide_last(driver)
    driver.leave(ANN, BEN)
    assert driver.wait(30) == [EndMatch()]
    played = driver.match.maps[0]
    assert (played.status, played.winner, played.is_complete) == (MapStatus.FINISHED, Winner.TEAM1, False)


def test_leaving_after_the_last_round_of_a_map_ends_only_the_map() -> None:
    driver = live_duel(SeriesFormat.BO3)
    decide_last(driver)
    driver.leave(ANN, BEN)
    assert driver.wait(30) == [LoadMap(2, MAPS[1])]
    assert [*driver.wait(60), *driver.wait(60)][-1:] == ALL_LEFT


def test_leaving_after_another_round_or_in_a_next_one_cancels_the_match() -> None:
    driver = live_duel()
    decide_last(driver, is_last=False)
    driver.leave(ANN, BEN)
    assert driver.wait(30) == ALL_LEFT
    driver = live_duel()
    decide_last(driver)
    driver.apply(ev.RoundStarted(driver.now_ms, 2, (ANN,), (BEN,), Side.CT)).leave(ANN, BEN)
    assert driver.wait(30) == ALL_LEFT


def test_canceled_match_says_whether_its_log_is_complete() -> None:
    driver = live_duel().leave(ANN, BEN).after(30)
    assert driver.match.outcome is not None
    assert driver.match.outcome.is_log_complete is True
    driver = live_duel()
    driver.apply(ev.LogGap(driver.now_ms, 5)).leave(ANN, BEN).after(30)
    assert driver.match.outcome is not None
    assert driver.match.outcome.is_log_complete is False
    driver = MatchDriver(duel()).after(300)
    assert driver.match.outcome is not None
    assert driver.match.outcome.is_log_complete is None


# --- duration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [duel(SeriesFormat.BO3), open_match()])
def test_match_is_canceled_after_the_maximum_duration(settings: GameSettings) -> None:
    driver = MatchDriver(settings)
    driver.match.set_allocated(START_MS + 1_000)
    driver.join(ANN, BEN).live()
    assert driver.match.next_deadline_ms() == START_MS + 1_000 + 6 * 3_600_000
    assert driver.wait(6 * 3600) == []
    assert driver.wait(1) == [CancelMatch(CancelReason.MAX_DURATION_EXCEEDED)]


def test_deathmatch_without_a_logged_end_ends_by_our_clock() -> None:
    driver = MatchDriver(deathmatch(ANN, BEN)).join(ANN, BEN).live().after(9 * 60)
    driver.apply(ev.Kill(driver.now_ms, ANN, BEN, "ak47", is_enemy=True))
    assert driver.wait(60 + 29) == []
    assert driver.wait(1) == [EndMatch()]
    assert (driver.match.current_map.status, driver.match.current_map.duration_s) == (MapStatus.FINISHED, 9 * 60)


def test_time_spent_waiting_for_a_logged_end_is_not_part_of_the_duration() -> None:
    driver = MatchDriver(deathmatch(ANN)).join(ANN).live().after(10 * 60 + 20)
    driver.apply(ev.ChatMessage(driver.now_ms, ANN, "ann", is_team_only=False, text="gg"))
    assert driver.wait(10) == [EndMatch()]
    assert driver.match.current_map.duration_s == 10 * 60


def test_timeouts_are_shorter_with_accelerated_time() -> None:
    driver = MatchDriver(deathmatch(ANN), Timers().at_speed(30))
    assert driver.match.next_deadline_ms() == START_MS + 10_000
    driver.join(ANN).live()
    assert driver.wait(20.9) == []
    assert driver.wait(0.1) == [EndMatch()]
