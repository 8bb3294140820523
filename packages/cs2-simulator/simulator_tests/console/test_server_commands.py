"""Tests of the general server commands."""

from __future__ import annotations

import pytest

from cs2_protocol.console_answers import parse_status_json
from simulator_tests.console.console_harness import ConsoleHarness


@pytest.fixture
def harness() -> ConsoleHarness:
    return ConsoleHarness()


def test_echo_prints_its_arguments(harness: ConsoleHarness) -> None:
    assert harness.execute('echo CM_ECHO_PROBE  "b c"') == "CM_ECHO_PROBE b c\n"


def test_console_chat_is_logged(harness: ConsoleHarness) -> None:
    harness.execute("say (hi): there")
    assert harness.log.lines == ['"Console<0>" say "(hi): there"']
    assert harness.calls == []


def test_console_chat_is_not_logged_by_every_server(harness: ConsoleHarness) -> None:
    harness.execute("sim_console_chat 0")
    assert harness.execute("say hi") == ""
    assert harness.log.lines == []


def test_exec_finds_no_config_file(harness: ConsoleHarness) -> None:
    assert harness.execute("exec cmcomp/warmup.cfg") == "exec: couldn't exec cmcomp/warmup.cfg\n"
    assert harness.execute("exec").startswith("exec <filename>")


@pytest.mark.parametrize("command", ["execifexists a.cfg", "sv_setsteamaccount ABC", "tv_record x", "tv_stoprecord"])
def test_command_without_effect_is_accepted_silently(harness: ConsoleHarness, command: str) -> None:
    assert harness.execute(command) == ""


@pytest.mark.parametrize("command", ["quit", "exit"])
def test_quit_logs_a_message_and_exits(harness: ConsoleHarness, command: str) -> None:
    assert harness.execute(command) == ""
    assert harness.calls == ["exit"]
    assert harness.log.lines == ['server_message: "quit"']


def test_quit_closes_the_log_file(harness: ConsoleHarness) -> None:
    harness.execute("sv_logfile 1; quit")
    assert harness.log.lines == ['server_message: "quit"', "Log file closed"]


def test_version_contains_the_build(harness: ConsoleHarness) -> None:
    assert "(10603)" in harness.execute("version")


def test_status_commands_do_not_postpone_the_arrival_of_players(harness: ConsoleHarness) -> None:
    assert "---------players--------" in harness.execute("status")
    assert parse_status_json(harness.execute("status_json")) is not None
    assert harness.calls == []
