"""Measure what a caller waits for: a match on a static server, and all matches after a restart. Part of `make bench`.

A match is created on a static server that must load a map: the time from the request to the status `running`, without
the load itself. Then all servers of the farm play, the service is killed and started again with the same data: how long
until it listens, and until each match is driven again, which it logs. CPU time is what counts on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.adapters.rcon_client import RconConsoles
from tests.bench.cadence import bring_to_play, settings_of
from tests.bench.checkouts import Checkout, Machine, add_argument, bench_folder, checkouts
from tests.bench.pinned_process import NO_LIMITS, PinnedProcess, require_two_cores
from tests.bench.stream_matches import RCON_PASSWORD, Site
from tests.chaos.stores import SqliteStore

MATCHES = 12
"""Matches on static servers, one at a time."""
LOAD_S = 0.5
"""How long a map load takes there."""
POLL_S = 0.005
SERVERS = 100
PLAY_S = 10.0
RESTART_S = 120.0
AFTER_S = 10.0
"""How long the service is watched after all matches are driven: what was put off costs CPU time too."""

_ENTRIES_TO_FOLD = (
    "SELECT count(*) FROM raw_log JOIN servers ON servers.id = raw_log.server_id AND servers.phase = 'running'"
    " LEFT JOIN snapshots ON snapshots.server_id = raw_log.server_id"
    " WHERE raw_log.seq > coalesce(snapshots.seq, servers.log_from_seq)"
)


@dataclass
class Restart:
    """What a restart took."""

    matches: int
    entries: int
    """Entries after the snapshots, which are folded again."""
    listening_s: float
    listening_cpu_s: float
    driven_s: float
    driven_cpu_s: float
    later_cpu_s: float


async def measure_starts(folder: Path, checkout: Checkout, matches: int) -> list[float]:
    """Return how many milliseconds each match took from the request to `running`, without the load of its map."""
    site = Site(folder, matches, speed=1.0, checkout=checkout)
    try:
        site.begin()
        for port in site.ports():
            console = await RconConsoles().open("127.0.0.1", int(port), RCON_PASSWORD)
            await console.run(f"sim_map_load {LOAD_S}")
            await console.close()
        return [await _start(site, number) for number in range(matches)]
    finally:
        site.end()


async def _start(site: Site, number: int) -> float:
    began_s = time.monotonic()
    created = await site.create_with(settings_of(number))
    while (await site.get(f"/api/v1/servers/{created['serverId']}"))["status"] != "running":
        await asyncio.sleep(POLL_S)
    return (time.monotonic() - began_s - LOAD_S) * 1000


async def measure_restart(folder: Path, checkout: Checkout, servers: int, stop: signal.Signals) -> Restart:
    """Let all servers play, stop the service, and start it again."""
    site = Site(folder, servers, speed=1.0, checkout=checkout)
    try:
        site.begin()
        await bring_to_play(site, servers)
        await asyncio.sleep(PLAY_S)
        site.service.send(stop)
        site.service.wait(RESTART_S)
        ((entries,),) = await SqliteStore(folder).rows(_ENTRIES_TO_FOLD)
        began_s = time.monotonic()
        site.service = PinnedProcess(
            [checkout.python, "-m", "matchpod", "serve"],
            folder / "restarted.log",
            environment={"MATCHPOD_DATA_DIR": str(folder), "MATCHPOD_PORT": str(site.port), **NO_LIMITS},
            cwd=checkout.folder,
        )
        site.service.wait_for("listening", RESTART_S)
        listening_s, listening_cpu_s = time.monotonic() - began_s, site.service.cpu_s()
        while (driven := site.service.output().count("match resumed")) < servers:
            if time.monotonic() - began_s > RESTART_S:
                raise RuntimeError(f"{checkout.label}: only {driven} of {servers} matches are driven again")
            await asyncio.sleep(0.02)
        driven_s, driven_cpu_s = time.monotonic() - began_s, site.service.cpu_s()
        await asyncio.sleep(AFTER_S)
        return Restart(
            servers,
            int(str(entries)),
            listening_s,
            listening_cpu_s,
            driven_s,
            driven_cpu_s,
            site.service.cpu_s() - driven_cpu_s,
        )
    finally:
        site.end()


def print_starts(label: str, times_ms: list[float]) -> None:
    """Print how long matches took to run on static servers."""
    ordered = sorted(times_ms)
    print(f"{label:8}create to running beyond the load: median {statistics.median(ordered):,.0f} ms, ", end="")
    print(f"{ordered[0]:,.0f} to {ordered[-1]:,.0f} ms")


def print_restart(label: str, stop: signal.Signals, found: Restart) -> None:
    """Print what a restart took."""
    per_match_ms = (found.driven_cpu_s - found.listening_cpu_s) / found.matches * 1000
    print(
        f"{label:8}restart after {stop.name} with {found.matches} matches and {found.entries:,} entries to fold: "
        f"listening {found.listening_s:.2f} s (CPU {found.listening_cpu_s:.2f} s), all driven {found.driven_s:.2f} s "
        f"(CPU {found.driven_cpu_s:.2f} s, {per_match_ms:.1f} ms per match), "
        f"CPU of the next {AFTER_S:.0f} s {found.later_cpu_s:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--servers", type=int, default=SERVERS)
    parser.add_argument("--only", choices=("starts", "kill", "stop"), help="measure only one of the three")
    given = parser.parse_args()
    require_two_cores("benchmark of waiting", "the farm needs its own core")
    print("\nwaiting: one service on SQLite")
    for checkout in checkouts(given.against):
        machine = Machine()
        if given.only in (None, "starts"):
            with bench_folder() as folder:
                print_starts(checkout.label, uvloop.run(measure_starts(folder, checkout, MATCHES)))
        for kind, stop in (("kill", signal.SIGKILL), ("stop", signal.SIGTERM)):
            if given.only in (None, kind):
                with bench_folder() as folder:
                    found = uvloop.run(measure_restart(folder, checkout, given.servers, stop))
                print_restart(checkout.label, stop, found)
        print(f"{checkout.label:8}{machine.text()}")


if __name__ == "__main__":
    main()
