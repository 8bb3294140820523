"""Tests of the plugin's console commands."""

from __future__ import annotations

from cs2_simulator.plugin.series import PluginStage
from simulator_tests.plugin.plugin_harness import PluginHarness, match


def playing() -> PluginHarness:
    harness = PluginHarness()
    harness.load(match())
    harness.enter_all()
    harness.rcon("css_start")
    return harness


def test_restore_loads_the_backup_of_a_round() -> None:
    harness = playing()
    assert harness.rcon("css_restore 1") == ""
    assert harness.game.restored_files == ["matchzy_27_0_round01.txt"]


def test_restore_needs_a_live_match(harness: PluginHarness) -> None:
    assert harness.rcon("css_restore 1") == ""
    assert harness.game.restored_files == []


def test_invalid_restore_is_explained() -> None:
    harness = playing()
    assert "Usage" in harness.rcon("css_restore")
    assert "Invalid value" in harness.rcon("css_restore -1")
    assert "matchzy_27_0_round09.txt does not exist" in harness.rcon("css_restore 9")


def test_backup_is_loaded_by_either_file_extension() -> None:
    harness = playing()
    harness.rcon("matchzy_loadbackup matchzy_27_0_round01.json")
    harness.rcon("matchzy_loadbackup matchzy_27_0_round00.txt")
    assert harness.game.restored_files == ["matchzy_27_0_round01.txt", "matchzy_27_0_round00.txt"]
    assert "does not exist" in PluginHarness().rcon("matchzy_loadbackup x.json")


def test_admin_pauses_and_unpauses() -> None:
    harness = playing()
    assert "paused the match" in harness.rcon("css_forcepause")
    assert '"paused":true' in harness.rcon("get5_status")
    assert "already paused" in harness.rcon("css_fp")
    assert "unpaused" in harness.rcon("css_forceunpause")
    assert harness.rcon("css_fup") == ""


def test_match_can_be_paused_only_between_its_start_and_end(harness: PluginHarness) -> None:
    assert harness.rcon("css_forcepause") == ""
    harness = playing()
    harness.play_map(4, 0)
    assert "after the game has ended" in harness.rcon("css_forcepause")


def test_plugin_settings_are_stored(harness: PluginHarness) -> None:
    assert harness.rcon("matchzy_demo_path") == "matchzy_demo_path = MatchZy/\n"
    assert harness.rcon("matchzy_demo_path demos/") == ""
    assert harness.rcon("matchzy_demo_path") == "matchzy_demo_path = demos/\n"


def test_restart_command_unloads_the_match() -> None:
    harness = playing()
    harness.rcon("css_rr")
    assert harness.stage() is PluginStage.NONE
