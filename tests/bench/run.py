"""How fast is a log read? Prints lines a second, ratios, and where the time goes: `make bench`.

Figures of a busy machine are noisy. So the subjects take turns, the best run of each counts, and ratios say more than
lines a second. The garbage collector is on, as in production. `--made-up` leaves the real log aside.
"""

from __future__ import annotations

import gc
import platform
import statistics
import sys
from collections.abc import Callable
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
LIST = "list of regexes, best order"
LIST_UNQUOTED = "list of regexes, best order, no quotes in names"
LIST_DOCUMENTED = "list of regexes, documented order"


def subjects(workload: Workload) -> dict[str, Run]:
    """What is measured, by name; each run reads the whole log."""
    data, lines, settings = workload.data, workload.lines, workload.settings

    def decode() -> None:
        for raw in data.split(b"\n"):
            raw.decode("utf-8", "replace")

    def interpret() -> None:
        read, interpret, events = LineReader().read, Interpreter.of(settings).read, list[GameEvent]()
        for raw in lines:
            at_ms, line = read(raw)
            if at_ms is not None:
                interpret(at_ms, line, events)

    common = common_kinds(lines)
    return {
        DECODE: decode,
        PARSE: lambda: _read_all(LineReader().read, lines),
        INTERPRET: interpret,
        FOLD_POSTS: lambda: _fold_posts(MatchReader.create(settings, 0), workload.posts),
        FOLD_BUSY: lambda: _fold_posts(MatchReader.create(settings, 0), workload.busy_posts),
        FOLD_FILE: lambda: MatchReader.create(settings, 0).read_file(lines),
        LIST: _reading(PlainParser(common_first=common), lines),
        LIST_UNQUOTED: _reading(PlainParser(UNQUOTED_NAME, common), lines),
        LIST_DOCUMENTED: _reading(PlainParser(), lines),
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


def print_speeds(best: dict[str, float], count: int) -> None:
    """The table of speeds."""
    print(f"\n{'':48}{'lines/s':>11}{'us/line':>9}{'time/decode':>13}{'list/time':>11}")
    for name, seconds in best.items():
        print(
            f"{name:48}{count / seconds:>11,.0f}{seconds / count * 1e6:>9.2f}"
            f"{seconds / best[DECODE]:>13.1f}{best[LIST] / seconds:>11.1f}"
        )


def print_stages(best: dict[str, float]) -> None:
    """The table of stages, each as its share of the whole fold."""
    *_, whole = best.values()
    print(f"\n{'whole fold of posts, where the time goes':48}{'ms':>11}{'share':>9}")
    before = 0.0
    for name, seconds in best.items():
        print(f"{name:48}{(seconds - before) * 1e3:>11.2f}{(seconds - before) / whole:>9.0%}")
        before = seconds


def print_aims(best: dict[str, float], count: int) -> None:
    """What was hoped for, and what came out."""
    print()
    for name in (LIST, LIST_UNQUOTED, LIST_DOCUMENTED):
        _print_aim(f"parse against: {name}", best[name] / best[PARSE], AIM_TIMES_LIST, "x")
    for name in (FOLD_POSTS, FOLD_BUSY, FOLD_FILE):
        _print_aim(name, count / best[name], AIM_LINES_A_SECOND, " lines/s")


def _print_aim(what: str, reached: float, aim: float, unit: str) -> None:
    verdict = "reached" if reached >= aim else "missed"
    shown = f"{reached:,.0f}" if reached >= 100 else f"{reached:.1f}"
    print(f"{what:64}{shown + unit:>17}  aim {aim:,}{unit}: {verdict}")


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
    count = len(workload.lines)
    speeds = subjects(workload)
    parts = {f"stage: {name}": run for name, run in stages(workload).items()}
    times = measure(speeds | parts, BUDGET_S)
    best = {name: min(taken) for name, taken in times.items()}
    noise = max(statistics.median(taken) / min(taken) - 1 for taken in times.values())
    rounds = len(times[DECODE])
    print(
        f"{workload.source}: {count:,} lines, {len(workload.data) / 1024:,.0f} KB; Python {platform.python_version()}"
    )
    print(f"gc on, best of {rounds} rounds in turns; half of the runs were up to {noise:.0%} slower than the best")
    print_speeds({name: best[name] for name in speeds}, count)
    print_stages({name.removeprefix("stage: "): best[name] for name in parts})
    print_aims(best, count)


if __name__ == "__main__":
    main()
