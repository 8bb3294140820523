"""Test when the players chat."""

from __future__ import annotations

from cs2_protocol.log_lines.player_lines import Chat
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
