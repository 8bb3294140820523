"""Tests of a match in the plugin, from loading it to the end of its series."""

from __future__ import annotations

import pytest

from cs2_protocol import matchzy
from cs2_protocol.console_answers import parse_get5_status
from cs2_protocol.game import RoundEndReason, Side, Team
from cs2_simulator.outside import FetchResult
from cs2_simulator.play.flow.standing import GamePhase
from cs2_simulator.plugin.series import PluginStage
from simulator_tests.plugin.plugin_harness import MATCH_URL, PluginHarness, id64, match

THREE_MAPS = ("de_dust2", "de_nuke", "de_train")


def live(harness: PluginHarness) -> PluginHarness:
    harness.rcon("css_start")
    harness.wait(2)
    return harness


def loaded(**changes: object) -> PluginHarness:
    harness = PluginHarness()
    harness.load(match(**changes))  # type: ignore[arg-type]
    return harness


# --- loading -------------------------------------------------------------------------------------------------------


def test_match_is_fetched_with_the_given_header(harness: PluginHarness) -> None:
    assert harness.rcon(f'get5_loadmatch_url "{MATCH_URL}" "X-Token" "secret"') == ""
    assert harness.outside.requests == [(MATCH_URL, {"X-Token": "secret"})]
    assert harness.plugin.has_match


def test_loading_sets_the_variables_and_stops_the_warmup_timer() -> None:
    harness = loaded()
    assert 'mp_maxrounds "6"' in harness.console.executed
    assert harness.variables.is_on("mp_warmup_pausetimer")
    assert harness.variables.text("mp_teamname_1") == "Team Blue"
    assert harness.parts.has_plugin_match()


def test_quotes_in_a_value_can_inject_a_command_as_in_the_real_plugin() -> None:
    harness = loaded(cvars={"mp_maxrounds": '6";mp_freezetime "3'})
    assert harness.variables.whole("mp_freezetime") == 3


def test_warmup_overrides_the_variables_of_the_match_until_it_is_live() -> None:
    harness = loaded()
    assert harness.variables.whole("mp_maxrounds") == 24
    live(harness)
    assert harness.variables.whole("mp_maxrounds") == 6


def test_second_match_is_rejected() -> None:
    harness = loaded()
    answer = harness.rcon(f'matchzy_loadmatch_url "{MATCH_URL}"')
    assert harness.course.last_fault == "A match is already setup with id: 27, cannot load a new match!"
    # The answer contains chat color codes: green and default.
    assert answer == f"[\x04MatchZy\x01] [LoadMatchDataCommand] {harness.course.last_fault}\n"
    assert len(harness.outside.requests) == 1


def test_invalid_url_is_rejected(harness: PluginHarness) -> None:
    assert "Invalid URL: ftp://h/m" in harness.rcon("matchzy_loadmatch_url ftp://h/m")
    assert harness.outside.requests == []


def test_failed_request_loads_no_match(harness: PluginHarness) -> None:
    harness.outside.match = FetchResult(404)
    harness.load()
    assert harness.course.last_fault == "HTTP request failed: 404"
    harness.outside.match = FetchResult(None, reason="refused")
    harness.load()
    assert harness.course.last_fault == "HTTP request failed: refused"
    assert not harness.plugin.has_match


def test_rejected_match_is_not_loaded() -> None:
    harness = loaded(matchid=2**31)
    assert harness.course.last_fault == "matchid should be an integer!"
    status = parse_get5_status(harness.rcon("get5_status"))
    assert status is not None
    assert status.state == "none"
    assert harness.outside.posts == []


def test_events_url_set_before_loading_is_discarded(harness: PluginHarness) -> None:
    harness.rcon("matchzy_remote_log_url http://elsewhere/")
    harness.load(match(cvars={}))
    assert harness.outside.posts == []


def test_commands_are_unknown_if_the_plugin_is_missing() -> None:
    harness = PluginHarness("plugin_missing")
    assert harness.rcon("get5_status") == "Unknown command 'get5_status'!\n"
    assert harness.enter(1) is not None


# --- admission -----------------------------------------------------------------------------------------------------


def test_unlisted_player_is_kicked_and_a_listed_one_joins_the_right_team() -> None:
    harness = loaded()
    assert harness.enter(666) is None
    red = harness.enter(101, team="CT")
    assert red is not None
    assert red.team == Side.T


def test_unlisted_players_are_kicked_when_a_match_is_loaded(harness: PluginHarness) -> None:
    harness.enter(666)
    blue = harness.enter(1, team="TERRORIST")
    harness.load(match())
    assert harness.arena.players == [blue]
    assert blue is not None
    assert blue.team == Side.CT


def test_team_that_begins_as_t_is_the_second_team_of_the_game() -> None:
    harness = loaded(map_sides=["team1_t"])
    blue = harness.enter(1)
    assert blue is not None
    assert blue.team == Side.T
    assert harness.variables.text("mp_teamname_1") == "Team Red"


def test_any_player_may_join_without_a_match_unless_disabled(harness: PluginHarness) -> None:
    assert harness.enter(666) is not None
    harness.rcon("matchzy_kick_when_no_match_loaded 1")
    assert harness.enter(667) is None


# --- play ----------------------------------------------------------------------------------------------------------


def test_start_without_a_match_does_nothing(harness: PluginHarness) -> None:
    assert harness.rcon("css_start") == ""
    assert harness.game.phase is GamePhase.WARMUP


def test_second_start_is_rejected() -> None:
    harness = live(loaded())
    assert "already started" in harness.rcon("css_forcestart")
    assert harness.outside.events.count("going_live") == 1


def test_round_is_reported_with_score_and_players_by_team() -> None:
    harness = loaded(map_sides=["team2_ct"])
    blue, red = harness.enter_all()
    live(harness)
    harness.arena.book.round_started(1, [red], [blue])
    harness.arena.book.kill(red, blue, "ak47", is_headshot=True, at_ms=0)
    harness.arena.book.round_decided(1, red)
    harness.play_round(Side.CT, "Target_Saved")
    report = harness.last_report()
    assert isinstance(report, matchzy.RoundEndReport)
    assert (report.team1_score, report.team2_score, report.round_number) == (0, 1, 1)
    assert (report.winner_side, report.reason) == (Side.CT, RoundEndReason.TARGET_SAVED)
    counts = {
        player.player_id: (player.team, *(player.stats[name] for name in ("kills", "deaths", "mvp")))
        for player in report.players
    }
    assert counts == {id64(1): (Team.TEAM1, 0, 1, 0), id64(101): (Team.TEAM2, 1, 0, 1)}


def test_variables_are_restored_when_the_series_ends(harness: PluginHarness) -> None:
    harness.variables.set("mp_maxrounds", "30")
    harness.load(match())
    live(harness)
    harness.play_map(4, 0)
    assert harness.variables.whole("mp_maxrounds") == 30


def test_next_map_is_loaded_a_second_before_the_restart_and_waits_for_a_start() -> None:
    harness = live(loaded(maps=THREE_MAPS, map_sides=["team1_ct", "team1_t", "knife"]))
    harness.play_map(4, 0)
    harness.wait(23)
    assert harness.arena.map_name == "de_dust2"
    harness.wait(2)
    assert harness.arena.map_name == "de_nuke"
    assert harness.stage() is PluginStage.WARMUP
    assert harness.variables.text("mp_teamname_1") == "Team Red"
    live(harness)
    assert harness.last_report() == matchzy.GoingLive("27", 2)


def test_short_restart_delay_is_raised() -> None:
    harness = live(loaded(maps=THREE_MAPS))
    harness.variables.set("mp_match_restart_delay", "5")
    harness.play_map(4, 0)
    assert harness.variables.whole("mp_match_restart_delay") == 15
    harness.wait(15)
    assert harness.arena.map_name == "de_nuke"


def test_restart_delay_includes_the_broadcast_delay() -> None:
    harness = live(loaded(maps=THREE_MAPS, cvars={"tv_enable": "1", "tv_delay": "90"}))
    harness.play_map(4, 0)
    assert harness.variables.whole("mp_match_restart_delay") == 115


def test_match_without_an_id_is_assigned_one_when_it_starts() -> None:
    harness = live(loaded(matchid=None))
    assert [body["matchid"] for body in harness.outside.bodies] == [-1, 1]


# --- knife -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("winner", "command", "side"),
    [
        (Side.CT, ".ct", Side.CT),
        (Side.CT, ".t", Side.T),
        (Side.T, ".t", Side.CT),
        (Side.T, "!ct", Side.T),
        (Side.T, ".swap", Side.T),
    ],
)
def test_winners_of_the_knife_round_may_name_a_side(winner: Side, command: str, side: Side) -> None:
    harness = loaded(map_sides=["knife"])
    blue, red = harness.enter_all()
    harness.rcon("css_start")
    harness.play_knife_round(winner)
    harness.door.say(red if winner is Side.CT else blue, command)
    assert harness.stage() is PluginStage.WAITING_FOR_KNIFE_DECISION
    harness.door.say(blue if winner is Side.CT else red, command)
    assert harness.stage() is PluginStage.LIVE
    assert blue.team == side


def test_side_is_chosen_once_a_winner_of_the_knife_round_is_connected() -> None:
    harness = loaded(map_sides=["knife"])
    harness.rcon("css_start")
    harness.play_knife_round(None)
    harness.wait(25)
    assert harness.stage() is PluginStage.WAITING_FOR_KNIFE_DECISION
    harness.enter_all()
    harness.wait(12)
    assert harness.stage() is PluginStage.LIVE


# --- forced end ----------------------------------------------------------------------------------------------------


def test_another_match_can_be_loaded_after_an_ended_one() -> None:
    harness = live(loaded())
    assert harness.rcon("css_endmatch") == ""
    assert harness.game.phase is GamePhase.WARMUP
    assert not harness.parts.has_plugin_match()
    harness.load(match(matchid=28))
    assert harness.outside.bodies[-1]["matchid"] == 28


def test_side_choice_depends_on_the_seed_and_not_on_the_id_of_the_match() -> None:
    def chosen(match_id: int) -> str:
        harness = loaded(map_sides=["knife"], matchid=match_id)
        blue, _ = harness.enter_all()
        harness.rcon("css_start")
        harness.play_knife_round(Side.CT)
        harness.wait(12)
        assert harness.stage() is PluginStage.LIVE
        return blue.team

    assert len({chosen(match_id) for match_id in range(1, 12)}) == 1
