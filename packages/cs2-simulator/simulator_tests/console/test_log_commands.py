"""Tests of the log commands."""

from __future__ import annotations

import pytest

from cs2_protocol.console_answers import parse_log_listeners
from cs2_simulator.agenda import TICKS_PER_S
from simulator_tests.console.console_harness import ConsoleHarness


def listeners_of(harness: ConsoleHarness) -> list[tuple[str, int]]:
    """Return the URL and the delay in milliseconds of each listener."""
    return [(listener.url, listener.delay_ticks * 1000 // TICKS_PER_S) for listener in harness.stream.listeners]


def test_log_is_switched_on_and_off(harness: ConsoleHarness) -> None:
    assert harness.execute("log on") == "Server logging enabled.\n"
    assert harness.stream.is_on
    assert harness.execute("log off") == "Server logging disabled.\n"
    assert not harness.stream.is_on
    assert harness.calls == ["restart countdown", "restart countdown"]
    assert harness.log.lines == []


def test_log_without_a_valid_argument_prints_the_state(harness: ConsoleHarness) -> None:
    assert harness.execute("log").endswith("not currently logging\n")
    harness.execute("log on")
    harness.calls.clear()
    assert harness.execute("log maybe").endswith("\ncurrently logging\n")
    assert harness.calls == []


def test_enabled_log_file_is_opened_and_closed_with_the_log(harness: ConsoleHarness) -> None:
    harness.execute("sv_logfile 1; log on; log off")
    assert harness.log.lines == [
        'Log file started (file "logs/1768849000.log") (game "csgo") (version "10603")',
        "Log file closed",
    ]


def test_random_players_are_expected_once_a_listener_is_added(harness: ConsoleHarness) -> None:
    assert harness.execute('logaddress_add_http "http://h/a?b=c"') == ""
    assert listeners_of(harness) == [("http://h/a?b=c", 0)]
    assert harness.calls == ["expect anyone", "restart countdown"]


@pytest.mark.parametrize(
    "command",
    [
        "logaddress_add_http http://h/a",
        *(f"logaddress_add_http_delayed {rest}" for rest in ("", '"http://h/a"', 'x "http://h/a"', '-1 "http://h/a"')),
        'logaddress_add_http_delayed inf "http://h/a"',
        "logaddress_del_http",
    ],
)
def test_invalid_url_or_delay_is_rejected(harness: ConsoleHarness, command: str) -> None:
    assert "Invalid parameters" in harness.execute(command)
    assert harness.stream.listeners == []


def test_listener_is_added_with_a_delay_and_removed_with_all_others(harness: ConsoleHarness) -> None:
    assert harness.execute('logaddress_add_http_delayed 1.5 "http://h/a"') == ""
    assert listeners_of(harness) == [("http://h/a", 1500)]
    harness.execute("logaddress_delall_http")
    assert harness.execute("logaddress_list_http") == ""


def test_listener_is_removed(harness: ConsoleHarness) -> None:
    harness.execute('logaddress_add_http "http://h/a"; logaddress_add_http "http://h/b"')
    assert harness.execute('logaddress_del_http "http://h/a"') == ""
    assert harness.execute('logaddress_del_http "http://h/a"') == "logaddress_del_http: no listener http://h/a\n"
    assert listeners_of(harness) == [("http://h/b", 0)]


def test_list_of_listeners_is_recognized_by_our_parser(harness: ConsoleHarness) -> None:
    harness.execute('logaddress_add_http "https://h/a"; logaddress_add_http "http://h/b"')
    first = harness.stream.listeners[0]
    first.requested_to, first.acknowledged_tick = 1, 77
    answer = harness.execute("logaddress_list_http")
    assert parse_log_listeners(answer) == ("https://h/a", "http://h/b")
    assert "https://h/a - has pending request\n\tlast acknowledged tick 77\n" in answer
    assert "http://h/b - no pending request\n\tlast acknowledged tick 0\n" in answer
