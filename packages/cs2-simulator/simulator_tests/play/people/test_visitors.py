"""Test who comes to a server, when and to which team, by roster and scenario."""

from __future__ import annotations

from collections import Counter

import pytest

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Entered
from cs2_protocol.steam_id import from_account
from cs2_simulator.play.door import TIMED_OUT
from cs2_simulator.play.people.visitors import PLAYERS_BY_MODE
from cs2_simulator.scenarios import Scenario
from simulator_tests.play.people.visited_server import TEAM1, TEAM2, VisitedServer

ALL_ACCOUNTS = sorted(account for account, _ in TEAM1 + TEAM2)


def test_no_player_comes_if_none_is_expected(server: VisitedServer) -> None:
    server.wait(600)
    assert server.log.lines == []


def test_players_connect_within_25_seconds_after_the_delay(server: VisitedServer) -> None:
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(60)
    times = [at for at, _ in server.connections()]
    assert len(times) == 10
    assert times[0] >= 20_000
    assert times[-1] <= 45_100


def test_time_in_which_players_connect_is_a_setting(server: VisitedServer) -> None:
    server.set(sim_arrival="240")
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(300)
    times = [at for at, _ in server.connections()]
    assert len(times) == 10
    assert 60_000 < times[-1] <= 260_100


def test_commands_restart_the_wait_for_players(server: VisitedServer) -> None:
    server.visitors.expect(TEAM1, TEAM2)
    for _ in range(10):
        server.wait(15)
        server.visitors.restart_countdown()
    assert server.connections() == []
    server.wait(50)
    assert len(server.connections()) == 10


def test_players_join_the_team_they_are_listed_for(server: VisitedServer) -> None:
    server.game.team1_side = Side.T
    server.fill()
    accounts = {side: sorted(player.person.account for player in server.arena.players_on(side)) for side in Side}
    assert accounts[Side.T] == [account for account, _ in TEAM1]
    assert accounts[Side.CT] == [account for account, _ in TEAM2]


def test_nicks_are_kept_and_each_team_has_one_awper(filled: VisitedServer) -> None:
    names = {player.person.account: player.person.name for player in filled.arena.players}
    assert names[1001] == "one"
    assert names[2002] == "two"
    assert len(set(names.values())) == 10
    assert [sum(player.person.is_awper for player in filled.arena.players_on(side)) for side in Side] == [1, 1]


def test_same_seed_has_the_same_players_and_user_ids_whenever_they_come() -> None:
    def players_after(wait_s: float, seed: int) -> list[tuple[int, int, str, str]]:
        server = VisitedServer(seed=seed)
        server.wait(wait_s)
        server.visitors.expect_anyone()
        server.wait(wait_s / 10)
        server.fill()
        return [(p.user_id, p.person.account, p.person.name, p.team) for p in server.arena.players]

    assert players_after(0, 7) == players_after(33.3, 7)
    assert players_after(0, 7) != players_after(0, 8)


def test_early_leaver_is_gone_when_the_last_player_joins() -> None:
    server = VisitedServer(Scenario.EARLY_LEAVER)
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(75)
    early = set(server.accounts)
    assert len(early) == 9
    server.wait(240)
    (gone,) = early - set(server.accounts)
    (late,) = set(server.accounts) - early
    assert {gone, late} <= set(ALL_ACCOUNTS)
    assert len(server.departures()) == 1


def test_client_that_crashes_while_it_loads_comes_again_and_never_enters() -> None:
    server = VisitedServer(Scenario.LOADING_CRASH)
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(600)
    crashes = server.departures()
    assert {reason for _, reason in crashes} == {TIMED_OUT}
    assert len(crashes) >= 8
    came = Counter(player_id for _, player_id in server.connections())
    ((crashing, visits),) = [(player_id, count) for player_id, count in came.items() if count > 1]
    assert visits - len(crashes) in (0, 1)
    entered = {line.player.player_id for _, line in server.log.lines if isinstance(line, Entered)}
    assert entered == set(came) - {crashing}


def test_player_added_to_the_roster_comes(filled: VisitedServer) -> None:
    filled.visitors.expect(TEAM1, [*TEAM2, (2006, "sub")])
    filled.wait(75)
    assert sorted(filled.accounts) == [*ALL_ACCOUNTS, 2006]


# --- without a roster --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "name"),
    [((0, 0), "casual"), ((0, 1), "competitive"), ((0, 2), "scrimcomp2v2"), ((1, 2), "deathmatch")],
)
def test_number_of_random_players_depends_on_the_mode(mode: tuple[int, int], name: str) -> None:
    server = VisitedServer(mode=mode)
    server.visitors.expect_anyone()
    server.wait(75)
    assert server.variables.mode_name == name
    assert len(server.arena.players) == PLAYERS_BY_MODE[name]
    assert abs(len(server.arena.players_on(Side.CT)) - len(server.arena.players_on(Side.T))) <= 1


def test_players_listed_in_sim_players_connect(server: VisitedServer) -> None:
    server.set(sim_players=f"{from_account(501)},502, 503,502")
    server.visitors.expect_anyone()
    server.wait(75)
    assert sorted(server.accounts) == [501, 502, 503]
    assert sorted(player.person.account for player in server.arena.players_on(Side.CT)) == [501, 502]


def test_random_players_do_not_replace_a_roster(server: VisitedServer) -> None:
    server.visitors.expect(TEAM1, TEAM2)
    server.visitors.expect_anyone()
    server.wait(75)
    assert sorted(server.accounts) == ALL_ACCOUNTS


# --- the end of a match --------------------------------------------------------------------------------------------


def test_players_leave_10_to_60_seconds_after_the_end(filled: VisitedServer) -> None:
    filled.go_live()
    filled.visitors.map_ended()
    began = filled.agenda.tick
    filled.wait(61)
    assert filled.arena.players == []
    reasons = {reason for _, reason in filled.departures()}
    assert reasons <= {"NETWORK_DISCONNECT_DISCONNECT_BY_USER", "NETWORK_DISCONNECT_LOOPDEACTIVATE"}
    assert min(at for at, _ in filled.departures()) >= began * 1000 // 64 + 9_900


def test_players_stay_between_two_maps_of_a_series(filled: VisitedServer) -> None:
    filled.visitors.crowd.stays_after_map = True
    assert filled.visitors.crowd.stays_after_map
    filled.go_live()
    filled.visitors.map_ended()
    filled.wait(100)
    assert len(filled.arena.players) == 10


# --- scenarios -----------------------------------------------------------------------------------------------------


def test_no_player_comes_in_the_no_show_scenario() -> None:
    server = VisitedServer(Scenario.NO_SHOW)
    server.fill()
    server.change_map()
    server.wait(600)
    assert server.connections() == []


@pytest.mark.parametrize("seed", range(2))
def test_incomplete_roster_scenario_lacks_one_or_two_players(seed: int) -> None:
    server = VisitedServer(Scenario.INCOMPLETE_ROSTER, seed=seed)
    server.fill()
    first = server.accounts
    assert len(first) in (8, 9)
    server.change_map()
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(600)
    assert server.accounts == first


def test_late_join_scenario_delays_the_last_player_by_three_minutes() -> None:
    server = VisitedServer(Scenario.LATE_JOIN)
    server.fill()
    assert len(server.arena.players) == 9
    server.wait(200)
    times = [at for at, _ in server.connections()]
    assert 179_000 <= times[-1] - times[-2] <= 206_000
    assert len(server.arena.playing) == 10


def test_cheater_scenario_has_the_same_cheater_on_every_map() -> None:
    server = VisitedServer(Scenario.CHEATER)
    server.fill()
    (cheater,) = [player.person for player in server.arena.players if player.person.is_cheater]
    assert cheater.skill > 1.5
    assert cheater.headshots > 0.6
    server.change_map()
    server.wait(75)
    assert [player.person for player in server.arena.players if player.person.is_cheater] == [cheater]


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
def test_players_behave_as_in_a_full_match_if_the_scenario_does_not_affect_them(scenario: Scenario) -> None:
    server, usual = VisitedServer(scenario), VisitedServer()
    for each in (server, usual):
        each.fill()
        each.go_live()
        for number in range(1, 8):
            each.play_round(number)
    assert server.log.texts == usual.log.texts
