"""The service inside this process: a part that ends by itself, and a stop that meets trouble."""

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

from matchpod.app import GroundError, open_ground
from matchpod.app.composition import Service, compose
from matchpod.app.listening import bind, port_of
from matchpod.app.serving import Watch, run_service
from matchpod.service.callbacks import Outbox
from matchpod.service.supervisor import Supervisor
from matchpod.settings import Settings, load_settings

START_S = 180.0


@pytest.fixture(autouse=True)
def _alarm_is_off() -> Iterator[None]:
    """The last resort of a stop would end the tests."""
    yield
    signal.alarm(0)


def settings(folder: Path, **values: str) -> Settings:
    given = {f"MATCHPOD_{name.upper()}": value for name, value in values.items()}
    return load_settings({"MATCHPOD_DATA_DIR": str(folder), "MATCHPOD_PORT": "0", **given}, lambda _: None)


def watch(folder: Path, change: Callable[[Service], Service]) -> int:
    async def main() -> int:
        ground = await open_ground(settings(folder))
        with bind("127.0.0.1", 0) as bound:
            url = f"http://127.0.0.1:{port_of(bound)}"
            try:
                service = change(compose(ground, owner="me", ingest_base=url))
                async with asyncio.timeout(START_S):
                    return await Watch(service, bound, url).run()
            finally:
                await ground.close()

    return asyncio.run(main())


def broken_supervisor(service: Service, **methods: Callable[..., Awaitable[None]]) -> Service:
    # A class of its own with some methods replaced: the rest is the real one.
    made = type("Broken", (Supervisor,), methods)(service.supervisor._around, owner="me")
    return msgspec.structs.replace(service, supervisor=made)


async def crash(*_: object) -> None:
    await asyncio.sleep(0.3)
    raise RuntimeError("bug")


async def leave(*_: object) -> None:
    await asyncio.sleep(0.3)


def test_a_supervisor_that_crashes_ends_the_service(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert watch(tmp_path, lambda service: broken_supervisor(service, run=crash)) == 1
    errors = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert [(one.message, vars(one)["part"]) for one in errors] == [
        ("a part of the service ended by itself", "supervisor")
    ]
    assert errors[0].exc_info is not None
    assert caplog.records[-1].message == "stopped"


def test_an_outbox_that_returns_ends_the_service(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def change(service: Service) -> Service:
        class Leaving(Outbox):
            async def run(self) -> None:
                await leave()

        parts = {name.removeprefix("_"): value for name, value in vars(service.outbox).items()}
        wanted = ("db", "clock", "vault", "sender", "measures", "owner", "version")
        return msgspec.structs.replace(service, outbox=Leaving(**{name: parts[name] for name in wanted}))

    assert watch(tmp_path, change) == 1
    assert [vars(one)["part"] for one in caplog.records if one.levelno == logging.ERROR] == ["outbox"]


def test_a_part_that_does_not_end_well_does_not_keep_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert watch(tmp_path, lambda service: broken_supervisor(service, run=leave, drain=crash)) == 1
    said = [one.message for one in caplog.records if one.levelno == logging.ERROR]
    assert said == ["a part of the service ended by itself", "a part did not end as it should"]


def test_the_whole_life_in_one_process(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shown: list[str] = []
    answers: list[int] = []

    def stop_when_ready() -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            found = re.search(r"http://127\.0\.0\.1:\d+(?=/api)", "".join(shown))
            try:
                if found and httpx.get(f"{found[0]}/readyz").status_code == 200:
                    answers.append(httpx.get(f"{found[0]}/metrics").status_code)
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)

    stopper = threading.Thread(target=stop_when_ready)
    before = signal.getsignal(signal.SIGTERM)
    stopper.start()
    with caplog.at_level(logging.INFO):
        assert run_service(settings(tmp_path), announce=shown.append) == 0
    stopper.join()
    assert answers == [200]
    assert signal.getsignal(signal.SIGTERM) is before
    ours = [one.message for one in caplog.records if one.name == "matchpod.app.serving"]
    assert ours == ["listening", "stopping", "stopped"]


def test_a_folder_that_is_taken_and_a_port_in_use_are_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(GroundError, match=rf"cannot listen on 127\.0\.0\.1 port {port}: Address already in use"):
            run_service(settings(tmp_path, port=str(port)), announce=lambda _: None)
    with pytest.raises(GroundError, match=r"cannot listen on nowhere\.invalid"):
        run_service(settings(tmp_path, host="nowhere.invalid"), announce=lambda _: None)
