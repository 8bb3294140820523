"""Run `matchpod serve` for a test: a real process with its own data folder, ports and settings."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from matchpod.adapters.fleets.process import ProcessFleet, ProcessOptions
from tests import imported_service
from tests.buggy_service import BUG_FOLDER
from tests.first_key import first_key

SOURCES = {"PYTHONPATH": str(Path(__file__).parents[2])}
"""Environment in which a process can import `tests`."""

START_S = 180.0
STOP_S = 180.0
REGION = """
[[regions]]
code = "sandbox"
speed = {speed}
[regions.fleet]
kind = "process"
ports = "{port}-{port}"
"""


class ServeProcess:
    """One process of `matchpod serve`; its output goes to files, so that it never blocks on a pipe."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        stdout: int | None = None,
        bugs: Path | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        folder.mkdir(exist_ok=True)
        number = len(list(folder.glob("*.out")))
        self.folder = folder
        self._out = folder / f"{number}.out"
        self._err = folder / f"{number}.err"
        env = environment(folder, settings)
        self.process: subprocess.Popen[bytes] | imported_service.ForkedProcess
        with self._out.open("wb") as out_file, self._err.open("wb") as err:
            out = out_file if stdout is None else stdout
            if bugs is not None:
                env |= {BUG_FOLDER: str(bugs), **SOURCES}
                program = [sys.executable, "-m", "tests.buggy_service", "serve"]
                self.process = subprocess.Popen(program, env=env, cwd=folder, stdout=out, stderr=err)
            else:
                start = imported_service.start
                self.process = start(["serve"], prefix=prefix, env=env, cwd=folder, stdout=out, stderr=err)

    @property
    def out(self) -> str:
        """Its standard output."""
        return self._out.read_text()

    @property
    def err(self) -> str:
        """Its standard error."""
        return self._err.read_text()

    def records(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.err.splitlines(keepends=True) if line.endswith("}\n")]

    @property
    def url(self) -> str:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            for record in self.records():
                if record["message"] == "listening":
                    return str(record["url"])
            time.sleep(0.05)
        raise AssertionError(f"the service did not start listening:\n{self.err}")

    @property
    def key(self) -> str:
        """The key that the first start writes into a file."""
        assert self.url  # the key is written before it listens
        key = first_key(self.folder / "data")
        assert key is not None
        return key

    def wait(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        return self.process.wait(STOP_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait until the process has ended, and return its exit code."""
        self.process.send_signal(number)
        return self.wait()


@contextmanager
def serving(
    folder: Path,
    *,
    stdout: int | None = None,
    bugs: Path | None = None,
    prefix: Sequence[str] = (),
    **settings: str,
) -> Iterator[ServeProcess]:
    """Run a service until the block ends, with the bugs in a folder; settings are named as in the settings file.

    `prefix` is a command that runs it.
    """
    service = ServeProcess(folder, settings, stdout, bugs, prefix)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.process.kill()
        service.process.wait()


def end_servers(folder: Path) -> None:
    """Release the game servers that a test left running."""
    for records in (folder / "data" / "fleets").glob("*"):
        fleet = ProcessFleet(records, ProcessOptions(command=("none",), ports=()))

        async def end(fleet: ProcessFleet = fleet) -> None:
            for server in await fleet.servers():
                await fleet.release(server.server_id, "")

        asyncio.run(end())


def environment(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a process that uses the data of the service in this folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MATCHPOD_")}
    # The disk of a machine that runs tests may be almost full.
    defaults = {"data_dir": str(folder / "data"), "port": "0", "log_format": "json", "min_free_disk_mb": "off"}
    values = {**defaults, **settings}
    return {**inherited, **{f"MATCHPOD_{name.upper()}": value for name, value in values.items()}}


def matchpod(folder: Path, *args: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run another command on the data in this folder."""
    return imported_service.run(args, env=environment(folder, settings), cwd=Path.cwd(), timeout=START_S)


def one_region(folder: Path, *, speed: int = 100) -> str:
    """Write a settings file with one simulated server on a free port; return its path."""
    folder.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    file = folder / "settings.toml"
    file.write_text(REGION.format(speed=speed, port=port))
    return str(file)
