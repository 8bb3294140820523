"""Measure what a flood of requests for the metrics costs others: latencies of the API before and during it.

Run it as a script. The service has one core, the flood and the measured requests another. For comparison, the same
number of connections floods `/healthz`, which does nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.checkouts import checkouts
from tests.bench.http_load import Load, run_load, send_request
from tests.bench.pinned_process import cores
from tests.bench.stream_matches import Site

CONNECTIONS = 8
PAUSE_S = 0.01
"""Pause between two measured requests."""
WARM_UP = 500
"""Requests of many kinds before the measurement, so that the metrics have their usual size."""


def _request(path: str, key: str = "") -> bytes:
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{authorization}\r\n".encode()


async def measure(running: Site, seconds: float) -> list[float]:
    """Return the latencies in milliseconds of requests to the API, one after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    request, took = _request("/api/v1/servers", running.key), []
    end_s = perf_counter() + seconds
    while perf_counter() < end_s:
        began_s = perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
        await reader.readexactly(length)
        took.append((perf_counter() - began_s) * 1000)
        await asyncio.sleep(PAUSE_S)
    writer.close()
    return took


def _print(name: str, took: Sequence[float], flood: float | None = None) -> None:
    p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
    rate = "" if flood is None else f"{flood:>12,.0f}"
    print(f"{name:28}{p50:>10.2f}{p99:>10.2f}{len(took):>10}{rate}")


async def run(running: Site, seconds: float) -> None:
    """Measure before and during both floods, and print the results."""
    paths = ("/api/v1/regions", "/api/v1/servers", "/api/v1/cs2/matches", "/api/v1/cs2/series", "/api/v1/audit")
    for number in range(WARM_UP):
        await send_request(running.port, _request(paths[number % len(paths)], running.key), b"200")
    size = len(await send_request(running.port, _request("/metrics"), b"200"))
    print(f"\nmetrics flood: {CONNECTIONS} connections, {seconds:g} s each; /metrics has {size:,} bytes")
    print(f"{'API latency in ms':28}{'p50':>10}{'p99':>10}{'requests':>10}{'flood/s':>12}")
    _print("before", await measure(running, seconds))
    for path in ("/metrics", "/healthz"):
        load = Load(itertools.repeat(_request(path)), b"200")
        flood = asyncio.create_task(run_load(running.port, load, seconds + 1.0, connections=CONNECTIONS))
        await asyncio.sleep(0.5)
        took = await measure(running, seconds)
        counted = await flood
        _print(f"during a flood of {path}", took, counted.requests / counted.seconds)


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")
    seconds = parser.parse_args().seconds
    if len(cores()) < 2:
        print("metrics flood skipped: the flood needs its own core", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        (checkout,) = checkouts(None)
        running = Site(Path(folder), 1, speed=1.0, checkout=checkout)
        try:
            running.begin()
            uvloop.run(run(running, seconds))
        finally:
            running.end()


if __name__ == "__main__":
    main()
