"""Measure the cost of a thousand stream readers, and check that each gets every event once.

`make bench` plays 20 matches, `--full` 100, both with a thousand readers. The same matches (same seeds) are played
twice, without and with readers: the difference is the cost of the readers. The service has one core, readers and
game servers another.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, process_time

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.checkouts import Machine, bench_folder
from tests.bench.pinned_process import require_two_cores
from tests.bench.stream_matches import Match, Site, map_stream
from tests.bench.stream_readers import ReaderGroup, StalledClient, StreamReader

SEED = 20
OPENING = 50
"""Readers that connect at the same time."""
RECONNECTING = 0.2
"""The share of readers that disconnect a few times and reconnect."""
PLAY_S = 600.0
"""Timeout for all matches together."""
LAST_S = 30.0
"""Timeout for readers to connect, and to receive the end of the last match."""
POLL_S = 2.0
STALL_AFTER = 300
"""Events, about 130 KB, after which clients that never read connect to a match."""


@dataclass(frozen=True)
class Size:
    """The size of a benchmark run."""

    matches: int
    readers: int
    stalled: int
    rounds: int
    speed: float
    quiet_s: int
    """Simulated seconds in which everything is set up and readers connect."""


QUICK = Size(matches=20, readers=1000, stalled=4, rounds=12, speed=25, quiet_s=200)
FULL = Size(matches=100, readers=1000, stalled=10, rounds=16, speed=15, quiet_s=220)


@dataclass
class Run:
    """Measurements of one run, from the end of the setup to the end of the last match."""

    seconds: float = 0.0
    service_s: float = 0.0
    kernel_s: float = 0.0
    """The part of `service_s` that was spent in the kernel."""
    farm_s: float = 0.0
    load_s: float = 0.0
    before_mb: float = 0.0
    opened_mb: float = 0.0
    peak_mb: float = 0.0
    delivered: int = 0
    max_per_s: float = 0.0
    chunks: int = 0
    items: int = 0
    concurrent: int = 0
    reconnects: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


# --- a run --------------------------------------------------------------------------------------------------------


async def run(folder: Path, size: Size, *, has_readers: bool) -> Run:
    """Play all matches to their end, and compare what readers received with what can be polled."""
    folder.mkdir()
    site = Site(folder, size.matches, speed=size.speed)
    try:
        site.begin()
        matches = [
            await site.create(number, rounds=size.rounds, quiet_s=size.quiet_s) for number in range(size.matches)
        ]
        await site.wait_until_running(matches)
        group = ReaderGroup(site.port, {"Authorization": f"Bearer {site.key}"})
        measured = Run(before_mb=site.service.resident_mb())
        readers = await open_readers(group, matches, size.readers) if has_readers else []
        stalled = StalledClients(group, matches, size.stalled if has_readers else 0)
        await asyncio.sleep(1)
        measured.opened_mb = site.service.resident_mb()
        await play(site, readers, stalled, measured)
        measured.reconnects, measured.chunks = group.reconnects, group.chunks
        measured.ended = await wait_for_slow_streams(site, len(stalled.connected))
        stored = {map_id: await site.count_events(map_id) for match in matches for map_id in match.maps}
        for client in stalled.connected:
            client.close()
    finally:
        site.end()
    measured.items = sum(stored.values())
    measured.faults += [*group.failures, *differences(readers, matches, stored)]
    if measured.concurrent < size.matches:
        measured.faults.append(f"at most {measured.concurrent} matches were live at the same time")
    return measured


def differences(readers: Sequence[StreamReader], matches: Sequence[Match], stored: Mapping[str, int]) -> Iterator[str]:
    """Yield the streams that did not end, and those of which a reader did not receive as many events as are stored."""
    expected = {map_stream(one): stored[one] for match in matches for one in match.maps}
    expected |= {match.stream: sum(stored[one] for one in match.maps) for match in matches}
    for reader in readers:
        if not reader.is_finished:
            yield f"{reader.path}: the stream did not end"
        if len(reader) != expected[reader.path]:
            yield f"{reader.path}: {len(reader)} events received, {expected[reader.path]} stored"


async def open_readers(group: ReaderGroup, matches: Sequence[Match], number: int) -> list[StreamReader]:
    """Open the readers of all matches, half of them on the server's stream; return when all streams are open."""
    rng = random.Random(SEED)
    readers = []
    for index in range(number):
        paths = matches[index % len(matches)].paths()
        path = paths[index // len(matches) % len(paths)]
        counts = sorted(rng.sample(range(1, 150), 3)) if rng.random() < RECONNECTING else []
        readers.append(StreamReader(group, path, disconnects_after=counts, reconnect_s=rng.uniform(0.1, 2.0)))
    for begin in range(0, number, OPENING):
        await asyncio.gather(*(reader.connect() for reader in readers[begin : begin + OPENING]))
    async with asyncio.timeout(LAST_S):
        while group.opened < number:
            await asyncio.sleep(0.05)
    return readers


class StalledClients:
    """Clients that never read. They connect to deathmatches once there is more to send than the system buffers."""

    def __init__(self, group: ReaderGroup, matches: Sequence[Match], number: int) -> None:
        self.group = group
        self.connected: list[StalledClient] = []
        busy = [match for match in matches if match.is_deathmatch]
        self._paths = [busy[index % len(busy)].stream for index in range(number)]

    def connect(self, readers: Sequence[StreamReader]) -> None:
        """Connect to the matches with enough events."""
        ready = {reader.path for reader in readers if len(reader) >= STALL_AFTER}
        for path in [path for path in self._paths if path in ready]:
            self._paths.remove(path)
            self.connected.append(StalledClient(self.group, path))


async def play(site: Site, readers: Sequence[StreamReader], stalled: StalledClients, measured: Run) -> None:
    """Measure until all matches and streams have ended; the polling is the same with and without readers."""
    gc.freeze()  # existing objects stay, and scanning them would slow down the readers
    group, begin, load_s = stalled.group, monotonic(), process_time()
    used = _cpu_times(site)
    last_s, last_events = begin, group.events
    async with asyncio.timeout(PLAY_S):
        while (await site.count_maps("upcoming") or await site.count_maps("live")) and not group.failures:
            await asyncio.sleep(POLL_S)
            measured.concurrent = max(measured.concurrent, await site.count_maps("live"))
            now = monotonic()
            measured.max_per_s = max(measured.max_per_s, (group.events - last_events) / (now - last_s))
            last_s, last_events = now, group.events
            measured.peak_mb = max(measured.peak_mb, site.service.resident_mb())
            stalled.connect(readers)
    deadline = monotonic() + LAST_S
    while group.finished < len(readers) and monotonic() < deadline and not group.failures:
        await asyncio.sleep(0.1)
    measured.seconds, measured.load_s = monotonic() - begin, process_time() - load_s
    spent = [after - before for before, after in zip(used, _cpu_times(site), strict=True)]
    measured.service_s, measured.kernel_s, measured.farm_s = spent
    measured.delivered = group.events
    if group.broken:
        measured.faults.append(f"{group.broken} connections broke")


def _cpu_times(site: Site) -> tuple[float, float, float]:
    service = site.service
    return service.cpu_s(), service.kernel_cpu_s(), sum(farm.cpu_s() for farm in site.farms)


async def wait_for_slow_streams(site: Site, number: int) -> dict[str, int]:
    """Wait until `number` streams were closed as too slow, or for a while; return the ended streams by reason."""
    deadline = monotonic() + LAST_S
    while (ended := await site.ended_streams()).get("slow", 0) < number and monotonic() < deadline:
        await asyncio.sleep(1)
    return ended


# --- output -------------------------------------------------------------------------------------------------------


def print_figures(size: Size, without: Run, with_readers: Run) -> None:
    """Print the measurements, then the cost of readers."""
    print(f"\nstreams: {size.readers} readers of {size.matches} matches at {size.speed:g}x, one service on SQLite")
    print(f"{'':44}{'without':>12}{'with readers':>14}")
    for name, first, second in (
        ("seconds", without.seconds, with_readers.seconds),
        ("CPU of the service, s", without.service_s, with_readers.service_s),
        ("  of which the kernel, s", without.kernel_s, with_readers.kernel_s),
        ("CPU of the game servers, s", without.farm_s, with_readers.farm_s),
        ("CPU of the readers, s", without.load_s, with_readers.load_s),
    ):
        print(f"{name:44}{first:>12.1f}{second:>14.1f}")
    shares = [one.service_s / one.seconds for one in (without, with_readers)]
    print(f"{'share of its core, service':44}{shares[0]:>12.0%}{shares[1]:>14.0%}")
    print(f"{'memory before readers connect, MB':44}{without.before_mb:>12.1f}{with_readers.before_mb:>14.1f}")
    print(f"{'memory when all are connected, MB':44}{without.opened_mb:>12.1f}{with_readers.opened_mb:>14.1f}")
    print(f"{'peak memory, MB':44}{without.peak_mb:>12.1f}{with_readers.peak_mb:>14.1f}")
    print(f"{'matches live at the same time':44}{without.concurrent:>12}{with_readers.concurrent:>14}")
    print(f"{'items stored':44}{without.items:>12,}{with_readers.items:>14,}")
    print_costs(size, without, with_readers)


def print_costs(size: Size, without: Run, with_readers: Run) -> None:
    """Print the cost of readers alone."""
    delivered = max(1, with_readers.delivered)
    extra_s = with_readers.service_s - without.service_s
    # Game servers do the same work in both runs: if they used more CPU time, the machine was slower.
    slower = with_readers.farm_s / without.farm_s
    fair_s = with_readers.service_s / slower - without.service_s
    for name, value in (
        ("events delivered", f"{with_readers.delivered:,}"),
        ("  per second, mean", f"{delivered / with_readers.seconds:,.0f}"),
        ("  per second, maximum", f"{with_readers.max_per_s:,.0f}"),
        ("  per chunk, mean", f"{delivered / max(1, with_readers.chunks):.1f}"),
        ("CPU per delivered event, us", f"{extra_s / delivered * 1e6:.1f}"),
        ("  adjusted for the speed of the machine, us", f"{fair_s / delivered * 1e6:.1f}"),
        ("  of which the kernel, us", f"{(with_readers.kernel_s / slower - without.kernel_s) / delivered * 1e6:.1f}"),
        (
            "memory per reader, when all are connected, KB",
            f"{(with_readers.opened_mb - with_readers.before_mb) / size.readers * 1e3:.1f}",
        ),
        (
            "memory per reader, by peak memory, KB",
            f"{(with_readers.peak_mb - without.peak_mb) / size.readers * 1e3:.1f}",
        ),
        ("reconnects of readers", f"{with_readers.reconnects}"),
        (f"disconnected, of {size.stalled} that never read", f"{with_readers.ended.get('slow', 0)}"),
    ):
        print(f"{name:44}{value:>26}")


def main() -> None:
    """Run the benchmark and print the results; exit 1 if there are faults, such as a missing event."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a thousand readers of a hundred matches")
    arguments = parser.parse_args()
    require_two_cores("stream benchmark", "the readers need their own core")
    size = FULL if arguments.full else QUICK
    machine = Machine()
    with bench_folder() as folder:
        without = uvloop.run(run(folder / "without", size, has_readers=False))
        with_readers = uvloop.run(run(folder / "with", size, has_readers=True))
        print_figures(size, without, with_readers)
    print(machine.text())
    faults = [*without.faults, *with_readers.faults]
    print(f"streams ended: {with_readers.ended}")
    print(f"faults, such as a reader that missed an event: {len(faults)}")
    print("\n".join(faults[:20]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
