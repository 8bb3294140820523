"""Tests of the plugin's chat commands."""

from __future__ import annotations

from simulator_tests.plugin.plugin_harness import PluginHarness, match


def playing() -> PluginHarness:
    harness = PluginHarness()
    harness.load(match())
    harness.enter_all()
    harness.rcon("css_start")
    harness.console.executed.clear()
    return harness


def test_pause_ends_once_both_sides_have_asked_to_unpause() -> None:
    harness = playing()
    blue, red = harness.arena.players
    harness.door.say(blue, ".pause")
    harness.door.say(red, ".tech")
    harness.door.say(blue, ".unpause")
    harness.door.say(blue, ".unpause")
    assert harness.console.executed == ["mp_pause_match"]
    harness.door.say(red, ".up")
    assert harness.console.executed == ["mp_pause_match", "mp_unpause_match"]


def test_players_cannot_end_the_pause_of_an_admin() -> None:
    harness = playing()
    harness.rcon("css_forcepause")
    for player in harness.arena.players:
        harness.door.say(player, ".unpause")
    assert "mp_unpause_match" not in harness.console.executed


def test_timeout_is_for_the_side_of_the_player() -> None:
    harness = playing()
    blue, red = harness.arena.players
    harness.door.say(blue, ".tac")
    harness.door.say(red, ".tac")
    assert harness.console.executed == ["timeout_ct_start", "timeout_terrorist_start"]


def test_wish_to_unpause_ends_with_the_pause() -> None:
    harness = playing()
    blue, red = harness.arena.players
    harness.door.say(blue, ".pause")
    harness.door.say(blue, ".unpause")
    harness.rcon("css_forceunpause")
    harness.door.say(red, ".pause")
    harness.door.say(red, ".unpause")
    assert harness.console.executed[-1] == "mp_pause_match"


def test_timeout_cannot_be_called_while_the_match_is_paused() -> None:
    harness = playing()
    blue, red = harness.arena.players
    harness.door.say(blue, ".pause")
    harness.door.say(red, ".tac")
    assert harness.console.executed == ["mp_pause_match"]


def test_match_commands_do_nothing_before_the_match_is_live(harness: PluginHarness) -> None:
    harness.load(match(2))
    harness.enter_all()
    harness.console.executed.clear()
    for command in (".pause", ".unpause", ".tac", ".stay"):
        harness.door.say(harness.arena.players[0], command)
    assert harness.console.executed == []


def test_players_unpause_after_a_restored_round() -> None:
    harness = playing()
    harness.rcon("css_restore 0")
    assert harness.console.executed[-1] == "mp_pause_match"
    harness.wait(11)
    assert harness.console.executed[-1] == "mp_unpause_match"


def test_players_leave_the_end_of_the_pause_to_an_admin_if_told_so() -> None:
    harness = playing()
    harness.variables.set("sim_unpause", "0")
    harness.rcon("css_restore 0")
    harness.wait(60)
    assert harness.course.paused_by
