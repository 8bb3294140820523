"""Tests of the general server commands."""

from __future__ import annotations

import pytest

from simulator_tests.console.console_harness import ConsoleHarness


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ('echo CM_ECHO_PROBE  "b c"', "CM_ECHO_PROBE b c\n"),
        ("exec cmcomp/warmup.cfg", "exec: couldn't exec cmcomp/warmup.cfg\n"),
        *((name, "") for name in ("execifexists a.cfg", "sv_setsteamaccount ABC", "tv_record x", "tv_stoprecord")),
    ],
)
def test_answer_of_a_command_of_the_server(harness: ConsoleHarness, command: str, answer: str) -> None:
    assert harness.execute(command) == answer


def test_usage_and_build_are_printed(harness: ConsoleHarness) -> None:
    assert harness.execute("exec").startswith("exec <filename>")
    assert "(10603)" in harness.execute("version")


QUIT = 'server_message: "quit"'


@pytest.mark.parametrize(
    ("commands", "calls", "lines"),
    [
        pytest.param("say (hi): there", [], ['"Console<0>" say "(hi): there"'], id="console chat is logged"),
        pytest.param("sim_console_chat 0; say hi", ["restart countdown"], [], id="but not by every server"),
        pytest.param("quit", ["exit"], [QUIT], id="quit"),
        pytest.param("exit", ["exit"], [QUIT], id="exit"),
        pytest.param(
            "sv_logfile 1; quit",
            ["restart countdown", "exit"],
            [QUIT, "Log file closed"],
            id="quit closes the log file",
        ),
    ],
)
def test_lines_of_a_command_of_the_server(
    harness: ConsoleHarness, commands: str, calls: list[str], lines: list[str]
) -> None:
    assert harness.execute(commands) == ""
    assert (harness.calls, harness.log.lines) == (calls, lines)
