"""Test connections: log lines and their order, user ids, and which watchers are notified."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Side
from cs2_simulator.play.door import BY_USER
from cs2_simulator.play.player import Participant, Player
from simulator_tests.play.people.visited_server import VisitedServer, participant

ID = "[U:1:77]"


@pytest.fixture
def server() -> VisitedServer:
    return VisitedServer()


def join(server: VisitedServer, account: int = 77, team: str = "CT") -> Player:
    player = server.door.connect(participant(account))
    assert player is not None
    server.door.validate(player)
    server.door.enter(player)
    server.door.join(player, team)
    return player


def test_joining_player_logs_the_lines_of_a_real_log(server: VisitedServer) -> None:
    player = join(server)
    assert server.log.texts == [
        f'"alice<1><{ID}><>" connected, address "203.0.113.9:27005"',
        f'"alice<1><{ID}><>" STEAM USERID validated',
        f'"alice<1><{ID}><>" entered the game',
        f'"alice<1><{ID}>" switched from team <Unassigned> to <CT>',
    ]
    assert player.is_playing
    assert server.watcher.events == ["connected 1", "entered 1", "joined 1 CT"]


def test_new_player_gets_the_lowest_free_user_id_and_players_are_sorted(server: VisitedServer) -> None:
    players = [join(server, account, "Spectator") for account in (1, 2, 3)]
    server.door.leave(players[1], BY_USER)
    assert join(server, 4).user_id == 2
    assert [player.user_id for player in server.arena.players] == [1, 2, 3]
    assert server.door.find(2) is server.arena.players[1]
    assert server.door.find(9) is None


def test_full_server_rejects_connections(server: VisitedServer) -> None:
    server.door.max_players = 1
    join(server)
    assert server.door.connect(participant(78)) is None
    assert len(server.log.lines) == 4


def test_living_player_dies_when_changing_sides(server: VisitedServer) -> None:
    player = join(server, team="TERRORIST")
    player.is_alive = player.has_bomb = True
    player.position = "-1676 352 -64"
    server.door.join(player, "CT")
    token = f'"alice<1><{ID}><CT>" [-1676 352 -64]'
    assert server.log.texts[4:] == [
        f'"alice<1><{ID}><TERRORIST>" triggered "Dropped_The_Bomb"',
        f'"alice<1><{ID}>" switched from team <TERRORIST> to <CT>',
        f'{token} attacked {token} with "" (damage "1") (damage_armor "0") (health "0") (armor "0") (hitgroup "GENERIC")',
        f'{token} committed suicide with "world"',
    ]
    assert not player.is_alive
    assert not player.has_bomb


def test_leaving_dead_player_logs_a_line_and_an_empty_one_without_an_id(server: VisitedServer) -> None:
    server.set(mp_logdetail_items="1")
    player = join(server)
    server.door.leave(player, BY_USER)
    assert server.log.texts[4:] == [f'"alice<1><{ID}><CT>" disconnected (reason "{BY_USER}")']
    server.wait(0)
    assert server.log.texts[5:] == ['"alice<1><STEAM_ID_PENDING><CT>" left buyzone with [ ]']
    assert server.arena.players == []
    assert not player.is_in_game
    assert server.watcher.events[-1] == f"left 1 {BY_USER}"


def test_leaving_bomb_carrier_drops_the_bomb_and_dies(server: VisitedServer) -> None:
    player = join(server, team="TERRORIST")
    player.is_alive = player.has_bomb = True
    player.position = "344 -92 66"
    server.door.leave(player, BY_USER)
    token = f'"alice<1><{ID}><TERRORIST>"'
    assert server.log.texts[4:] == [
        f'{token} triggered "Dropped_The_Bomb"',
        f'{token} disconnected (reason "{BY_USER}")',
        f'{token} [344 -92 66] committed suicide with "world"',
    ]
    assert not player.is_alive


def test_kick_is_logged_as_the_reason_of_the_disconnect(server: VisitedServer) -> None:
    server.door.kick(join(server))
    assert server.log.texts[4:] == [f'"alice<1><{ID}><CT>" disconnected (reason "NETWORK_DISCONNECT_KICKED")']


def test_bot_that_leaves_has_no_id_no_death_and_no_kept_place(server: VisitedServer) -> None:
    server.set(mp_logdetail_items="1")
    bot = server.door.connect(Participant("Wolf", 0, address="(unknown)"))
    assert bot is not None
    server.door.enter(bot)
    server.door.join(bot, "TERRORIST")
    bot.is_alive = True
    server.door.kick(bot)
    server.wait(0)
    assert server.log.texts[3:] == [
        '"Wolf<1><BOT><TERRORIST>" disconnected (reason "NETWORK_DISCONNECT_KICKED")',
        '"Wolf<1><<none>><TERRORIST>" left buyzone with [ ]',
    ]
    assert server.arena.absent == []


def test_player_who_returns_gets_back_user_id_money_and_team_without_a_switch(server: VisitedServer) -> None:
    join(server, 76)
    player = join(server, team="TERRORIST")
    player.money = 5900
    server.door.leave(player, BY_USER)
    server.wait(1)
    assert join(server, 78).user_id == 3
    server.log.lines.clear()
    returned = join(server, team="TERRORIST")
    assert server.log.texts == [
        f'"alice<2><{ID}><>" connected, address "203.0.113.9:27005"',
        f'"alice<2><{ID}><>" STEAM USERID validated',
        f'"alice<2><{ID}><>" entered the game',
    ]
    assert (returned.money, returned.side, returned.is_alive) == (5900, Side.T, False)
    assert server.watcher.events[-2:] == ["entered 2", "joined 2 TERRORIST"]
    assert server.arena.absent == []


def test_player_who_leaves_alive_dies_and_an_enemy_is_paid(server: VisitedServer) -> None:
    server.set(mp_logmoney="1")
    stays, leaves = join(server, 76), join(server, team="TERRORIST")
    server.arena.book.open(is_free_for_all=False, has_respawns=False)
    server.arena.book.round_started(1, [stays], [leaves])
    stays.is_alive = leaves.is_alive = True
    server.log.lines.clear()
    server.door.leave(leaves, BY_USER)
    assert server.log.texts == [
        f'"alice<2><{ID}><TERRORIST>" disconnected (reason "{BY_USER}")',
        '"alice<2><[U:1:76]><CT>" money change 800+300 = $1100 (tracked)',
        f'"alice<2><{ID}><TERRORIST>" [0 0 0] committed suicide with "world"',
    ]
    assert {tally.player_id: tally.deaths for tally in server.arena.book.tallies()} == {
        stays.person.player_id: 0,
        leaves.person.player_id: 1,
    }


def test_lines_after_a_rename_use_the_new_name(server: VisitedServer) -> None:
    player = join(server)
    server.door.rename(player, "bob")
    server.door.rename(player, "bob")
    server.door.say(player, "hi")
    assert server.log.texts[4:] == [
        f'"alice<1><{ID}><CT>" changed name to "bob"',
        f'"bob<1><{ID}><CT>" say "hi"',
    ]


def test_actions_of_a_player_who_left_are_ignored(server: VisitedServer) -> None:
    player = join(server)
    server.door.leave(player, BY_USER)
    lines = len(server.log.lines)
    server.door.validate(player)
    server.door.enter(player)
    server.door.join(player, "TERRORIST")
    server.door.say(player, "hi")
    server.door.rename(player, "x")
    server.door.leave(player, BY_USER)
    server.door.kick(player)
    assert len(server.log.lines) == lines
