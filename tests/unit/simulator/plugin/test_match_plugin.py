"""What the plugin does with a match, from loading it to the end of its series."""

from __future__ import annotations

from matchpod.core.events import RoundEndReason
from matchpod.core.model import Side, Team
from matchpod.cs2 import matchzy
from matchpod.cs2.console_answers import Get5State, parse_get5_status
from matchpod.simulator.outside import Fetched
from matchpod.simulator.play.flow.standing import Phase
from matchpod.simulator.play.player import Person
from matchpod.simulator.plugin.status import Stage

from .stand import EVENTS_URL, MATCH_URL, Stand, id64, match

THREE_MAPS = ("de_dust2", "de_nuke", "de_train")


def live(stand: Stand) -> None:
    stand.rcon("css_start")
    stand.wait(2)


def loaded(**changes: object) -> Stand:
    stand = Stand()
    stand.load(match(**changes))  # type: ignore[arg-type]
    return stand


# --- loading -------------------------------------------------------------------------------------------------------


def test_match_is_fetched_with_the_header_that_was_given() -> None:
    stand = Stand()
    assert stand.rcon(f'get5_loadmatch_url "{MATCH_URL}" "X-Token" "secret"') == ""
    assert stand.world.requests == [(MATCH_URL, {"X-Token": "secret"})]
    assert stand.plugin.has_match


def test_header_without_a_value_is_not_sent() -> None:
    stand = Stand()
    stand.rcon(f'matchzy_loadmatch_url "{MATCH_URL}" "X-Token"')
    assert stand.world.requests == [(MATCH_URL, {})]


def test_loading_announces_the_series() -> None:
    stand = loaded(maps=THREE_MAPS)
    assert stand.world.reports == [matchzy.SeriesStart("27", 3, "Team Blue", "Team Red")]
    url, headers, _ = stand.world.posts[0]
    assert url == EVENTS_URL
    assert headers == {"Content-Type": "application/json; charset=utf-8", "X-Token": "secret"}


def test_loading_executes_the_variables_and_holds_warmup() -> None:
    stand = loaded()
    assert 'mp_maxrounds "6"' in stand.console.executed
    assert stand.variables.is_on("mp_warmup_pausetimer")
    assert stand.variables.text("mp_teamname_1") == "Team Blue"
    assert stand.console.has_plugin_match()


def test_quotes_in_a_value_end_the_command_as_in_the_real_plugin() -> None:
    stand = loaded(cvars={"mp_maxrounds": '6";mp_freezetime "3'})
    assert stand.variables.whole("mp_freezetime") == 3


def test_warmup_overwrites_what_the_match_set_until_play_begins() -> None:
    stand = loaded()
    assert stand.variables.whole("mp_maxrounds") == 24
    live(stand)
    assert stand.variables.whole("mp_maxrounds") == 6


def test_right_map_in_the_right_mode_is_kept() -> None:
    stand = loaded()
    assert stand.arena.map_number == 0


def test_other_map_is_loaded() -> None:
    stand = loaded(maps=("de_nuke",))
    assert (stand.arena.map_name, stand.arena.map_number) == ("de_nuke", 1)
    assert stand.variables.is_on("mp_warmup_pausetimer")


def test_workshop_map_is_loaded_by_its_number() -> None:
    stand = loaded(maps=("3070284539",))
    assert 'host_workshop_map "3070284539"' in stand.console.executed


def test_other_mode_reloads_the_map() -> None:
    stand = loaded(wingman=True)
    assert stand.variables.whole("game_mode") == 2
    assert stand.arena.map_number == 1


def test_second_match_is_refused() -> None:
    stand = loaded()
    answer = stand.rcon(f'matchzy_loadmatch_url "{MATCH_URL}"')
    assert stand.plugin.last_fault == "A match is already setup with id: 27, cannot load a new match!"
    # The colours of the chat are in it: green, and back.
    assert answer == f"[\x04MatchZy\x01] [LoadMatchDataCommand] {stand.plugin.last_fault}\n"
    assert len(stand.world.requests) == 1


def test_address_that_is_none_is_refused() -> None:
    stand = Stand()
    assert "Invalid URL: ftp://h/m" in stand.rcon("matchzy_loadmatch_url ftp://h/m")
    assert stand.world.requests == []


def test_text_that_is_no_json_leaves_the_server_alone() -> None:
    stand = Stand()
    stand.world.match = Fetched(200, b"{")
    stand.load()
    assert stand.console.executed == [f'matchzy_loadmatch_url "{MATCH_URL}"']


def test_server_is_named_after_the_teams() -> None:
    stand = loaded()
    assert stand.variables.text("hostname") == "MatchZy | Team_Blue vs Team_Red"
    stand.rcon("matchzy_hostname_format {TEAM1_SCORE}:{TEAM2_SCORE} {MAP}")
    stand.enter_all()
    stand.rcon("css_start")
    stand.play_round(Side.CT)
    stand.plugin.round_started(2)
    assert stand.variables.text("hostname") == "1:0 de_dust2"


def test_name_of_the_server_is_left_alone_where_no_format_is_set() -> None:
    stand = Stand()
    stand.variables.set("hostname", "ours")
    stand.rcon('matchzy_hostname_format ""')
    stand.load(match())
    assert stand.variables.text("hostname") == "ours"
    stand.rcon("css_endmatch")
    stand.course.name_server()
    assert stand.variables.text("hostname") == "ours"


def test_failed_request_loads_nothing() -> None:
    stand = Stand()
    stand.world.match = Fetched(404)
    stand.load()
    assert stand.plugin.last_fault == "HTTP request failed: 404"
    stand.world.match = Fetched(None, reason="refused")
    stand.load()
    assert stand.plugin.last_fault == "HTTP request failed: refused"
    assert not stand.plugin.has_match


def test_refused_match_leaves_no_trace() -> None:
    stand = loaded(matchid=2**31)
    assert stand.plugin.last_fault == "matchid should be an integer!"
    status = parse_get5_status(stand.rcon("get5_status"))
    assert status is not None
    assert status.state is Get5State.NONE
    assert stand.world.posts == []


def test_events_address_set_before_loading_is_lost() -> None:
    stand = Stand()
    stand.rcon("matchzy_remote_log_url http://elsewhere/")
    stand.load(match(cvars={}))
    assert stand.world.posts == []


def test_missing_plugin_makes_its_commands_unknown() -> None:
    stand = Stand("plugin_missing")
    assert stand.rcon("get5_status") == "Unknown command 'get5_status'!\n"
    assert stand.enter(1) is not None


# --- who may play --------------------------------------------------------------------------------------------------


def test_unlisted_player_is_kicked_and_listed_ones_are_placed() -> None:
    stand = loaded()
    assert stand.enter(666) is None
    red = stand.enter(101, team="CT")
    assert red is not None
    assert red.team == Side.T


def test_strangers_on_the_server_are_kicked_when_a_match_is_loaded() -> None:
    stand = Stand()
    stand.enter(666)
    blue = stand.enter(1, team="TERRORIST")
    stand.load(match())
    assert stand.arena.players == [blue]
    assert blue is not None
    assert blue.team == Side.CT


def test_bots_are_not_kicked() -> None:
    stand = loaded()
    bot = stand.door.connect(Person("Bert", 0))
    assert bot is not None
    stand.door.enter(bot)
    assert bot in stand.arena.players


def test_team_that_begins_as_t_is_the_games_second() -> None:
    stand = loaded(map_sides=["team1_t"])
    blue = stand.enter(1)
    assert blue is not None
    assert blue.team == Side.T
    assert stand.variables.text("mp_teamname_1") == "Team Red"


def test_without_a_match_anybody_may_come_unless_it_is_forbidden() -> None:
    stand = Stand()
    assert stand.enter(666) is not None
    stand.rcon("matchzy_kick_when_no_match_loaded 1")
    assert stand.enter(667) is None


def test_whitelist_of_nobody_keeps_everybody_out() -> None:
    stand = loaded()
    assert stand.rcon("css_whitelist") == "[\x04MatchZy\x01] Whitelist is now \x04Enabled\x01!\n"
    assert stand.enter(1) is None
    assert stand.rcon("css_whitelist") == "[\x04MatchZy\x01] Whitelist is now \x07Disabled\x01!\n"
    assert stand.enter(1) is not None


# --- play ----------------------------------------------------------------------------------------------------------


def test_start_goes_live_and_says_so() -> None:
    stand = loaded()
    stand.enter_all()
    assert stand.rcon("css_start") == ""
    assert stand.game.phase is Phase.LIVE
    assert stand.last_report() == matchzy.GoingLive("27", 1)
    assert stand.variables.text("mp_backup_round_file") == "matchzy_27_0"


def test_start_without_a_match_does_nothing() -> None:
    stand = Stand()
    assert stand.rcon("css_start") == ""
    assert stand.game.phase is Phase.WARMUP


def test_second_start_is_refused() -> None:
    stand = loaded()
    live(stand)
    assert "already started" in stand.rcon("css_forcestart")
    assert stand.world.events.count("going_live") == 1


def test_round_is_reported_with_score_and_players_by_team() -> None:
    stand = loaded(map_sides=["team2_ct"])
    blue, red = stand.enter_all()
    live(stand)
    stand.arena.book.round_started(1, [red], [blue])
    stand.arena.book.kill(red, blue, "ak47", is_headshot=True, at_ms=0)
    stand.arena.book.decided(1, red)
    stand.play_round(Side.CT, "Target_Saved")
    report = stand.last_report()
    assert isinstance(report, matchzy.RoundEnd)
    assert (report.team1_score, report.team2_score, report.round_number) == (0, 1, 1)
    assert (report.winner_side, report.reason) == (Side.CT, RoundEndReason.TARGET_SAVED)
    counts = {player.player_id: (player.team, player.kills, player.deaths, player.mvps) for player in report.players}
    assert counts == {id64(1): (Team.TEAM1, 0, 1, 0), id64(101): (Team.TEAM2, 1, 0, 1)}


def test_rounds_before_play_are_not_reported() -> None:
    stand = loaded()
    stand.play_round(Side.CT)
    stand.end_map()
    assert stand.world.events == ["series_start"]


def test_single_map_ends_with_its_result_and_then_the_series() -> None:
    stand = loaded()
    live(stand)
    stand.play_map(4, 1)
    assert stand.world.events[-2:] == ["round_end", "map_result"]
    assert stand.last_report() == matchzy.MapResult("27", 1, 4, 1, Team.TEAM1)
    stand.wait(2)
    assert stand.last_report() == matchzy.SeriesEnd("27", 1, 0, Team.TEAM1)
    assert stand.stage() is Stage.POST_GAME
    stand.wait(25)
    assert not stand.plugin.has_match
    assert stand.variables.text("mp_teamname_1") == "COUNTER-TERRORISTS"


def test_variables_return_to_what_they_were_when_the_series_ends() -> None:
    stand = Stand()
    stand.variables.set("mp_maxrounds", "30")
    stand.load(match())
    live(stand)
    stand.play_map(4, 0)
    assert stand.variables.whole("mp_maxrounds") == 30


def test_variables_stay_where_the_plugin_is_told_so() -> None:
    stand = Stand()
    stand.rcon("matchzy_reset_cvars_on_series_end false")
    stand.load(match())
    live(stand)
    stand.play_map(4, 0)
    assert stand.variables.whole("mp_maxrounds") == 6


def test_people_stay_between_maps_and_go_after_the_last() -> None:
    stand = loaded(maps=THREE_MAPS)
    assert stand.visitors.stays_after_map
    live(stand)
    stand.play_map(4, 0)
    assert stand.visitors.stays_after_map
    stand.wait(30)
    live(stand)
    stand.play_map(4, 0)
    assert not stand.visitors.stays_after_map


def test_next_map_comes_a_second_before_the_restart_and_waits_for_a_start() -> None:
    stand = loaded(maps=THREE_MAPS, map_sides=["team1_ct", "team1_t", "knife"])
    live(stand)
    stand.play_map(4, 0)
    stand.wait(23)
    assert stand.arena.map_name == "de_dust2"
    stand.wait(2)
    assert stand.arena.map_name == "de_nuke"
    assert stand.stage() is Stage.WARMUP
    assert stand.variables.text("mp_teamname_1") == "Team Red"
    live(stand)
    assert stand.last_report() == matchzy.GoingLive("27", 2)


def test_short_restart_delay_is_raised() -> None:
    stand = loaded(maps=THREE_MAPS)
    live(stand)
    stand.variables.set("mp_match_restart_delay", "5")
    stand.play_map(4, 0)
    assert stand.variables.whole("mp_match_restart_delay") == 15
    stand.wait(15)
    assert stand.arena.map_name == "de_nuke"


def test_restart_waits_for_the_broadcast() -> None:
    stand = loaded(maps=THREE_MAPS, cvars={"tv_enable": "1", "tv_delay": "90"})
    live(stand)
    stand.play_map(4, 0)
    assert stand.variables.whole("mp_match_restart_delay") == 115


def test_drawn_last_map_never_ends_the_series() -> None:
    stand = loaded()
    live(stand)
    stand.play_map(3, 3)
    stand.wait(60)
    assert stand.world.events[-1] == "map_result"
    assert stand.plugin.has_match
    assert not stand.visitors.stays_after_map
    assert "Index was out of range" in stand.plugin.last_fault


def test_drawn_series_is_live_again_for_the_plugin_once_the_game_starts_anew() -> None:
    stand = loaded()
    live(stand)
    stand.play_map(3, 3)
    assert '"gamestate":"post_game"' in stand.rcon("get5_status")
    stand.enter_warmup()
    assert '"gamestate":"live"' in stand.rcon("get5_status")
    assert '"gamestate":7' in stand.rcon("get5_web_available")
    assert "already started" in stand.rcon("css_start")


def test_even_series_ends_without_a_winner() -> None:
    stand = loaded(maps=("de_dust2", "de_nuke"))
    for first, second in ((4, 0), (0, 4)):
        live(stand)
        stand.play_map(first, second)
        stand.wait(30)
    assert stand.last_report() == matchzy.SeriesEnd("27", 1, 1, None)


def test_match_without_a_number_is_counted_when_it_starts() -> None:
    stand = loaded(matchid=None)
    live(stand)
    assert [body["matchid"] for body in stand.world.bodies] == [-1, 1]


# --- knife and veto ------------------------------------------------------------------------------------------------


def test_winners_of_the_knife_round_may_stay() -> None:
    stand = loaded(map_sides=["knife"])
    blue, red = stand.enter_all()
    stand.rcon("css_start")
    assert (stand.game.phase, stand.stage()) == (Phase.KNIFE, Stage.KNIFE)
    stand.play_knife_round(Side.CT)
    assert stand.stage() is Stage.WAITING_FOR_KNIFE_DECISION
    stand.door.say(red, ".stay")
    assert stand.stage() is Stage.WAITING_FOR_KNIFE_DECISION
    stand.door.say(blue, ".stay")
    assert stand.world.events == ["series_start", "going_live"]
    assert stand.variables.text("mp_teamname_1") == "Team Blue"


def test_winners_of_the_knife_round_may_switch() -> None:
    stand = loaded(map_sides=["knife"])
    blue, _ = stand.enter_all()
    stand.rcon("css_start")
    stand.play_knife_round(Side.CT)
    stand.door.say(blue, ".switch")
    assert blue.team == Side.T
    assert stand.game.team1_side is Side.T
    stand.play_round(Side.CT)
    report = stand.last_report()
    assert isinstance(report, matchzy.RoundEnd)
    assert (report.team1_score, report.team2_score) == (0, 1)


def test_somebody_of_the_winners_chooses_in_the_end() -> None:
    stand = loaded(map_sides=["knife"])
    stand.rcon("css_start")
    stand.play_knife_round(None)
    stand.wait(25)
    assert stand.stage() is Stage.WAITING_FOR_KNIFE_DECISION
    stand.enter_all()
    stand.wait(12)
    assert stand.stage() is Stage.LIVE


def test_choice_after_a_knife_round_dies_with_the_match() -> None:
    stand = loaded(map_sides=["knife"])
    stand.rcon("css_start")
    stand.play_knife_round(Side.T)
    stand.rcon("css_endmatch")
    stand.wait(25)
    assert stand.stage() is Stage.NONE


def test_veto_is_skipped_by_command_or_start() -> None:
    fields = match(maplist=["de_nuke", "de_train"], skip_veto=False)
    for command in ("css_skipveto", "css_start"):
        stand = Stand()
        stand.load(fields)
        assert (stand.stage(), stand.arena.map_name) == (Stage.PRE_VETO, "de_dust2")
        stand.rcon(command)
        stand.wait(2)
        assert (stand.stage(), stand.arena.map_name) == (Stage.WARMUP, "de_nuke")
        live(stand)
        assert stand.last_report() == matchzy.GoingLive("27", 1)


# --- the end by force ----------------------------------------------------------------------------------------------


def test_ended_match_is_forgotten_and_another_can_be_loaded() -> None:
    stand = loaded()
    live(stand)
    assert stand.rcon("css_endmatch") == ""
    assert stand.game.phase is Phase.WARMUP
    assert not stand.console.has_plugin_match()
    stand.load(match(matchid=28))
    assert stand.world.bodies[-1]["matchid"] == 28


def test_match_ended_between_two_maps_changes_no_map() -> None:
    stand = loaded(maps=THREE_MAPS)
    live(stand)
    stand.play_map(4, 0)
    stand.rcon("get5_endmatch")
    stand.wait(60)
    assert stand.arena.map_name == "de_dust2"


def test_map_change_just_after_a_load_holds_no_old_warmup() -> None:
    stand = loaded()
    stand.load_map("de_nuke")
    live(stand)
    assert stand.game.phase is Phase.LIVE


def test_stage_of_a_warmup_that_is_over_is_left_alone_by_a_map_load() -> None:
    stand = loaded()
    stand.load_map("de_nuke")
    stand.rcon("css_start")
    stand.console.executed.clear()
    stand.wait(2)
    assert "mp_warmup_start" not in stand.console.executed


def test_game_without_a_match_is_none_of_the_plugins_business() -> None:
    stand = Stand()
    stand.play_map(13, 4)
    assert stand.world.posts == []


def test_people_still_loading_are_looked_at_when_they_enter() -> None:
    stand = Stand()
    stranger = stand.door.connect(Person("late", 666))
    assert stranger is not None
    stand.load(match())
    assert stranger in stand.arena.players
    stand.door.enter(stranger)
    assert stranger not in stand.arena.players
