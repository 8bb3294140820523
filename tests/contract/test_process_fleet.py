"""A process fleet without free file descriptors, and with servers released by another process."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from matchpod.adapters.fleets.process_record import RecordFolder
from matchpod.ports import FleetError
from tests.contract import test_fleet as fleets
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
