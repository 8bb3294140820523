"""Test the crowd: the steps of a visit, kicks, map changes, strangers, and what holds in every scenario."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Connected, Disconnected, Entered, SwitchedTeam, Validated
from cs2_protocol.steam_id import from_account as id64
from cs2_simulator.play.people.crowd import STRANGER_VISITS
from cs2_simulator.play.player import Player
from cs2_simulator.scenarios import Scenario
from simulator_tests.play.people.visited_server import TEAM1, TEAM2, VisitedServer


def listed_accounts() -> list[int]:
    return [account for account, _ in TEAM1 + TEAM2]


def find(server: VisitedServer, account: int) -> Player:
    return next(player for player in server.arena.players if player.person.account == account)


def test_visit_has_its_steps_in_order_and_within_their_times(filled: VisitedServer) -> None:
    for player in filled.arena.players:
        steps = [
            (at, type(line))
            for at, line in filled.log.lines
            if isinstance(line, (Connected, Validated, Entered, SwitchedTeam)) and line.player.user_id == player.user_id
        ]
        assert [kind for _, kind in steps] == [Connected, Validated, Entered, SwitchedTeam]
        waits = [after[0] - before[0] for before, after in pairwise(steps)]
        assert 600 <= waits[0] <= 2_000
        assert 5_900 <= waits[1] <= 15_100
        assert 900 <= waits[2] <= 4_100


def test_client_of_the_last_player_can_load_for_long(server: VisitedServer) -> None:
    server.set(sim_client_load="50")
    server.fill()
    server.wait(60)
    starts = {line.player.user_id: at for at, line in server.log.lines if isinstance(line, Validated)}
    ends = {line.player.user_id: at for at, line in server.log.lines if isinstance(line, Entered)}
    *others, last = [ends[user_id] - starts[user_id] for user_id in sorted(starts)]
    assert last in range(49_900, 50_100)
    assert max(others) < 15_100


def test_kicked_listed_player_returns_after_five_seconds(filled: VisitedServer) -> None:
    filled.door.kick(find(filled, 1003))
    at = filled.agenda.now_ms
    filled.wait(4.9)
    assert 1003 not in filled.accounts
    filled.wait(0.2)
    assert find(filled, 1003).connected_at_ms - at in range(4_990, 5_020)
    filled.wait(30)
    assert find(filled, 1003).side is Side.CT


def test_people_follow_the_name_of_their_team_to_its_side(server: VisitedServer) -> None:
    server.set(mp_teamname_1="Reds", mp_teamname_2="Blues")
    server.visitors.expect_anyone()
    server.wait(75)
    reds = {player.person.account for player in server.arena.players if player.side is Side.CT}
    for first, second, side in (("Blues", "Reds", Side.T), ("Reds", "Blues", Side.CT)):
        server.set(mp_teamname_1=first, mp_teamname_2=second)
        server.change_map(f"de_{first.lower()}")
        server.wait(75)
        assert {player.person.account for player in server.arena.players if player.side is side} == reds


def test_listed_player_kicked_on_connect_tries_again(server: VisitedServer) -> None:
    server.watcher.kicked_on_connect = [1001]
    server.fill()
    server.watcher.kicked_on_connect = []
    assert 1001 not in server.accounts
    server.wait(40)
    assert find(server, 1001).is_playing


def test_guest_tries_again_if_the_server_is_full(server: VisitedServer) -> None:
    server.door.max_players = 9
    server.fill()
    assert len(server.arena.players) == 9
    server.door.max_players = 10
    server.wait(40)
    assert len(server.arena.playing) == 10


def test_player_who_timed_out_does_not_return(filled: VisitedServer) -> None:
    filled.door.leave(find(filled, 1001), "NETWORK_DISCONNECT_TIMEDOUT")
    filled.wait(60)
    assert 1001 not in filled.accounts


# --- map changes -----------------------------------------------------------------------------------------------------


def test_all_players_return_after_a_map_change_with_the_same_user_ids(filled: VisitedServer) -> None:
    before = [(player.user_id, player.person, player.team) for player in filled.arena.players]
    filled.change_map()
    filled.log.lines.clear()
    loaded = filled.agenda.now_ms
    filled.wait(60)
    assert [(player.user_id, player.person, player.team) for player in filled.arena.players] == before
    assert all(1_900 <= player.connected_at_ms - loaded <= 15_100 for player in filled.arena.players)


def test_players_join_the_side_of_their_team_on_the_new_map(filled: VisitedServer) -> None:
    filled.game.team1_side = Side.T
    filled.change_map()
    filled.wait(60)
    assert find(filled, 1001).side is Side.T


def test_kicked_player_returns_with_the_others_after_a_map_change(filled: VisitedServer) -> None:
    filled.door.kick(find(filled, 1001))
    filled.change_map()
    filled.wait(60)
    assert sorted(filled.accounts) == sorted(listed_accounts())


# --- people who wait to be let in --------------------------------------------------------------------------------------


def test_substitute_and_caster_try_until_they_are_not_kicked(server: VisitedServer) -> None:
    server.set(sim_substitutes="3001", sim_casters="3002")
    server.watcher.kicked_on_enter[:] = [3001, 3002]
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(180)
    tries = [player_id for _, player_id in server.connections()].count(id64(3001))
    assert tries > 3
    assert id64(3002) not in [player_id for _, player_id in server.connections()]
    server.wait(180)
    assert id64(3002) in [player_id for _, player_id in server.connections()]
    server.door.leave(find(server, 2003), "NETWORK_DISCONNECT_DISCONNECT_BY_USER")
    server.watcher.kicked_on_enter.clear()
    server.wait(60)
    assert find(server, 3001).side is Side.T
    assert find(server, 3002).team == "Spectator"


def test_substitute_who_is_listed_by_a_name_has_it_from_the_next_connection_on(server: VisitedServer) -> None:
    server.set(sim_substitutes="3001")
    server.watcher.kicked_on_enter.append(3001)
    server.fill()
    while 3001 not in server.accounts:
        server.wait(1)
    server.visitors.expect_one(3001, "Sub", 2)
    assert find(server, 3001).person.name != "Sub"
    server.wait(30)
    server.watcher.kicked_on_enter.clear()
    server.wait(30)
    assert find(server, 3001).person.name == "Sub"
    assert find(server, 3001).side is Side.T


def test_substitute_comes_back_on_the_next_map_of_a_series(server: VisitedServer) -> None:
    server.set(sim_substitutes="3001")
    server.watcher.kicked_on_enter.append(3001)
    server.visitors.crowd.stays_after_map = True
    server.fill()
    server.visitors.map_ended()
    server.change_map()
    server.watcher.kicked_on_enter.clear()
    server.wait(60)
    assert find(server, 3001).side is not None


# --- the stranger ------------------------------------------------------------------------------------------------------


def strangers(server: VisitedServer) -> list[Player]:
    return [player for player in server.arena.players if player.person.account not in listed_accounts()]


def test_kicked_stranger_tries_again_a_limited_number_of_times() -> None:
    server = VisitedServer(Scenario.STRANGER)
    server.visitors.expect(TEAM1, TEAM2)
    kicks = []
    for _ in range(6000):
        server.wait(0.1)
        for player in strangers(server):
            if player.is_in_game:
                server.door.kick(player)
                kicks.append(player.person)
    assert len(kicks) == STRANGER_VISITS
    assert len(set(kicks)) == 1
    assert len(server.arena.playing) == 10


def test_stranger_leaves_a_full_match_without_joining_a_side() -> None:
    server = VisitedServer(Scenario.STRANGER)
    server.visitors.expect(TEAM1, TEAM2)
    teams: set[str] = set()
    for _ in range(200):
        server.wait(1)
        teams.update(player.team for player in strangers(server))
    assert teams == {"", "Unassigned"}
    assert len(server.arena.playing) == 10
    assert [reason for _, reason in server.departures()][:1] == ["NETWORK_DISCONNECT_DISCONNECT_BY_USER"]


def test_stranger_takes_the_place_of_a_player_who_left_for_good() -> None:
    server = VisitedServer(Scenario.STRANGER)
    server.fill()
    server.door.leave(find(server, 2001), "NETWORK_DISCONNECT_TIMEDOUT")
    server.wait(120)
    assert [player.side for player in strangers(server)] == [Side.T]


def test_kicked_stranger_gives_up_when_the_match_is_over() -> None:
    server = VisitedServer(Scenario.STRANGER)
    server.fill()
    while not strangers(server):
        server.wait(1)
    server.door.kick(strangers(server)[0])
    server.visitors.forget_roster()
    server.wait(100)
    assert strangers(server) == []

    server = VisitedServer(Scenario.STRANGER)
    server.fill()
    while not strangers(server):
        server.wait(1)
    server.visitors.map_ended()
    server.door.kick(strangers(server)[0])
    server.wait(100)
    assert server.arena.players == []


# --- invariants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", list(Scenario))
@pytest.mark.parametrize("mode", [(0, 1), (1, 2)])
def test_user_ids_are_unique_and_connections_match_the_players(scenario: Scenario, mode: tuple[int, int]) -> None:
    server = VisitedServer(scenario, mode=mode, seed=3)
    server.fill()
    server.go_live()
    for number in range(1, 8):
        server.play_round(number, seconds=30)
        if number == 5 and server.arena.players:
            server.door.kick(server.arena.players[-1])
        numbers = [player.user_id for player in server.arena.players]
        assert numbers == sorted(set(numbers))
        accounts = server.accounts
        assert len(set(accounts)) == len(accounts)
    server.change_map()
    server.wait(75)
    server.visitors.map_ended()
    server.wait(30)
    open_connections: dict[int, str] = {}
    for _, line in server.log.lines:
        if isinstance(line, Connected):
            assert line.player.user_id not in open_connections
            open_connections[line.player.user_id] = line.player.steam_id
        elif isinstance(line, Disconnected):
            assert open_connections.pop(line.player.user_id) == line.player.steam_id
    assert open_connections == {player.user_id: player.person.steam_id for player in server.arena.players}


@pytest.mark.parametrize("scenario", list(Scenario))
def test_same_scenario_and_seed_write_the_same_log(scenario: Scenario) -> None:
    logs = []
    for _ in range(2):
        server = VisitedServer(scenario)
        server.fill()
        server.go_live()
        for number in range(1, 5):
            server.play_round(number)
        logs.append(server.log.lines)
    assert logs[0] == logs[1]
