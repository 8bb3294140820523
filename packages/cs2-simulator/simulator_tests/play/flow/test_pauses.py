"""Test pauses and timeouts."""

from __future__ import annotations

from simulator_tests.play.flow.played_server import PlayedServer

ENABLED = "Match pause is enabled - "
DISABLED = "Match pause is disabled - "


def live() -> PlayedServer:
    server = PlayedServer()
    server.go_live({"mp_freezetime": "15"})
    server.mark_log()
    return server


def test_freeze_time_restarts_with_full_length_after_a_pause() -> None:
    server = live()
    server.wait(10)
    server.game.pause("mp_pause_match")
    server.wait(100)
    assert server.game.is_paused
    server.game.unpause("mp_unpause_match")
    server.wait(14)
    assert 'World triggered "Round_Start"' not in server.world_texts()
    server.wait(1.1)
    assert server.world_texts()[:3] == [
        f"{ENABLED}mp_pause_match",
        f"{DISABLED}mp_unpause_match",
        'World triggered "Round_Start"',
    ]


def test_pause_during_a_round_takes_effect_in_the_next_freeze_time() -> None:
    server = live()
    server.run_until("round 1")
    server.game.pause("mp_pause_match")
    server.run_until("freeze 2")
    server.wait(60)
    assert server.watcher.events[-1] == "freeze 2"
    server.game.unpause("mp_unpause_match")
    server.run_until("round 2")


def test_repeated_pause_and_needless_unpause_are_not_logged() -> None:
    server = live()
    server.game.unpause("mp_unpause_match")
    server.game.pause("mp_pause_match")
    server.game.pause("mp_pause_match")
    assert server.world_texts() == [f"{ENABLED}mp_pause_match"]


def test_timeout_ends_on_its_own() -> None:
    server = live()
    server.set({"mp_team_timeout_time": "30"})
    server.game.pause("TimeOutTs")
    server.wait(29)
    assert server.game.is_paused
    server.wait(1.1)
    assert server.world_texts() == [f"{ENABLED}TimeOutTs", f"{DISABLED}TimeOutTs"]
    server.run_until("round 1")
