"""Print how many tests to run at once: as many as the processor time that is free now can carry.

Many tests wait for processes, so a core carries several of them. On a machine that is busy or limited, fewer tests at
once keep each of them as fast as it is elsewhere.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor

PER_CORE = 4
"""Measured: with fewer a core idles while tests wait, with more they only get in each other's way."""

FEWEST, MOST = 2, 16
"""At least two, so that one long file does not hold up the rest; at most what the memory of a small machine carries."""

SAMPLE_S = 1.0


def processor_share(sample_s: float) -> float:
    """Keep this process busy for a while; answers which share of a core it got."""
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() - began < sample_s:
        pass
    return (time.process_time() - used) / (time.monotonic() - began)


def free_cores() -> float:
    """How many cores' worth of processor time this machine would give us now."""
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(cores) as pool:
        return sum(pool.map(processor_share, [SAMPLE_S] * cores))


def workers(cores: float) -> int:
    """How many tests to run at once on this many free cores."""
    return min(max(round(cores * PER_CORE), FEWEST), MOST)


if __name__ == "__main__":
    print(workers(free_cores()))
