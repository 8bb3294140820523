"""Test when warmup begins and ends."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.play.flow.game import GamePhase
from simulator_tests.play.flow.played_server import PlayedServer

START, END = 'World triggered "Warmup_Start"', 'World triggered "Warmup_End"'


def test_warmup_is_announced_two_seconds_after_its_start(server: PlayedServer) -> None:
    server.mark_log()
    server.game.start_warmup()
    server.wait(1.9)
    assert START not in server.world_texts()
    server.wait(0.2)
    assert server.world_texts()[-1] == START


def test_warmup_countdown_starts_when_both_sides_have_players(server: PlayedServer) -> None:
    server.set({"mp_warmuptime": "30"})
    server.join(1, Side.CT)
    server.wait(100)
    server.join(2, Side.T)
    server.wait(29.9)
    assert server.is_in(GamePhase.WARMUP)
    server.wait(0.2)
    assert server.is_in(GamePhase.LIVE)
    assert END in server.world_texts()


def test_nobody_plays_in_a_quiet_warmup(server: PlayedServer) -> None:
    server.set({"mp_warmup_pausetimer": "1", "sim_quiet": "1"})
    server.fill()
    server.wait(60)
    server.mark_log()
    server.wait(600)
    assert server.log_texts() == []
    server.set({"sim_quiet": "0"})
    server.join(301, Side.CT)
    server.wait(60)
    assert server.log_texts() != []


def test_warmup_does_not_end_while_its_timer_is_paused(server: PlayedServer) -> None:
    server.set({"mp_warmuptime": "30", "mp_warmup_pausetimer": "1"})
    server.fill()
    server.wait(600)
    assert server.is_in(GamePhase.WARMUP)
    server.set({"mp_warmup_pausetimer": "0"})
    server.wait(30.1)
    assert server.is_in(GamePhase.LIVE)


def test_free_for_all_countdown_needs_two_players_on_any_side() -> None:
    server = PlayedServer({"game_type": "1", "game_mode": "2"})
    server.set({"mp_teammates_are_enemies": "1", "mp_warmuptime": "10"})
    server.join(1, Side.CT)
    server.wait(60)
    assert server.is_in(GamePhase.WARMUP)
    server.join(2, Side.CT)
    server.wait(10.1)
    assert server.is_in(GamePhase.LIVE)


def test_players_fight_in_warmup_and_nothing_is_counted(server: PlayedServer) -> None:
    server.set({"mp_warmup_pausetimer": "1"})
    server.fill()
    server.wait(120)
    assert [line for line in server.log_texts() if " killed " in line]
    assert server.arena.book.tallies() == []


def test_no_task_is_scheduled_on_an_empty_server(server: PlayedServer) -> None:
    server.fill()
    server.wait(60)
    server.disconnect_all()
    server.wait(10)
    assert server.agenda.next_due_ms() is None
