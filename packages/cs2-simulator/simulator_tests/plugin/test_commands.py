"""Tests of the plugin's console commands."""

from __future__ import annotations

from cs2_simulator.plugin.series import PluginStage
from simulator_tests.plugin.plugin_harness import PluginHarness, id64, match


def playing() -> PluginHarness:
    harness = PluginHarness()
    harness.load(match())
    harness.enter_all()
    harness.rcon("css_start")
    return harness


def test_match_cannot_be_loaded_from_a_file() -> None:
    assert "does not exist" in PluginHarness().rcon("matchzy_loadmatch match.json")


def test_restore_loads_the_backup_of_a_round() -> None:
    harness = playing()
    assert harness.rcon("css_restore 1") == ""
    assert harness.game.restored == ["matchzy_27_0_round01.txt"]


def test_restore_needs_a_live_match(harness: PluginHarness) -> None:
    assert harness.rcon("css_restore 1") == ""
    assert harness.game.restored == []


def test_invalid_restore_is_explained() -> None:
    harness = playing()
    assert "Usage" in harness.rcon("css_restore")
    assert "Invalid value" in harness.rcon("css_restore -1")
    assert "matchzy_27_0_round09.txt does not exist" in harness.rcon("css_restore 9")


def test_match_is_not_paused_after_a_restore_if_disabled() -> None:
    harness = playing()
    harness.rcon("matchzy_pause_after_restore 0")
    harness.rcon("css_restore 0")
    assert "mp_pause_match" not in harness.console.executed


def test_backup_is_loaded_by_either_file_extension() -> None:
    harness = playing()
    harness.rcon("matchzy_loadbackup matchzy_27_0_round01.json")
    harness.rcon("matchzy_loadbackup matchzy_27_0_round00.txt")
    assert harness.game.restored == ["matchzy_27_0_round01.txt", "matchzy_27_0_round00.txt"]
    assert "does not exist" in PluginHarness().rcon("matchzy_loadbackup x.json")


def test_backups_are_listed_by_match() -> None:
    harness = playing()
    files = [line.rpartition(" ")[2] for line in harness.rcon("matchzy_listbackups 27").splitlines()]
    assert files == ["matchzy_27_0_round01.txt", "matchzy_27_0_round00.txt"]
    assert "No backups" in harness.rcon("matchzy_listbackups 28")
    assert "Usage" in harness.rcon("matchzy_listbackups")


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


def test_map_can_be_changed_only_before_the_match(harness: PluginHarness) -> None:
    assert harness.rcon("css_map") == ""
    harness.rcon("css_map nuke")
    assert harness.arena.map_name == "de_nuke"
    harness.rcon("css_map 3070284539")
    assert harness.arena.map_name == "3070284539"
    assert "once the match is started" in playing().rcon("css_map nuke")


def test_required_ready_players_are_printed_and_set(harness: PluginHarness) -> None:
    assert "Required: 2. Usage" in harness.rcon("css_readyrequired")
    assert "set to: 0" in harness.rcon("css_readyrequired 0")
    assert "Invalid" in harness.rcon("css_readyrequired 33")
    assert harness.rcon("matchzy_minimum_ready_required") == "matchzy_minimum_ready_required = 0\n"


def test_added_player_may_join() -> None:
    harness = PluginHarness()
    harness.load(match())
    assert harness.rcon(f'matchzy_addplayer {id64(7)} team2 "Sub"') == "Player Sub added to team2 successfully!\n"
    player = harness.enter(7)
    assert player is not None
    assert player.team == "TERRORIST"
    assert "Failed" in harness.rcon(f"matchzy_addplayer {id64(7)} team1")
    assert PluginHarness().rcon(f"matchzy_addplayer {id64(7)} team1") == "No match is setup!\n"


def test_player_is_not_added_to_an_unknown_team(harness: PluginHarness) -> None:
    harness.load(match())
    assert harness.rcon(f"matchzy_addplayer {id64(7)} team3") == "Unknown team: must be one of team1, team2, spec\n"
    assert harness.rcon(f"matchzy_addplayer {id64(7)}").startswith("Usage: ")
    assert harness.enter(7) is None


def test_removed_player_is_kicked_and_cannot_rejoin() -> None:
    harness = PluginHarness()
    harness.load(match())
    blue, red = harness.enter_all()
    assert harness.rcon(f"matchzy_removeplayer {id64(1)}") == f"Successfully removed player {id64(1)}\n"
    assert harness.arena.players == [red]
    assert harness.enter(1) is None
    assert "not found" in harness.rcon(f"get5_removeplayer {id64(1)}")
    assert harness.rcon("get5_removeplayer").startswith("Invalid Steam64\nPlayer 0 not found")
    assert PluginHarness().rcon(f"get5_removeplayer {id64(1)}") == "No match is setup!\n"
    assert blue not in harness.arena.players


def test_plugin_settings_are_stored(harness: PluginHarness) -> None:
    assert harness.rcon("matchzy_demo_path") == "matchzy_demo_path = MatchZy/\n"
    assert harness.rcon("matchzy_demo_path demos/") == ""
    assert harness.rcon("matchzy_demo_path") == "matchzy_demo_path = demos/\n"


def test_setting_that_is_not_a_number_falls_back_to_the_default(harness: PluginHarness) -> None:
    harness.rcon("matchzy_minimum_ready_required many")
    assert harness.course.min_ready == 2


def test_invalid_events_url_is_ignored(harness: PluginHarness) -> None:
    harness.rcon("matchzy_remote_log_url nowhere")
    assert harness.course.report_sender.url == ""


def test_empty_header_does_not_replace_the_current_one(harness: PluginHarness) -> None:
    harness.load(match())
    harness.rcon("matchzy_remote_log_header_key")
    harness.rcon("matchzy_remote_log_header_value")
    assert (harness.course.report_sender.header_name, harness.course.report_sender.header_value) == (
        "X-Token",
        "secret",
    )


def test_veto_can_be_skipped_only_before_the_start() -> None:
    assert "cannot be used" in playing().rcon("css_skipveto")
    assert "cancelled" in PluginHarness().rcon("css_sv")


def test_restart_command_unloads_the_match() -> None:
    harness = playing()
    harness.rcon("css_rr")
    assert harness.stage() is PluginStage.NONE
