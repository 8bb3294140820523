"""Measure how fast a log is read: lines per second, ratios, and where the time goes. Part of `make bench`.

Measurements on a busy machine are noisy, so the subjects run in turns: speeds are those of the best run, ratios the
median of the ratios within each round. The garbage collector is on, as in production.
"""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from cs2_protocol.log_batches import LogPost
from cs2_protocol.log_lines.reader import LineReader
from matchpod.core.events import GameEvent
from matchpod.cs2.interpreter import Interpreter
from matchpod.cs2.match_reader import MatchReader
from tests.bench.checkouts import Machine
from tests.bench.stages import Run, stages
from tests.bench.workload import POST_BYTES, REAL_LOG, Workload, load_workload

BUDGET_S = 40
MIN_ROUNDS = 5

TARGET_LINES_PER_S = 60_000

DECODE = "split and decode only"
PARSE = "parse"
INTERPRET = "parse and interpret"
FOLD_POSTS = f"whole fold, posts of {POST_BYTES // 1024} KB"
FOLD_BUSY = "whole fold, a new time stamp on every line"
FOLD_FILE = "whole fold, a file"


def subjects(workload: Workload) -> dict[str, Run]:
    """Return the functions to measure, by name; each one reads the whole log."""
    data, lines, settings = workload.data, workload.lines, workload.settings

    def decode() -> None:
        for raw in data.split(b"\n"):
            raw.decode("utf-8", "replace")

    def parse_and_interpret() -> None:
        read, interpret, events = LineReader().read, Interpreter.of(settings).read, list[GameEvent]()
        for raw in lines:
            at_ms, line = read(raw)
            if at_ms is not None:
                interpret(at_ms, line, events)

    return {
        DECODE: decode,
        PARSE: lambda: _read_all(LineReader().read, lines),
        INTERPRET: parse_and_interpret,
        FOLD_POSTS: lambda: _fold_posts(MatchReader.create(settings, 0), workload.posts),
        FOLD_BUSY: lambda: _fold_posts(MatchReader.create(settings, 0), workload.busy_posts),
        FOLD_FILE: lambda: MatchReader.create(settings, 0).read_file(lines),
    }


def measure(runs: dict[str, Run], budget_s: float) -> dict[str, list[float]]:
    """Run all subjects in turns, for `budget_s` and at least MIN_ROUNDS rounds; return the seconds of every run."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    begin, rounds = perf_counter(), 0
    while rounds < MIN_ROUNDS or perf_counter() - begin < budget_s:
        for name, run in runs.items():
            gc.collect()
            start = perf_counter()
            run()
            times[name].append(perf_counter() - start)
        rounds += 1
    return times


class Figures:
    """Speeds and ratios computed from the measured times."""

    def __init__(self, times: dict[str, list[float]], line_count: int) -> None:
        self._times = times
        self._line_count = line_count

    @property
    def rounds(self) -> int:
        return len(self._times[DECODE])

    @property
    def noise(self) -> float:
        """How much slower the median run was than the best, as a fraction; the maximum over all subjects."""
        return max(statistics.median(times) / min(times) - 1 for times in self._times.values())

    def lines_per_s(self, name: str) -> float:
        return self._line_count / min(self._times[name])

    def time_ratio(self, name: str, other: str) -> float:
        """Return the median ratio of the times of `name` and `other`."""
        pairs = zip(self._times[name], self._times[other], strict=True)
        return statistics.median(seconds / others for seconds, others in pairs)


def print_speeds(figures: Figures, names: Iterable[str]) -> None:
    print(f"\n{'':48}{'lines/s':>10}{'us/line':>9}{'time, decode = 1':>18}")
    for name in names:
        speed = figures.lines_per_s(name)
        print(f"{name:48}{speed:>10,.0f}{1e6 / speed:>9.2f}{figures.time_ratio(name, DECODE):>18.1f}")


def print_stages(figures: Figures, names: Sequence[str]) -> None:
    """Print the table of stages, each as its share of the whole fold."""
    whole_us = 1e6 / figures.lines_per_s(names[-1])
    print(f"\n{'where the time of the whole fold goes (posts)':48}{'share':>10}{'us/line':>9}")
    before = 0.0
    for name in names:
        reached = figures.time_ratio(name, names[-1])
        print(f"{name:48}{reached - before:>10.0%}{(reached - before) * whole_us:>9.2f}")
        before = reached


def print_targets(figures: Figures) -> None:
    print()
    for name in (FOLD_POSTS, FOLD_BUSY, FOLD_FILE):
        speed = figures.lines_per_s(name)
        verdict = "reached" if speed >= TARGET_LINES_PER_S else "missed"
        print(f"{name:64}{speed:>9,.0f} lines/s   target {TARGET_LINES_PER_S:,} lines/s: {verdict}")


def _read_all(read: Callable[[bytes], object], lines: list[bytes]) -> None:
    for raw in lines:
        read(raw)


def _fold_posts(reader: MatchReader, posts: list[LogPost]) -> None:
    for post in posts:
        reader.read_post(post)


def main() -> None:
    workload, machine = load_workload(), Machine()
    speeds, parts = subjects(workload), stages(workload)
    figures = Figures(measure(speeds | parts, BUDGET_S), len(workload.lines))
    size = f"{len(workload.lines):,} lines, {len(workload.data) / 1024:,.0f} KB"
    print(f"real log {REAL_LOG}: {size}, gc on; {machine.text()}")
    print(f"{figures.rounds} rounds; the median run was up to {figures.noise:.0%} slower than the best")
    print_speeds(figures, speeds)
    print_stages(figures, list(parts))
    print_targets(figures)


if __name__ == "__main__":
    main()
