"""Run a simulated server in its own process, for tests of clients that connect to servers."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from tests import imported_service

SIMULATE = (sys.executable, "-m", "matchpod", "simulate")
PASSWORD = "sesame"
SPEED = 60
TIMEOUT_S = 300.0


class SimulatorProcess:
    """A context manager that runs a simulated server; `port` is set when it listens."""

    def __init__(self, *args: str) -> None:
        self._args = args
        self.port = 0

    def __enter__(self) -> SimulatorProcess:
        own_args = ["-port", "0", "+rcon_password", PASSWORD, "--speed", str(SPEED), "--quiet"]
        reading, writing = os.pipe()
        self._output = open(reading, encoding="utf-8")
        command = ["simulate", *own_args, *self._args]
        self.process = imported_service.start(command, env=os.environ, cwd=Path.cwd(), stdout=writing, stderr=2)
        os.close(writing)
        found = re.search(r":([0-9]+) ", self._output.readline())
        assert found is not None
        self.port = int(found[1])
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        self._output.close()

    def freeze(self) -> None:
        """Stop the process: its sockets stay open, but do not answer."""
        os.kill(self.process.pid, signal.SIGSTOP)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the process for a while."""
        self.freeze()
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)


def free_ports(number: int) -> tuple[int, ...]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = tuple(one.getsockname()[1] for one in sockets)
    for one in sockets:
        one.close()
    return ports
