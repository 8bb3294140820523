"""Tests of servers that were set up wrongly: what their ports and their consoles answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cs2_protocol.log_clock import format_stamp
from cs2_protocol.server_query import INFO_REQUEST, is_answer
from cs2_simulator.machine import BEHIND_MS, Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.setup_faults import SetupFault
from cs2_simulator.wire.farm import Farm
from cs2_simulator.wire.server import SLOW_S
from simulator_tests.null_outside import NullOutside
from simulator_tests.rcon_client import RconClient
from simulator_tests.wire.log_receiver import LogReceiver
from simulator_tests.wire.loop_thread import LoopThread

PASSWORD = "secret"
START_MS = 1_768_849_200_000


@contextmanager
def server_with(fault: SetupFault | None) -> Iterator[int]:
    options = ServerOptions(port=0, rcon_password=PASSWORD, setup_fault=fault)
    with LoopThread() as loop:
        farm = loop.run(lambda: Farm([options], Machine, on_exit=lambda _: None))
        loop.call(farm.start())
        try:
            yield farm.servers[0].options.port
        finally:
            loop.call(farm.abort())


def answers(fault: SetupFault | None, *commands: str) -> list[str]:
    machine = machine_with(fault)
    return [machine.execute(command, "127.0.0.1:50000") for command in commands]


def test_healthy_server_lists_its_plugins() -> None:
    meta, css = answers(None, "meta list", "css_plugins list")
    assert meta.startswith("Listing 1 plugin:\n  [01] CounterStrikeSharp (v")
    assert '[#1:LOADED]: "MatchZy" (0.8.15)' in css


@pytest.mark.parametrize(
    ("fault", "meta", "css", "matchzy"),
    [
        (SetupFault.METAMOD_MISSING, "Unknown command 'meta'!", "Unknown command", "Unknown command"),
        (SetupFault.CSS_FAILED, "[01] <ERROR>", "Unknown command", "Unknown command"),
        (SetupFault.MATCHZY_MISSING, "CounterStrikeSharp", ": 0 plugins loaded.", "Unknown command"),
    ],
)
def test_missing_programs_show_in_their_commands(fault: SetupFault, meta: str, css: str, matchzy: str) -> None:
    found = answers(fault, "meta list", "css_plugins list", "get5_status")
    for text, expected in zip(found, (meta, css, matchzy), strict=True):
        assert expected in text


def test_lists_need_an_argument() -> None:
    meta, css = answers(None, "meta", "css_plugins")
    assert meta.startswith("usage: meta")
    assert css.startswith("Valid usage: css_plugins")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(None, "[G:1:"), (SetupFault.NO_LOGIN_TOKEN, "[A:1:"), (SetupFault.OLD_BUILD, " 10521 secure")],
)
def test_status_shows_account_and_build(fault: SetupFault | None, expected: str) -> None:
    (status,) = answers(fault, "status")
    assert expected in status


def test_log_address_may_not_be_kept() -> None:
    added, listed = answers(
        SetupFault.LOG_NOT_KEPT, 'logaddress_add_http "http://127.0.0.1:9/"', "logaddress_list_http"
    )
    assert (added, listed) == ("", "")


def test_game_without_rcon_answers_queries_only() -> None:
    with server_with(SetupFault.RCON_OFF) as port:
        with pytest.raises(ConnectionRefusedError):
            RconClient(port)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
            query.settimeout(60)
            query.sendto(b"anything else", ("127.0.0.1", port))
            for request, kind in ((INFO_REQUEST, b"A"), (INFO_REQUEST + b"\x01\x02\x03\x04", b"I")):
                query.sendto(request, ("127.0.0.1", port))
                answer = query.recv(1400)
                assert is_answer(answer)
                assert answer[4:5] == kind


def test_silent_console_accepts_connections_and_never_answers() -> None:
    with server_with(SetupFault.CONSOLE_SILENT) as port, RconClient(port) as client:
        client.socket.settimeout(0.2)
        client.send(1, 3, PASSWORD.encode())
        with pytest.raises(TimeoutError):
            client.receive()


def test_slow_console_takes_its_time() -> None:
    with server_with(SetupFault.CONSOLE_SLOW) as port, RconClient(port) as client:
        begin_s = time.monotonic()
        assert client.log_in(PASSWORD)
        assert time.monotonic() - begin_s >= SLOW_S


def machine_with(fault: SetupFault | None) -> Machine:
    """Return a booted server without sockets that has a log address, and something to post."""
    options = ServerOptions(rcon_password=PASSWORD, setup_fault=fault)
    machine = Machine(options, NullOutside(), start_ms=START_MS, instance_token="7be6ded70c65df71")
    machine.boot()
    for command in ("log on", 'logaddress_add_http "http://127.0.0.1:9/log"', "echo hello"):
        machine.execute(command, "127.0.0.1:50000")
    machine.agenda.run_until(START_MS + 1000)
    return machine


def next_head(machine: Machine) -> bytes | None:
    (listener,) = machine.stream.listeners
    request = machine.stream.next_request(listener)
    return None if request is None else request.head


def test_wrong_clock_shows_in_the_log() -> None:
    right, wrong = next_head(machine_with(None)), next_head(machine_with(SetupFault.WRONG_CLOCK))
    assert right is not None
    assert f"X-Timestamp: {format_stamp(START_MS + 1000, millis=True)}".encode() in right
    assert wrong is not None
    assert f"X-Timestamp: {format_stamp(START_MS + 1000 - BEHIND_MS, millis=True)}".encode() in wrong


def test_hibernating_server_posts_when_it_is_kept_awake() -> None:
    machine = machine_with(SetupFault.HIBERNATES)
    machine.execute("sv_hibernate_when_empty 1", "127.0.0.1:50000")
    assert "(hibernating)" in machine.execute("status", "127.0.0.1:50000")
    assert next_head(machine) is None
    machine.execute("sv_hibernate_when_empty 0", "127.0.0.1:50000")
    assert next_head(machine) is not None


@pytest.mark.parametrize("fault", [SetupFault.LOG_REFUSED, SetupFault.LOG_UNREACHABLE])
def test_log_posts_are_lost(fault: SetupFault) -> None:
    with LogReceiver() as receiver, server_with(fault) as port, RconClient(port) as client:
        assert client.log_in(PASSWORD)
        for command in ("log on", f'logaddress_add_http "{receiver.url}"', "echo hello"):
            client.run(command)
        is_pending = False
        while not is_pending and fault is SetupFault.LOG_UNREACHABLE:
            is_pending = "has pending request" in client.run("logaddress_list_http")
        client.run("quit")
        assert client.is_closed()
        assert receiver.requests == []
