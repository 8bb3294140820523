"""Commands about the server itself."""

from __future__ import annotations

import pytest

from matchpod.cs2.console_answers import parse_status, parse_status_json
from tests.unit.simulator.console.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_echo_answers_its_words(bench: Bench) -> None:
    assert bench.say('echo CM_ECHO_PROBE  "b c"') == "CM_ECHO_PROBE b c\n"


def test_comment_is_answered_with_nothing(bench: Bench) -> None:
    assert bench.say("//x") == ""


def test_chat_of_the_console_is_logged(bench: Bench) -> None:
    bench.say("say (hi): there")
    assert bench.log.lines == ['"Console<0>" say "(hi): there"']
    assert bench.notes == []


def test_empty_chat_is_not(bench: Bench) -> None:
    bench.say('say; say ""')
    assert bench.log.lines == []


def test_config_file_is_not_found(bench: Bench) -> None:
    assert bench.say("exec cmcomp/warmup.cfg") == "exec: couldn't exec cmcomp/warmup.cfg\n"
    assert bench.say("exec").startswith("exec <filename>")


@pytest.mark.parametrize("command", ["execifexists a.cfg", "sv_setsteamaccount ABC", "tv_record x", "tv_stoprecord"])
def test_command_without_effect_is_taken_quietly(bench: Bench, command: str) -> None:
    assert bench.say(command) == ""


@pytest.mark.parametrize("command", ["quit", "exit"])
def test_server_ends_well_with_a_last_line(bench: Bench, command: str) -> None:
    assert bench.say(command) == ""
    assert bench.notes == ["exit well"]
    assert bench.log.lines == ['server_message: "quit"']


def test_log_file_is_closed_at_the_end(bench: Bench) -> None:
    bench.say("sv_logfile 1; quit")
    assert bench.log.lines == ['server_message: "quit"', "Log file closed"]


def test_version_names_the_build(bench: Bench) -> None:
    assert "(10603)" in bench.say("version")


def test_status_and_status_json_answer_without_putting_visitors_off(bench: Bench) -> None:
    assert parse_status(bench.say("status")) is not None
    assert parse_status_json(bench.say("status_json")) is not None
    assert bench.notes == []
