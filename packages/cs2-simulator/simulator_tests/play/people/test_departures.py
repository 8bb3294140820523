"""Test the scenarios in which all players leave, or one leaves and returns."""

from __future__ import annotations

import pytest

from cs2_protocol.log_lines.player_lines import Chat, Disconnected, Suicide, SwitchedTeam
from cs2_simulator.play.people.departures import IdleKick, SpectatorVisit, ordinary_story
from cs2_simulator.play.people.stories import Story
from cs2_simulator.scenarios import Scenario
from simulator_tests.play.people.visited_server import TEAM1, TEAM2, VisitedServer


def live(
    scenario: Scenario, *, mode: tuple[int, int] = (0, 1), seed: int = 7, max_rounds: int | None = None
) -> VisitedServer:
    server = VisitedServer(scenario, mode=mode, seed=seed)
    if max_rounds is not None:
        server.set(mp_maxrounds=str(max_rounds))
    server.fill()
    server.go_live()
    return server


def round_of_first_departure(server: VisitedServer) -> int:
    for number in range(1, 10):
        server.play_round(number)
        if server.departures():
            return number
    return 0


@pytest.mark.parametrize("seed", range(5))
def test_all_players_leave_during_an_early_round_and_do_not_return(seed: int) -> None:
    server = live(Scenario.ALL_LEAVE, seed=seed)
    number = round_of_first_departure(server)
    assert 3 <= number <= 6
    times = [at for at, _ in server.departures()]
    assert len(times) == 10
    assert times[-1] - times[0] <= 3_000
    assert sum(isinstance(line, Suicide) for _, line in server.log.lines) == 10
    server.play_round(number + 1)
    server.change_map()
    server.visitors.expect(TEAM1, TEAM2)
    server.wait(600)
    assert server.arena.players == []


@pytest.mark.parametrize(("max_rounds", "latest"), [(1, 1), (2, 2), (4, 3)])
def test_all_players_leave_a_short_match_before_it_can_end(max_rounds: int, latest: int) -> None:
    assert 1 <= round_of_first_departure(live(Scenario.ALL_LEAVE, max_rounds=max_rounds)) <= latest


def test_all_players_leave_a_deathmatch_after_one_to_two_minutes() -> None:
    server = live(Scenario.ALL_LEAVE, mode=(1, 2))
    began = server.log.lines[-1][0]
    server.visitors.round_started(1)
    server.wait(59)
    assert server.departures() == []
    server.wait(65)
    assert server.arena.players == []
    assert server.departures()[-1][0] - began < 150_000


def test_player_about_to_return_stays_away_when_all_leave() -> None:
    server = live(Scenario.ALL_LEAVE)
    server.door.max_players = 9
    server.door.kick(server.arena.players[0])
    for number in range(1, 8):
        if number < 7 and len(server.arena.players) == 10:
            server.door.kick(server.arena.players[0])
        server.play_round(number)
    server.wait(300)
    assert server.arena.players == []


def test_restart_of_the_match_restarts_the_scenario() -> None:
    server = live(Scenario.ALL_LEAVE, max_rounds=1)
    server.visitors.round_started(1)
    server.visitors.warmup_began()
    server.wait(30)
    assert server.departures() == []
    server.go_live()
    assert round_of_first_departure(server) == 1


def test_leaver_does_not_come_back_even_for_the_next_map() -> None:
    server = live(Scenario.LEAVER)
    assert round_of_first_departure(server) == 2
    server.visitors.crowd.stays_after_map = True
    server.visitors.map_ended()
    server.change_map()
    server.wait(120)
    assert len(server.arena.players) == 9


@pytest.mark.parametrize("seed", range(3))
def test_rage_quitter_returns_two_rounds_later(seed: int) -> None:
    server = live(Scenario.RAGE_QUIT_REJOIN, seed=seed)
    assert round_of_first_departure(server) == 4
    lines = [line for _, line in server.log.lines]
    (gone,) = [line for line in lines if isinstance(line, Disconnected)]
    last_chat = [line for line in lines[: lines.index(gone)] if isinstance(line, Chat)][-1]
    assert last_chat.player == gone.player
    assert gone.reason == "NETWORK_DISCONNECT_DISCONNECT_BY_USER"
    server.play_round(5)
    assert len(server.arena.players) == 9
    server.play_round(6)
    assert len(server.arena.playing) == 10
    server.play_round(7)
    assert len(server.departures()) == 1


@pytest.mark.parametrize("seed", range(4))
def test_idle_players_are_kicked_alive_and_return_in_the_middle_of_a_round(seed: int) -> None:
    server = live(Scenario.IDLE_KICK, seed=seed, max_rounds=8)
    number = round_of_first_departure(server)
    assert 2 <= number <= 5
    for later in range(number + 1, number + 9):
        server.play_round(later)
    assert [reason for _, reason in server.departures()] == ["NETWORK_DISCONNECT_KICKED_IDLE"] * 2
    assert sum(isinstance(line, Suicide) for _, line in server.log.lines) == 2
    assert len(server.arena.playing) == 10


def test_idle_player_is_not_kicked_if_a_side_would_be_empty() -> None:
    server = VisitedServer(Scenario.IDLE_KICK)
    server.visitors.expect(TEAM1[:1], TEAM2[:1])
    server.wait(75)
    server.go_live()
    assert round_of_first_departure(server) == 0


def test_idle_player_returns_to_a_deathmatch() -> None:
    server = live(Scenario.IDLE_KICK, mode=(1, 2))
    for player in server.arena.playing:
        player.is_alive = True
    server.wait(125)
    assert len(server.arena.players) == 9
    server.wait(120)
    assert len(server.arena.playing) == 10


def test_spectator_returns_to_their_side() -> None:
    server = VisitedServer(Scenario.SPECTATOR)
    server.visitors.expect_anyone()
    server.wait(75)
    server.go_live()
    switches = []
    for number in range(1, 7):
        server.play_round(number)
        switches = [line for _, line in server.log.lines if isinstance(line, SwitchedTeam)][10:]
    assert [(one.old, one.new) for one in switches] == [(switches[1].new, "Spectator"), ("Spectator", switches[0].old)]
    assert switches[0].player == switches[1].player


def test_player_of_a_plugin_match_does_not_spectate() -> None:
    server = live(Scenario.SPECTATOR)
    for number in range(1, 7):
        server.play_round(number)
    assert "Spectator" not in server.joins()


def test_some_ordinary_matches_have_an_incident() -> None:
    kinds = [type(ordinary_story(VisitedServer(seed=seed).visitors.crowd)) for seed in range(60)]
    assert kinds.count(Story) > 30
    assert IdleKick in kinds
    assert SpectatorVisit in kinds
