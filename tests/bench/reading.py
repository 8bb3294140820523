"""Compare how fast two checkouts read a log, in turns. Part of `make bench` if `AGAINST` is set.

One process per checkout, on the same core, waits while the other runs. Each subject of `run.py` runs once in one
checkout and right after it once in the other, in changing order, many times. The result is the median of the ratios of
such pairs: the speed of a shared machine changes within seconds, but seldom between the two runs of a pair.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import process_time

CHECKOUT = os.environ.get("BENCH_CHECKOUT")
if __name__ == "__main__":
    # Run as a script: make `tests` importable from this checkout, or from the one that is measured.
    sys.path[0] = CHECKOUT or str(Path(__file__).resolve().parents[2])

ROUNDS = 100
LIMIT = 0.03
SUBJECTS = ("parse", "parse and interpret", "whole fold, posts of 4 KB", "whole fold, a file")


def work() -> None:
    """Run the subject in each line of input, and print its CPU time."""
    from tests.bench.run import subjects  # of the measured checkout
    from tests.bench.workload import load_workload

    workload = load_workload()
    runs = {name: run for name, run in subjects(workload).items() if name in SUBJECTS}
    print(json.dumps(len(workload.lines)), flush=True)
    for line in sys.stdin:
        run = runs[line.strip()]
        gc.collect()
        begin = process_time()
        run()
        print(json.dumps(process_time() - begin), flush=True)


class Worker:
    """A process that reads the log with the code of one checkout."""

    def __init__(self, python: str, folder: Path) -> None:
        self.times: dict[str, list[float]] = {name: [] for name in SUBJECTS}
        environment = {**os.environ, "BENCH_CHECKOUT": str(folder)}
        self._process = subprocess.Popen(
            [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
        )
        self.line_count = int(self._read())

    def run(self, name: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        self.times[name].append(json.loads(self._read()))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def print_figures(before: Worker, after: Worker) -> None:
    """Print the cost of a line in both checkouts, and whether the limit is kept."""
    print(f"{'us of CPU per line, best run':36}{'before':>10}{'after':>10}{'median of pairs':>18}{'middle half':>18}")
    for name in SUBJECTS:
        best = [min(one.times[name]) / one.line_count * 1e6 for one in (before, after)]
        pairs = zip(before.times[name], after.times[name], strict=True)
        low, ratio, high = statistics.quantiles([second / first for first, second in pairs], n=4)
        verdict = "" if ratio <= 1 + LIMIT else f"   slower by more than {LIMIT:.0%}"
        middle = f"{low - 1:+.1%} to {high - 1:+.1%}"
        print(f"{name:36}{best[0]:>10.2f}{best[1]:>10.2f}{ratio - 1:>+18.1%}{middle:>18}{verdict}")


def main() -> None:
    from tests.bench.checkouts import Machine, add_argument, checkouts  # not in an older checkout
    from tests.bench.pinned_process import cores
    from tests.bench.workload import real_log

    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.against is None:
        parser.error("--against is required")
    real_log()
    os.sched_setaffinity(0, cores()[:1])
    machine = Machine()
    workers = [Worker(one.python, one.folder) for one in checkouts(given.against)]
    for number in range(given.rounds):
        for name in SUBJECTS:
            for worker in workers if number % 2 else reversed(workers):
                worker.run(name)
    for worker in workers:
        worker.end()
    print(f"\nreading against {given.against}: {given.rounds} rounds")
    print(machine.text())
    print_figures(*workers)


if __name__ == "__main__":
    if CHECKOUT:
        work()
    else:
        main()
