"""Checks of regions whose servers are simulated, with sockets; their log posts arrive over HTTP at a real ingest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import Outside
from cs2_simulator.setup_faults import SetupFault
from cs2_simulator.wire.farm import Farm
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.ports import Database, Fleet
from matchpod.service.ingest.posts import Receipt
from matchpod.service.region_checks.requests import RegionCheckView
from matchpod.service.region_checks.runs import RegionCheck
from matchpod.service.region_checks.server_check import CheckTimes
from matchpod.service.regions.regions import Region
from matchpod.storage import region_checks
from tests.clocks import ManualClock
from tests.contract.parts import Parts

OURS, THEIRS = "mp-00000000000000aa", "mp-00000000000000bb"
PASSWORD = "a password"
CODE = "eu"
TIMES = CheckTimes(post_s=1.5, asleep_s=0.3, start_s=120.0, pause_s=0.05)


class CheckedRegion(Parts):
    """A region, and what checks it."""

    def __init__(self, db: Database, fleet: Fleet, base: str, *, speed: float = 1.0) -> None:
        self.region = Region(code=CODE, name="Europe", location="Bonn", speed=speed, fleet=fleet)
        super().__init__(db, clock=ManualClock.of_now(), regions=[self.region], base=base, installation=OURS)
        self.check_deps = msgspec.structs.replace(self.checks._deps, times=TIMES)
        self.checks._deps = self.check_deps
        self.requests = self.services.region_checks

    async def begin(self, *, may_allocate: bool = False) -> RegionCheck:
        """Request a check and begin it, as the loop of a process does."""
        await self.requests.request(CODE, actor="tester", may_allocate=may_allocate)
        row = await region_checks.begin(self.db, CODE, self.clock.now_ms())
        assert row is not None
        return RegionCheck(self.check_deps, self.region, row)

    async def check(self, *, may_allocate: bool = False) -> RegionCheckView:
        """Check the region, and return what was found."""
        await (await self.begin(may_allocate=may_allocate)).run()
        return await self.read()

    async def read(self) -> RegionCheckView:
        found = await self.requests.read(CODE)
        assert found is not None
        return found

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the log posts of one connection, as the service does."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                request, *lines = head.decode("latin-1").split("\r\n")[:-2]
                named = [line.partition(": ") for line in lines]
                headers = [(name.lower().encode(), value.encode()) for name, _, value in named]
                body = await reader.readexactly(int(dict(headers)[b"content-length"]))
                token = request.split()[1].rpartition("/")[2]
                receipt = await self.ingest.store_log(token, headers, body, source="198.51.100.4")
                status = b"200 OK" if receipt is Receipt.STORED else b"410 Gone"
                writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def open_region(db: Database, fleet: Fleet, *, speed: float = 1.0) -> AsyncIterator[CheckedRegion]:
    """Provide a region with this fleet."""
    regions: list[CheckedRegion] = []

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await regions[0].receive(reader, writer)

    receiver = await asyncio.start_server(receive, "127.0.0.1", 0)
    try:
        base = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}"
        regions.append(CheckedRegion(db, fleet, base, speed=speed))
        yield regions[0]
    finally:
        receiver.close()


class RunningServer(NamedTuple):
    """A simulated server, and where it listens."""

    address: str
    machine: Machine


@asynccontextmanager
async def simulated_servers(*changes: dict[str, object]) -> AsyncIterator[list[RunningServer]]:
    """Run a server for each of these options."""
    machines: list[Machine] = []

    def make(options: ServerOptions, outside: Outside, *, start_ms: int, instance_token: str) -> Machine:
        machines.append(Machine(options, outside, start_ms=start_ms, instance_token=instance_token))
        return machines[-1]

    base = ServerOptions(port=0, rcon_password=PASSWORD)
    farm = Farm([msgspec.structs.replace(base, **change) for change in changes], make, on_exit=lambda _: None)
    await farm.start()
    try:
        addresses = [f"127.0.0.1:{server.options.port}" for server in farm.servers]
        yield [RunningServer(*found) for found in zip(addresses, machines, strict=True)]
    finally:
        await farm.abort()


def static_fleet(running: Sequence[RunningServer], *, passwords: Mapping[int, str] = {}) -> StaticFleet:
    """Return a fleet of these servers; `passwords` are wrong ones, by number."""
    listed = [StaticServer(one.address, passwords.get(number, PASSWORD)) for number, one in enumerate(running)]
    return StaticFleet(listed, RconConsoles(), owner=OURS)


def with_fault(fault: SetupFault) -> dict[str, object]:
    return {"setup_fault": fault}
