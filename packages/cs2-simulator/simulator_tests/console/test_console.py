"""Tests of command dispatch, variables and the logging of commands."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cs2_protocol.console_answers import unknown_commands
from cs2_simulator.scenarios import Scenario
from simulator_tests.console.console_harness import ConsoleHarness


def test_answer_to_an_unknown_command_is_recognized_by_our_parser(harness: ConsoleHarness) -> None:
    answer = harness.execute("get5_status")
    assert answer == "Unknown command 'get5_status'!\n"
    assert unknown_commands(answer) == ("get5_status",)


RESTART = "restart countdown"


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        pytest.param(
            "rcon_password b; rcon_password b", ["drop connections", RESTART, RESTART], id="new RCON password"
        ),
        pytest.param("sim_speed 30", ["speed 30", RESTART], id="speed is passed to the host"),
        pytest.param("mp_freezetime 6", [RESTART], id="a variable that is set postpones the arrival of players"),
        *(
            (command, [])
            for command in (
                *("status", "status_json", "say hi", "echo x", "logaddress_list_http", "mp_maxrounds", "log"),
                *("nonsense", "//x", ""),
            )
        ),
    ],
)
def test_only_commands_that_set_something_delay_the_arrival_of_players(
    harness: ConsoleHarness, command: str, calls: list[str]
) -> None:
    harness.execute(command)
    assert harness.calls == calls


@pytest.mark.parametrize(
    ("command", "question", "answer"),
    [
        pytest.param("", "mp_freezetime", "mp_freezetime = 6\n", id="name without a value"),
        pytest.param("mp_freezetime 12", "mp_freezetime", "mp_freezetime = 12\n", id="name with a value"),
        pytest.param(
            "mp_teamname_1 Team One", "mp_teamname_1", "mp_teamname_1 = Team One\n", id="space without quotes"
        ),
        pytest.param("sv_password a", "sv_password", "sv_password = a\n", id="server password is shown"),
        pytest.param(
            "rcon_password b", "rcon_password", "rcon_password = ***PROTECTED***\n", id="RCON password is not"
        ),
    ],
)
def test_variable_is_set_silently_and_printed_by_its_name(
    harness: ConsoleHarness, command: str, question: str, answer: str
) -> None:
    assert harness.execute(command) == ""
    assert harness.execute(question) == answer


def test_rcon_command_is_logged_in_full_before_it_runs(harness: ConsoleHarness) -> None:
    harness.execute('logaddress_add_http "http://127.0.0.1:9/a"')
    harness.console.execute('say "hi"; mp_freezetime 9', "203.0.113.7:50592")
    assert harness.log.lines == [
        'rcon from "203.0.113.7:50592": command "say "hi"; mp_freezetime 9"',
        '"Console<0>" say "hi"',
        'server_cvar: "mp_freezetime" "9"',
    ]


def test_lines_may_be_recorded_before_there_is_a_listener(harness: ConsoleHarness) -> None:
    harness.execute("sv_log_http_record_before_any_listeners 1")
    assert harness.stream.records_early


def test_first_line_for_a_new_listener_is_the_command_that_added_it(harness: ConsoleHarness) -> None:
    text = 'mp_freezetime 9; logaddress_add_http "http://127.0.0.1:9/a"'
    harness.console.execute(text, "203.0.113.7:50592")
    assert harness.log.lines[-1] == f'rcon from "203.0.113.7:50592": command "{text}"'


def test_only_changes_of_variables_that_a_map_load_lists_are_logged(harness: ConsoleHarness) -> None:
    harness.execute("mp_friendlyfire 1; mp_friendlyfire 1; mp_warmuptime 99")
    assert harness.log.lines == ['server_cvar: "mp_friendlyfire" "true"']


def test_invalid_scenario_is_rejected_with_the_list_of_valid_ones(harness: ConsoleHarness) -> None:
    answer = harness.execute("sim_scenario nonsense")
    assert answer.startswith("sim_scenario must be one of: full_match, no_show, ")
    assert harness.arena.scenario is Scenario.FULL_MATCH
    assert harness.calls == []


def test_too_long_command_is_skipped_and_the_next_one_runs(harness: ConsoleHarness) -> None:
    answer = harness.execute(f"hostname {'x' * 600}; echo next")
    assert "overflows the tokenizer buffer" in answer
    assert answer.endswith("next\n")
    assert harness.variables.text("hostname") == ""


def test_plugin_command_receives_its_arguments(harness: ConsoleHarness) -> None:
    harness.console.register("CSS_Test", lambda args: f"{args}\n")
    assert harness.execute('css_test a "b c"') == "['a', 'b c']\n"
    assert harness.calls == []
    harness.console.register("echo", lambda _args: "mine\n")
    assert harness.execute("echo hi") == "hi\n", "a command of the game cannot be replaced"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
@example('MP_ROUNDTIME"')  # sets a variable whose change is logged before the command itself
def test_any_text_over_rcon_is_executed_and_logged_once(text: str) -> None:
    harness = ConsoleHarness()
    harness.console.execute(text, "203.0.113.7:1")
    assert sum(line.startswith("rcon from ") for line in harness.log.lines) == 1
