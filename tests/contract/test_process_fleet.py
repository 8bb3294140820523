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

from matchpod.adapters.fleets.process_record import ProcessRecord, RecordFolder, identify
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import FleetError
from matchpod.service.runner.machine_faults import is_machine_fault
from tests.contract import test_fleet as fleets
from tests.contract.listed_servers import own_ids
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
        assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN
        for call in (fleet.servers(), fleet.release("srv_1", slot), fleet.allocate(order(fleet))):
            with pytest.raises(FleetError):
                await call
    assert recorded_pid(folder) == pid
    assert await own_ids(fleet) == ["srv_1"]
    await fleet.release("srv_1", slot)
    assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN


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
    assert await own_ids(fleet) == []


async def test_server_whose_port_cannot_be_probed_is_stopped_and_the_machine_is_reported_as_the_cause(
    folder: Path,
) -> None:
    fleet = process_fleet(folder, start_s=1.0, command=(sys.executable, "-c", "import time; time.sleep(600)", "{port}"))
    task = asyncio.create_task(fleet.allocate(order(fleet)))
    while not list(folder.glob("*.json")) or await fleet.observe("srv_1", fleet.slots[0]) is not FleetReport.ALIVE:
        await asyncio.sleep(0.01)
    with no_file_can_be_opened(), pytest.raises(FleetError) as failed:
        await task
    assert is_machine_fault(failed.value)
    await fleet.release("srv_1", fleet.slots[0])


async def test_static_server_is_not_gone_if_no_connection_can_be_opened() -> None:
    with SimulatorProcess() as server:
        fleet = StaticFleet([StaticServer(server.address, PASSWORD)], RconConsoles(), clean_pause_s=0.01)
        (slot,) = fleet.slots
        with no_file_can_be_opened():
            assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN
            with pytest.raises(FleetError, match="Too many open files") as failed:
                await fleet.allocate(order(fleet))
            await fleet.release("srv_1", slot)
        assert is_machine_fault(failed.value)
        server.kill()
        with pytest.raises(FleetError) as failed:
            await fleet.allocate(order(fleet))
        assert not is_machine_fault(failed.value)
        assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN
        assert await fleet.observe("srv_1", "192.0.2.1:27015") is FleetReport.GONE, "it is no longer in the list"


async def test_server_released_by_another_process_is_reaped(folder: Path) -> None:
    fleet = process_fleet(folder)
    await fleet.allocate(order(fleet))
    stat = Path(f"/proc/{recorded_pid(folder)}/stat")
    os.kill(recorded_pid(folder), signal.SIGKILL)
    RecordFolder(folder).remove("srv_1")
    while ") Z " not in stat.read_text("utf-8"):
        await asyncio.sleep(0.01)
    assert await own_ids(fleet) == []
    assert not stat.exists()
    assert await own_ids(fleet) == []


@pytest.mark.parametrize("is_reported", [True, False], ids=["reported by the system", "checked"])
async def test_end_of_a_process_is_noticed_although_another_process_started_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_reported: bool
) -> None:
    def fail(_pid: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    if not is_reported:
        monkeypatch.setattr(os, "pidfd_open", fail)
    program = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid)"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=subprocess.PIPE)
    pid = int((await child.communicate())[0])
    fleet = process_fleet(folder)
    waiting = asyncio.create_task(fleet.wait_gone("srv_1", fleet.slots[0]))
    await asyncio.sleep(0.1)
    RecordFolder(folder).write(ProcessRecord(server_id="srv_1", slot=fleet.slots[0], process=identify(pid)))
    await asyncio.sleep(2)
    assert not waiting.done(), "it runs"
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        assert await waiting == "its process has ended"
