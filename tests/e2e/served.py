"""A service of its own for a test: a real process with its own data folder, ports and settings."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from matchpod.adapters.fleets.process import ProcessFleet, ProcessOptions

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


class Served:
    """One process of `matchpod serve`; its output lies in files, so that it never waits for a reader."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        number = len(list(folder.glob("*.out")))
        self.folder = folder
        self._out = folder / f"{number}.out"
        self._err = folder / f"{number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "matchpod", "serve"],
                stdout=out,
                stderr=err,
                env=environment(folder, settings),
                cwd=folder,
            )

    @property
    def out(self) -> str:
        """What it wrote to standard output."""
        return self._out.read_text()

    @property
    def err(self) -> str:
        """What it wrote to standard error."""
        return self._err.read_text()

    def records(self) -> list[dict[str, object]]:
        """Its log."""
        return [json.loads(line) for line in self.err.splitlines(keepends=True) if line.endswith("}\n")]

    @property
    def url(self) -> str:
        """Where it listens; waits until it does."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            for record in self.records():
                if record["message"] == "listening":
                    return str(record["url"])
            time.sleep(0.05)
        raise AssertionError(f"the service does not listen:\n{self.err}")

    @property
    def key(self) -> str:
        """The key that the first start shows."""
        assert self.url  # shown before it listens
        found = re.search(r"mk_live_[\w-]{43}", self.out)
        assert found, self.out
        return found[0]

    def wait(self) -> int:
        """The exit code, once it has ended."""
        return self.process.wait(STOP_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        return self.wait()


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[Served]:
    """A service until the block ends; settings are named as in the file."""
    served = Served(folder, settings)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.kill()
        served.process.wait()


def end_servers(folder: Path) -> None:
    """End the game servers that a test left running."""
    for records in (folder / "data" / "fleets").glob("*"):
        fleet = ProcessFleet(records, ProcessOptions(command=("none",), ports=()))

        async def end(fleet: ProcessFleet = fleet) -> None:
            for server_id in await fleet.servers():
                await fleet.release(server_id, "")

        asyncio.run(end())


def environment(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that uses the same data as the service in this folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MATCHPOD_")}
    given = {"data_dir": str(folder / "data"), "port": "0", "log_format": "json", **settings}
    return {**kept, **{f"MATCHPOD_{name.upper()}": value for name, value in given.items()}}


def matchpod(folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run another command on the same data."""
    command = [sys.executable, "-m", "matchpod", *words]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment(folder, settings), timeout=START_S, check=False
    )


def one_region(folder: Path, *, speed: int = 100) -> str:
    """A settings file with one simulated server, on a port that is free right now."""
    folder.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    file = folder / "settings.toml"
    file.write_text(REGION.format(speed=speed, port=port))
    return str(file)
