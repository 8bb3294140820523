"""Test when the players chat."""

from __future__ import annotations

from cs2_protocol.log_lines.player_lines import Chat
from cs2_simulator.play.watcher import RoundEnd
from simulator_tests.play.people.visited_server import TEAM1, TEAM2, VisitedServer


def chat(server: VisitedServer) -> list[Chat]:
    return [line for _, line in server.log.lines if isinstance(line, Chat)]


def test_players_of_a_plugin_match_write_ready_once_per_map() -> None:
    server = VisitedServer()
    server.fill()
    server.wait(20)
    assert [line.message for line in chat(server)] == [".ready"] * 10
    server.visitors.expect(TEAM1, TEAM2)
    server.visitors.warmup_began()
    server.wait(60)
    assert len(chat(server)) == 10
    server.change_map()
    server.wait(60)
    assert len(chat(server)) == 20


def test_connected_players_write_ready_when_a_match_lists_them() -> None:
    server = VisitedServer()
    server.set(sim_players=",".join(str(account) for account, _ in TEAM1 + TEAM2))
    server.visitors.expect_anyone()
    server.wait(75)
    assert chat(server) == []
    server.fill()
    assert len(chat(server)) == 10


def test_ready_is_not_written_during_a_live_match() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    while len(server.arena.playing) < 3:
        server.wait(0.1)
    server.go_live()
    server.wait(75)
    assert all(line.message != ".ready" for line in chat(server))


def test_player_who_left_does_not_write_ready() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    while not server.arena.playing:
        server.wait(0.1)
    player = server.arena.playing[0]
    server.door.leave(player, "NETWORK_DISCONNECT_DISCONNECT_BY_USER")
    server.wait(75)
    assert len(chat(server)) == 9


def test_empty_server_has_no_chat() -> None:
    server = VisitedServer()
    server.go_live()
    for number in range(1, 9):
        server.play_round(number)
    server.visitors.map_ended()
    server.wait(60)
    assert server.log.lines == []


def test_players_chat_in_a_deathmatch_until_it_is_over() -> None:
    server = VisitedServer(mode=(1, 2))
    server.visitors.expect_anyone()
    server.wait(75)
    server.go_live()
    server.wait(600)
    server.visitors.round_ended(1, RoundEnd(None, "Round_Draw"))
    lines = len(chat(server))
    assert 12 <= lines <= 45
    server.visitors.stays_after_map = True
    server.visitors.map_ended()
    server.wait(10)
    after = len(chat(server))
    server.wait(600)
    assert len(chat(server)) == after


def test_players_greet_once_even_if_a_match_is_started_several_times() -> None:
    plain, other = VisitedServer(), VisitedServer()
    for server, starts in ((plain, 1), (other, 3)):
        server.visitors.expect_anyone()
        server.wait(75)
        for _ in range(starts):
            server.go_live()
            server.wait(0.5)
        server.wait(30)
    assert [line.text() for line in chat(other)] == [line.text() for line in chat(plain)] != []
