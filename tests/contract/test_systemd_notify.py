"""Reports to systemd, on a real socket."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchpod.adapters.systemd_notify import SystemdNotifier

LIMIT_S = 60.0


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket that systemd listens on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(LIMIT_S)
        yield listening


def test_reports_arrive_and_the_variables_are_removed(systemd: socket.socket) -> None:
    environment = {"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "90000000", "HOME": "/"}
    notifier = SystemdNotifier(environment)
    assert environment == {"HOME": "/"}
    assert notifier.watchdog_s == 90
    notifier.ready("listening on http://127.0.0.1:8080")
    assert systemd.recv(1000) == b"READY=1\nSTATUS=listening on http://127.0.0.1:8080"
    notifier.stopping()
    assert systemd.recv(1000).startswith(b"STOPPING=1\n")


def test_socket_in_the_abstract_namespace_is_found() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("")  # the system chooses an abstract name
        listening.settimeout(LIMIT_S)
        SystemdNotifier({"NOTIFY_SOCKET": "@" + listening.getsockname()[1:].decode()}).ready("up")
        assert listening.recv(1000) == b"READY=1\nSTATUS=up"


async def test_event_loop_that_is_stuck_reports_no_progress(systemd: socket.socket) -> None:
    notifier = SystemdNotifier({"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "30000"})
    beating = asyncio.create_task(notifier.run_watchdog())
    for _ in range(3):
        assert await asyncio.to_thread(systemd.recv, 1000) == b"WATCHDOG=1"
    silent = threading.Event()

    def listen() -> None:
        systemd.settimeout(1.0)
        try:
            while systemd.recv(1000):
                pass
        except TimeoutError:
            silent.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert silent.wait(LIMIT_S)  # blocks the event loop
    listener.join()
    systemd.settimeout(LIMIT_S)
    assert await asyncio.to_thread(systemd.recv, 1000) == b"WATCHDOG=1"
    beating.cancel()


@pytest.mark.parametrize(
    ("variables", "watchdog_s"),
    [
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "ours"}, 1),
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, 0),
        ({"WATCHDOG_USEC": "soon"}, 0),
        ({}, 0),
    ],
)
def test_watchdog_is_only_for_the_process_it_names(variables: dict[str, str], watchdog_s: float) -> None:
    given = {name: str(os.getpid()) if value == "ours" else value for name, value in variables.items()}
    assert SystemdNotifier({"NOTIFY_SOCKET": "/x", **given}).watchdog_s == watchdog_s


def test_without_systemd_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    notifier = SystemdNotifier({"WATCHDOG_USEC": "1000000"})
    notifier.ready("up")
    assert notifier.watchdog_s == 0
    assert caplog.messages == []


def test_socket_that_is_gone_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notifier = SystemdNotifier({"NOTIFY_SOCKET": str(tmp_path / "absent")})
    notifier.ready("up")
    notifier.stopping()
    assert caplog.messages == ["systemd not notified"]
