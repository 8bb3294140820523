"""Chatter: how much is said, and when."""

from __future__ import annotations

import pytest

from matchpod.cs2.log_lines.player_lines import Chat
from matchpod.simulator.play.people.chatter import FAREWELLS, GREETINGS, PLANS, REMARKS
from matchpod.simulator.play.watcher import RoundEnd
from tests.unit.simulator.play.people.visited_server import TEAM1, TEAM2, VisitedServer


def chat(server: VisitedServer) -> list[Chat]:
    return [line for _, line in server.log.lines if isinstance(line, Chat)]


@pytest.mark.parametrize("seed", range(4))
def test_a_match_has_about_thirty_lines_of_chat(seed: int) -> None:
    server = VisitedServer(seed=seed)
    server.visitors.expect_anybody()
    server.wait(75)
    server.go_live()
    for number in range(1, 23):
        server.play_round(number)
    server.visitors.map_ended()
    server.wait(60)
    assert 15 <= len(chat(server)) <= 45
    assert any(line.said in GREETINGS for line in chat(server)[:5])
    assert chat(server)[-1].said in FAREWELLS
    assert any(line.is_team_only for line in chat(server))


def test_players_of_a_plugin_match_say_once_a_map_that_they_are_ready() -> None:
    server = VisitedServer()
    server.fill()
    server.wait(20)
    assert [line.said for line in chat(server)] == [".ready"] * 10
    server.visitors.expect(TEAM1, TEAM2)
    server.visitors.warmup_began()
    server.wait(60)
    assert len(chat(server)) == 10
    server.change_map()
    server.wait(60)
    assert len(chat(server)) == 20


def test_those_already_here_are_ready_for_a_match_that_names_them() -> None:
    server = VisitedServer()
    server.set(sim_players=",".join(str(account) for account, _ in TEAM1 + TEAM2))
    server.visitors.expect_anybody()
    server.wait(75)
    assert chat(server) == []
    server.fill()
    assert len(chat(server)) == 10


def test_nobody_is_ready_for_a_match_that_is_under_way() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    while len(server.arena.playing) < 3:
        server.wait(0.1)
    server.go_live()
    server.wait(75)
    assert all(line.said != ".ready" for line in chat(server))


def test_whoever_went_is_not_ready() -> None:
    server = VisitedServer()
    server.visitors.expect(TEAM1, TEAM2)
    while not server.arena.playing:
        server.wait(0.1)
    player = server.arena.playing[0]
    server.door.leave(player, "NETWORK_DISCONNECT_DISCONNECT_BY_USER")
    server.wait(75)
    assert len(chat(server)) == 9


def test_an_empty_server_is_silent() -> None:
    server = VisitedServer()
    server.go_live()
    for number in range(1, 9):
        server.play_round(number)
    server.visitors.map_ended()
    server.wait(60)
    assert server.log.lines == []


def test_people_chat_in_a_deathmatch_until_it_is_over() -> None:
    server = VisitedServer(mode=(1, 2))
    server.visitors.expect_anybody()
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


def test_nothing_said_by_the_way_is_a_command() -> None:
    for text in (*GREETINGS, *FAREWELLS, *REMARKS, *PLANS):
        assert text[0] not in ".!/"
        assert '"' not in text


def test_people_greet_once_though_a_match_is_started_several_times() -> None:
    plain, other = VisitedServer(), VisitedServer()
    for server, starts in ((plain, 1), (other, 3)):
        server.visitors.expect_anybody()
        server.wait(75)
        for _ in range(starts):
            server.go_live()
            server.wait(0.5)
        server.wait(30)
    assert [line.text() for line in chat(other)] == [line.text() for line in chat(plain)] != []
