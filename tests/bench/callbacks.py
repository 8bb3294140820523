"""Measure how long callbacks to good receivers take while other receivers accept connections and never answer.

Matches end as in the service: `end_match` writes their callbacks to a database, the dispatcher delivers them over real
sockets. All hanging callbacks are due at once; 100 good ones follow over 20 s, half of them from an organization with
hanging receivers, half from another. All receivers run in a process of their own. Measured is the time from the write
of a callback to the arrival of its request.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import msgspec
import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.adapters.clock import SystemClock
from matchpod.adapters.vault import KeyFileVault
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, Statement
from matchpod.service.access.webhook_signature import ID_HEADER, new_secret
from matchpod.service.callbacks.dispatcher import CallbackDispatcher
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.end_match import end_match
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage import organizations, rows
from matchpod.storage.migrate import migrate
from matchpod.storage.organizations import Organization
from matchpod.storage.servers import ServerRow
from tests.bench.history_databases import Home, PostgresHome, SqliteHome, running_postgres

GOOD = 100
SPREAD_S = 20.0
"""Time over which the good callbacks become due: longer than a hanging attempt, so its timeouts are included."""
LAST_S = 180.0
"""Time limit for the last good callback."""
RESULT = msgspec.json.encode({"players": ["x" * 200] * 100})
"""As long as the result of a match with ten players."""
ORGANIZATIONS = 100
"""Organizations with hanging receivers in the third arrangement."""
VAULT = KeyFileVault(b"k" * 32)


@dataclass(frozen=True)
class Arrangement:
    """How hanging callbacks are spread over organizations and hosts."""

    name: str
    organizations: int
    hosts: int


ARRANGEMENTS = (
    Arrangement("one organization, one host", 1, 1),
    Arrangement("one organization, many hosts", 1, 1000),
    Arrangement("many organizations", ORGANIZATIONS, 1000),
)


def hanging_address(number: int) -> str:
    """Return one of many loopback addresses."""
    return f"127.1.{number // 200}.{number % 200 + 1}"


# --- receivers ----------------------------------------------------------------------------------------------------


async def receive(hosts: int) -> None:
    """Serve one good and many hanging receivers; print the ports, then a line per good callback: time and id."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
            await reader.readexactly(int(headers["Content-Length"]))
            print(time.monotonic(), headers[ID_HEADER], flush=True)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        writer.transport.abort()

    addresses = [hanging_address(number) for number in range(hosts)]
    loop = asyncio.get_running_loop()
    good = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    # A plain protocol accepts, reads, and never answers.
    hanging = await loop.create_server(asyncio.Protocol, addresses[0], 0, backlog=4096)
    port = hanging.sockets[0].getsockname()[1]
    others = [await loop.create_server(asyncio.Protocol, address, port) for address in addresses[1:]]
    print(good.sockets[0].getsockname()[1], port, flush=True)
    await asyncio.gather(*(server.serve_forever() for server in (good, hanging, *others)))


class Receivers:
    """The process of the receivers, and when each good callback arrived."""

    def __init__(self, process: asyncio.subprocess.Process, good_port: int, hanging_port: int) -> None:
        self._process = process
        self.good_url = f"http://127.0.0.1:{good_port}/"
        self.hanging_port = hanging_port
        self.arrivals: dict[str, float] = {}
        self.has_all = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, hosts: int) -> Receivers:
        """Start the process and wait until it listens."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--receive", str(hosts), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        good, hanging = (await process.stdout.readline()).split()
        return cls(process, int(good), int(hanging))

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            at_s, name = line.decode().split()
            self.arrivals.setdefault(name, float(at_s))
            if len(self.arrivals) == GOOD:
                self.has_all.set()

    async def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        await self._process.wait()
        await self._reading


# --- one run ------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def dispatching(db: Database) -> AsyncIterator[CallbackDispatcher]:
    """Run a dispatcher; attempts in flight are cancelled at the end."""
    sender = HttpCallbackSender()
    dispatcher = CallbackDispatcher(
        db=db,
        clock=SystemClock(),
        vault=VAULT,
        sender=sender,
        private_callbacks=PrivateCallbacks(db=db, by_settings=True, is_explicit=True),
        metrics=Metrics(Registry()),
        owner="bench",
        version="0",
    )
    task = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher
    finally:
        await dispatcher.drain(0)
        await task
        await sender.close()


async def create_match(db: Database, name: str, *, org_id: str, url: str) -> list[Statement]:
    """Store a running match; return the statements that end it."""
    row = ServerRow(
        id=f"srv_{name}", game_id=name, org_id=org_id, region="eu", phase=ServerPhase.RUNNING,
        status=ServerStatus.RUNNING, settings=b"{}", callback_url=url, log_token_hash=f"l {name}",
        report_token_hash=f"r {name}", plugin_match_id=1, created_at_ms=1, next_at_ms=1,
    )  # fmt: skip
    await db.write([rows.insert("servers", row)])
    outcome = Outcome(at_ms=SystemClock().now_ms())
    return end_match(row, outcome, result=RESULT, fence=None, callback_id=name)


async def measure(db: Database, arrangement: Arrangement, hanging: int) -> list[float]:
    """Return the delays of the good callbacks, in seconds."""
    await migrate(db, VAULT.seal)
    receivers = await Receivers.start(arrangement.hosts)
    try:
        async with dispatching(db) as dispatcher:
            return await deliver(db, arrangement, hanging, receivers=receivers, dispatcher=dispatcher)
    finally:
        await receivers.stop()


async def deliver(
    db: Database, arrangement: Arrangement, hanging: int, *, receivers: Receivers, dispatcher: CallbackDispatcher
) -> list[float]:
    """End the hanging matches, then the good ones one by one."""
    secret = VAULT.seal(new_secret(bytes(32)))
    for number in (*range(arrangement.organizations), "good"):
        await organizations.create(
            db, Organization(id=f"org_{number}", name=f"{number}", webhook_secret=secret, created_at_ms=1)
        )
    ends: list[Statement] = []
    for number in range(hanging):
        org_id, host = f"org_{number % arrangement.organizations}", hanging_address(number % arrangement.hosts)
        ends += await create_match(db, f"h{number}", org_id=org_id, url=f"http://{host}:{receivers.hanging_port}/")
    good: list[list[Statement]] = []
    for number in range(GOOD):
        good.append(
            await create_match(db, f"g{number}", org_id="org_0" if number % 2 else "org_good", url=receivers.good_url)
        )
    if ends:
        await db.write(ends)
        dispatcher.wake()
    due: dict[str, float] = {}
    for number, statements in enumerate(good):
        due[f"g{number}"] = time.monotonic()
        await db.write(statements)
        dispatcher.wake()
        await asyncio.sleep(SPREAD_S / GOOD)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LAST_S):
            await receivers.has_all.wait()
    return [receivers.arrivals.get(name, float("inf")) - at_s for name, at_s in due.items()]


# --- the table ----------------------------------------------------------------------------------------------------


def report(home: Home, arrangement: Arrangement, hanging: int) -> None:
    """Measure one case and print its row."""

    async def run() -> list[float]:
        db = await home.open()
        try:
            return await measure(db, arrangement, hanging)
        finally:
            await db.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        delays = sorted(runner.run(run()))
    p50, p99 = (quantiles(delays, n=100, method="inclusive")[percent - 1] for percent in (50, 99))
    print(f"| {hanging:,} | {arrangement.name} | {p50:.3f} | {p99:.3f} | {delays[-1]:.3f} |", flush=True)


def main() -> None:
    """Print a row per case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hanging", default="0,300,1000", help="numbers of hanging callbacks")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--receive", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if options.receive is not None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(receive(options.receive))
        return
    logging.basicConfig(level=logging.ERROR)
    print("| hanging | arrangement | p50, s | p99, s | maximum, s |\n|---:|---|---:|---:|---:|")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(running_postgres(folder)) if options.database == "postgres" else None
        for hanging in map(int, options.hanging.split(",")):
            for arrangement in ARRANGEMENTS if hanging else ARRANGEMENTS[:1]:
                name = f"case_{hanging}_{ARRANGEMENTS.index(arrangement)}"
                report(SqliteHome(folder, name) if server is None else PostgresHome(server, name), arrangement, hanging)


if __name__ == "__main__":
    main()
