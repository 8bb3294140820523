"""The plugin's console commands."""

from __future__ import annotations

from matchpod.simulator.plugin.status import Stage

from .stand import Stand, id64, match


def playing() -> Stand:
    stand = Stand()
    stand.load(match())
    stand.enter_all()
    stand.rcon("css_start")
    return stand


def test_match_cannot_be_loaded_from_a_file() -> None:
    assert "does not exist" in Stand().rcon("matchzy_loadmatch match.json")


def test_restore_goes_back_to_the_start_of_a_round() -> None:
    stand = playing()
    assert stand.rcon("css_restore 1") == ""
    assert stand.game.restored == ["matchzy_27_0_round01.txt"]


def test_restore_needs_a_match_that_is_played() -> None:
    stand = Stand()
    assert stand.rcon("css_restore 1") == ""
    assert stand.game.restored == []


def test_restore_explains_what_it_cannot_do() -> None:
    stand = playing()
    assert "Usage" in stand.rcon("css_restore")
    assert "Invalid value" in stand.rcon("css_restore -1")
    assert "matchzy_27_0_round09.txt does not exist" in stand.rcon("css_restore 9")


def test_restored_match_goes_on_at_once_where_the_plugin_is_told_so() -> None:
    stand = playing()
    stand.rcon("matchzy_pause_after_restore 0")
    stand.rcon("css_restore 0")
    assert "mp_pause_match" not in stand.console.executed


def test_backup_is_loaded_by_either_name_of_its_file() -> None:
    stand = playing()
    stand.rcon("matchzy_loadbackup matchzy_27_0_round01.json")
    stand.rcon("matchzy_loadbackup matchzy_27_0_round00.txt")
    assert stand.game.restored == ["matchzy_27_0_round01.txt", "matchzy_27_0_round00.txt"]
    assert "does not exist" in Stand().rcon("matchzy_loadbackup x.json")


def test_backups_are_listed_by_match() -> None:
    stand = playing()
    files = [line.rpartition(" ")[2] for line in stand.rcon("matchzy_listbackups 27").splitlines()]
    assert files == ["matchzy_27_0_round01.txt", "matchzy_27_0_round00.txt"]
    assert "No backups" in stand.rcon("matchzy_listbackups 28")
    assert "Usage" in stand.rcon("matchzy_listbackups")


def test_admin_pauses_and_goes_on() -> None:
    stand = playing()
    assert "paused the match" in stand.rcon("css_forcepause")
    assert '"paused":true' in stand.rcon("get5_status")
    assert "already paused" in stand.rcon("css_fp")
    assert "unpaused" in stand.rcon("css_forceunpause")
    assert stand.rcon("css_fup") == ""


def test_pause_needs_a_match_that_is_played() -> None:
    stand = Stand()
    assert stand.rcon("css_forcepause") == ""
    stand = playing()
    stand.play_map(4, 0)
    assert "after the game has ended" in stand.rcon("css_forcepause")


def test_map_is_changed_before_the_match_only() -> None:
    stand = Stand()
    assert stand.rcon("css_map") == ""
    stand.rcon("css_map nuke")
    assert stand.arena.map_name == "de_nuke"
    stand.rcon("css_map 3070284539")
    assert stand.arena.map_name == "3070284539"
    assert "once the match is started" in playing().rcon("css_map nuke")


def test_number_of_ready_players_is_asked_and_set() -> None:
    stand = Stand()
    assert "Required: 2. Usage" in stand.rcon("css_readyrequired")
    assert "set to: 0" in stand.rcon("css_readyrequired 0")
    assert "Invalid" in stand.rcon("css_readyrequired 33")
    assert stand.rcon("matchzy_minimum_ready_required") == "matchzy_minimum_ready_required = 0\n"


def test_player_is_added_and_may_come() -> None:
    stand = Stand()
    stand.load(match())
    assert stand.rcon(f'matchzy_addplayer {id64(7)} team2 "Sub"') == "Player Sub added to team2 successfully!\n"
    player = stand.enter(7)
    assert player is not None
    assert player.team == "TERRORIST"
    assert "Failed" in stand.rcon(f"matchzy_addplayer {id64(7)} team1")
    assert Stand().rcon(f"matchzy_addplayer {id64(7)} team1") == "No match is setup!\n"


def test_player_is_added_to_a_known_team_only() -> None:
    stand = Stand()
    stand.load(match())
    assert stand.rcon(f"matchzy_addplayer {id64(7)} team3") == "Unknown team: must be one of team1, team2, spec\n"
    assert stand.rcon(f"matchzy_addplayer {id64(7)}").startswith("Usage: ")
    assert stand.enter(7) is None


def test_removed_player_is_kicked_and_stays_out() -> None:
    stand = Stand()
    stand.load(match())
    blue, red = stand.enter_all()
    assert stand.rcon(f"matchzy_removeplayer {id64(1)}") == f"Successfully removed player {id64(1)}\n"
    assert stand.arena.players == [red]
    assert stand.enter(1) is None
    assert "not found" in stand.rcon(f"get5_removeplayer {id64(1)}")
    assert stand.rcon("get5_removeplayer").startswith("Invalid Steam64\nPlayer 0 not found")
    assert Stand().rcon(f"get5_removeplayer {id64(1)}") == "No match is setup!\n"
    assert blue not in stand.arena.players


def test_settings_are_remembered() -> None:
    stand = Stand()
    assert stand.rcon("matchzy_demo_path") == "matchzy_demo_path = MatchZy/\n"
    assert stand.rcon("matchzy_demo_path demos/") == ""
    assert stand.rcon("matchzy_demo_path") == "matchzy_demo_path = demos/\n"


def test_setting_that_is_no_number_is_as_it_was() -> None:
    stand = Stand()
    stand.rcon("matchzy_minimum_ready_required many")
    assert stand.course.least_ready == 2


def test_events_address_must_be_one() -> None:
    stand = Stand()
    stand.rcon("matchzy_remote_log_url nowhere")
    assert stand.course.post.url == ""


def test_blank_header_leaves_the_one_that_is_set() -> None:
    stand = Stand()
    stand.load(match())
    stand.rcon("matchzy_remote_log_header_key")
    stand.rcon("matchzy_remote_log_header_value")
    assert (stand.course.post.header_name, stand.course.post.header_value) == ("X-Token", "secret")


def test_veto_is_skipped_before_the_start_only() -> None:
    assert "cannot be used" in playing().rcon("css_skipveto")
    assert "cancelled" in Stand().rcon("css_sv")


def test_restart_forgets_the_match_too() -> None:
    stand = playing()
    stand.rcon("css_rr")
    assert stand.stage() is Stage.NONE
