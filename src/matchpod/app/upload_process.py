"""Start, watch and stop the process that receives demos (`upload_service.py`).

If that process ends or hangs, a new process is started, and the uploads in progress are recorded as interrupted.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from matchpod.app.upload_service import END_S, Report
from matchpod.core.demos import DemoState, MissingReason
from matchpod.ports import Clock, Database, DatabaseError
from matchpod.service.telemetry.metrics import DemoMetrics
from matchpod.storage import demos

BACKLOG: Final = 256
"""Maximum number of uploads that wait for their connection to be accepted while the process is restarted."""
SILENT_S: Final = 60.0
"""Time in seconds without a report after which the process counts as hanging. It reports every five seconds."""
FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 30.0
"""Upper bound in seconds of the backoff before a process that ends repeatedly is restarted. A longer run resets the
backoff."""

_log = logging.getLogger(__name__)


class UploadProcess:
    """The child process that receives demos on a socket. It is restarted whenever it ends."""

    def __init__(
        self,
        bound: socket.socket,
        *,
        db: Database,
        clock: Clock,
        metrics: DemoMetrics,
        owner: str,
        on_available: Callable[[], None] = lambda: None,
        command: Sequence[str] = (sys.executable, "-m", "matchpod"),
    ) -> None:
        self._bound = bound
        self._db = db
        self._clock = clock
        self._metrics = metrics
        self._owner = owner
        self._on_available = on_available
        self._command = command
        self._started = 0
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False

    @property
    def pid(self) -> int | None:
        """The process id of the running process; None if it is not running."""
        return None if self._process is None else self._process.pid

    async def run(self) -> None:
        """Start the process, and restart it whenever it ends, until `stop` is called or this call is cancelled."""
        self._bound.listen(BACKLOG)  # listening here lets uploads wait while the process is restarted
        pause_s, loop = FIRST_PAUSE_S, asyncio.get_running_loop()
        while not self._is_stopping:
            began_s = loop.time()
            owner = f"{self._owner}/{self._started}"
            self._started += 1
            code = await self._try_once(owner)
            await self._lose(owner)
            if self._is_stopping:
                return
            self._metrics.restarts.inc()
            pause_s = FIRST_PAUSE_S if loop.time() - began_s > MAX_PAUSE_S else min(MAX_PAUSE_S, pause_s * 2)
            _log.error("upload process ended, restarting", extra={"exit_code": code, "pause_s": pause_s})
            await asyncio.sleep(pause_s)

    async def stop(self, drain_s: float) -> None:
        """Stop accepting uploads. Stop the process, which waits at most `drain_s` seconds for uploads in progress."""
        self._is_stopping = True
        self._bound.close()  # otherwise the system would still accept connections
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            async with asyncio.timeout(drain_s + END_S):
                await process.wait()
        except TimeoutError:
            _kill(process)

    async def _try_once(self, owner: str) -> int | None:
        try:
            return await self._run_once(owner)
        except OSError as exc:
            _log.error("upload process not started", extra={"error": str(exc)})
            return None

    async def _run_once(self, owner: str) -> int | None:
        fd = self._bound.fileno()
        arguments = ("receive-demos", "--socket", str(fd), "--owner", owner)
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(fd,),
        )
        try:
            if self._is_stopping:  # `stop` was called while the process was being started
                _kill(process)
            if process.stdout is not None:
                await self._read(process.stdout)
        except TimeoutError:
            _log.error("upload process hung: no report", extra={"pid": process.pid})
        finally:
            if not self._is_stopping:
                _kill(process)
            code = await process.wait()
            self._process = None
        return code

    async def _read(self, output: asyncio.StreamReader) -> None:
        while True:
            async with asyncio.timeout(SILENT_S):
                line = await _line_of(output)
            if line == b"":
                return
            try:
                report = msgspec.json.decode(line or b"", type=Report)
            except msgspec.DecodeError:
                _log.warning("upload process printed an invalid report", extra={"line": repr((line or b"")[:200])})
                continue
            if report.ended is not None:
                self._metrics.count(report.ended, received_bytes=report.received_bytes, seconds=report.seconds)
                if report.ended == DemoState.AVAILABLE:
                    self._on_available()

    async def _lose(self, owner: str) -> None:
        try:
            if lost := await demos.lose_of(self._db, owner, self._clock.now_ms()):
                self._metrics.uploads.inc(MissingReason.INTERRUPTED, amount=lost)
                _log.warning("demos missing: their upload was interrupted", extra={"demos": lost})
        except DatabaseError as exc:
            _log.warning("interrupted uploads not recorded yet", extra={"error": str(exc)})


async def _line_of(output: asyncio.StreamReader) -> bytes | None:
    """Return the next line of the output; None if the line is too long."""
    try:
        return await output.readline()
    except ValueError:
        return None


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
