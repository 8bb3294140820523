"""A farm does not leak resources over hundreds of matches."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import Outside
from cs2_simulator.wire.farm import Farm
from cs2_simulator.wire.server import SimulatedServer
from protocol_tests.effort import sized

SERVERS = 20
SPEED = 300.0
WARMUP_MATCHES = 50
MATCHES = sized(200, 2000)
TIMEOUT_S = 600.0

MAPS = ("de_nuke", "de_inferno", "de_mirage")
SHORT_MATCH = "mp_maxrounds 2;mp_freezetime 1;mp_round_restart_delay 1;mp_halftime_duration 1;mp_warmuptime 5"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class ResourceCounts(NamedTuple):
    """Resources of the process while all clocks are stopped."""

    files: int
    tasks: int
    memory_kb: int
    blocks: int
    objects: Counter[str]


class MatchDriver:
    """Receives the log of all servers and starts the next match on each."""

    def __init__(self) -> None:
        self.farm: Farm | None = None
        self.matches = 0
        self.lines = 0
        self.ended = 0
        self.connections = 0

    def receive(self, server: int, body: bytes) -> None:
        self.lines += body.count(b"\n")
        if b"Loading map" in body:  # the config of the game mode has overwritten the settings
            self._execute(server, SHORT_MATCH)
        if b"Game Over" in body:
            self.matches += 1
            self._execute(server, f"changelevel {MAPS[self.matches % len(MAPS)]}")

    def record_end(self, _server: SimulatedServer) -> None:
        self.ended += 1

    def _execute(self, server: int, command: str) -> None:
        assert self.farm is not None
        asyncio.get_running_loop().call_soon(self.farm.servers[server].execute, command, "127.0.0.1:1")

    async def run_until(self, matches: int) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while self.matches < matches:
                await asyncio.sleep(0.02)

    async def count_resources(self) -> ResourceCounts:
        """Stop the clocks, wait until all posts are answered, and count."""
        assert self.farm is not None
        for server in self.farm.servers:
            server.set_speed(0)
        async with asyncio.timeout(10):
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.02)
        gc.collect()
        counts = ResourceCounts(
            files=len(os.listdir("/proc/self/fd")) - 2 * self.connections,  # the number of connections varies
            tasks=len(asyncio.all_tasks()),
            memory_kb=int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]),
            blocks=sys.getallocatedblocks(),
            objects=Counter(type(one).__name__ for one in gc.get_objects()),
        )
        for server in self.farm.servers:
            server.set_speed(SPEED)
        return counts


class Receiver(asyncio.Protocol):
    def __init__(self, driver: MatchDriver) -> None:
        self._driver = driver
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._driver.connections += 1

    def connection_lost(self, _exc: Exception | None) -> None:
        self._driver.connections -= 1

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, has_head, rest = self._received.partition(b"\r\n\r\n")
        length = int(head.partition(b"Content-Length: ")[2].split()[0]) if has_head else 0
        if not has_head or len(rest) < length:
            return
        self._received = rest[length:]
        self._transport.write(OK)
        self._driver.receive(int(head.split(b" ", 2)[1].removeprefix(b"/log/")), rest[:length])


def _make_machine(options: ServerOptions, outside: Outside, *, start_ms: int, instance_token: str) -> Machine:
    """Create a machine whose players stay for another match."""
    machine = Machine(options, outside, start_ms=start_ms, instance_token=instance_token)
    machine.visitors.crowd.stays_after_map = True
    return machine


async def _play() -> tuple[ResourceCounts, ResourceCounts, MatchDriver]:
    driver = MatchDriver()
    receiver = await asyncio.get_running_loop().create_server(lambda: Receiver(driver), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}/log"
    options = [
        ServerOptions(
            port=0,
            speed=SPEED,
            game_mode=2,
            seed=str(number),
            players="101,102",
            commands=("sim_map_load 1", "log on", f'logaddress_add_http "{url}/{number}"', SHORT_MATCH),
        )
        for number in range(SERVERS)
    ]
    driver.farm = Farm(options, _make_machine, on_exit=driver.record_end)
    await driver.farm.start()
    try:
        await driver.run_until(WARMUP_MATCHES)
        before = await driver.count_resources()
        await driver.run_until(MATCHES)
        after = await driver.count_resources()
        assert driver.ended == 0
    finally:
        await driver.farm.stop()
        receiver.close()
        await receiver.wait_closed()
    return before, after, driver


@pytest.mark.soak
@pytest.mark.law
def test_many_matches_do_not_leak_resources() -> None:
    before, after, driver = asyncio.run(_play())
    assert after.files == before.files
    assert after.tasks == before.tasks == 1
    assert after.memory_kb < 1.1 * before.memory_kb
    assert after.blocks < 1.1 * before.blocks
    grown = {name: count - before.objects[name] for name, count in after.objects.items()}
    # A leak of one object per match would exceed this limit; other objects vary by less.
    assert max(grown.values()) < 0.8 * (MATCHES - WARMUP_MATCHES), grown
    assert driver.lines > 100 * MATCHES
