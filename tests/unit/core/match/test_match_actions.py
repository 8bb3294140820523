"""Actions on a match: when each is possible, what it changes, what proves that it is done, and when it fails."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, product
from typing import Any

import msgspec
import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import EndMatch, Kick, SendAction, SendRoster, StartPlay
from matchpod.core.match.actions import (
    ACTIONS,
    MAX_ACTIONS,
    ActionAnswer,
    ActionChange,
    ActionRecord,
    ActionRequest,
    ActionState,
    ActionType,
    RestorePoint,
    ServerVerdict,
)
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.match_actions import AT_END, DECIDED, FROM_NEXT_ROUND, LIFTED, NOT_CONFIRMED, ROSTER_ACTIONS
from matchpod.core.match.presence import NOT_LISTED
from matchpod.core.match.roster import RosterRole
from matchpod.core.model import MAX_LISTED_PLAYERS, GameSettings, SeriesFormat, StartSides, TeamRoster, Winner
from tests.unit.core.match_driver import (
    ANN,
    BEN,
    CAT,
    EVE,
    MAPS,
    MatchDriver,
    deathmatch,
    duel,
    live_duel,
    open_match,
)

BO3 = SeriesFormat.BO3
EXAMPLES: dict[ActionType, dict[str, Any]] = {
    ActionType.RESTORE: {"round": 1},
    ActionType.SAY: {"text": "hello"},
    ActionType.KICK: {"steam_id": ANN},
    ActionType.ADD_PLAYER: {"steam_id": CAT, "role": RosterRole.TEAM1},
    ActionType.REMOVE_PLAYER: {"steam_id": ANN},
    ActionType.REPLACE_PLAYER: {"out": ANN, "in_": CAT},
    ActionType.EXTEND_JOIN: {"seconds": 60},
    ActionType.FORFEIT: {"winner": Team.TEAM1},
}
_numbers = count(1)


def action(action_type: ActionType, **fields: Any) -> ActionRequest:
    given = fields or EXAMPLES.get(action_type, {})
    return msgspec.structs.replace(ActionRequest(id=f"action_{next(_numbers)}", type=action_type), **given)


def state_of(record: ActionRecord) -> ActionState:
    """Read the state anew: a match changes it."""
    return record.state


def ask(driver: MatchDriver, action_type: ActionType, **fields: object) -> ActionRecord:
    request = action(action_type, **fields)
    driver.effects = driver.match.request_action(request, driver.now_ms)
    return driver.match.actions[request.id]


def answer(driver: MatchDriver, record: ActionRecord, verdict: ServerVerdict, detail: str | None = None) -> None:
    given = ActionAnswer(action_id=record.action.id, verdict=verdict, detail=detail)
    driver.effects = driver.match.answer_action(given, driver.now_ms)


def start_round(driver: MatchDriver, number: int) -> MatchDriver:
    return driver.apply(ev.RoundStarted(driver.now_ms, number, (ANN,), (BEN,), Side.CT))


def play_round(driver: MatchDriver, number: int, score: tuple[int, int]) -> MatchDriver:
    start_round(driver, number)
    decided = ev.RoundDecided(driver.now_ms, number, Team.TEAM1, Side.CT, RoundEndReason.UNKNOWN, *score)
    return driver.apply(decided)


def paused(driver: MatchDriver, by: str = "mp_pause_match") -> MatchDriver:
    return driver.apply(ev.Paused(driver.now_ms, by))


def unpaused(driver: MatchDriver, by: str = "mp_unpause_match") -> MatchDriver:
    return driver.apply(ev.Unpaused(driver.now_ms, by))


def ask_for_pause(driver: MatchDriver) -> ActionRecord:
    record = ask(driver, ActionType.PAUSE)
    driver.match.note_action_sent(record.action.id)
    return record


# --- what is possible ---------------------------------------------------------------------------------------------

WARMUP = ("say", "kick", "addPlayer", "removePlayer", "replacePlayer", "extendJoin", "start", "forfeit")
STARTING = ("say", "kick", "addPlayer", "removePlayer", "replacePlayer", "forfeit")
LIVE = ("pause", "restore", "say", "kick", "addPlayer", "removePlayer", "replacePlayer", "forfeit")
PAUSED = ("unpause", *LIVE[1:])
TIMEOUT = "TimeOutCTs"
PHASES: dict[str, tuple[Callable[[], MatchDriver], tuple[str, ...]]] = {
    "all are missing": (
        lambda: MatchDriver(duel(BO3)),
        tuple(name for name in WARMUP if name not in ("kick", "start")),
    ),
    "one has joined": (lambda: MatchDriver(duel(BO3)).join(ANN), WARMUP),
    "starting": (lambda: MatchDriver(duel(BO3)).join(ANN, BEN), STARTING),
    "live": (lambda: live_duel(BO3), LIVE),
    "paused": (lambda: paused(live_duel(BO3)), PAUSED),
    "timeout": (lambda: paused(live_duel(BO3), TIMEOUT), LIVE),
    "paused after a timeout": (lambda: unpaused(paused(paused(live_duel(BO3), TIMEOUT)), TIMEOUT), PAUSED),
    "map is over": (
        lambda: live_duel(BO3).end_map(),
        ("say", "kick", "addPlayer", "removePlayer", "replacePlayer", "forfeit"),
    ),
    "next map waits": (lambda: live_duel(BO3).end_map().change_map(MAPS[1], ANN), WARMUP),
    "over": (lambda: live_duel().end_map(), ()),
    "deathmatch waits": (
        lambda: MatchDriver(deathmatch(ANN, BEN)).join(ANN),
        ("say", "kick", "removePlayer", "replacePlayer", "extendJoin", "start"),
    ),
    "deathmatch": (
        lambda: MatchDriver(deathmatch(ANN, BEN)).join(ANN, BEN).live(),
        ("pause", "say", "kick", "removePlayer", "replacePlayer"),
    ),
    "everyone may join": (lambda: MatchDriver(open_match()).join(ANN).live(), ("pause", "say", "kick")),
}


@pytest.mark.parametrize("name", PHASES)
def test_phase_allows_exactly_these_actions(name: str) -> None:
    build, expected = PHASES[name]
    possible = [kind for kind in ActionType if build().match.obstacle_to(action(kind)) is None]
    assert possible == [ActionType(word) for word in ACTIONS if word in expected]


@pytest.mark.parametrize("name", PHASES)
def test_action_that_is_not_possible_fails_with_the_reason_and_changes_nothing(name: str) -> None:
    build, expected = PHASES[name]
    for kind in ActionType:
        if kind in expected:
            continue
        driver = build()
        before = (driver.match.phase, driver.match.roster, driver.match.outcome)
        obstacle = driver.match.obstacle_to(action(kind))
        assert obstacle is not None
        record = ask(driver, kind)
        assert (state_of(record), record.detail, driver.effects) == (ActionState.FAILED, obstacle.text, [])
        assert (driver.match.phase, driver.match.roster, driver.match.outcome) == before


def test_obstacle_says_what_to_do() -> None:
    match = live_duel().match
    wrong_round = match.obstacle_to(action(ActionType.RESTORE, round=4))
    assert wrong_round is not None
    assert wrong_round.text == "Round 4 cannot be restored. Rounds that can: 1."
    listed = match.obstacle_to(action(ActionType.ADD_PLAYER, steam_id=BEN, role=RosterRole.TEAM1))
    assert listed is not None
    wrong_role = match.obstacle_to(action(ActionType.ADD_PLAYER, steam_id=CAT, role=RosterRole.PLAYER))
    assert wrong_role is not None


def test_second_pause_waits_for_the_first() -> None:
    driver = start_round(live_duel(), 1)
    ask(driver, ActionType.PAUSE)
    assert ask(driver, ActionType.PAUSE).state is ActionState.FAILED


def test_rounds_that_can_be_restored_have_their_scores() -> None:
    driver = play_round(play_round(live_duel(), 1, (1, 0)), 2, (1, 1))
    assert driver.match.restorable() == (
        RestorePoint(round=1, rounds_kept=0, team1=0, team2=0),
        RestorePoint(round=2, rounds_kept=1, team1=1, team2=0),
        RestorePoint(round=3, rounds_kept=2, team1=1, team2=1),
    )
    assert driver.match.restorable()[2].text == "1:1, round 3 begins"


# --- what proves them ---------------------------------------------------------------------------------------------


def test_pause_is_done_when_play_has_stopped() -> None:
    driver = start_round(live_duel(), 1)
    record = ask_for_pause(driver)
    assert driver.effects == [SendAction(record.action.id)]
    paused(driver)
    assert (state_of(record), record.detail) == (ActionState.SENT, FROM_NEXT_ROUND)
    driver.apply(ev.RoundDecided(driver.now_ms, 1, Team.TEAM1, Side.CT, RoundEndReason.UNKNOWN, 1, 0))
    assert (state_of(record), record.detail) == (ActionState.DONE, None)


def test_pause_of_a_player_is_not_that_of_an_admin() -> None:
    driver = play_round(live_duel(), 1, (1, 0))
    record = ask(driver, ActionType.PAUSE)
    paused(driver)
    assert state_of(record) is ActionState.REQUESTED, "players can lift it"
    driver.match.note_action_sent(record.action.id)
    answer(driver, record, ServerVerdict.ACCEPTED)
    assert state_of(record) is ActionState.DONE, "the server logs no second pause"


def test_pause_line_that_is_repeated_changes_an_action_once() -> None:
    driver = start_round(live_duel(), 1)
    ask_for_pause(driver)
    before = len(driver.match.action_changes)
    for _ in range(5):
        paused(driver)
    assert len(driver.match.action_changes) == before + 1


def test_timeout_is_no_pause_of_an_admin() -> None:
    driver = paused(play_round(live_duel(), 1, (1, 0)), TIMEOUT)
    assert driver.match.current_map.is_paused
    record = ask_for_pause(driver)
    answer(driver, record, ServerVerdict.LATER, "Timeout.")
    paused(driver, TIMEOUT).after(60)
    assert state_of(record) is ActionState.SENT
    unpaused(unpaused(driver, TIMEOUT), "").after(59)
    assert state_of(record) is ActionState.SENT
    paused(driver)
    assert state_of(record) is ActionState.DONE


def test_timeout_ends_by_itself() -> None:
    driver = paused(live_duel(), TIMEOUT)
    assert ask(driver, ActionType.UNPAUSE).detail == "This is a tactical timeout of a team: it ends by itself."
    record = ask(paused(driver), ActionType.UNPAUSE)
    unpaused(driver, TIMEOUT)
    assert state_of(record) is ActionState.REQUESTED
    unpaused(driver)
    assert state_of(record) is ActionState.DONE


def test_pause_that_is_lifted_before_play_stops_has_failed() -> None:
    driver = start_round(live_duel(), 1)
    record = ask_for_pause(driver)
    unpaused(paused(driver))
    assert (state_of(record), record.detail) == (ActionState.FAILED, LIFTED)


def test_pause_may_take_until_a_minute_after_the_round() -> None:
    driver = start_round(live_duel(), 1)
    record = ask(driver, ActionType.PAUSE)
    driver.after(170)
    assert state_of(record) is ActionState.REQUESTED
    driver.apply(ev.RoundDecided(driver.now_ms, 1, Team.TEAM1, Side.CT, RoundEndReason.UNKNOWN, 1, 0)).after(59)
    assert state_of(record) is ActionState.REQUESTED
    driver.after(1)
    assert (state_of(record), record.detail) == (ActionState.FAILED, NOT_CONFIRMED)


def test_unpause_is_done_when_the_log_says_so() -> None:
    driver = paused(live_duel())
    record = ask(driver, ActionType.UNPAUSE)
    unpaused(driver)
    assert state_of(record) is ActionState.DONE


def test_restore_is_done_by_the_restore_of_that_round_only() -> None:
    driver = play_round(play_round(live_duel(), 1, (1, 0)), 2, (1, 1))
    record = ask(driver, ActionType.RESTORE, round=2)
    driver.restore(2, 1, 1)
    assert state_of(record) is ActionState.REQUESTED
    driver.restore(1, 1, 0)
    assert state_of(record) is ActionState.DONE


def test_restore_of_the_first_round_may_be_a_restart() -> None:
    driver = play_round(live_duel(), 1, (1, 0))
    record = ask(driver, ActionType.RESTORE, round=1)
    driver.live()
    assert state_of(record) is ActionState.DONE


@pytest.mark.parametrize(("logged", "state"), [("hello", "done"), ("hel", "done"), ("hi", "sent"), ("", "sent")])
def test_text_is_said_when_it_is_in_the_log(logged: str, state: str) -> None:
    driver = live_duel()
    record = ask(driver, ActionType.SAY)
    driver.match.note_action_sent(record.action.id)
    driver.apply(ev.ServerSaid(driver.now_ms, logged))
    assert state_of(record) == state


@pytest.mark.parametrize(("size", "state"), [(30, "done"), (11, "sent")])
def test_text_is_said_when_its_command_is_in_the_log(size: int, state: str) -> None:
    driver = live_duel()
    record = ask(driver, ActionType.SAY)
    driver.match.note_action_sent(record.action.id)
    driver.apply(ev.CommandLogged(driver.now_ms, size))
    assert state_of(record) == state


def test_kick_is_done_when_the_player_has_left_and_they_may_return() -> None:
    driver = live_duel()
    record = ask(driver, ActionType.KICK)
    driver.leave(BEN)
    assert state_of(record) is ActionState.REQUESTED
    driver.leave(ANN)
    assert state_of(record) is ActionState.DONE
    assert driver.join(ANN).effects == []


def test_action_that_is_not_confirmed_fails_after_a_minute() -> None:
    driver = live_duel()
    record = ask(driver, ActionType.SAY)
    driver.match.note_action_sent(record.action.id)
    assert driver.match.next_deadline_ms() == driver.now_ms + 60_000
    driver.after(60)
    assert (state_of(record), record.detail, driver.match.open_actions) == (ActionState.FAILED, NOT_CONFIRMED, [])


def test_refusal_for_now_is_the_reason_if_it_fails() -> None:
    driver = live_duel()
    record = ask(driver, ActionType.RESTORE)
    answer(driver, record, ServerVerdict.LATER, "Halftime.")
    assert state_of(record) is ActionState.REQUESTED
    driver.after(60)
    assert (state_of(record), record.detail) == (ActionState.FAILED, "Halftime.")


def test_request_is_not_carried_out_twice() -> None:
    driver = live_duel()
    request = action(ActionType.SAY)
    assert driver.match.request_action(request, driver.now_ms) == [SendAction(request.id)]
    assert driver.match.request_action(request, driver.now_ms) == []


# --- the roster ---------------------------------------------------------------------------------------------------


def test_substitute_is_let_in_awaited_and_counted_and_the_other_is_kicked() -> None:
    driver = live_duel(BO3)
    record = ask(driver, ActionType.REPLACE_PLAYER)
    assert driver.effects[1:] == [Kick(ANN, 1, NOT_LISTED)]
    assert driver.match.roster.players == (BEN, CAT)
    assert driver.match.team_of(CAT) is Team.TEAM1
    answer(driver, record, ServerVerdict.ACCEPTED)
    assert state_of(record) is ActionState.REQUESTED, "the one who leaves is still there"
    driver.leave(ANN)
    assert state_of(record) is ActionState.DONE
    assert driver.join(CAT).effects == []
    [kick, *_] = driver.join(ANN).effects
    assert isinstance(kick, Kick)
    assert driver.match.team_of(ANN) is Team.TEAM1, "what they did still counts"


def test_play_starts_when_the_missing_player_is_removed() -> None:
    two = TeamRoster("Blues", (BEN, CAT))
    driver = MatchDriver(msgspec.structs.replace(duel(), team2=two)).join(ANN, BEN)
    record = ask(driver, ActionType.REMOVE_PLAYER, steam_id=CAT)
    assert StartPlay(1) in driver.effects
    answer(driver, record, ServerVerdict.ACCEPTED)
    assert state_of(record) is ActionState.DONE
    assert driver.match.presence.missing_of_created() == ()


@pytest.mark.parametrize("role", [RosterRole.SPECTATOR, RosterRole.COACH1])
def test_caster_and_coach_are_let_in_without_being_awaited(role: RosterRole) -> None:
    driver = live_duel()
    record = ask(driver, ActionType.ADD_PLAYER, steam_id=CAT, role=role)
    answer(driver, record, ServerVerdict.ACCEPTED)
    assert state_of(record) is ActionState.DONE
    assert driver.join(CAT).effects == []
    assert driver.match.roster.players == (ANN, BEN)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (ActionType.ADD_PLAYER, {"steam_id": CAT, "role": RosterRole.TEAM1}),
        (ActionType.REMOVE_PLAYER, {"steam_id": ANN}),
        (ActionType.REPLACE_PLAYER, {"out": ANN, "in_": CAT}),
    ],
)
@pytest.mark.parametrize("how", ["refused", "late"])
def test_change_of_the_roster_that_fails_is_undone(kind: ActionType, fields: dict[str, Any], how: str) -> None:
    driver = live_duel()
    record = ask(driver, kind, **fields)
    if how == "refused":
        answer(driver, record, ServerVerdict.REFUSED, "No.")
    else:
        driver.after(60)
    assert state_of(record) is ActionState.FAILED
    assert (set(driver.match.roster.players), driver.match.roster.team_of(ANN)) == ({ANN, BEN}, Team.TEAM1)


def test_without_the_plugin_the_roster_is_ours_alone() -> None:
    driver = MatchDriver(deathmatch(ANN, BEN)).join(ANN, BEN).live()
    assert ask(driver, ActionType.ADD_PLAYER, steam_id=CAT, role=RosterRole.PLAYER).state is ActionState.DONE
    assert driver.join(CAT).effects == []


def test_players_of_today_are_listed_again_after_a_restore() -> None:
    driver = play_round(live_duel(), 1, (1, 0))
    assert driver.restore(0, 0, 0).effects == []
    ask(driver, ActionType.ADD_PLAYER)
    assert SendRoster() in driver.restore(0, 0, 0).effects


# --- the time to join, the start and the end ----------------------------------------------------------------------


def test_time_to_join_is_extended_once_and_not_on_the_next_map() -> None:
    driver = MatchDriver(duel(BO3)).join(ANN)
    due_ms = driver.match.join_deadline_ms()
    record = ask(driver, ActionType.EXTEND_JOIN)
    assert state_of(record) is ActionState.DONE
    assert due_ms is not None
    assert driver.match.join_deadline_ms() == due_ms + 60_000
    driver.join(BEN).live().end_map().change_map(MAPS[1], ANN)
    assert driver.match.join_deadline_ms() == driver.now_ms + 300_000


def test_ordered_start_is_done_when_the_map_is_live() -> None:
    driver = MatchDriver(duel()).join(ANN)
    record = ask(driver, ActionType.START)
    assert driver.effects == [StartPlay(1), SendAction(record.action.id)]
    driver.live()
    assert state_of(record) is ActionState.DONE


def test_ordered_start_is_done_when_the_knife_round_begins() -> None:
    driver = MatchDriver(msgspec.structs.replace(duel(), sides=(StartSides.KNIFE,))).join(ANN)
    record = ask(driver, ActionType.START)
    driver.live()
    assert (driver.match.phase, state_of(record)) == (MatchPhase.STARTING, ActionState.DONE)


def test_pending_action_is_the_newest_that_has_not_ended() -> None:
    driver = live_duel()
    first, second = ask(driver, ActionType.SAY), ask(driver, ActionType.PAUSE)
    assert driver.match.pending_action() is second
    answer(driver, second, ServerVerdict.REFUSED)
    assert driver.match.pending_action() is first


def test_forfeit_ends_the_match_for_the_winner() -> None:
    driver = live_duel(BO3)
    other = ask(driver, ActionType.SAY)
    record = ask(driver, ActionType.FORFEIT, winner=Team.TEAM2)
    assert driver.effects == [EndMatch()]
    assert driver.match.winner is Winner.TEAM2
    assert (state_of(record), other.state, other.detail) == (ActionState.DONE, ActionState.FAILED, AT_END)


def test_forfeit_after_the_deciding_round_leaves_the_result_to_play() -> None:
    driver = live_duel()
    last = ev.RoundDecided(driver.now_ms, 18, Team.TEAM1, Side.CT, RoundEndReason.UNKNOWN, 13, 5, is_last=True)
    record = ask(driver.apply(last), ActionType.FORFEIT, winner=Team.TEAM2)
    assert (state_of(record), record.detail) == (ActionState.FAILED, DECIDED)
    assert driver.end_map().match.winner is Winner.TEAM1


def test_end_of_the_match_fails_what_is_open() -> None:
    driver = live_duel()
    record = ask(driver, ActionType.SAY)
    driver.end_map()
    assert driver.match.phase is MatchPhase.OVER
    assert (state_of(record), record.detail) == (ActionState.FAILED, AT_END)


def test_stranger_cannot_be_kicked_by_mistake() -> None:
    settings: GameSettings = duel()
    assert ask(MatchDriver(settings).join(ANN), ActionType.KICK, steam_id=EVE).state is ActionState.FAILED


@pytest.mark.parametrize("name", PHASES)
def test_actions_in_pairs_end_and_leave_nothing_open(name: str) -> None:
    """Whatever two people ask for at once, in any phase: each is done or has failed, and the list has its players."""
    build, _ = PHASES[name]
    for first, second in product(ActionType, repeat=2):
        driver = build()
        listed = set(driver.match.roster.players)
        asked = [ask(driver, first), ask(driver, second)]
        for record in asked:
            driver.match.note_action_sent(record.action.id)
            answer(driver, record, ServerVerdict.ACCEPTED)
        for _ in range(3):
            driver.after(700)
        assert not driver.match.open_actions
        assert all(record.state.is_final for record in asked)
        states = {(change.action_id, change.state) for change in driver.match.action_changes}
        assert all(sum(one == (record.action.id, record.state) for one in states) == 1 for record in asked)
        done = [record.action for record in asked if record.state is ActionState.DONE]
        left = {out for action in done if (out := action.moves[0]) is not None and action.type in ROSTER_ACTIONS}
        came = {new for action in done if (new := action.moves[1]) is not None and action.type in ROSTER_ACTIONS}
        is_over = driver.match.phase is MatchPhase.OVER
        assert is_over or set(driver.match.roster.players) == (listed | came) - left, (first, second)


def test_no_round_of_a_deathmatch_can_be_restored() -> None:
    assert MatchDriver(deathmatch(ANN, BEN)).join(ANN, BEN).live().match.restorable() == ()


def test_match_has_a_limit_of_actions() -> None:
    driver = live_duel()
    for _ in range(MAX_ACTIONS):
        ask(driver, ActionType.SAY)
        driver.after(60)
    request = action(ActionType.SAY)
    obstacle = driver.match.obstacle_to(request)
    assert obstacle is not None
    assert driver.match.request_action(request, driver.now_ms) == []
    assert request.id not in driver.match.actions
    assert driver.match.action_changes[-1] == ActionChange(request.id, ActionState.FAILED, obstacle.text)


def test_roster_has_the_limit_of_creations() -> None:
    two = TeamRoster("Blues", (BEN, *(str(76561198000001000 + number) for number in range(MAX_LISTED_PLAYERS - 2))))
    driver = MatchDriver(msgspec.structs.replace(duel(), team2=two))
    assert ask(driver, ActionType.ADD_PLAYER).state is ActionState.FAILED
    assert ask(driver, ActionType.REPLACE_PLAYER).state is ActionState.REQUESTED


def test_answer_to_an_action_that_has_ended_changes_nothing() -> None:
    driver = live_duel()
    record = ask(driver, ActionType.ADD_PLAYER)
    answer(driver, record, ServerVerdict.ACCEPTED)
    answer(driver, record, ServerVerdict.REFUSED, "No.")
    driver.match.note_action_sent(record.action.id)
    assert state_of(record) is ActionState.DONE
    assert driver.match.pending_action() is None
