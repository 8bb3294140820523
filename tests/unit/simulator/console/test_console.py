"""Dispatch, variables and the log of what was asked."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.cs2 import console_commands
from matchpod.cs2.console_answers import parse_cvar, unknown_commands
from matchpod.simulator.scenarios import Scenario
from tests.unit.simulator.console.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_unknown_command_is_answered_in_the_words_we_read(bench: Bench) -> None:
    answer = bench.say("get5_status")
    assert answer == "Unknown command 'get5_status'!\n"
    assert unknown_commands(answer) == ("get5_status",)


@pytest.mark.parametrize("name", ["users", "banid", "stats", "sv_rcon_maxfailures", "mp_winlimit", "mp_teamplay"])
def test_names_for_developers_only_are_unknown(bench: Bench, name: str) -> None:
    assert unknown_commands(bench.say(f"{name} 1")) == (name,)


def test_variable_alone_is_asked(bench: Bench) -> None:
    assert bench.say("mp_freezetime") == "mp_freezetime = 6\n"
    assert bench.notes == []


def test_variable_with_a_value_is_set_without_an_answer(bench: Bench) -> None:
    assert bench.say("mp_freezetime 12") == ""
    assert bench.variables.whole("mp_freezetime") == 12


def test_names_are_read_without_regard_to_case(bench: Bench) -> None:
    assert bench.say("MP_FreezeTime 3; MP_FREEZETIME; ECHO hi") == "mp_freezetime = 3\nhi\n"


def test_empty_quotes_clear_a_variable(bench: Bench) -> None:
    bench.say('sv_password "x"; sv_password ""')
    assert bench.variables.text("sv_password") == ""


def test_team_name_may_stand_without_quotes(bench: Bench) -> None:
    bench.say("mp_teamname_1 Team One")
    assert bench.variables.text("mp_teamname_1") == "Team One"


def test_rcon_is_logged_in_full_before_it_runs(bench: Bench) -> None:
    bench.say('logaddress_add_http "http://127.0.0.1:9/a"')
    bench.console.execute('say "hi"; mp_freezetime 9', "203.0.113.7:50592")
    assert bench.log.lines == [
        'rcon from "203.0.113.7:50592": command "say "hi"; mp_freezetime 9"',
        '"Console<0>" say "hi"',
        'server_cvar: "mp_freezetime" "9"',
    ]


def test_first_line_of_a_new_listener_is_the_command_that_added_him(bench: Bench) -> None:
    text = 'mp_freezetime 9; logaddress_add_http "http://127.0.0.1:9/a"'
    bench.console.execute(text, "203.0.113.7:50592")
    assert bench.log.lines[-1] == f'rcon from "203.0.113.7:50592": command "{text}"'


def test_server_itself_is_not_logged_as_rcon(bench: Bench) -> None:
    bench.say("echo hi")
    assert bench.log.lines == []


def test_change_of_a_listed_variable_is_logged_once(bench: Bench) -> None:
    bench.say("mp_friendlyfire 1; mp_friendlyfire 1; mp_warmuptime 99")
    assert bench.log.lines == ['server_cvar: "mp_friendlyfire" "true"']


def test_password_is_hidden_in_the_line_of_its_change(bench: Bench) -> None:
    bench.say("sv_password secret")
    assert bench.log.lines == ['server_cvar: "sv_password" "***PROTECTED***"']


def test_server_password_can_be_asked_and_the_console_password_cannot(bench: Bench) -> None:
    bench.say("sv_password a; rcon_password b")
    assert bench.say("sv_password; rcon_password") == "sv_password = a\nrcon_password = ***PROTECTED***\n"


def test_new_console_password_drops_the_consoles(bench: Bench) -> None:
    bench.say("rcon_password b; rcon_password b")
    assert bench.notes == ["drop consoles", "settle", "settle"]


def test_cheats_can_be_switched_on_by_whoever_has_the_console(bench: Bench) -> None:
    assert bench.say("sv_cheats 1") == ""
    assert bench.say("sv_cheats") == "sv_cheats = true\n"


@pytest.mark.parametrize(
    "command",
    ["status", "status_json", "say hi", "echo x", "logaddress_list_http", "mp_maxrounds", "log", "nonsense", "//x", ""],
)
def test_who_only_asks_keeps_nobody_waiting(bench: Bench, command: str) -> None:
    bench.say(command)
    assert bench.notes == []


def test_speed_is_told_to_the_world(bench: Bench) -> None:
    bench.say("sim_speed 30")
    assert bench.notes == ["speed 30", "settle"]


def test_bad_scenario_is_refused_with_the_list_of_good_ones(bench: Bench) -> None:
    answer = bench.say("sim_scenario nonsense")
    assert answer.startswith("sim_scenario must be one of: full_match, no_show, ")
    assert bench.arena.scenario is Scenario.FULL_MATCH
    assert bench.notes == []


def test_early_recording_is_switched_at_the_listeners(bench: Bench) -> None:
    bench.say("sv_log_http_record_before_any_listeners 1")
    assert bench.listeners.records_early


def test_setting_a_variable_puts_visitors_off(bench: Bench) -> None:
    bench.say("mp_freezetime 6")
    assert bench.notes == ["settle"]


def test_command_that_overflows_is_skipped_and_the_next_runs(bench: Bench) -> None:
    answer = bench.say(f"hostname {'x' * 600}; echo next")
    assert "overflows the tokenizer buffer" in answer
    assert answer.endswith("next\n")
    assert bench.variables.text("hostname") == ""


def test_plugin_command_gets_its_arguments(bench: Bench) -> None:
    bench.console.register("CSS_Test", lambda args: f"{args}\n")
    assert bench.say('css_test a "b c"') == "['a', 'b c']\n"
    assert bench.notes == []


def test_plugin_cannot_replace_a_command_of_the_game(bench: Bench) -> None:
    bench.console.register("echo", lambda _args: "mine\n")
    assert bench.say("echo hi") == "hi\n"


def test_plugin_match_is_absent_unless_a_plugin_says_so(bench: Bench) -> None:
    assert not bench.console.has_plugin_match()
    bench.console.has_plugin_match = lambda: True
    assert bench.console.has_plugin_match()


@pytest.mark.parametrize("match_type", list(MatchType))
def test_every_command_of_the_service_is_known(bench: Bench, match_type: MatchType) -> None:
    settings = GameSettings(match_type=match_type, maps=("de_nuke",), max_rounds=24, freeze_time=10)
    commands = (
        *console_commands.setup_commands(settings, map_name="de_nuke"),
        *console_commands.match_commands(settings),
        *console_commands.start_commands(settings),
        console_commands.say_command("hi"),
        console_commands.log_address_command("http://127.0.0.1:1/x"),
    )
    answers = [bench.say(command) for command in commands]
    assert {answer for answer in answers if answer} <= {"Server logging enabled.\n"}


@pytest.mark.parametrize("match_type", [MatchType.COMPETITIVE, MatchType.DEATHMATCH])
def test_settings_of_the_service_can_be_read_back(bench: Bench, match_type: MatchType) -> None:
    roster = (
        TeamRoster(name="A", players=("76561197960265729",)),
        TeamRoster(name="B", players=("76561197960265730",)),
    )
    settings = GameSettings(match_type=match_type, maps=("de_nuke",), team1=roster[0], team2=roster[1])
    for command in console_commands.match_commands(settings):
        bench.say(command)
    for name, wanted in console_commands.expected_cvars(settings).items():
        value = parse_cvar(bench.say(name), name)
        assert value is not None
        assert value.means(wanted)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
@example('MP_ROUNDTIME"')  # sets a variable that is logged: that line stands before the command's own
def test_no_text_breaks_the_console(text: str) -> None:
    bench = Bench()
    bench.console.execute(text, "203.0.113.7:1")
    assert sum(line.startswith("rcon from ") for line in bench.log.lines) == 1
