"""What is shown is judged by what happens: nothing false is taken for true, and nothing true for false."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.real_time.games import Game
from tests.real_time.judge import Played, judge_card, judge_missed, judge_reason, judge_server, judge_wall, parse_time
from tests.real_time.truth import Truth
from tests.real_time.wall import Card, WallPage, read_wall

NOW_S = 1_000.0
GAME = Game(name="a game", seed=1)
ALL = frozenset(GAME.players)


def iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()


def playing(*, here: frozenset[str] = ALL, lost: str = "") -> Played:
    """A match whose first round was won, and whose second one is played."""
    truth = Truth()
    truth.here.set(here, 10)
    truth.entered.set(here, 10)
    truth.rounds_played.set(1, 500)
    truth.score.set((0, 1), 500)
    truth.has_round.set(True, 400)
    truth.posts_s.set(NOW_S - 5, NOW_S - 5)
    truth.events_s["disconnect"] = truth.events_s["restore"] = NOW_S - 20
    return Played(game=Game(name="a game", seed=1, lost=lost), server_id="srv_1", truth=truth, created_s=0, running_s=5)


def view(**changes: Any) -> dict[str, Any]:
    shown = {
        "status": "running",
        "phase": "live",
        "match": {"score": {"team1": 1, "team2": 0}, "players": []},
        "round": 2,
        "deadline": None,
        "roster": [{"steamId": player, "state": "connected"} for player in GAME.players],
        "lastHeardAt": iso(NOW_S - 5),
    }
    return {**shown, **changes}


def faults(played: Played, **changes: Any) -> list[str]:
    return list(judge_server(view(**changes), played, NOW_S, parse_time))


def test_right_view_has_no_fault() -> None:
    assert faults(playing()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"match": {"score": {"team1": 1, "team2": 1}, "players": []}}, "score"),
        ({"match": {"score": {"team1": 1, "team2": 0}, "players": [{"steamId": "7", "kills": 1}]}}, "kills"),
        ({"round": 4}, "round 4"),
        ({"phase": "waiting_for_players", "round": None}, "phase waiting_for_players while"),
        ({"roster": [{"steamId": GAME.players[0], "state": "left"}]}, "roster says left"),
        ({"lastHeardAt": iso(NOW_S - 60)}, "last heard 60 s ago"),
        ({"deadline": {"waitingFor": "players_to_return", "until": iso(NOW_S + 9)}}, "while players are there"),
        ({"deadline": {"waitingFor": "time_limit", "until": iso(NOW_S - 9)}}, "is over since 9 s"),
    ],
)
def test_wrong_view_is_named(changes: dict[str, Any], expected: str) -> None:
    assert any(expected in fault for fault in faults(playing(), **changes))


def test_value_of_a_moment_ago_is_right() -> None:
    played = playing()
    played.truth.score.set((1, 1), NOW_S - 1)
    played.truth.rounds_played.set(2, NOW_S - 1)
    assert faults(played) == []


def test_time_to_join_is_shown_and_stays_while_players_are_missing() -> None:
    played = playing(here=frozenset(GAME.players[1:]))
    played.truth.has_round = Truth().has_round
    played.truth.rounds_played = Truth().rounds_played
    roster = [{"steamId": player, "state": "connected"} for player in GAME.players[1:]]
    shown: dict[str, Any] = {"phase": "waiting_for_players", "round": None, "roster": roster}
    assert "no deadline" in faults(played, **shown)[0]
    for until_s, expected in ((NOW_S + 100, []), (NOW_S + 101, []), (NOW_S + 200, ["moved by 100 s"])):
        found = faults(played, **shown, deadline={"waitingFor": "players_to_join", "until": iso(until_s)})
        assert [text in fault for text, fault in zip(expected, found, strict=True)] == [True] * len(expected)


@pytest.mark.parametrize(
    ("here", "until_s", "is_right"),
    [(ALL - {GAME.players[0]}, 304, True), (frozenset(), 304, False), (ALL - {GAME.players[0]}, 309, False)],
)
def test_time_to_join_counts_from_the_allocation_once_a_player_is_there(
    here: frozenset[str], until_s: float, is_right: bool
) -> None:
    """The server was allocated at most 5 s after the creation."""
    played = Played(game=GAME, server_id="srv_1", truth=Truth(), created_s=0, running_s=5, deadlines=[(300, 6)])
    played.truth.here.set(here, 25.5)
    deadline = {"waitingFor": "players_to_join", "until": iso(until_s)}
    shown = view(phase="waiting_for_players", round=None, roster=[], deadline=deadline, lastHeardAt=None)
    found = list(judge_server(shown, played, 25.0, parse_time))
    assert ["has moved by" in fault for fault in found] == [True] * (not is_right)


def test_time_to_join_runs_until_all_players_have_entered() -> None:
    played = playing()
    deadline = {"waitingFor": "players_to_join", "until": iso(NOW_S + 100)}
    assert ["while all players are in the game" in fault for fault in faults(played, deadline=deadline)] == [True]
    played.truth.entered.set(ALL - {GAME.players[0]}, NOW_S - 20)
    assert faults(played, deadline=deadline) == []
    played.truth.has_round = Truth().has_round
    shown = {"phase": "waiting_for_players", "round": None}
    assert ["no deadline" in fault for fault in faults(played, **shown)] == [True]


def test_lost_posts_excuse_what_cannot_be_known() -> None:
    roster = {"roster": [{"steamId": GAME.players[0], "state": "connected"}]}
    assert faults(playing(here=frozenset()), **roster) != []
    assert faults(playing(here=frozenset(), lost="disconnect"), **roster) == []
    wrong = {"match": {"score": {"team1": 5, "team2": 0}, "players": []}}
    played = playing(lost="restore")
    assert faults(played, **wrong) == []
    played.truth.scored_s.append(NOW_S - 10)
    assert faults(played, **wrong) != [], "it is known again"


def test_alarm_is_true_for_its_cause_only() -> None:
    played = playing()
    assert judge_reason("nothing heard for", played, NOW_S) is None
    played.stalled_s = (NOW_S - 25, NOW_S + 2)
    assert judge_reason("nothing heard for", played, NOW_S) == "its server was stopped"
    assert judge_reason("1 player gone for", played, NOW_S) is None
    assert judge_reason("paused for", played, NOW_S) is None
    gone = playing(here=frozenset(GAME.players[1:]), lost="disconnect")
    assert judge_reason("1 player gone for", gone, NOW_S) == "they left"
    assert judge_reason("2 players gone for", gone, NOW_S) is None
    assert judge_reason("log gap: 1 round incomplete", gone, NOW_S) == "a post was lost: disconnect"
    assert judge_reason("log gap: 1 round incomplete", playing(), NOW_S) is None
    assert judge_reason("1 player missing, time left", gone, NOW_S) is None, "no time runs"
    gone.deadlines.append((NOW_S + 60, NOW_S - 60))
    assert judge_reason("1 player missing, time left", gone, NOW_S) == "they are not there"
    loads = "a player is still loading, time left"
    assert judge_reason(loads, gone, NOW_S) is None, "they are not even there"
    gone.truth.here.set(ALL, NOW_S - 20)
    assert judge_reason(loads, gone, NOW_S) == "they are loading"
    gone.truth.entered.set(ALL, NOW_S - 10)
    assert judge_reason(loads, gone, NOW_S) is None


def test_time_to_join_of_a_moment_ago_is_left() -> None:
    """When the last player connects, the time begins anew; a page may be some seconds old."""
    played = playing(here=ALL)
    played.truth.here = Truth().here
    played.truth.here.set(frozenset(GAME.players[1:]), 10)
    played.truth.here.set(ALL, NOW_S - 2)
    played.deadlines += [(NOW_S + 60, 10), (NOW_S + 298, NOW_S - 1)]
    for at_s, why in ((NOW_S, "they are not there"), (NOW_S + 10, None)):
        assert judge_reason("1 player missing, time left", played, at_s) == why


def test_players_are_disconnected_before_the_next_map_is_loaded() -> None:
    played = playing(here=frozenset())
    assert faults(played) != []
    played.truth.loads_s += [10, NOW_S + 26]
    assert faults(played) == []
    card = Card(server_id="srv_1", reasons=(), until_ms=None, score=(1, 0), here=(4, 4), round=2, is_ended=False)
    assert list(judge_card(card, played, NOW_S)) == []


def test_players_who_leave_after_an_end_that_was_lost_are_gone() -> None:
    played = playing(here=frozenset(GAME.players[1:]), lost="end")
    played.truth.has_round = Truth().has_round
    gone = "1 player gone for"
    assert judge_reason(gone, played, NOW_S) is None
    played.truth.events_s["end"] = NOW_S - 20
    assert judge_reason(gone, played, NOW_S) == "they left, and the post with the end was lost"


def test_alarm_that_is_not_shown_in_time_is_missed() -> None:
    played = playing()
    played.stalled_s = (NOW_S, NOW_S + 20)
    seen = {"replica 1": [NOW_S + 17], "replica 2": [NOW_S + 19]}
    assert ["replica 2" in text for text in judge_missed(played, seen, NOW_S + 100)] == [True]


def test_card_is_judged_by_its_numbers() -> None:
    right = Card(server_id="srv_1", reasons=(), until_ms=None, score=(1, 0), here=(4, 4), round=2, is_ended=False)
    assert list(judge_card(right, playing(), NOW_S)) == []
    for here, score, round_ in (((3, 4), (1, 0), 2), ((4, 4), (3, 0), 2), ((4, 4), (1, 0), 9)):
        wrong = Card(server_id="srv_1", reasons=(), until_ms=None, score=score, here=here, round=round_, is_ended=False)
        assert len(list(judge_card(wrong, playing(), NOW_S))) == 1


def test_counters_of_a_wall_are_compared_with_its_cards() -> None:
    wall = WallPage(cards=(), groups={"in_play": 1}, attention=1, free={"eu": (3, 5)}, notices=())
    assert len(list(judge_wall(wall, 5, {0, 1}, "eu"))) == 3


def test_wall_is_read() -> None:
    html = """<p id="attention" class="sr" data-attention="1">1 match</p>
    <div id="card-group-in_play" class="group good"><h2>In play <span class="count">1</span></h2></div>
    <article id="card-srv_1" class="card match urgency3" data-group="in_play" data-urgent><ul class="reasons">
    <li class="urgency3" data-reason="srv_1 silence">nothing heard for
    <time class="counter" data-since="5">9 s</time></li></ul>
    <dl><dd>1</dd><dd>0</dd></dl><p class="phase"><span class="state live"></span>round 2</p>
    <p><span class="dots" role="img" aria-label="3 of 4 on the server"></span></p></article>
    <div class="region"><b>eu-1</b> <span class="muted">3 of 5 free</span>
    <p class="bad small notice-line">1 server is silent</p></div>"""
    wall = read_wall(html)
    (card,) = wall.cards
    assert (card.reasons, card.score, card.here, card.round) == (("nothing heard for",), (1, 0), (3, 4), 2)
    assert (wall.groups, wall.attention, wall.free) == ({"in_play": 1}, 1, {"eu-1": (3, 5)})
    assert card.is_urgent
    assert wall.notices == ("1 server is silent",)
