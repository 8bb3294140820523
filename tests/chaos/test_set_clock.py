"""The wall clock of a process can be set while it runs; its monotonic clock stays."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.set_clock import SetClock

PROGRAM = "import sys, time\nfor _ in sys.stdin: print(time.time(), time.monotonic(), flush=True)"


async def test_wall_clock_of_a_process_is_set_while_it_runs(tmp_path: Path) -> None:
    clock = SetClock(tmp_path)
    if clock.fault is not None:
        pytest.skip(clock.fault)
    pipe = asyncio.subprocess.PIPE
    env = {**os.environ, **clock.environment}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, stdin=pipe, stdout=pipe, env=env)
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def offsets() -> tuple[int, int]:
        """Return how far its clocks are ahead of ours, in minutes."""
        stdin.write(b"\n")
        wall, steady = map(float, (await stdout.readline()).split())
        return round((wall - time.time()) / 60), round((steady - time.monotonic()) / 60)

    assert await offsets() == (0, 0)
    step = asyncio.create_task(clock.step(-7200, 3600))
    await asyncio.sleep(0)
    assert await offsets() == (-120, 0)
    step.cancel()
    stdin.close()
    await process.wait()
