"""How is a server run on a core of its own? Started there with all its threads, watched through what it prints."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

END_S = 10.0
"""For a server that was asked to end; then it is killed."""

LOOK_S = 0.05
"""How often the output of a server that starts is looked at."""

_ALL_CORES = tuple(sorted(os.sched_getaffinity(0)))
"""Looked up before this process moves away from the first."""


def cores() -> tuple[int, ...]:
    """The cores there are: the first is for servers, the others for the load."""
    return _ALL_CORES


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PinnedProcess:
    """A process on the first core, or on those named; its output goes to a file."""

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
        # What ours is set to by the caller's shell must not decide what is measured.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MATCHPOD_")}
        # A child begins where its parent is, so also the threads it starts at once are on the right core.
        os.sched_setaffinity(0, on or _ALL_CORES[:1])
        try:
            with log.open("wb") as output:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**inherited, "PYTHONUNBUFFERED": "1", **(environment or {})},
                    cwd=cwd,
                )
        finally:
            os.sched_setaffinity(0, _ALL_CORES[1:] or _ALL_CORES)

    def output(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, pattern: str, patience_s: float) -> str:
        """The first group (or all) of a pattern in its output, as soon as it is there."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            found = re.search(pattern, self.output())
            if found:
                return found[found.re.groups and 1]
            if self._process.poll() is not None:
                break
            time.sleep(LOOK_S)
        raise RuntimeError(f"{self._name} did not get as far as {pattern}; it printed:\n{self.output()[-3000:]}")

    def wait(self, patience_s: float) -> int:
        """Its exit code; 124 when it was killed for taking too long."""
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.end()
            return 124

    def send(self, number: signal.Signals) -> None:
        """Stop it or let it go on."""
        self._process.send_signal(number)

    def cpu_s(self) -> float:
        """CPU time it has used, all threads together."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End it, stopped or not; ending it twice does nothing."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
