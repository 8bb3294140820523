"""How much CPU time the host takes from this machine: then game servers are silent without any fault of ours."""

from __future__ import annotations

import asyncio
from pathlib import Path

SAMPLE_S = 10.0
"""How long a sample takes."""

_STAT = Path("/proc/stat")
_STEAL = 7
"""The column of the time that a hypervisor gave to others; guest times, which follow, are part of other columns."""


def read_times() -> tuple[int, ...]:
    """Return the CPU times of all cores since the start, in ticks; empty where the system has none."""
    try:
        first = _STAT.read_text("utf-8").splitlines()[0]
    except OSError:
        return ()
    return tuple(map(int, first.split()[1 : _STEAL + 2]))


def stolen_share(before: tuple[int, ...], after: tuple[int, ...]) -> float:
    """Return the share of the CPU time that the host took between two readings."""
    passed = sum(after) - sum(before)
    return (after[_STEAL] - before[_STEAL]) / passed if passed > 0 and len(after) > _STEAL else 0.0


class StolenTime:
    """Samples the share that the host takes, while it runs."""

    def __init__(self) -> None:
        self.largest_share = 0.0

    async def run(self) -> None:
        """Sample until cancelled."""
        before = read_times()
        while True:
            await asyncio.sleep(SAMPLE_S)
            after = read_times()
            self.largest_share = max(self.largest_share, stolen_share(before, after))
            before = after
