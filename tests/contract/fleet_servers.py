"""Orders and servers for tests of fleets, and what the system shows of the processes that a fleet has started."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cs2_protocol.console_answers import StatusPlayer, parse_status
from matchpod.adapters.fleets.process import ProcessFleet, ProcessOptions
from matchpod.adapters.fleets.process_record import MARK_NAME, RecordFolder
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.ports import Fleet, GameServer, ServerOrder
from tests.contract.simulator_process import PASSWORD, SIMULATE, SPEED, free_ports

HOST = "127.0.0.1"
SIMULATOR = (
    *(*SIMULATE, "-port", "{port}", "-ip", "{ip}", "+map", "{map}", "+game_type", "{game_type}"),
    *("+game_mode", "{game_mode}", "--players", "{players}", "--speed", "{speed}", "--seed", "{server_id}", "--quiet"),
)
LISTENER = (
    *(sys.executable, "-S", "-c"),
    "import socket, time; s = socket.create_server(('{ip}', {port})); time.sleep(600)",
)
"""A program that only opens its port, for tests that send it no commands: it starts ten times as fast."""


def order(fleet: Fleet, server_id: str = "srv_1", slot: int = 0) -> ServerOrder:
    return ServerOrder(
        server_id=server_id,
        slot=fleet.slots[slot] if fleet.slots is not None else "",
        map_name="de_nuke",
        game_type=0,
        game_mode=1,
        rcon_password=PASSWORD,
    )


async def allocated(fleet: Fleet, server_order: ServerOrder) -> tuple[GameServer, str]:
    """Allocate a server that is free, and return it with its slot: a fleet without slots names it."""
    server = await fleet.allocate(server_order)
    assert server is not None
    assert (server.slot is None) == (fleet.slots is not None)
    return server, server_order.slot if server.slot is None else server.slot


async def answer_of(server: GameServer, command: str) -> str:
    console = await RconConsoles().open(server.rcon_host, server.rcon_port, server.rcon_password)
    try:
        return await console.run(command)
    finally:
        await console.close()


async def players_on(server: GameServer) -> tuple[StatusPlayer, ...]:
    return parse_status(await answer_of(server, "status"))


def process_fleet(folder: Path, ports: tuple[int, ...] | None = None, **changes: object) -> ProcessFleet:
    """Return a fleet of programs that only listen, unless another command is given."""
    options = ProcessOptions(command=LISTENER, ports=ports or free_ports(2), speed=SPEED)
    return ProcessFleet(folder, msgspec.structs.replace(options, **changes))


def running_pids(folder: Path) -> list[int]:
    """Return the ids of all processes that were started for servers of this folder, including zombies."""
    mark = f"{MARK_NAME}={folder.resolve()}:".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def recorded_pid(folder: Path, server_id: str = "srv_1") -> int:
    record = RecordFolder(folder).read(server_id)
    assert record is not None
    assert record.process is not None
    return record.process.pid


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Provide a folder for records; kill processes that a test left behind, and fail if there are any."""
    yield tmp_path / "fleet"
    left = running_pids(tmp_path / "fleet")
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
