"""Fleets on a machine without files, space, memory or processes; servers released by another process."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from matchpod.adapters.fleets.process_record import RecordFolder
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.ports import FleetError
from matchpod.service.runner.machine_faults import is_machine_fault
from tests.contract import test_fleet as fleets
from tests.contract.simulator_process import PASSWORD, SimulatorProcess
from tests.contract.test_fleet import order, process_fleet, recorded_pid

folder = fleets.folder


@contextmanager
def no_file_can_be_opened() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_servers_stay_alive_if_no_file_can_be_opened(folder: Path) -> None:
    fleet = process_fleet(folder)
    slot = fleet.slots[0]
    await fleet.allocate(order(fleet))
    pid = recorded_pid(folder)
    with no_file_can_be_opened():
        assert await fleet.is_alive("srv_1", slot)
        for call in (fleet.servers(), fleet.release("srv_1", slot), fleet.allocate(order(fleet))):
            with pytest.raises(FleetError):
                await call
    assert recorded_pid(folder) == pid
    assert await fleet.servers() == ["srv_1"]
    await fleet.release("srv_1", slot)
    assert not await fleet.is_alive("srv_1", slot)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("failing", [(subprocess, "Popen"), (os, "fsync")], ids=["start", "record"])
async def test_machine_that_cannot_start_a_server_is_reported_as_the_cause(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: tuple[object, str], number: int
) -> None:
    def fail(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    fleet = process_fleet(folder)
    with monkeypatch.context() as patched:
        patched.setattr(*failing, fail)
        with pytest.raises(FleetError) as failed:
            await fleet.allocate(order(fleet))
    assert is_machine_fault(failed.value)
    assert os.strerror(number) in str(failed.value)
    assert list(folder.iterdir()) == []
    assert list(await fleet.servers()) == []


async def test_server_whose_port_cannot_be_probed_is_stopped_and_the_machine_is_reported_as_the_cause(
    folder: Path,
) -> None:
    fleet = process_fleet(folder, start_s=1.0, command=(sys.executable, "-c", "import time; time.sleep(600)", "{port}"))
    task = asyncio.create_task(fleet.allocate(order(fleet)))
    while not list(folder.glob("*.json")) or not await fleet.is_alive("srv_1", fleet.slots[0]):
        await asyncio.sleep(0.01)
    with no_file_can_be_opened(), pytest.raises(FleetError) as failed:
        await task
    assert is_machine_fault(failed.value)
    await fleet.release("srv_1", fleet.slots[0])


async def test_static_server_counts_as_alive_if_no_connection_can_be_opened() -> None:
    with SimulatorProcess() as server:
        fleet = StaticFleet([StaticServer(server.address, PASSWORD)], RconConsoles(), clean_pause_s=0.01)
        (slot,) = fleet.slots
        with no_file_can_be_opened():
            assert await fleet.is_alive("srv_1", slot)
            with pytest.raises(FleetError, match="Too many open files") as failed:
                await fleet.allocate(order(fleet))
            await fleet.release("srv_1", slot)
        assert is_machine_fault(failed.value)
        server.kill()
        with pytest.raises(FleetError) as failed:
            await fleet.allocate(order(fleet))
        assert not is_machine_fault(failed.value)
        assert not await fleet.is_alive("srv_1", slot)


async def test_server_released_by_another_process_is_reaped(folder: Path) -> None:
    fleet = process_fleet(folder)
    await fleet.allocate(order(fleet))
    stat = Path(f"/proc/{recorded_pid(folder)}/stat")
    os.kill(recorded_pid(folder), signal.SIGKILL)
    RecordFolder(folder).remove("srv_1")
    while ") Z " not in stat.read_text("utf-8"):
        await asyncio.sleep(0.01)
    assert await fleet.servers() == []
    assert not stat.exists()
    assert await fleet.servers() == []
