"""What do a thousand readers cost a service with a hundred matches? And does each get every event once and in order?

`make bench` runs a smaller one; `--full` is a thousand readers of a hundred matches. The same matches (same seeds) are
played twice, without readers and with them: the difference is what readers cost. The service has one core, readers and
game servers another. `--profile` also says where the time of the service goes, in a third run.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import platform
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, process_time

import uvloop

if __name__ == "__main__":
    # Run as a file, Python looks for imports beside it; `tests` is found from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.pinned_process import cores
from tests.bench.stream_checks import Delays, differences, most_at_once, read_notes
from tests.bench.stream_matches import Match, Site
from tests.bench.stream_readers import Crowd, Sleeper, StreamReader

SEED = 20
OPENING = 50
"""Readers that come at the same time."""
RETURNING = 0.2
"""The share of readers who hang up now and then and come back."""
PLAY_S = 600.0
"""The longest that all matches together may take."""
LAST_S = 30.0
"""For readers to hear of the end of the last match."""
LOOK_S = 2.0
SLEEP_AFTER = 300
"""Events: some 130 KB."""
TOP = 25
"""Lines of a profile."""
EVERYWHERE = 0.9
"""What is part of more of a profile is the way to the event loop."""
SENDING = "event_streams.pour"


@dataclass(frozen=True)
class Size:
    """How much is asked of the service."""

    matches: int
    readers: int
    sleepers: int
    rounds: int
    speed: float
    quiet_s: int
    """Simulated, in which everything is set up and readers come."""


QUICK = Size(matches=20, readers=1000, sleepers=4, rounds=12, speed=25, quiet_s=200)
FULL = Size(matches=100, readers=1000, sleepers=10, rounds=16, speed=15, quiet_s=220)


@dataclass
class Run:
    """What was measured in one run, from when everything was set up to the end of the last match."""

    seconds: float = 0.0
    service_s: float = 0.0
    loop_s: float = 0.0
    """Of it, the thread of the event loop."""
    kernel_s: float = 0.0
    """Of it, what the kernel took."""
    farm_s: float = 0.0
    load_s: float = 0.0
    before_mb: float = 0.0
    opened_mb: float = 0.0
    most_mb: float = 0.0
    delivered: int = 0
    most_a_second: float = 0.0
    items: int = 0
    at_once: int = 0
    returns: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    delays: Delays = field(default_factory=Delays)
    faults: list[str] = field(default_factory=list)


# --- a run --------------------------------------------------------------------------------------------------------


async def run(folder: Path, size: Size, *, has_readers: bool, is_sampled: bool = False) -> Run:
    """Play all matches to their end, and compare what readers got with what can be polled."""
    folder.mkdir()
    site = Site(folder, size.matches, speed=size.speed, is_sampled=is_sampled)
    try:
        site.begin()
        matches = [
            await site.create(number, rounds=size.rounds, quiet_s=size.quiet_s) for number in range(size.matches)
        ]
        await site.wait_until_running(matches)
        crowd = Crowd(site.port, site.key)
        measured = Run(before_mb=site.service.resident_mb())
        readers = await open_readers(crowd, matches, size.readers) if has_readers else []
        sleepers = Sleepers(crowd, matches, size.sleepers if has_readers else 0)
        await asyncio.sleep(1)
        measured.opened_mb = site.service.resident_mb()
        await play(site, readers, sleepers, measured)
        measured.returns, measured.ended = crowd.returns, await end_of_sleepers(site, len(sleepers.asleep))
        timelines = {map_id: await site.timeline(map_id) for match in matches for map_id in match.maps}
        for sleeper in sleepers.asleep:
            sleeper.close()
    finally:
        site.end()
    published = read_notes(site.notes)
    measured.items = sum(map(len, timelines.values()))
    measured.at_once = most_at_once(matches, timelines, published)
    measured.faults += [*crowd.failures, *differences(readers, matches, timelines)]
    if measured.at_once < size.matches:
        measured.faults.append(f"no more than {measured.at_once} matches were live at once")
    measured.delays = Delays.of(readers, published)
    if is_sampled:
        print_profile(site.samples)
    return measured


async def open_readers(crowd: Crowd, matches: Sequence[Match], number: int) -> list[StreamReader]:
    """Readers of all matches, every other one of the whole server; answers when all streams are open."""
    chance = random.Random(SEED)
    readers = []
    for index in range(number):
        paths = matches[index % len(matches)].paths()
        path = paths[index // len(matches) % len(paths)]
        leaves = sorted(chance.sample(range(1, 150), 3)) if chance.random() < RETURNING else []
        readers.append(StreamReader(crowd, path, leaves_after=leaves, away_s=chance.uniform(0.1, 2.0)))
    for begin in range(0, number, OPENING):
        await asyncio.gather(*(reader.connect() for reader in readers[begin : begin + OPENING]))
    async with asyncio.timeout(LAST_S):
        while crowd.opened < number:
            await asyncio.sleep(0.05)
    return readers


class Sleepers:
    """Some who never read. They come to deathmatches, when there is more to be sent than the system keeps for them."""

    def __init__(self, crowd: Crowd, matches: Sequence[Match], number: int) -> None:
        self.crowd = crowd
        self.asleep: list[Sleeper] = []
        busy = [match for match in matches if match.is_deathmatch]
        self._paths = [busy[index % len(busy)].paths()[0] for index in range(number)]

    def come(self, readers: Sequence[StreamReader]) -> None:
        """Come to the matches of which enough was told."""
        told = {reader.path for reader in readers if len(reader) >= SLEEP_AFTER}
        for path in [path for path in self._paths if path in told]:
            self._paths.remove(path)
            self.asleep.append(Sleeper(self.crowd, path))


async def play(site: Site, readers: Sequence[StreamReader], sleepers: Sleepers, measured: Run) -> None:
    """Wait for the end of all matches and streams; what is looked at meanwhile is the same with and without readers."""
    gc.freeze()  # what is here stays, and looking at it would cost the readers time
    crowd, begin, load_s = sleepers.crowd, monotonic(), process_time()
    used = _used(site)
    last_s, last_events = begin, crowd.events
    async with asyncio.timeout(PLAY_S):
        while await site.open_maps() and not crowd.failures:
            await asyncio.sleep(LOOK_S)
            now = monotonic()
            measured.most_a_second = max(measured.most_a_second, (crowd.events - last_events) / (now - last_s))
            last_s, last_events = now, crowd.events
            measured.most_mb = max(measured.most_mb, site.service.resident_mb())
            sleepers.come(readers)
    deadline = monotonic() + LAST_S
    while crowd.over < len(readers) and monotonic() < deadline and not crowd.failures:
        await asyncio.sleep(0.1)
    measured.seconds, measured.load_s = monotonic() - begin, process_time() - load_s
    spent = [after - before for before, after in zip(used, _used(site), strict=True)]
    measured.service_s, measured.loop_s, measured.kernel_s, measured.farm_s = spent
    measured.delivered = crowd.events
    if crowd.breaks:
        measured.faults.append(f"{crowd.breaks} connections broke")


def _used(site: Site) -> tuple[float, float, float, float]:
    service = site.service
    return service.cpu_s(), service.loop_cpu_s(), service.kernel_cpu_s(), site.farm.cpu_s()


async def end_of_sleepers(site: Site, number: int) -> dict[str, int]:
    """How many streams ended, by why, once so many were cut off; or after a while."""
    deadline = monotonic() + LAST_S
    while (ended := await site.ended_streams()).get("slow", 0) < number and monotonic() < deadline:
        await asyncio.sleep(1)
    return ended


# --- what is printed ----------------------------------------------------------------------------------------------


def print_figures(size: Size, without: Run, with_readers: Run) -> None:
    """The table, then what readers cost."""
    print(
        f"\nstreams: {size.readers} readers of {size.matches} matches at {size.speed:g}x, one service on SQLite; "
        f"Python {platform.python_version()}, load of the machine {os.getloadavg()[0]:.1f}"
    )
    print(f"{'':44}{'without':>12}{'with readers':>14}")
    for name, first, second in (
        ("seconds", without.seconds, with_readers.seconds),
        ("CPU of the service, s", without.service_s, with_readers.service_s),
        ("  of it the thread of the event loop, s", without.loop_s, with_readers.loop_s),
        ("  of it the kernel, s", without.kernel_s, with_readers.kernel_s),
        ("CPU of the game servers, s", without.farm_s, with_readers.farm_s),
        ("CPU of the readers, s", without.load_s, with_readers.load_s),
    ):
        print(f"{name:44}{first:>12.1f}{second:>14.1f}")
    shares = [one.service_s / one.seconds for one in (without, with_readers)]
    print(f"{'share of its core, service':44}{shares[0]:>12.0%}{shares[1]:>14.0%}")
    print(f"{'memory before readers come, MB':44}{without.before_mb:>12.1f}{with_readers.before_mb:>14.1f}")
    print(f"{'memory when all have come, MB':44}{without.opened_mb:>12.1f}{with_readers.opened_mb:>14.1f}")
    print(f"{'most memory, MB':44}{without.most_mb:>12.1f}{with_readers.most_mb:>14.1f}")
    print(f"{'matches live at once':44}{without.at_once:>12}{with_readers.at_once:>14}")
    print(f"{'items stored':44}{without.items:>12,}{with_readers.items:>14,}")
    print_costs(size, without, with_readers)


def print_costs(size: Size, without: Run, with_readers: Run) -> None:
    """What can be said of readers alone."""
    delivered = max(1, with_readers.delivered)
    extra_s = with_readers.service_s - without.service_s
    # Game servers do the same work in both runs, so what they took longer is a machine that was slower.
    slower = with_readers.farm_s / without.farm_s
    fair_s = with_readers.service_s / slower - without.service_s
    delays = with_readers.delays
    for name, value in (
        ("events delivered", f"{with_readers.delivered:,}"),
        ("  a second, mean", f"{delivered / with_readers.seconds:,.0f}"),
        ("  a second, most", f"{with_readers.most_a_second:,.0f}"),
        ("  in one piece, mean", f"{delays.events_a_piece:.1f}"),
        ("CPU a delivered event, us", f"{extra_s / delivered * 1e6:.1f}"),
        ("  as fast as the machine was without, us", f"{fair_s / delivered * 1e6:.1f}"),
        ("  of it the kernel, us", f"{(with_readers.kernel_s / slower - without.kernel_s) / delivered * 1e6:.1f}"),
        (
            "memory a reader, when all have come, KB",
            f"{(with_readers.opened_mb - with_readers.before_mb) / size.readers * 1e3:.1f}",
        ),
        (
            "memory a reader, by the most of both, KB",
            f"{(with_readers.most_mb - without.most_mb) / size.readers * 1e3:.1f}",
        ),
        ("publish to arrival, ms: p50", f"{delays.at(0.5):.1f}"),
        ("publish to arrival, ms: p95", f"{delays.at(0.95):.1f}"),
        ("publish to arrival, ms: p99", f"{delays.at(0.99):.1f}"),
        ("publish to arrival, ms: most", f"{delays.at(1):.1f}"),
        ("readers who hung up and came back, times", f"{with_readers.returns}"),
        (f"readers cut off, of {size.sleepers} who never read", f"{with_readers.ended.get('slow', 0)}"),
    ):
        print(f"{name:44}{value:>26}")


def print_profile(samples: Path) -> None:
    """The functions in and under which the time was spent, of all of it and of what is spent on sending streams."""
    within: Counter[str] = Counter()
    itself: Counter[str] = Counter()
    total = sending = 0
    for line in samples.read_text().splitlines():
        stack, _, text = line.rpartition(" ")
        names, count = stack.split(";"), int(text)
        total += count
        for name in set(names):
            within[name] += count
        if SENDING in names:
            sending += count
            itself[names[-1]] += count
    everywhere = [name for name, count in within.items() if count > EVERYWHERE * total]
    for name in everywhere:
        del within[name]
    for title, counted, whole in (("in and under", within, total), (f"under {SENDING}, in", itself, sending)):
        print(f"\nprofile: share of {whole:,} samples {title}")
        for name, seen in counted.most_common(TOP):
            print(f"{seen / whole:>7.1%}  {name}")


def main() -> None:
    """Measure and print; exit 1 when a reader did not get what he should."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--full", action="store_true", help="a thousand readers of a hundred matches")
    words.add_argument("--profile", action="store_true", help="a third run, with samples of where the time goes")
    words.add_argument("--speed", type=float, help="simulated seconds in a real one")
    given = words.parse_args()
    if len(cores()) < 2:
        print("streams are not measured: the readers need a core of their own", file=sys.stderr)
        return
    chosen = FULL if given.full else QUICK
    size = Size(**{**vars(chosen), "speed": given.speed or chosen.speed})
    with tempfile.TemporaryDirectory(prefix="matchpod-bench-") as name:
        without = uvloop.run(run(Path(name) / "without", size, has_readers=False))
        with_readers = uvloop.run(run(Path(name) / "with", size, has_readers=True))
        print_figures(size, without, with_readers)
        if given.profile:
            uvloop.run(run(Path(name) / "profile", size, has_readers=True, is_sampled=True))
    faults = [*without.faults, *with_readers.faults]
    print(f"streams ended: {with_readers.ended}")
    print(f"faults, such as a reader who did not get what was polled: {len(faults)}")
    print("\n".join(faults[:20]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
