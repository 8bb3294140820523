"""The service inside the test process: parts that end unexpectedly, and failures while stopping."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from matchpod.app import ResourcesError, open_resources
from matchpod.app.composition import Service, compose
from matchpod.app.http_server import bind, port_of
from matchpod.app.serving import ServiceProcess, Sockets, run_service
from matchpod.service.callbacks.dispatcher import CallbackDispatcher
from matchpod.service.region_checks.runs import CheckRuns
from matchpod.service.runner.supervisor import Supervisor
from matchpod.settings import Settings, load_settings

START_S = 180.0


@pytest.fixture(autouse=True)
def _alarm_is_off() -> Iterator[None]:
    """Cancel the alarm of a stop, which would end the test process."""
    yield
    signal.alarm(0)


def settings(folder: Path, **values: str) -> Settings:
    variables = {f"MATCHPOD_{name.upper()}": value for name, value in values.items()}
    return load_settings({"MATCHPOD_DATA_DIR": str(folder), "MATCHPOD_PORT": "0", **variables}, lambda _: None)


def run_process(folder: Path, change: Callable[[Service], Service]) -> int:
    async def main() -> int:
        resources = await open_resources(settings(folder))
        with bind("127.0.0.1", 0) as bound:
            url = f"http://127.0.0.1:{port_of(bound)}"
            try:
                service = change(compose(resources, owner="me", ingest_base=url))
                async with asyncio.timeout(START_S):
                    return await ServiceProcess(service, Sockets(bound), url).run()
            finally:
                await resources.db.close()

    return asyncio.run(main())


def broken_supervisor(service: Service, **methods: Callable[..., Awaitable[None]]) -> Service:
    # The real supervisor with some methods replaced.
    broken = type("Broken", (Supervisor,), methods)(service.supervisor._deps, owner="me")
    return msgspec.structs.replace(service, supervisor=broken)


async def crash(*_: object) -> None:
    await asyncio.sleep(0)
    raise RuntimeError("bug")


async def return_early(*_: object) -> None:
    await asyncio.sleep(0)


def test_crashed_supervisor_ends_the_service(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert run_process(tmp_path, lambda service: broken_supervisor(service, run=crash)) == 1
    errors = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert [(one.message, vars(one)["part"]) for one in errors] == [("service part ended unexpectedly", "supervisor")]
    assert errors[0].exc_info is not None
    assert caplog.records[-1].message == "stopped"


def test_callback_dispatcher_that_returns_ends_the_service(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def change(service: Service) -> Service:
        class ReturningDispatcher(CallbackDispatcher):
            async def run(self) -> None:
                await return_early()

        parts = {name.removeprefix("_"): value for name, value in vars(service.dispatcher).items()}
        wanted = ("db", "clock", "vault", "sender", "private_callbacks", "metrics", "owner", "version")
        return msgspec.structs.replace(
            service, dispatcher=ReturningDispatcher(**{name: parts[name] for name in wanted})
        )

    assert run_process(tmp_path, change) == 1
    assert [vars(one)["part"] for one in caplog.records if one.levelno == logging.ERROR] == ["outbox"]


def test_part_that_fails_to_stop_does_not_block_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run_process(tmp_path, lambda service: broken_supervisor(service, run=return_early, drain=crash)) == 1
    messages = [one.message for one in caplog.records if one.levelno == logging.ERROR]
    assert messages == ["service part ended unexpectedly", "service part did not stop cleanly"]


def test_check_of_a_region_is_stopped_before_the_other_parts(tmp_path: Path) -> None:
    stopped: list[str] = []

    class Checks(CheckRuns):
        async def run(self) -> None:
            try:
                await asyncio.Future[None]()
            finally:
                stopped.append("checks")

    async def drain(_: Supervisor) -> None:
        stopped.append("matches")

    def change(service: Service) -> Service:
        checks = Checks(service.region_checks._deps, service.regions)
        return msgspec.structs.replace(broken_supervisor(service, run=return_early, drain=drain), region_checks=checks)

    assert run_process(tmp_path, change) == 1
    assert stopped == ["checks", "matches"]


def test_service_starts_serves_and_stops_in_one_process(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shown: list[str] = []
    statuses: list[int] = []

    def stop_when_ready() -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            found = re.search(r"http://127\.0\.0\.1:\d+(?=/api)", "".join(shown))
            try:
                if found and httpx.get(f"{found[0]}/readyz").status_code == 200:
                    statuses.append(httpx.get(f"{found[0]}/metrics").status_code)
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)

    stopper = threading.Thread(target=stop_when_ready)
    before = signal.getsignal(signal.SIGTERM)
    stopper.start()
    with caplog.at_level(logging.INFO):
        assert run_service(settings(tmp_path, host="0.0.0.0"), announce=shown.append) == 0
    stopper.join()
    assert statuses == [200]
    assert signal.getsignal(signal.SIGTERM) is before
    records = [one for one in caplog.records if one.name == "matchpod.app.serving"]
    assert [one.message for one in records] == ["listening", "stopping", "stopped"]
    assert vars(records[0])["address"] == "0.0.0.0", "the URL is that of this machine only"


def test_port_in_use_and_unknown_host_are_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ResourcesError, match=rf"cannot listen .* port {port}: .* in use\..*MATCHPOD_PORT"):
            run_service(settings(tmp_path, port=str(port)), announce=lambda _: None)
    with pytest.raises(ResourcesError, match=r"cannot listen on nowhere\.invalid"):
        run_service(settings(tmp_path, host="nowhere.invalid"), announce=lambda _: None)
