"""Commands about who gets the log."""

from __future__ import annotations

import pytest

from matchpod.cs2.console_answers import LogListener, parse_log_listeners
from tests.unit.simulator.console.bench import Bench, KeptListener


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_log_is_switched_on_and_off(bench: Bench) -> None:
    assert bench.say("log on") == "Server logging enabled.\n"
    assert bench.listeners.is_on
    assert bench.say("log off") == "Server logging disabled.\n"
    assert not bench.listeners.is_on
    assert bench.notes == ["settle", "settle"]
    assert bench.log.lines == []


def test_log_alone_says_how_it_stands(bench: Bench) -> None:
    assert bench.say("log").endswith("not currently logging\n")
    bench.say("log on")
    bench.notes.clear()
    assert bench.say("log maybe").endswith("\ncurrently logging\n")
    assert bench.notes == []


def test_log_file_is_opened_and_closed_where_there_is_one(bench: Bench) -> None:
    bench.say("sv_logfile 1; log on; log off")
    assert bench.log.lines == [
        'Log file started (file "logs/1768849000.log") (game "csgo") (version "10603")',
        "Log file closed",
    ]


def test_address_is_added_and_anybody_may_come(bench: Bench) -> None:
    assert bench.say('logaddress_add_http "http://h/a?b=c"') == ""
    assert bench.listeners.kept == [KeptListener("http://h/a?b=c", 0)]
    assert bench.notes == ["expect anybody", "settle"]


def test_nobody_else_is_expected_where_the_plugin_has_a_match(bench: Bench) -> None:
    bench.console.has_plugin_match = lambda: True
    bench.say('logaddress_add_http "http://h/a"')
    assert bench.notes == ["settle"]


def test_address_without_quotes_is_refused(bench: Bench) -> None:
    assert "Invalid parameters" in bench.say("logaddress_add_http http://h/a")
    assert bench.listeners.kept == []


def test_address_is_added_with_a_delay(bench: Bench) -> None:
    assert bench.say('logaddress_add_http_delayed 1.5 "http://h/a"') == ""
    assert bench.listeners.kept == [KeptListener("http://h/a", 1500)]


@pytest.mark.parametrize("rest", ["", '"http://h/a"', 'x "http://h/a"', '-1 "http://h/a"', 'inf "http://h/a"'])
def test_delay_that_is_no_time_is_refused(bench: Bench, rest: str) -> None:
    assert "Invalid parameters" in bench.say(f"logaddress_add_http_delayed {rest}")
    assert bench.listeners.kept == []


def test_address_is_removed(bench: Bench) -> None:
    bench.say('logaddress_add_http "http://h/a"; logaddress_add_http "http://h/b"')
    assert bench.say('logaddress_del_http "http://h/a"') == ""
    assert bench.say('logaddress_del_http "http://h/a"') == "logaddress_del_http: no listener http://h/a\n"
    assert "Invalid parameters" in bench.say("logaddress_del_http")
    assert bench.listeners.kept == [KeptListener("http://h/b", 0)]


def test_all_addresses_are_removed(bench: Bench) -> None:
    bench.say('logaddress_add_http "http://h/a"; logaddress_delall_http')
    assert bench.say("logaddress_list_http") == ""


def test_list_of_addresses_is_what_we_read(bench: Bench) -> None:
    bench.listeners.kept = [
        KeptListener("https://h/a", 0, has_pending_request=True, acknowledged_tick=77),
        KeptListener("http://h/b", 0),
    ]
    assert parse_log_listeners(bench.say("logaddress_list_http")) == (
        LogListener(uri="https://h/a", has_pending_request=True, acknowledged_tick=77),
        LogListener(uri="http://h/b", has_pending_request=False, acknowledged_tick=0),
    )


def test_secret_of_the_log_is_kept_as_a_variable(bench: Bench) -> None:
    bench.say('logaddress_token_secret "cm123"')
    assert bench.variables.text("logaddress_token_secret") == "cm123"
