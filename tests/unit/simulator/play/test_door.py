"""The door: lines and their order, numbers, who is told."""

from __future__ import annotations

import pytest

from matchpod.core.model import Side
from matchpod.cs2.log_lines.reader import LineReader, format_http_line
from matchpod.simulator.play.door import BY_USER
from matchpod.simulator.play.player import Player
from tests.unit.simulator.play.people.visited_server import VisitedServer, somebody

ID = "[U:1:77]"


@pytest.fixture
def server() -> VisitedServer:
    return VisitedServer()


def come(server: VisitedServer, account: int = 77, team: str = "CT") -> Player:
    player = server.door.connect(somebody(account))
    assert player is not None
    server.door.validate(player)
    server.door.enter(player)
    server.door.join(player, team)
    return player


def test_somebody_who_comes_prints_the_lines_of_a_real_log(server: VisitedServer) -> None:
    player = come(server)
    assert server.log.texts == [
        f'"somebody<1><{ID}><>" connected, address "203.0.113.9:27005"',
        f'"somebody<1><{ID}><>" STEAM USERID validated',
        f'"somebody<1><{ID}><>" entered the game',
        f'"somebody<1><{ID}>" switched from team <Unassigned> to <CT>',
    ]
    assert player.is_playing
    assert server.notes.heard == ["connected 1", "entered 1", "joined 1 CT"]


def test_a_connection_knows_when_it_began(server: VisitedServer) -> None:
    server.wait(3)
    assert come(server).connected_at_ms == server.agenda.now_ms


def test_the_lowest_free_number_is_given_and_players_stand_in_their_order(server: VisitedServer) -> None:
    players = [come(server, account) for account in (1, 2, 3)]
    server.door.leave(players[1], BY_USER)
    assert come(server, 4).user_id == 2
    assert [player.user_id for player in server.arena.players] == [1, 2, 3]
    assert server.door.find(2) is server.arena.players[1]
    assert server.door.find(9) is None


def test_a_full_server_takes_nobody(server: VisitedServer) -> None:
    server.door.seats = 1
    come(server)
    assert server.door.connect(somebody(78)) is None
    assert len(server.log.lines) == 4


def test_the_plugin_says_which_team_he_takes(server: VisitedServer) -> None:
    server.arena.team_of = lambda _player: "TERRORIST"
    assert come(server).side is Side.T


def test_taking_the_same_team_again_is_nothing(server: VisitedServer) -> None:
    player = come(server)
    server.door.join(player, "CT")
    assert len(server.log.lines) == 4


def test_a_living_player_dies_of_a_change_of_sides(server: VisitedServer) -> None:
    player = come(server, team="TERRORIST")
    player.is_alive = player.has_bomb = True
    player.position = "-1676 352 -64"
    server.door.join(player, "CT")
    token = f'"somebody<1><{ID}><CT>" [-1676 352 -64]'
    assert server.log.texts[4:] == [
        f'"somebody<1><{ID}><TERRORIST>" triggered "Dropped_The_Bomb"',
        f'"somebody<1><{ID}>" switched from team <TERRORIST> to <CT>',
        f'{token} attacked {token} with "" (damage "1") (damage_armor "0") (health "0") (armor "0") (hitgroup "GENERIC")',
        f'{token} committed suicide with "world"',
    ]
    assert not player.is_alive
    assert not player.has_bomb


def test_a_dead_player_who_leaves_prints_one_line(server: VisitedServer) -> None:
    player = come(server)
    server.door.leave(player, BY_USER)
    assert server.log.texts[4:] == [f'"somebody<1><{ID}><CT>" disconnected (reason "{BY_USER}")']
    assert server.arena.players == []
    assert not player.is_in_game
    assert server.notes.heard[-1] == f"left 1 {BY_USER}"


def test_a_living_carrier_who_leaves_drops_the_bomb_and_dies(server: VisitedServer) -> None:
    player = come(server, team="TERRORIST")
    player.is_alive = player.has_bomb = True
    player.position = "344 -92 66"
    server.door.leave(player, BY_USER)
    token = f'"somebody<1><{ID}><TERRORIST>"'
    assert server.log.texts[4:] == [
        f'{token} triggered "Dropped_The_Bomb"',
        f'{token} disconnected (reason "{BY_USER}")',
        f'{token} [344 -92 66] committed suicide with "world"',
    ]
    assert not player.is_alive


def test_leaving_a_side_is_told_to_the_book(server: VisitedServer) -> None:
    stays, leaves = come(server, 1), come(server, 2)
    changes = come(server, 3)
    server.arena.book.open(is_free_for_all=False, has_respawns=False)
    server.arena.book.round_started(1, [stays, leaves, changes], [])
    server.door.leave(leaves, BY_USER)
    server.door.join(changes, "Spectator")
    server.arena.book.decided(1, None)
    deaths = {tally.player_id: tally.deaths for tally in server.arena.book.tallies()}
    assert set(deaths.values()) <= {0}


def test_a_kick_is_named_in_the_log(server: VisitedServer) -> None:
    server.door.kick(come(server), "go away")
    assert server.log.texts[4:] == [f'"somebody<1><{ID}><CT>" disconnected (reason "NETWORK_DISCONNECT_KICKED")']


def test_chat_is_written_and_heard(server: VisitedServer) -> None:
    player = come(server)
    server.door.say(player, "hi")
    server.door.say(player, "rush b", is_team_only=True)
    assert server.log.texts[4:] == [f'"somebody<1><{ID}><CT>" say "hi"', f'"somebody<1><{ID}><CT>" say_team "rush b"']
    assert server.notes.heard[-2:] == ["said 1 hi", "said 1 rush b"]


def test_lines_after_a_new_name_use_it(server: VisitedServer) -> None:
    player = come(server)
    server.door.rename(player, "nobody")
    server.door.rename(player, "nobody")
    server.door.say(player, "hi")
    assert server.log.texts[4:] == [
        f'"somebody<1><{ID}><CT>" changed name to "nobody"',
        f'"nobody<1><{ID}><CT>" say "hi"',
    ]


def test_whoever_is_gone_does_nothing_any_more(server: VisitedServer) -> None:
    player = come(server)
    server.door.leave(player, BY_USER)
    lines = len(server.log.lines)
    server.door.validate(player)
    server.door.enter(player)
    server.door.join(player, "TERRORIST")
    server.door.say(player, "hi")
    server.door.rename(player, "x")
    server.door.leave(player, BY_USER)
    server.door.kick(player, "")
    assert len(server.log.lines) == lines


def test_nobody_enters_twice(server: VisitedServer) -> None:
    player = come(server)
    server.door.enter(player)
    assert len(server.log.lines) == 4


def test_watchers_do_not_hear_of_somebody_who_was_just_kicked(server: VisitedServer) -> None:
    server.arena.watchers.insert(0, type(server.notes)(server.door))
    first = server.arena.watchers[0]
    assert isinstance(first, type(server.notes))
    first.kicked_on_connect = [77]
    player = server.door.connect(somebody())
    assert player is not None
    assert player not in server.arena.players
    assert server.notes.heard == ["left 1 NETWORK_DISCONNECT_KICKED"]


def test_every_line_of_the_door_is_read_back_as_it_was_meant(server: VisitedServer) -> None:
    player = come(server)
    server.door.say(player, 'a "quoted" word')
    server.door.rename(player, "<other>")
    player.is_alive = True
    server.door.join(player, "TERRORIST")
    server.door.leave(player, BY_USER)
    reader = LineReader()
    for at_ms, line in server.log.lines:
        assert reader.read(format_http_line(at_ms, line).encode())[1] == line


def test_a_death_by_a_change_of_teams_is_told_to_the_book(server: VisitedServer) -> None:
    players = [come(server), come(server, 78)]
    server.arena.book.open(is_free_for_all=False, has_respawns=False)
    server.arena.book.round_started(1, players, [])
    for player, team in zip(players, ("TERRORIST", "Spectator"), strict=True):
        player.is_alive = True
        server.door.join(player, team)
    assert [tally.deaths for tally in server.arena.book.tallies()] == [1, 1]
