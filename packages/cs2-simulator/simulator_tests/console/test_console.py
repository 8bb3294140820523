"""Tests of command dispatch, variables and the logging of commands."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cs2_protocol.console_answers import unknown_commands
from cs2_simulator.scenarios import Scenario
from simulator_tests.console.console_harness import ConsoleHarness


@pytest.fixture
def harness() -> ConsoleHarness:
    return ConsoleHarness()


def test_answer_to_an_unknown_command_is_recognized_by_our_parser(harness: ConsoleHarness) -> None:
    answer = harness.execute("get5_status")
    assert answer == "Unknown command 'get5_status'!\n"
    assert unknown_commands(answer) == ("get5_status",)


def test_variable_name_without_a_value_prints_the_variable(harness: ConsoleHarness) -> None:
    assert harness.execute("mp_freezetime") == "mp_freezetime = 6\n"
    assert harness.calls == []


def test_variable_with_a_value_is_set_without_output(harness: ConsoleHarness) -> None:
    assert harness.execute("mp_freezetime 12") == ""
    assert harness.variables.whole("mp_freezetime") == 12


def test_team_name_with_a_space_needs_no_quotes(harness: ConsoleHarness) -> None:
    harness.execute("mp_teamname_1 Team One")
    assert harness.variables.text("mp_teamname_1") == "Team One"


def test_rcon_command_is_logged_in_full_before_it_runs(harness: ConsoleHarness) -> None:
    harness.execute('logaddress_add_http "http://127.0.0.1:9/a"')
    harness.console.execute('say "hi"; mp_freezetime 9', "203.0.113.7:50592")
    assert harness.log.lines == [
        'rcon from "203.0.113.7:50592": command "say "hi"; mp_freezetime 9"',
        '"Console<0>" say "hi"',
        'server_cvar: "mp_freezetime" "9"',
    ]


def test_first_line_for_a_new_listener_is_the_command_that_added_it(harness: ConsoleHarness) -> None:
    text = 'mp_freezetime 9; logaddress_add_http "http://127.0.0.1:9/a"'
    harness.console.execute(text, "203.0.113.7:50592")
    assert harness.log.lines[-1] == f'rcon from "203.0.113.7:50592": command "{text}"'


def test_only_changes_of_variables_that_a_map_load_lists_are_logged(harness: ConsoleHarness) -> None:
    harness.execute("mp_friendlyfire 1; mp_friendlyfire 1; mp_warmuptime 99")
    assert harness.log.lines == ['server_cvar: "mp_friendlyfire" "true"']


def test_server_password_is_printed_but_the_rcon_password_is_masked(harness: ConsoleHarness) -> None:
    harness.execute("sv_password a; rcon_password b")
    assert harness.execute("sv_password; rcon_password") == "sv_password = a\nrcon_password = ***PROTECTED***\n"


def test_new_rcon_password_drops_the_connections(harness: ConsoleHarness) -> None:
    harness.execute("rcon_password b; rcon_password b")
    assert harness.calls == ["drop connections", "restart countdown", "restart countdown"]


@pytest.mark.parametrize(
    "command",
    ["status", "status_json", "say hi", "echo x", "logaddress_list_http", "mp_maxrounds", "log", "nonsense", "//x", ""],
)
def test_commands_that_set_nothing_do_not_delay_the_arrival_of_players(harness: ConsoleHarness, command: str) -> None:
    harness.execute(command)
    assert harness.calls == []


def test_speed_is_passed_to_the_host(harness: ConsoleHarness) -> None:
    harness.execute("sim_speed 30")
    assert harness.calls == ["speed 30", "restart countdown"]


def test_invalid_scenario_is_rejected_with_the_list_of_valid_ones(harness: ConsoleHarness) -> None:
    answer = harness.execute("sim_scenario nonsense")
    assert answer.startswith("sim_scenario must be one of: full_match, no_show, ")
    assert harness.arena.scenario is Scenario.FULL_MATCH
    assert harness.calls == []


def test_recording_without_listeners_can_be_enabled(harness: ConsoleHarness) -> None:
    harness.execute("sv_log_http_record_before_any_listeners 1")
    assert harness.stream.records_early


def test_setting_a_variable_postpones_the_arrival_of_players(harness: ConsoleHarness) -> None:
    harness.execute("mp_freezetime 6")
    assert harness.calls == ["restart countdown"]


def test_too_long_command_is_skipped_and_the_next_one_runs(harness: ConsoleHarness) -> None:
    answer = harness.execute(f"hostname {'x' * 600}; echo next")
    assert "overflows the tokenizer buffer" in answer
    assert answer.endswith("next\n")
    assert harness.variables.text("hostname") == ""


def test_plugin_command_receives_its_arguments(harness: ConsoleHarness) -> None:
    harness.console.register("CSS_Test", lambda args: f"{args}\n")
    assert harness.execute('css_test a "b c"') == "['a', 'b c']\n"
    assert harness.calls == []


def test_plugin_cannot_replace_a_command_of_the_game(harness: ConsoleHarness) -> None:
    harness.console.register("echo", lambda _args: "mine\n")
    assert harness.execute("echo hi") == "hi\n"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
@example('MP_ROUNDTIME"')  # sets a variable whose change is logged before the command itself
def test_any_text_over_rcon_is_executed_and_logged_once(text: str) -> None:
    harness = ConsoleHarness()
    harness.console.execute(text, "203.0.113.7:1")
    assert sum(line.startswith("rcon from ") for line in harness.log.lines) == 1
