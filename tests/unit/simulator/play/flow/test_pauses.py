"""Pauses hold freeze time."""

from __future__ import annotations

from .played_server import PlayedServer

ENABLED = "Match pause is enabled - "
DISABLED = "Match pause is disabled - "


def live() -> PlayedServer:
    server = PlayedServer()
    server.go_live({"mp_freezetime": "15"})
    server.start_listening()
    return server


def test_pause_in_freeze_time_holds_it_and_then_it_lasts_its_full_length() -> None:
    server = live()
    server.wait(10)
    server.game.pause("mp_pause_match")
    server.wait(100)
    assert server.game.is_paused
    server.game.unpause("mp_unpause_match")
    server.wait(14)
    assert 'World triggered "Round_Start"' not in server.world()
    server.wait(1.1)
    assert server.world()[:3] == [
        f"{ENABLED}mp_pause_match",
        f"{DISABLED}mp_unpause_match",
        'World triggered "Round_Start"',
    ]


def test_pause_in_a_round_takes_hold_at_the_next_freeze_time() -> None:
    server = live()
    server.until("round 1")
    server.game.pause("mp_pause_match")
    server.until("freeze 2")
    server.wait(60)
    assert server.watcher.notes[-1] == "freeze 2"
    server.game.unpause("mp_unpause_match")
    server.until("round 2")


def test_second_pause_and_a_needless_unpause_say_nothing() -> None:
    server = live()
    server.game.unpause("mp_unpause_match")
    server.game.pause("mp_pause_match")
    server.game.pause("mp_pause_match")
    assert server.world() == [f"{ENABLED}mp_pause_match"]


def test_timeout_ends_by_itself() -> None:
    server = live()
    server.set({"mp_team_timeout_time": "30"})
    server.game.pause("TimeOutTs")
    server.wait(29)
    assert server.game.is_paused
    server.wait(1.1)
    assert server.world() == [f"{ENABLED}TimeOutTs", f"{DISABLED}TimeOutTs"]
    server.until("round 1")


def test_timeout_called_in_a_round_runs_in_the_next_freeze_time() -> None:
    server = live()
    server.until("round 1")
    server.game.pause("TimeOutCTs")
    server.until("freeze 2")
    server.wait(59)
    assert server.game.is_paused
    server.wait(1.1)
    assert not server.game.is_paused


def test_pause_and_timeout_hold_each_by_itself() -> None:
    server = live()
    server.game.pause("TimeOutTs")
    server.game.pause("mp_pause_match")
    server.wait(120)
    assert server.game.is_paused
    server.game.unpause("mp_unpause_match")
    assert not server.game.is_paused


def test_there_are_no_timeouts_in_warmup() -> None:
    server = PlayedServer()
    server.game.pause("TimeOutTs")
    assert not server.game.is_paused


def test_map_load_forgets_pauses_without_a_word() -> None:
    server = live()
    server.game.pause("TimeOutTs")
    server.game.load_map("de_nuke")
    server.wait(120)
    assert not server.game.is_paused
    assert not [line for _, line in server.log.lines if line.text().startswith(DISABLED)]
