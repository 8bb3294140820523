"""How fast is a log read? Prints lines a second, ratios, and where the time goes: `make bench`.

Figures of a busy machine are noisy. So the subjects take turns: speeds are those of the best run, ratios the median of
the ratios within each turn. The garbage collector is on, as in production. `--made-up` leaves the real log aside.
"""

from __future__ import annotations

import gc
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter

if __name__ == "__main__":
    # Run as a file, Python looks for imports beside it; `tests` is found from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.core.events import GameEvent
from matchpod.cs2.interpreter import Interpreter
from matchpod.cs2.log_batches import LogPost
from matchpod.cs2.log_lines.reader import LineReader
from matchpod.cs2.match_reader import MatchReader
from tests.bench.plain_parser import UNQUOTED_NAME, PlainParser, common_kinds
from tests.bench.stages import Run, stages
from tests.bench.workload import POST_BYTES, Workload, load_workload

BUDGET_S = 40
MIN_ROUNDS = 5

AIM_LINES_A_SECOND = 60_000
AIM_TIMES_LIST = 5

DECODE = "split and decode, no more"
PARSE = "parse"
INTERPRET = "parse and interpret"
FOLD_POSTS = f"whole fold, posts of {POST_BYTES // 1024} KB"
FOLD_BUSY = "whole fold, a new time on every line"
FOLD_FILE = "whole fold, a file"
LIST = "list of regexes"
LIST_SORTED = "list of regexes, sorted for this log"
LIST_UNQUOTED = "list of regexes, sorted, no quotes in names"


def subjects(workload: Workload) -> dict[str, Run]:
    """What is measured, by name; each run reads the whole log."""
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

    common = common_kinds(lines)
    return {
        DECODE: decode,
        PARSE: lambda: _read_all(LineReader().read, lines),
        INTERPRET: parse_and_interpret,
        FOLD_POSTS: lambda: _fold_posts(MatchReader.create(settings, 0), workload.posts),
        FOLD_BUSY: lambda: _fold_posts(MatchReader.create(settings, 0), workload.busy_posts),
        FOLD_FILE: lambda: MatchReader.create(settings, 0).read_file(lines),
        LIST: _reading(PlainParser(), lines),
        LIST_SORTED: _reading(PlainParser(common_first=common), lines),
        LIST_UNQUOTED: _reading(PlainParser(UNQUOTED_NAME, common), lines),
    }


def measure(runs: dict[str, Run], budget_s: float) -> dict[str, list[float]]:
    """Seconds of every run of each subject, taken in turns until the time is used up."""
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
    """What the runs say about the log they read."""

    def __init__(self, times: dict[str, list[float]], line_count: int) -> None:
        self._times = times
        self._line_count = line_count

    @property
    def rounds(self) -> int:
        """How many turns there were."""
        return len(self._times[DECODE])

    @property
    def noise(self) -> float:
        """How much slower than its best the median run was, as a share, for the subject that suffered most."""
        return max(statistics.median(taken) / min(taken) - 1 for taken in self._times.values())

    def lines_a_second(self, name: str) -> float:
        """The speed of the best run."""
        return self._line_count / min(self._times[name])

    def times_as_long(self, name: str, other: str) -> float:
        """How many times as long as `other` it takes."""
        pairs = zip(self._times[name], self._times[other], strict=True)
        return statistics.median(seconds / others for seconds, others in pairs)


def print_speeds(figures: Figures, names: Iterable[str]) -> None:
    """The table of speeds."""
    print(f"\n{'':48}{'lines/s':>10}{'us/line':>9}{'time, decode = 1':>18}{'speed, list = 1':>17}")
    for name in names:
        speed = figures.lines_a_second(name)
        against_decode, against_list = figures.times_as_long(name, DECODE), figures.times_as_long(LIST, name)
        print(f"{name:48}{speed:>10,.0f}{1e6 / speed:>9.2f}{against_decode:>18.1f}{against_list:>17.1f}")


def print_stages(figures: Figures, names: Sequence[str]) -> None:
    """The table of stages, each as its share of the whole fold."""
    whole_us = 1e6 / figures.lines_a_second(names[-1])
    print(f"\n{'where the time of the whole fold goes (posts)':48}{'share':>10}{'us/line':>9}")
    before = 0.0
    for name in names:
        reached = figures.times_as_long(name, names[-1])
        print(f"{name:48}{reached - before:>10.0%}{(reached - before) * whole_us:>9.2f}")
        before = reached


def print_aims(figures: Figures) -> None:
    """What was hoped for, and what came out."""
    print()
    _print_aim(f"parse against {LIST}", figures.times_as_long(LIST, PARSE), AIM_TIMES_LIST, "x")
    for name in (LIST_SORTED, LIST_UNQUOTED):
        print(f"{f'parse against {name}':64}{figures.times_as_long(name, PARSE):>16.1f}x")
    for name in (FOLD_POSTS, FOLD_BUSY, FOLD_FILE):
        _print_aim(name, figures.lines_a_second(name), AIM_LINES_A_SECOND, " lines/s")


def _print_aim(what: str, reached: float, aim: float, unit: str) -> None:
    verdict = "reached" if reached >= aim else "missed"
    shown = f"{reached:,.0f}" if reached >= 100 else f"{reached:.1f}"
    print(f"{what:64}{shown + unit:>17}   aim {aim:,}{unit}: {verdict}")


def _read_all(read: Callable[[bytes], object], lines: list[bytes]) -> None:
    for raw in lines:
        read(raw)


def _reading(parser: PlainParser, lines: list[bytes]) -> Run:
    return lambda: _read_all(parser.read, lines)


def _fold_posts(reader: MatchReader, posts: list[LogPost]) -> None:
    for post in posts:
        reader.read_post(post)


def main() -> None:
    """Measure and print."""
    workload = load_workload(made_up="--made-up" in sys.argv[1:])
    speeds, parts = subjects(workload), stages(workload)
    figures = Figures(measure(speeds | parts, BUDGET_S), len(workload.lines))
    size = f"{len(workload.lines):,} lines, {len(workload.data) / 1024:,.0f} KB"
    print(f"{workload.source}: {size}; Python {platform.python_version()}, gc on")
    print(f"{figures.rounds} rounds; the median run was up to {figures.noise:.0%} slower than the best")
    print_speeds(figures, speeds)
    print_stages(figures, list(parts))
    print_aims(figures)


if __name__ == "__main__":
    main()
