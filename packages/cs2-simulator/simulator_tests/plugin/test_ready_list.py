"""Tests of the ready state of players and the start of the match."""

from __future__ import annotations

import pytest

from cs2_simulator.play.player import Player
from cs2_simulator.plugin.series import PluginStage
from simulator_tests.plugin.plugin_harness import PluginHarness, id64, match


def with_full_teams(team_size: int = 2, **changes: object) -> PluginHarness:
    harness = PluginHarness()
    harness.load(match(team_size, **changes))  # type: ignore[arg-type]
    harness.enter_all(team_size)
    return harness


def assert_last_starts(harness: PluginHarness, *players: Player, command: str = ".ready") -> None:
    """Play starts when the last of these players has said the command, and not before."""
    for player in players:
        assert harness.stage() is PluginStage.WARMUP
        harness.door.say(player, command)
    assert harness.stage() is PluginStage.LIVE


@pytest.mark.parametrize("command", [".ready", "!R"])
def test_match_starts_when_the_last_player_is_ready(command: str) -> None:
    harness = with_full_teams()
    assert_last_starts(harness, *harness.arena.players, command=command)


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


def test_all_of_a_side_that_is_more_than_complete_must_be_ready() -> None:
    harness = with_full_teams(players_per_team=1)
    assert_last_starts(harness, *harness.arena.players)


def test_coach_counts_like_a_player() -> None:
    harness = with_full_teams(players_per_team=2)
    first, *others = harness.arena.players
    harness.door.say(first, ".coach ct")
    assert_last_starts(harness, *others, first)


def test_players_force_the_start_of_their_side_if_enough_of_them_are_there() -> None:
    harness = with_full_teams(players_per_team=5, min_players_to_ready=2)
    harness.door.leave(harness.arena.players[0], "NETWORK_DISCONNECT_EXITING")
    one, two, three = harness.arena.players
    harness.door.say(one, ".forceready")
    harness.enter(1)
    assert_last_starts(harness, two, three, one, command=".forceready")


def test_start_is_not_forced_if_that_is_forbidden() -> None:
    harness = with_full_teams(min_players_to_ready=1)
    harness.rcon("matchzy_allow_force_ready false")
    for player in harness.arena.players:
        harness.door.say(player, ".forceready")
    assert harness.stage() is PluginStage.WARMUP


def test_match_waits_for_spectators_if_it_needs_them() -> None:
    harness = with_full_teams(1, min_spectators_to_ready=1, spectators={"players": {id64(7): ""}})
    caster = harness.enter(7)
    assert caster is not None
    assert_last_starts(harness, *(player for player in harness.arena.players if player is not caster), caster)


def test_required_number_of_ready_players_is_shown_and_set(harness: PluginHarness) -> None:
    usage = "Usage: !readyrequired <number_of_ready_players_required>\n"
    assert harness.rcon("css_readyrequired").endswith(f"Current Ready Required: 2. {usage}")
    now = "Minimum ready players required to start the match are now set to: 0\n"
    assert harness.rcon("matchzy_minimum_ready_required 0").endswith(now)
    for number in ("-1", "33", "all"):
        assert harness.rcon(f"css_readyrequired {number}").endswith(f"valid non-negative number. {usage}")
    harness.load(match(2))
    assert harness.course.series is not None
    assert harness.course.series.match.min_ready == 0


def test_player_who_joins_a_live_match_is_ready(harness: PluginHarness) -> None:
    harness.load(match())
    harness.rcon("css_start")
    harness.enter_all()
    assert '"ready":true' in harness.rcon("get5_status")
