"""Print how many test workers to start, depending on the CPU time that is currently free.

Many tests wait for processes, so one core can run several workers. On a busy or limited machine, fewer workers are
started, so that each test is as fast as on other machines.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor

PER_CORE = 3
"""Number of workers per core. Measured: with fewer, a core idles while tests wait; with more, tests slow each other
down."""

MIN_WORKERS, MAX_WORKERS = 2, 16
"""Minimum and maximum number of workers. With two, one long file does not delay all others. Sixteen fit into the memory
of a small machine."""

SAMPLE_S = 0.4


def cpu_share(sample_s: float) -> float:
    """Keep this process busy for a while. Return the share of a core that it got."""
    started, used = time.monotonic(), time.process_time()
    while time.monotonic() - started < sample_s:
        pass
    return (time.process_time() - used) / (time.monotonic() - started)


def free_cores() -> float:
    """Measure how much CPU time is currently free on this machine, in cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ProcessPoolExecutor(cores) as pool:
        return sum(pool.map(cpu_share, [SAMPLE_S] * cores))


def worker_count(cores: float) -> int:
    """Return the number of workers to start for this number of free cores."""
    return min(max(round(cores * PER_CORE), MIN_WORKERS), MAX_WORKERS)


if __name__ == "__main__":
    print(worker_count(free_cores()))
