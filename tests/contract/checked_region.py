"""Checks of regions whose servers are simulated, with sockets; their log posts arrive over HTTP at a real ingest."""

from __future__ import annotations

import asyncio
import secrets
import time
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
from matchpod.adapters.server_probe import SocketProbe
from matchpod.ports import Database, Fleet
from matchpod.service.access.audit import Audit
from matchpod.service.ingest.posts import Ingest, Receipt
from matchpod.service.ingest.urls import IngestUrls
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.service.region_checks.requests import RegionChecks, RegionCheckView
from matchpod.service.region_checks.runs import CheckRuns, RegionCheck
from matchpod.service.region_checks.server_check import CheckDeps, CheckTimes
from matchpod.service.regions.regions import Region, Regions
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage import region_checks
from tests.vaults import VAULT

OURS, THEIRS = "mp-00000000000000aa", "mp-00000000000000bb"
PASSWORD = "a password"
CODE = "eu"
TIMES = CheckTimes(post_s=1.5, asleep_s=0.3, start_s=120.0, pause_s=0.05)


class WallClock:
    """The time of this machine, and how far a test has moved it."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


class CheckedRegion:
    """A region, and what checks it."""

    def __init__(self, db: Database, fleet: Fleet, base: str, *, speed: float = 1.0) -> None:
        self.db = db
        self.clock = WallClock()
        self.region = Region(code=CODE, name="Europe", location="Bonn", speed=speed, fleet=fleet)
        self.regions = Regions([self.region], db)
        turns, live = FoldTurns(), LocalMatches()
        self.ingest = Ingest(
            db=db,
            clock=self.clock,
            vault=VAULT,
            live=live,
            log_writer=LogWriter(db, live, turns),
            metrics=Metrics(Registry()),
            urls=IngestUrls(base),
            regions=self.regions,
            turns=turns,
            quota_bytes=None,
        )
        self.deps = CheckDeps(
            db=db,
            clock=self.clock,
            consoles=RconConsoles(),
            probe=SocketProbe(),
            urls=IngestUrls(base),
            turns=turns,
            installation=OURS,
            random_bytes=secrets.token_bytes,
            pending_ms=600_000,
            times=TIMES,
        )
        self.runs = CheckRuns(self.deps, self.regions)
        audit = Audit(db=db, clock=self.clock)
        self.checks = RegionChecks(db=db, clock=self.clock, audit=audit, codes=[CODE], wake=self.runs.wake)

    async def begin(self, *, may_allocate: bool = False) -> RegionCheck:
        """Request a check and begin it, as the loop of a process does."""
        await self.checks.request(CODE, actor="tester", may_allocate=may_allocate)
        row = await region_checks.begin(self.db, CODE, self.clock.now_ms())
        assert row is not None
        return RegionCheck(self.deps, self.region, row)

    async def check(self, *, may_allocate: bool = False) -> RegionCheckView:
        """Check the region, and return what was found."""
        await (await self.begin(may_allocate=may_allocate)).run()
        return await self.read()

    async def read(self) -> RegionCheckView:
        found = await self.checks.read(CODE)
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
