"""Tests of the ready state of players and the start of the match."""

from __future__ import annotations

from cs2_simulator.plugin.series import PluginStage
from simulator_tests.plugin.plugin_harness import PluginHarness, match


def with_full_teams(team_size: int = 2, **changes: object) -> PluginHarness:
    harness = PluginHarness()
    harness.load(match(team_size, **changes))  # type: ignore[arg-type]
    harness.enter_all(team_size)
    return harness


def test_match_starts_when_the_last_player_is_ready() -> None:
    harness = with_full_teams()
    for player in harness.arena.players[:-1]:
        harness.door.say(player, ".ready")
    assert harness.stage() is PluginStage.WARMUP
    harness.door.say(harness.arena.players[-1], "!R")
    assert harness.stage() is PluginStage.LIVE


def test_unready_cancels_ready() -> None:
    harness = with_full_teams()
    first, *others = harness.arena.players
    harness.door.say(first, ".ready")
    harness.door.say(first, ".unready")
    for player in others:
        harness.door.say(player, ".ready")
    assert harness.stage() is PluginStage.WARMUP


def test_ready_state_is_removed_when_a_player_leaves() -> None:
    harness = with_full_teams(1)
    first, second = harness.arena.players
    harness.door.say(first, ".ready")
    harness.door.leave(first, "NETWORK_DISCONNECT_EXITING")
    harness.enter(1)
    harness.door.say(second, ".ready")
    assert harness.stage() is PluginStage.WARMUP


def test_player_who_joins_a_live_match_is_ready(harness: PluginHarness) -> None:
    harness.load(match())
    harness.rcon("css_start")
    harness.enter_all()
    assert '"ready":true' in harness.rcon("get5_status")
