"""Measure the stream of an organization: many readers of all its matches, and what its events cost the writers.

`make bench` plays 20 matches with 50 readers, `--full` a thousand with 200. The same matches (same seeds) are played
twice, without and with readers. Every reader must receive every event once and in order. The service has one core,
readers and game servers another. Before that, transactions are measured with and without their event.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, process_time

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.settings.values import DATABASE_FILE
from tests.bench.organization_checks import PATH, count_ended, creation_delays, faults_of, stored_lines
from tests.bench.organization_writes import print_writes
from tests.bench.pinned_process import cores
from tests.bench.stream_matches import Site
from tests.bench.stream_readers import ReaderGroup, StreamReader

SEED = 20
RECONNECTING = 0.2
"""The share of readers that disconnect a few times and reconnect."""
OPENING = 50
"""Readers that connect at the same time."""
PLAY_S = 3600.0
"""Timeout for all matches together."""
LAST_S = 30.0
"""Timeout for readers to connect, and to receive the last event."""
POLL_S = 2.0


@dataclass(frozen=True)
class Size:
    """The size of a benchmark run."""

    matches: int
    readers: int
    rounds: int
    speed: float
    writes: int
    """Measured creations and rounds of each kind."""


QUICK = Size(matches=20, readers=50, rounds=6, speed=25, writes=400)
FULL = Size(matches=1000, readers=200, rounds=8, speed=3, writes=2000)


@dataclass
class Run:
    """Measurements of one run, from the first creation to the end of the last match."""

    seconds: float = 0.0
    service_s: float = 0.0
    farm_s: float = 0.0
    load_s: float = 0.0
    peak_mb: float = 0.0
    events: int = 0
    delivered: int = 0
    reconnects: int = 0
    delays: Sequence[float] = ()
    faults: list[str] = field(default_factory=list)


# --- readers ------------------------------------------------------------------------------------------------------


async def run(folder: Path, size: Size, *, readers: int) -> Run:
    """Create and play all matches, and compare what readers received with what is stored."""
    folder.mkdir()
    site = Site(folder, size.matches, speed=size.speed)
    measured = Run()
    try:
        site.begin()
        group = ReaderGroup(site.port, site.key)
        opened = await open_readers(group, readers)
        created = await play(site, size, opened, measured)
        measured.delivered, measured.reconnects = group.events, group.reconnects
        for reader in opened:
            reader.stop()
        await asyncio.sleep(1)
    finally:
        site.end()
    lines = stored_lines(folder / DATABASE_FILE)
    measured.events = len(lines)
    measured.faults += [*group.failures, *faults_of(opened, lines)]
    if group.broken:
        measured.faults.append(f"{group.broken} connections broke")
    if not measured.faults:
        measured.delays = creation_delays(opened, lines, created)
    return measured


async def open_readers(group: ReaderGroup, number: int) -> list[StreamReader]:
    """Open the readers; return when all streams are open."""
    rng = random.Random(SEED)
    readers = []
    for _ in range(number):
        counts = sorted(rng.sample(range(1, 150), 3)) if rng.random() < RECONNECTING else []
        readers.append(StreamReader(group, PATH, disconnects_after=counts, reconnect_s=rng.uniform(0.1, 2.0)))
    for begin in range(0, number, OPENING):
        await asyncio.gather(*(reader.connect() for reader in readers[begin : begin + OPENING]))
    async with asyncio.timeout(LAST_S):
        while group.opened < number:
            await asyncio.sleep(0.05)
    return readers


async def play(site: Site, size: Size, readers: Sequence[StreamReader], measured: Run) -> dict[str, float]:
    """Measure until all matches have ended and all readers have all events; return when each match was created."""
    database, begin_s, load_s = site.folder / DATABASE_FILE, monotonic(), process_time()
    before = site.service.cpu_s(), site.farm.cpu_s()
    created: dict[str, float] = {}
    async with asyncio.timeout(PLAY_S):
        for number in range(size.matches):
            match = await site.create(number, rounds=size.rounds, quiet_s=1)
            created[match.server_id] = monotonic()
        while count_ended(lines := await asyncio.to_thread(stored_lines, database)) < size.matches:
            measured.peak_mb = max(measured.peak_mb, site.service.resident_mb())
            await asyncio.sleep(POLL_S)
    deadline = monotonic() + LAST_S
    while any(len(reader) < len(lines) for reader in readers) and monotonic() < deadline:
        await asyncio.sleep(0.05)
    measured.seconds, measured.load_s = monotonic() - begin_s, process_time() - load_s
    measured.service_s = site.service.cpu_s() - before[0]
    measured.farm_s = site.farm.cpu_s() - before[1]
    return created


# --- output -------------------------------------------------------------------------------------------------------


def print_figures(size: Size, without: Run, with_readers: Run) -> None:
    """Print the measurements, then the cost of readers."""
    print(f"{'':44}{'without':>12}{'with readers':>14}")
    for name, first, second in (
        ("seconds", without.seconds, with_readers.seconds),
        ("CPU of the service, s", without.service_s, with_readers.service_s),
        ("CPU of the game servers, s", without.farm_s, with_readers.farm_s),
        ("CPU of the readers, s", without.load_s, with_readers.load_s),
        ("peak memory, MB", without.peak_mb, with_readers.peak_mb),
    ):
        print(f"{name:44}{first:>12.1f}{second:>14.1f}")
    print(f"{'events stored':44}{without.events:>12,}{with_readers.events:>14,}")
    delivered = max(1, with_readers.delivered)
    # Game servers do the same work in both runs: if they used more CPU time, the machine was slower.
    fair_s = with_readers.service_s * without.farm_s / with_readers.farm_s - without.service_s
    for name, value in (
        ("events delivered", f"{with_readers.delivered:,}"),
        ("  per second, mean", f"{delivered / with_readers.seconds:,.0f}"),
        ("CPU per delivered event, us", f"{(with_readers.service_s - without.service_s) / delivered * 1e6:.1f}"),
        ("  adjusted for the speed of the machine, us", f"{fair_s / delivered * 1e6:.1f}"),
        ("reconnects of readers", f"{with_readers.reconnects}"),
    ):
        print(f"{name:44}{value:>26}")
    for share in (0.5, 0.95, 0.99, 1.0):
        delays = with_readers.delays
        delay_ms = delays[min(len(delays) - 1, int(share * len(delays)))] * 1e3 if delays else float("nan")
        print(f"{f'creation to arrival, ms: {share:.0%} of events':44}{delay_ms:>26.0f}")


def main() -> None:
    """Run the benchmark and print the results; exit 1 if there are faults, such as a missing event."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="200 readers of a thousand matches")
    for name in ("matches", "readers", "rounds", "writes"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--speed", type=float, help="simulated seconds per real second")
    arguments = vars(parser.parse_args())
    if len(cores()) < 2:
        print("benchmark of organizations' streams skipped: the readers need their own core", file=sys.stderr)
        return
    preset = FULL if arguments["full"] else QUICK
    size = Size(**{name: arguments[name] or value for name, value in vars(preset).items()})
    print(
        f"\norganization stream: {size.readers} readers of {size.matches} matches at {size.speed:g}x, one service on "
        f"SQLite; Python {platform.python_version()}, load average {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory(prefix="matchpod-bench-") as name:
        print_writes(Path(name), size.writes)
        without = uvloop.run(run(Path(name) / "without", size, readers=0))
        with_readers = uvloop.run(run(Path(name) / "with", size, readers=size.readers))
    print_figures(size, without, with_readers)
    faults = [*without.faults, *with_readers.faults]
    print(f"faults, such as a reader that did not receive every event once: {len(faults)}")
    print("\n".join(faults[:20]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
