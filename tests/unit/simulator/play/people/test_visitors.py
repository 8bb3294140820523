"""Visitors: who comes, when, to which team, by roster and scenario."""

from __future__ import annotations

import pytest

from matchpod.core.model import Side
from matchpod.cs2.steam_id import from_account
from matchpod.simulator.play.people.visitors import STRANGERS_BY_MODE
from matchpod.simulator.scenarios import Scenario
from tests.unit.simulator.play.people.visited_server import TEAM1, TEAM2, VisitedServer

EVERYONE = sorted(account for account, _ in TEAM1 + TEAM2)


def test_nobody_comes_who_is_not_expected() -> None:
    server = VisitedServer()
    server.wait(600)
    assert server.log.lines == []


def test_people_come_after_the_delay_and_within_half_a_minute() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(60)
    times = [at for at, _ in server.connections()]
    assert len(times) == 10
    assert times[0] >= 20_000
    assert times[-1] <= 45_100


def test_the_delay_is_a_setting() -> None:
    server = VisitedServer()
    server.set(sim_roster_delay="100")
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(99)
    assert server.connections() == []


def test_a_busy_administrator_puts_the_arrival_off() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    for _ in range(10):
        server.wait(15)
        server.visitors.settle()
    assert server.connections() == []
    server.wait(50)
    assert len(server.connections()) == 10


def test_an_administrator_does_not_disturb_those_who_have_come() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.settle()
    server.wait(60)
    assert len(server.connections()) == 10


def test_nothing_is_settled_where_nobody_is_expected() -> None:
    server = VisitedServer()
    server.visitors.settle()
    server.wait(60)
    assert server.connections() == []


def test_each_takes_the_team_he_is_listed_for() -> None:
    server = VisitedServer()
    server.game.team1_side = Side.T
    server.fill()
    assert sorted(player.person.account for player in server.arena.on(Side.T)) == [account for account, _ in TEAM1]
    assert sorted(player.person.account for player in server.arena.on(Side.CT)) == [account for account, _ in TEAM2]


def test_the_plugin_may_place_them_otherwise() -> None:
    server = VisitedServer()
    server.arena.team_of = lambda _player: "TERRORIST"
    server.fill()
    assert len(server.arena.on(Side.T)) == 10


def test_nicks_are_kept_and_each_team_has_one_awper() -> None:
    server = VisitedServer()
    server.fill()
    names = {player.person.account: player.person.name for player in server.arena.players}
    assert names[1001] == "one"
    assert names[2002] == "two"
    assert len(set(names.values())) == 10
    assert [sum(player.person.is_awper for player in server.arena.on(side)) for side in Side] == [1, 1]


def test_same_seed_brings_the_same_people_under_the_same_numbers_whenever_they_are_expected() -> None:
    def crowd(wait_s: float, seed: int) -> list[tuple[int, int, str, str]]:
        server = VisitedServer(seed=seed)
        server.wait(wait_s)
        server.visitors.expect_anybody()
        server.wait(wait_s / 10)
        server.fill()
        return [(p.user_id, p.person.account, p.person.name, p.team) for p in server.arena.players]

    assert crowd(0, 7) == crowd(33.3, 7)
    assert crowd(0, 7) != crowd(0, 8)


def test_accounts_that_cannot_be_and_doubles_are_passed_over() -> None:
    server = VisitedServer()
    server.visitors.expect([(0, "bot"), (5, "a"), (5, "a")], [(5, "a"), (6, "b"), (2**32, "big")])
    server.wait(75)
    assert sorted(server.accounts) == [5, 6]


def test_an_empty_roster_brings_nobody() -> None:
    server = VisitedServer(Scenario.LATE_JOIN)
    server.visitors.expect([], [])
    server.wait(75)
    assert server.log.lines == []


def test_somebody_added_to_the_roster_comes_too() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.expect(TEAM1, [*TEAM2, (2006, "sub")])
    server.wait(75)
    assert sorted(server.accounts) == [*EVERYONE, 2006]


def test_somebody_struck_from_the_roster_before_he_came_stays_away() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    server.visitors.expect(TEAM1, TEAM2[:-1])
    server.wait(75)
    assert 2005 not in server.accounts
    assert len(server.accounts) == 9


# --- anybody -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "name"),
    [((0, 0), "casual"), ((0, 1), "competitive"), ((0, 2), "scrimcomp2v2"), ((1, 2), "deathmatch")],
)
def test_as_many_strangers_come_as_the_mode_seats(mode: tuple[int, int], name: str) -> None:
    server = VisitedServer(mode=mode)
    server.visitors.expect_anybody()
    server.wait(75)
    assert server.variables.mode_name == name
    assert len(server.arena.players) == STRANGERS_BY_MODE[name]
    assert abs(len(server.arena.on(Side.CT)) - len(server.arena.on(Side.T))) <= 1


def test_no_more_come_than_there_are_seats() -> None:
    server = VisitedServer()
    server.door.seats = 3
    server.visitors.expect_anybody()
    server.wait(75)
    assert len(server.arena.players) == 3


def test_those_named_by_the_setting_come() -> None:
    server = VisitedServer()
    server.set(sim_players=f"{from_account(501)},502, 503,502")
    server.visitors.expect_anybody()
    server.wait(75)
    assert sorted(server.accounts) == [501, 502, 503]
    assert sorted(player.person.account for player in server.arena.on(Side.CT)) == [501, 502]


def test_expecting_anybody_again_changes_nothing() -> None:
    server = VisitedServer()
    server.visitors.expect_anybody()
    server.wait(75)
    server.visitors.expect_anybody()
    server.wait(75)
    assert len(server.connections()) == 10


def test_a_roster_takes_the_place_of_anybody() -> None:
    server = VisitedServer()
    server.visitors.expect_anybody()
    server.wait(10)
    server.fill()
    assert sorted(server.accounts) == EVERYONE


def test_a_roster_counts_more_than_anybody() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    server.visitors.expect_anybody()
    server.wait(75)
    assert sorted(server.accounts) == EVERYONE


# --- the end of a match --------------------------------------------------------------------------------------------


def test_nobody_new_comes_once_the_match_is_forgotten() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(10)
    server.visitors.forget()
    server.wait(100)
    assert server.connections() == []


def test_those_on_their_way_turn_round_when_the_match_is_forgotten() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    while len(server.connections()) < 4:
        server.wait(0.1)
    server.visitors.forget()
    here = len(server.connections())
    server.wait(100)
    assert len(server.connections()) == len(server.arena.players) == here


def test_forgetting_before_anything_was_expected_is_nothing() -> None:
    server = VisitedServer()
    server.visitors.forget()
    assert server.log.lines == []


def test_people_go_one_by_one_after_the_end() -> None:
    server = VisitedServer()
    server.fill()
    server.go_live()
    server.visitors.map_ended()
    began = server.agenda.tick
    server.wait(61)
    assert server.arena.players == []
    reasons = {reason for _, reason in server.departures()}
    assert reasons <= {"NETWORK_DISCONNECT_DISCONNECT_BY_USER", "NETWORK_DISCONNECT_LOOPDEACTIVATE"}
    assert min(at for at, _ in server.departures()) >= began * 1000 // 64 + 9_900


def test_people_stay_between_two_maps_of_a_series() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.stays_after_map = True
    assert server.visitors.stays_after_map
    server.go_live()
    server.visitors.map_ended()
    server.wait(100)
    assert len(server.arena.players) == 10


def test_people_go_if_it_turns_out_after_the_end_that_it_was_the_last_map() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.stays_after_map = True
    server.visitors.map_ended()
    server.visitors.stays_after_map = False
    server.visitors.forget()
    server.wait(61)
    assert server.arena.players == []


def test_nobody_comes_back_to_a_map_that_is_over() -> None:
    server = VisitedServer()
    server.fill()
    server.door.kick(server.arena.players[0], "")
    server.visitors.map_ended()
    server.wait(9)
    assert len(server.arena.players) == 9


def test_nobody_comes_back_when_the_server_loads_the_same_map_again() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.map_ended()
    server.wait(25)
    server.change_map(server.arena.map_name)
    server.wait(120)
    assert server.arena.players == []


def test_another_map_brings_everybody_back() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.map_ended()
    server.wait(25)
    server.change_map("de_nuke")
    server.wait(120)
    assert sorted(server.accounts) == EVERYONE


def test_the_next_match_brings_them_back() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.map_ended()
    server.wait(61)
    server.visitors.forget()
    server.fill()
    assert sorted(server.accounts) == EVERYONE


def test_the_same_match_told_again_brings_nobody_back() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.map_ended()
    server.wait(61)
    server.fill()
    assert server.arena.players == []


def test_those_who_were_about_to_go_stay_for_the_next_match() -> None:
    server = VisitedServer()
    server.fill()
    server.visitors.map_ended()
    server.visitors.forget()
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(75)
    assert len(server.arena.players) == 10
    assert server.departures() == []


# --- scenarios -----------------------------------------------------------------------------------------------------


def test_nobody_shows() -> None:
    server = VisitedServer(Scenario.NO_SHOW)
    server.fill()
    server.change_map()
    server.wait(600)
    assert server.connections() == []


@pytest.mark.parametrize("seed", range(6))
def test_one_or_two_are_missing_for_ever(seed: int) -> None:
    server = VisitedServer(Scenario.INCOMPLETE_ROSTER, seed=seed)
    server.fill()
    first = server.accounts
    assert len(first) in (8, 9)
    server.change_map()
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(600)
    assert server.accounts == first


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("size", "present"), [(1, 0), (2, 1)])
def test_of_a_tiny_roster_one_is_missing(size: int, present: int, seed: int) -> None:
    server = VisitedServer(Scenario.INCOMPLETE_ROSTER, seed=seed)
    server.visitors.expect(TEAM1[:1], TEAM2[: size - 1])
    server.wait(600)
    assert len(server.arena.players) == present


def test_the_last_one_is_three_minutes_late() -> None:
    server = VisitedServer(Scenario.LATE_JOIN)
    server.fill()
    assert len(server.arena.players) == 9
    server.wait(200)
    times = [at for at, _ in server.connections()]
    assert 179_000 <= times[-1] - times[-2] <= 206_000
    assert len(server.arena.playing) == 10


def test_one_player_cheats() -> None:
    server = VisitedServer(Scenario.CHEATER)
    server.fill()
    (cheater,) = [player.person for player in server.arena.players if player.person.is_cheater]
    assert cheater.skill > 1.5
    assert cheater.headshots > 0.6
    server.change_map()
    server.wait(75)
    assert [player.person for player in server.arena.players if player.person.is_cheater] == [cheater]


def test_nobody_cheats_where_nobody_comes() -> None:
    server = VisitedServer(Scenario.CHEATER)
    server.visitors.expect([], [])
    server.wait(75)
    assert server.arena.players == []


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario.OVERTIME,
        Scenario.TIE,
        Scenario.ONE_SIDED,
        Scenario.SERVER_CRASH,
        Scenario.SERVER_HANG,
        Scenario.SLOW_MAP_LOAD,
        Scenario.WRONG_MAP,
        Scenario.LOG_LOSS,
        Scenario.PLUGIN_MISSING,
    ],
)
def test_in_the_stories_of_others_people_just_play(scenario: Scenario) -> None:
    server, usual = VisitedServer(scenario), VisitedServer()
    for each in (server, usual):
        each.fill()
        each.go_live()
        for number in range(1, 8):
            each.play_round(number)
    assert server.log.texts == usual.log.texts
