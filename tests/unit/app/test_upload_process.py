"""The process that receives demos is started again whatever happens to it, and accepts nothing once it stops."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.app import upload_process
from matchpod.app.upload_process import UploadProcess
from matchpod.service.telemetry.metrics import DemoMetrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage.migrate import migrate
from tests.vaults import VAULT

LIMIT_S = 120

Start = Callable[[Sequence[str]], UploadProcess]


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        yield opened


@pytest.fixture
async def start(bound: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setattr(upload_process, "FIRST_PAUSE_S", 0.01)
    db = await SqliteDatabase.open(tmp_path / "db")
    await migrate(db, VAULT.seal)
    yield lambda command: UploadProcess(
        bound, db=db, clock=SystemClock(), metrics=DemoMetrics(Registry()), owner="me", command=command
    )
    await db.close()


@pytest.mark.parametrize(
    "command", [["/nowhere/matchpod"], ["/bin/sh", "-c", "echo noise; echo {}"]], ids=["not started", "noise"]
)
async def test_process_is_tried_again(start: Start, caplog: pytest.LogCaptureFixture, command: list[str]) -> None:
    running = asyncio.create_task(start(command).run())
    async with asyncio.timeout(LIMIT_S):
        while sum("restarting" in record.message for record in caplog.records) < 2:
            assert not running.done()
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_process_that_was_just_started_is_stopped(start: Start) -> None:
    process = start([sys.executable, "-c", "input()"])
    running = asyncio.create_task(process.run())
    await asyncio.sleep(0)  # it is about to be started
    async with asyncio.timeout(LIMIT_S):
        await process.stop(0)
        await running
    assert process.pid is None


async def test_uploads_are_not_connected_once_it_stops(start: Start, bound: socket.socket) -> None:
    address = bound.getsockname()
    process = start([sys.executable, "-c", "input()"])
    running = asyncio.create_task(process.run())
    async with asyncio.timeout(LIMIT_S):
        while process.pid is None:
            await asyncio.sleep(0.01)
        await process.stop(10)
        await running
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address).close()
