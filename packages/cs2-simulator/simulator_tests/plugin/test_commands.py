"""Tests of the plugin's console commands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cs2_protocol.game import Side
from cs2_simulator.plugin.series import PluginStage
from simulator_tests.plugin.plugin_harness import PluginHarness, id64, match


def playing() -> PluginHarness:
    harness = PluginHarness()
    harness.load(match())
    harness.enter_all()
    harness.rcon("css_start")
    return harness


def halftime() -> PluginHarness:
    harness = playing()
    harness.game.is_halftime = True
    return harness


def map_over() -> PluginHarness:
    harness = playing()
    harness.play_map(2, 2)
    return harness


def timeout() -> PluginHarness:
    harness = playing()
    harness.game.is_timeout_running = True
    return harness


HALFTIME = "You cannot use this command during halftime."
MAP_OVER = "You cannot use this command after the game has ended."
TIMEOUT = "You cannot use this command when tactical timeout is active."


def reply(text: str) -> str:
    return f"[\x04MatchZy\x01] {text}\n"


def test_restore_pauses_the_match_and_then_loads_the_backup_of_a_round() -> None:
    harness = playing()
    harness.play_round(Side.CT)
    assert harness.rcon("css_restore 1") == ""
    harness.wait(0.1)
    assert harness.game.restored_files == ["matchzy_27_0_round01.txt"]
    paused, loaded = "mp_pause_match", "mp_backup_restore_load_file matchzy_27_0_round01.txt"
    assert harness.console.executed.index(paused) < harness.console.executed.index(loaded)


@pytest.mark.parametrize(
    ("moment", "text"),
    [(halftime, "You cannot load a backup during halftime."), (map_over, MAP_OVER), (timeout, TIMEOUT)],
)
def test_restore_is_refused_while_it_is_not_possible(moment: Callable[[], PluginHarness], text: str) -> None:
    harness = moment()
    assert harness.rcon("css_restore 0") == reply(text)
    harness.wait(1)
    assert harness.game.restored_files == []
    assert harness.course.paused_by == ""


def test_restore_after_the_end_of_the_series_does_nothing() -> None:
    harness = playing()
    harness.play_map(4, 0)
    assert harness.rcon("css_restore 0") == ""


def test_restore_brings_back_who_was_on_the_lists() -> None:
    harness = playing()
    harness.rcon(f'matchzy_addplayer {id64(2)} team1 ""')
    harness.rcon(f"matchzy_removeplayer {id64(1)}")
    harness.play_round(Side.CT)
    assert harness.enter(1) is None
    harness.rcon("css_restore 0")
    assert harness.enter(2) is None
    assert harness.enter(1)
    harness.rcon("css_restore 1")
    assert harness.enter(2)


def test_restore_needs_a_live_match(harness: PluginHarness) -> None:
    assert harness.rcon("css_restore 1") == ""
    assert harness.game.restored_files == []


def test_invalid_restore_is_explained() -> None:
    harness = playing()
    assert "Usage" in harness.rcon("css_restore")
    assert "Invalid value" in harness.rcon("css_restore -1")
    assert "matchzy_27_0_round09.json does not exist" in harness.rcon("css_restore 9")


def test_backup_is_loaded_by_the_name_of_the_file_of_the_plugin() -> None:
    harness = playing()
    harness.rcon("matchzy_loadbackup matchzy_27_0_round00.json")
    harness.wait(1)
    assert harness.game.restored_files == ["matchzy_27_0_round00.txt"]
    assert "does not exist" in harness.rcon("matchzy_loadbackup matchzy_27_0_round00.txt")
    assert "does not exist" in PluginHarness().rcon("matchzy_loadbackup x.json")


def test_admin_pauses_and_unpauses() -> None:
    harness = playing()
    assert "paused the match" in harness.rcon("css_forcepause")
    assert '"paused":true' in harness.rcon("get5_status")
    assert "already paused" in harness.rcon("css_fp")
    assert "unpaused" in harness.rcon("css_forceunpause")
    assert harness.rcon("css_fup") == ""


def test_match_cannot_be_paused_before_its_start(harness: PluginHarness) -> None:
    assert harness.rcon("css_forcepause") == ""
    harness.load(match())
    assert harness.rcon("css_forcepause") == ""
    assert not harness.course.paused_by


@pytest.mark.parametrize(("moment", "text"), [(halftime, HALFTIME), (map_over, MAP_OVER), (timeout, TIMEOUT)])
def test_pause_is_refused_while_it_is_not_possible(moment: Callable[[], PluginHarness], text: str) -> None:
    harness = moment()
    assert harness.rcon("css_forcepause") == reply(text)
    harness.door.say(harness.arena.players[0], ".pause")
    assert not harness.course.paused_by


def test_console_cannot_pause_as_a_player() -> None:
    harness = playing()
    assert harness.rcon("css_pause") == ""
    harness.rcon("css_forcepause")
    assert harness.rcon("css_pause") == reply("Match is already paused!")
    assert harness.rcon("css_unpause") == ""
    assert harness.course.paused_by


def test_restored_round_turns_the_pause_of_an_admin_into_one_of_the_players() -> None:
    harness = playing()
    harness.rcon("css_forcepause")
    harness.rcon("css_restore 0")
    for player in tuple(harness.arena.players):
        harness.door.say(player, ".unpause")
    assert not harness.course.paused_by


def test_added_player_is_let_in_to_the_list_that_was_named() -> None:
    harness = playing()
    assert harness.enter(2) is None
    answer = harness.rcon(f'matchzy_addplayer {id64(2)} team2 "Ann"')
    assert answer == "Player Ann added to team2 successfully!\n"
    player = harness.enter(2, team="CT")
    assert player is not None
    assert player.team == Side.T
    assert harness.rcon(f"get5_addplayer {id64(3)} spec") == "Player  added to spec successfully!\n"
    caster = harness.enter(3, team="CT")
    assert caster is not None
    assert caster.team == "Spectator"


def test_player_who_cannot_be_added_is_explained() -> None:
    harness = PluginHarness()
    assert harness.rcon(f"matchzy_addplayer {id64(2)} team1") == "No match is setup!\n"
    harness.load(match())
    usage = 'Usage: matchzy_addplayer <steam64> <team> "<name>"\n'
    assert harness.rcon("matchzy_addplayer") == harness.rcon("matchzy_addplayer 5") == usage
    assert harness.rcon("matchzy_addplayer 5 ct Ann") == "Unknown team: must be one of team1, team2, spec\n"
    failed = "They may already be on a team or you provided an invalid Steam ID.\n"
    assert harness.rcon(f"matchzy_addplayer {id64(1)} spec Ann") == f"Failed to add player Ann to spec. {failed}"
    harness.game.is_halftime = True
    later = "Cannot add players during halftime. Please wait until the next round starts.\n"
    assert harness.rcon(f"matchzy_addplayer {id64(2)} team1 Ann") == later
    assert harness.enter(2) is None


def test_removed_player_of_the_first_team_is_kicked_and_stays_out() -> None:
    harness = playing()
    blue = harness.arena.players[0]
    assert harness.rcon(f"matchzy_removeplayer {id64(1)}") == f"Successfully removed player {id64(1)}\n"
    assert blue not in harness.arena.players
    assert harness.enter(1) is None


def test_removed_player_of_the_second_team_may_come_back_as_in_the_real_plugin() -> None:
    harness = playing()
    red = harness.arena.players[1]
    assert harness.rcon(f"matchzy_removeplayer {id64(101)}") == f"Successfully removed player {id64(101)}\n"
    assert red not in harness.arena.players
    assert harness.enter(101)


def test_removal_answers_success_unless_it_is_refused() -> None:
    harness = PluginHarness()
    assert harness.rcon("matchzy_removeplayer 5") == "No match is setup!\n"
    harness.load(match())
    assert harness.rcon(f"matchzy_removeplayer {id64(9)}") == f"Successfully removed player {id64(9)}\n"
    assert harness.rcon("get5_removeplayer Ann") == "Invalid Steam64\nSuccessfully removed player 0\n"
    harness.game.is_halftime = True
    later = "Cannot remove players during halftime. Please wait until the next round starts.\n"
    assert harness.rcon(f"matchzy_removeplayer {id64(1)}") == later


def test_plugin_settings_are_stored(harness: PluginHarness) -> None:
    assert harness.rcon("matchzy_demo_path") == "matchzy_demo_path = MatchZy/\n"
    assert harness.rcon("matchzy_demo_path demos/") == ""
    assert harness.rcon("matchzy_demo_path") == "matchzy_demo_path = demos/\n"


def test_restart_command_unloads_the_match() -> None:
    harness = playing()
    harness.rcon("css_rr")
    assert harness.stage() is PluginStage.NONE
