"""Run a replica of the service like a process manager: when it exits, it is started again at once.

The faults of processes are here too: kill, restart and freeze. Each is recorded as a death, and so is a process that is
killed by a bug.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.buggy_service import BUG_FOLDER
from tests.chaos.http_messages import format_request, send
from tests.chaos.observed import Death
from tests.chaos.set_clock import SetClock
from tests.e2e.serve_process import SOURCES
from tests.e2e.service.running_service import RunningService
from tests.first_key import first_key

START_S = 240.0
"""Timeout of the first start of a replica."""
STOP_S = 120.0
RESTART_S = 0.2
"""Pause before a replica that exited is started again."""
POLL_S = 0.05

_READY = format_request("GET", "/readyz", {})

UNLIMITED = {"MATCHPOD_MAX_CREATIONS_PER_MINUTE": "off"}
"""Settings of all replicas: measurements create a thousand matches at once."""


class Replica:
    """One replica, which is started again whenever it exits."""

    def __init__(
        self,
        number: int,
        service: RunningService,
        deaths: list[Death],
        bugs: Path | None = None,
        sources: Mapping[str, str] | None = None,
        *,
        is_forgetful: bool = False,
    ) -> None:
        """`sources` are variables with which Python runs another version of the service.

        `is_forgetful`: each start has a new data folder, like a container without a volume.
        """
        self.sources = sources or {}
        self._is_forgetful = is_forgetful
        self._module = "matchpod" if bugs is None else "tests.buggy_service"
        self._environment = UNLIMITED if bugs is None else {**UNLIMITED, **SOURCES, BUG_FOLDER: str(bugs)}
        self.number = number
        self.service = service
        self._deaths = deaths
        self._starts = 0
        self._is_closing = False
        self.clock = SetClock(service.folder)
        self.process: asyncio.subprocess.Process | None = None

    @property
    def port(self) -> int:
        return self.service.port

    async def __aenter__(self) -> Replica:
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep())
        await self.wait_until_ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)

    @property
    def data_dir(self) -> Path:
        """Return the data folder of its last start."""
        return self.service.folder / f"data{self._starts}" if self._is_forgetful else self.service.data_dir

    async def _spawn(self) -> None:
        self._starts += 1
        self.data_dir.mkdir(mode=0o700, exist_ok=True)
        own = {"MATCHPOD_DATA_DIR": str(self.data_dir), **self.clock.environment, **self._environment, **self.sources}
        out, err = (self.service.folder / f"{self._starts}.{kind}" for kind in ("out", "err"))
        with out.open("wb") as out_file, err.open("wb") as err_file:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self._module,
                "serve",
                stdout=out_file,
                stderr=err_file,
                stdin=subprocess.DEVNULL,
                env=self.service.environment() | own,
                cwd=self.service.folder,
            )

    async def _keep(self) -> None:
        while True:
            assert self.process is not None
            await self.process.wait()
            if self._is_closing:
                return
            if (self.process.returncode or 0) < 0:
                self._deaths.append(Death(time.monotonic(), time.monotonic()))
            await asyncio.sleep(RESTART_S)
            await self._spawn()

    def first_key(self) -> str:
        """Return the API key that the first start wrote into a file."""
        key = first_key(self.data_dir)
        assert key is not None, "the first start wrote no key"
        return key

    async def is_ready(self) -> bool:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(10):
                return (await send(self.port, _READY)).status == 200
        return False

    async def wait_until_ready(self, timeout_s: float = START_S) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not await self.is_ready():
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            text = (self.service.folder / f"{self._starts}.err").read_text(errors="replace")
            raise AssertionError(f"replica {self.number} is not ready after {timeout_s:g} s:\n{text[-3000:]}") from None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def kill(self) -> None:
        """Kill it, even while it starts; it is started again."""
        self.signal(signal.SIGKILL)

    async def restart(self) -> None:
        """Stop it in an orderly way; it is started again."""
        before, began_s = self.process, time.monotonic()
        self.signal(signal.SIGTERM)
        while self.process is before:
            await asyncio.sleep(POLL_S)
        await self.wait_until_ready()
        self._deaths.append(Death(began_s, time.monotonic()))

    async def freeze(self, lasts_s: float) -> None:
        """Stop its execution for a while."""
        began_s = time.monotonic()
        self.signal(signal.SIGSTOP)
        await asyncio.sleep(lasts_s)
        self.signal(signal.SIGCONT)
        self._deaths.append(Death(began_s, time.monotonic()))

    async def stop(self) -> int:
        """Stop it for good; return its exit code."""
        self._is_closing = True
        assert self.process is not None
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_S):
                return await self.process.wait()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return await self.process.wait()

    def texts(self) -> Mapping[str, str]:
        """Return the log of each start, by file name."""
        return {path.name: path.read_text(errors="replace") for path in sorted(self.service.folder.glob("*.err"))}
