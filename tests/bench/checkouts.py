"""Compare this checkout with another one, and say how fast and how busy the machine is meanwhile.

A benchmark with `--against FOLDER` runs the program of that checkout (its own `.venv`) as "before", in turns with or
beside this one, so that noise affects both. Without it, only this checkout is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import math
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, process_time

from tests.chaos.machine import read_times

THIS = Path(__file__).resolve().parents[2]
CALIBRATION_STEPS = 300_000
CALIBRATION_RUNS = 5
HOST_WATCH_S = 0.02


@dataclass(frozen=True)
class Checkout:
    """A checkout of the project with its environment."""

    label: str
    folder: Path

    @property
    def python(self) -> str:
        return sys.executable if self.folder == THIS else str(self.folder / ".venv" / "bin" / "python")


THIS_CHECKOUT = Checkout("this", THIS)


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--against", type=Path, help="folder of another checkout to compare with, with its own .venv")


def checkouts(against: Path | None) -> list[Checkout]:
    """Return the checkouts to measure: the other one first."""
    if against is None:
        return [THIS_CHECKOUT]
    before = Checkout("before", against.resolve())
    if not Path(before.python).is_file():
        sys.exit(f"{before.python} does not exist. Run `make .venv/.ready` in {against}.")
    return [before, Checkout("after", THIS)]


@contextmanager
def bench_folder() -> Iterator[Path]:
    """Yield a folder for the files of a benchmark."""
    with tempfile.TemporaryDirectory(prefix="matchpod-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def calibrate() -> float:
    """Return the milliseconds of CPU time that a fixed loop takes here: the best of some runs."""
    times = []
    for _ in range(CALIBRATION_RUNS):
        begin, total, seen = process_time(), 0, {0: 0}
        for number in range(CALIBRATION_STEPS):
            total += number & 7
            seen[number & 63] = total
        times.append((process_time() - begin) * 1000)
    return min(times)


class Machine:
    """How busy the machine is from now on."""

    def __init__(self) -> None:
        self._begin = read_times()

    def text(self) -> str:
        """Return the load average, and the shares of CPU time that were idle and taken by the host since."""
        passed = [now - before for now, before in zip(read_times(), self._begin, strict=True)]
        whole = max(1, sum(passed))
        priority = "" if os.sched_getscheduler(0) == os.SCHED_OTHER else ", real-time priority"
        return (
            f"Python {platform.python_version()}, load average {os.getloadavg()[0]:.1f}, idle {passed[3] / whole:.0%}, "
            f"taken by the host {passed[7] / whole:.1%}, calibration loop {calibrate():.1f} ms{priority}"
        )


class HostWatch:
    """Records how much CPU time the host of a virtual machine takes, while `run` is a task."""

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._taken_s: list[float] = []

    async def run(self) -> None:
        """Read the system's counter again and again."""
        while True:
            self._times_s.append(monotonic())
            self._taken_s.append(read_times()[7] / os.sysconf("SC_CLK_TCK"))
            await asyncio.sleep(HOST_WATCH_S)

    def taken_s(self, begin_s: float, end_s: float) -> float:
        """Return the CPU time taken from all cores between two times of `monotonic`."""
        last = len(self._times_s) - 1
        first = max(0, bisect.bisect_right(self._times_s, begin_s) - 1)
        after = min(last, bisect.bisect_left(self._times_s, end_s))
        return self._taken_s[after] - self._taken_s[first]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan
