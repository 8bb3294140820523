"""Test the bots that fill up a server."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.play.door import BY_USER
from cs2_simulator.play.people.bots import WARMUP_QUOTAS, Bots
from cs2_simulator.play.player import Player
from simulator_tests.play.flow.played_server import PlayedServer


def server_with_bots(scenario: str = "plugin_missing", seed: str = "1") -> PlayedServer:
    server = PlayedServer({"sim_scenario": scenario, "sim_seed": seed, "bot_quota": "0"})
    Bots(server.arena, server.door)
    server.mark_log()
    return server


def bots_of(server: PlayedServer) -> list[Player]:
    return [player for player in server.arena.players if player.person.is_bot]


def test_quota_is_filled_after_the_first_player() -> None:
    server = server_with_bots()
    server.set({"bot_quota": "4"})
    server.wait(1)
    assert server.arena.players == []
    server.join(101, Side.CT)
    server.wait(1)
    assert sorted(player.team for player in server.arena.playing) == ["CT", "CT", "TERRORIST", "TERRORIST"]
    assert '"Soldier<2><BOT><>" connected, address "(unknown)"' in server.log_texts()


def test_player_replaces_a_bot_of_their_side_in_warmup() -> None:
    server = server_with_bots()
    server.set({"bot_quota": "2"})
    server.join(101, Side.CT)
    server.wait(1)
    server.mark_log()
    server.join(201, Side.T)
    server.wait(1)
    assert bots_of(server) == []
    assert '"Soldier<2><<none>><TERRORIST>" left buyzone with [ ]' in server.log_texts()


def test_bots_of_a_filled_warmup_are_kicked_before_it_ends() -> None:
    server = server_with_bots("warmup_bots", next(seed for seed in map(str, range(50)) if quota_of(seed) == 12))
    server.fill(5)
    server.wait(3)
    assert len(bots_of(server)) == 2
    server.mark_log()
    server.game.end_warmup()
    texts = server.log_texts()
    assert ["disconnected" in text for text in texts[:2]] == [True, True]
    assert texts[2] == 'World triggered "Warmup_End"'
    server.wait(0)
    assert sum("<<none>>" in text for text in server.log_texts()) == 2
    assert server.arena.absent == []
    server.run_until("round 2")
    assert len(server.arena.playing) == 10


def quota_of(seed: str) -> int:
    server = PlayedServer({"sim_seed": seed})
    return server.arena.rng("warmup bots").choice(WARMUP_QUOTAS)


def test_bot_replaces_a_player_who_leaves_a_match_and_goes_when_they_return() -> None:
    server = server_with_bots()
    server.go_live({"mp_maxrounds": "8"})
    server.set({"bot_quota": "4"})
    server.run_until("round 1")
    leaver = server.arena.players_on(Side.T)[0]
    server.door.leave(leaver, BY_USER)
    server.wait(0.1)
    (bot,) = bots_of(server)
    assert (bot.side, bot.is_alive, bot.user_id) == (Side.T, False, 5)
    server.run_until("round 2")
    assert bot.is_alive
    returned = server.door.connect(leaver.person)
    assert returned is not None
    server.door.enter(returned)
    server.mark_log()
    server.run_until("freeze 3")
    assert bots_of(server) == []
    texts = server.log_texts()
    last = texts.index('"Soldier<5><<none>><TERRORIST>" left buyzone with [ ]')
    block = next(number for number, text in enumerate(texts) if text.startswith('"player_5"'))
    assert texts.index("Starting Freeze period") < block < last  # its row is in the block of this tick
    assert returned.is_alive
