"""Run a server process on its own core, and wait for texts in its output."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TERMINATE_S = 10.0
"""Time for a server to terminate before it is killed."""

POLL_S = 0.05
"""How often the output is polled."""

NO_LIMITS = {
    f"MATCHPOD_{name}": "off"
    for name in ("MAX_LIVE_MATCHES", "MAX_CREATIONS_PER_MINUTE", "MAX_STREAMS", "MIN_FREE_DISK_MB")
}
"""Settings of a service that is measured: one organization creates and reads everything."""

_ALL_CORES = tuple(sorted(os.sched_getaffinity(0)))
"""The available cores, read before this process moves away from the first one."""


def cores() -> tuple[int, ...]:
    """Return the available cores: the first is for servers, the others for the load."""
    return _ALL_CORES


def require_two_cores(benchmark: str, why: str) -> None:
    """End this process, and say why, if there is only one core."""
    if len(_ALL_CORES) < 2:
        print(f"{benchmark} skipped: {why}", file=sys.stderr)
        sys.exit()


def give_way() -> None:
    """Let this process run only when what is measured waits, also if its parent has real-time priority."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(15)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PinnedProcess:
    """A process on the first core, or on the given ones; its output goes to a file."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        on: Sequence[int] = (),
        cwd: Path | None = None,
    ) -> None:
        self._log = log
        self._name = command[-1]
        # Settings in the shell of the user must not affect the measurement.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MATCHPOD_")}
        # A child inherits the affinity of its parent, so its first threads are on the right core too.
        os.sched_setaffinity(0, on or _ALL_CORES[:1])
        try:
            with log.open("wb") as output:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**inherited, **NO_LIMITS, "PYTHONUNBUFFERED": "1", **(environment or {})},
                    cwd=cwd,
                )
        finally:
            os.sched_setaffinity(0, _ALL_CORES[1:] or _ALL_CORES)

    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, pattern: str, timeout_s: float) -> str:
        """Wait until a pattern is in the output; return its first group, or the whole match."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = re.search(pattern, self.output())
            if found:
                return found[found.re.groups and 1]
            if self._process.poll() is not None:
                break
            time.sleep(POLL_S)
        raise RuntimeError(f"{self._name} did not print {pattern!r}. Its output:\n{self.output()[-3000:]}")

    def wait(self, timeout_s: float) -> int:
        """Wait for the process to exit and return its code; after the timeout, end it and return 124."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.end()
            return 124

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, to pause or continue it."""
        self._process.send_signal(number)

    def cpu_s(self) -> float:
        """Return the CPU time of all its threads."""
        return sum(self._times())

    def kernel_cpu_s(self) -> float:
        return self._times()[1]

    def _times(self) -> tuple[float, float]:
        fields = self._read("stat").rpartition(")")[2].split()
        ticks = os.sysconf("SC_CLK_TCK")
        return int(fields[11]) / ticks, int(fields[12]) / ticks

    def waited_s(self) -> float:
        """Return how long its first thread could run but had no core."""
        return int(self._read("schedstat").split()[1]) / 1e9

    def resident_mb(self) -> float:
        return int(self._read("statm").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def anonymous_mb(self) -> float:
        """Return the resident memory that it has allocated, without files such as programs and the database."""
        return int(self._read("smaps_rollup").partition("\nAnonymous:")[2].split()[0]) * 1024 / 1e6

    def written_mb(self) -> float:
        """Return what it has passed to the system to be written: nearly all of it to the database."""
        return int(self._read("io").partition("wchar: ")[2].split()[0]) / 1e6

    def _read(self, name: str) -> str:
        return Path(f"/proc/{self._process.pid}/{name}").read_text()

    def end(self) -> None:
        """Terminate the process, even if it is paused. Idempotent."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(TERMINATE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
