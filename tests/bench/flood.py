"""Measure what a flood of one organization costs others, and a flood of the metrics the probes. Part of `make bench`.

One organization floods the service from a process of its own: 64 connections of lists, 64 connections of bodies with
480 faults, or 900 streams of a match that is played 30 times as fast. Meanwhile another organization sends requests one
after the other. Then 36 connections send `/metrics` without end, without waiting for answers, to the port for probes
and metrics, while probes ask there. The service has one core, everything else another.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.checkouts import Checkout, Machine, add_argument, bench_folder, checkouts, percentile
from tests.bench.http_load import Caller, Load, run_load
from tests.bench.pinned_process import give_way, require_two_cores
from tests.bench.stream_matches import Site, game_settings, with_simulator_cvars
from tests.bench.stream_readers import ReaderGroup, StreamReader
from tests.chaos.http_messages import format_request
from tests.chaos.load import Measured, ask, requests

CONNECTIONS = 64
FAULTS = 480
STREAMS = 900
METRICS_CONNECTIONS = 36
PIPELINED = 16
"""Requests for the metrics that are sent at once on a connection."""
LISTED = 100
"""Matches of each organization: a whole page of its list."""
SPEED = 30.0
"""The speed of the sandbox."""
ROUNDS = 200
"""Enough for one match to last through all measurements at that speed."""
QUIET_S = 200
"""Simulated seconds until players connect."""
PAUSE_S = 0.005
"""Pause between two measured requests."""
PROBE_S = 1.0
"""Time in which a probe must be answered: the timeout that Kubernetes uses unless told otherwise."""
PROBE_PAUSE_S = 0.05
AIM = 5.0
"""A flood may make the slowest hundredth of others' requests this many times as slow."""
BEGIN_S = 1.0
"""Time for a flood to begin before it is measured. The opening of the streams is measured too."""

KINDS = ("lists", "faults", "streams", "metrics")
NAMES = {
    "lists": f"{CONNECTIONS} connections of lists",
    "faults": f"{CONNECTIONS} connections, {FAULTS} faults each",
    "streams": f"{STREAMS} streams",
    "metrics": f"{METRICS_CONNECTIONS} connections of metrics, other port",
}


def _get(path: str, key: str = "") -> bytes:
    return format_request("GET", path, {"Authorization": f"Bearer {key}"} if key else {})


# --- the flood: a process of its own ------------------------------------------------------------------------------


async def flood(kind: str, port: int, key: str, server_id: str) -> None:
    """Flood the service until this process is ended."""
    print("flooding", flush=True)
    if kind == "streams":
        await _flood_with_streams(port, key, server_id)
    elif kind == "metrics":
        async with asyncio.TaskGroup() as group:
            for _ in range(METRICS_CONNECTIONS):
                group.create_task(_send_without_end(port, _get("/metrics") * PIPELINED))
    else:
        request, status = _get(f"/api/v1/servers?pageSize={LISTED}", key), b"200"
        if kind == "faults":
            body = json.dumps({"gameSettings": {f"field{number}": number for number in range(FAULTS)}}).encode()
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            request, status = format_request("POST", "/api/v1/matches", headers, body), b"400"
        await run_load(port, Load(itertools.repeat(request), status), 3600.0, connections=CONNECTIONS)


async def _flood_with_streams(port: int, key: str, server_id: str) -> None:
    group = ReaderGroup(port, {"Authorization": f"Bearer {key}"})
    readers = [StreamReader(group, f"/api/v1/servers/{server_id}/stream") for _ in range(STREAMS)]
    await asyncio.gather(*(reader.connect() for reader in readers))
    while not group.failures:
        await group.changed.wait()
        group.changed.clear()
    raise RuntimeError(group.failures[0])


async def _send_without_end(port: int, data: bytes) -> None:
    """Send this again and again on a connection, and open another one whenever it is closed."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            reading = asyncio.create_task(_drop(reader))
            try:
                while not reading.done():
                    writer.write(data)
                    await writer.drain()
                    await asyncio.sleep(0)
            finally:
                reading.cancel()
                writer.close()
        await asyncio.sleep(0.001)


async def _drop(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(1 << 16):
            pass


@contextmanager
def flooding(kind: str, port: int, key: str = "", server_id: str = "") -> Iterator[None]:
    """Flood the service from another process until the end of the block, with less right to the core than this one."""
    command = [sys.executable, __file__, "--flood", kind, str(port), key, server_id]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=give_way)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        if process.poll() is not None:
            raise RuntimeError(f"the flood of {kind} ended")
    finally:
        process.kill()
        process.wait()


# --- what others notice -------------------------------------------------------------------------------------------


async def probe(port: int, seconds: float) -> Measured:
    """Send probes, each on a connection of its own; one that is not answered in time has the status 0."""
    paths = itertools.cycle(("/healthz", "/readyz"))

    probes = requests(lambda: ask(port, _get(next(paths)), PROBE_S), clients=1, pause_s=PROBE_PAUSE_S)
    async with probes as measured:
        await asyncio.sleep(seconds)
    return measured


# --- a run --------------------------------------------------------------------------------------------------------


async def run(site: Site, checkout: Checkout, seconds: float, kinds: Sequence[str]) -> bool:
    """Measure quiet and under each flood, and print the results; True if all aims were reached."""
    other_key = _other_organization(site, checkout)
    settings = with_simulator_cvars(game_settings(1, ROUNDS), 1, quiet_s=QUIET_S)
    live = (await site.create_with(settings))["serverId"]
    for _ in range(LISTED - 1):
        await site.create_with(game_settings(1, ROUNDS))
    flooder_key, site.key = site.key, other_key
    ours = [(await site.create_with(game_settings(2, ROUNDS)))["serverId"] for _ in range(LISTED)]
    paths = ("/api/v1/servers?pageSize=20", f"/api/v1/servers/{ours[-1]}", "/api/v1/cs2/matches?pageSize=20")
    caller = Caller(site.port, [_get(path, other_key) for path in paths], pause_s=PAUSE_S)
    site.key = flooder_key
    await site.running_server(live)
    await site.wait_until_live(1)
    await caller.measure(1.0)
    print(
        f"\n{f'{checkout.label}: all requests of others, ms':44}{'p50':>10}{'p90':>10}{'p99':>10}{'quiet = 1':>11}{'requests':>10}"
    )
    quiet = await caller.measure(seconds)
    _print("no flood", quiet, quiet)
    is_reached = True
    for kind in kinds:
        if kind != "metrics":
            with flooding(kind, site.port, site.key, live):
                await asyncio.sleep(0 if kind == "streams" else BEGIN_S)
                took = await caller.measure(seconds)
            is_reached = _print(NAMES[kind], took, quiet) and is_reached
            await asyncio.sleep(1)
    if "metrics" in kinds:
        port = int(site.service.wait_for(r"listening for probes and metrics.*?port[=\" :]+(\d+)", 10))
        probed = await probe(port, seconds / 4)
        with flooding("metrics", port):
            await asyncio.sleep(BEGIN_S)
            took = await caller.measure(seconds)
            flooded = await probe(port, seconds)
        is_reached = _print(NAMES["metrics"], took, quiet) and is_reached
        is_reached = _print_probes(flooded, probed) and is_reached
    return is_reached


def _other_organization(site: Site, checkout: Checkout) -> str:
    """Create another organization and return its key."""
    environment = {**os.environ, "MATCHPOD_DATA_DIR": str(site.folder)}
    for arguments in ("orgs create others", "keys create --org others --role owner"):
        command = [checkout.python, "-m", "matchpod", *arguments.split()]
        done = subprocess.run(command, cwd=checkout.folder, env=environment, capture_output=True, text=True, check=True)
    return next(word for word in (done.stdout + done.stderr).split() if word.startswith("mk_"))


def _print(name: str, took_ms: Sequence[float], quiet_ms: Sequence[float]) -> bool:
    """Print a row; True if the aim was reached."""
    p50, p90, p99 = (percentile(took_ms, share) for share in (0.5, 0.9, 0.99))
    ratio = p99 / percentile(quiet_ms, 0.99)
    print(f"{name:44}{p50:>10.2f}{p90:>10.2f}{p99:>10.2f}{ratio:>11.1f}{len(took_ms):>10}")
    return ratio <= AIM


def _print_probes(flooded: Measured, quiet: Measured) -> bool:
    for name, found in (("probes before", quiet), ("probes meanwhile", flooded)):
        answered = len(found.seconds) - found.failures.total()
        print(f"{name}: {answered} of {len(found.seconds)} answered, p99 {found.percentile(0.99):.1f} ms")
    return not flooded.failures


def main() -> None:
    """Run the benchmark; exit 1 if an aim was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--seconds", type=float, default=15.0, help="length of each measurement")
    parser.add_argument("--kind", choices=KINDS, action="append", help="measure only this; may be repeated")
    parser.add_argument("--flood", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.flood:
        kind, port, key, server_id = given.flood
        uvloop.run(flood(kind, int(port), key, server_id))
        return
    require_two_cores("flood benchmark", "the flood needs its own core")
    machine, is_reached = Machine(), True
    with bench_folder() as parent:
        for checkout in checkouts(given.against):
            folder = parent / checkout.label
            folder.mkdir()
            environment = {"MATCHPOD_PENDING_S": "86400", "MATCHPOD_OPS_PORT": "0"}
            site = Site(folder, 1, speed=SPEED, checkout=checkout, environment=environment)
            try:
                site.begin()
                is_reached = uvloop.run(run(site, checkout, given.seconds, given.kind or KINDS))
            finally:
                site.end()
    print(f"\nflood: {machine.text()}")
    sys.exit(0 if is_reached else 1)


if __name__ == "__main__":
    main()
