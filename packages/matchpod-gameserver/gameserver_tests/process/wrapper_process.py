"""Run the wrapper of a game server from its folder, as a real process for a test."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from glob import glob
from pathlib import Path

import matchpod_gameserver
from matchpod_gameserver.options import SECRET_VARIABLE

WRAPPER = Path(matchpod_gameserver.__file__).parent
SECRET = b"a secret of the fleet for tests"
TIMEOUT_S = 180.0
"""Far more than anything here takes on a busy machine."""

PORTS = (20_000, 32_000)
"""Below those that systems choose themselves, for connections and for servers that ask for any port."""

QUICK = (
    sys.executable,
    "-c",
    "import sys; from matchpod_gameserver.command import main; from matchpod_gameserver.game import Timing; "
    "timing = Timing(health_s=0.1, retry_s=0.05, refused_s=0.05, look_s=0.1, request_s=1.0, rcon_s=1.0); "
    "sys.exit(main(sys.argv[1:], timing=timing))",
)
"""The program with shorter intervals."""

SIMULATE = (sys.executable, "-m", "cs2_simulator", "-port", "{port}", "-ip", "{ip}")


def free_ports(number: int) -> tuple[int, ...]:
    """Ports that are not in use, and that the system gives to no other program meanwhile."""
    ports: list[int] = []
    while len(ports) < number:
        port = random.randrange(*PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports.append(port)
    return tuple(ports)


def oldest_python() -> str | None:
    """Return the oldest installed Python that runs the wrapper, if it is older than the service needs."""
    for version in ("3.9", "3.10"):
        for python in (f"python{version}", *glob(f"{Path.home()}/.pyenv/versions/{version}.*/bin/python{version}")):
            with suppress(OSError):
                found = subprocess.run([python, "-V"], capture_output=True, text=True, check=False)
                if found.returncode == 0:
                    return python
    return None


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {TIMEOUT_S:g} s: {what}"
        time.sleep(0.02)


class Wrapper:
    """A running wrapper; its output goes to files, so that it never blocks on a pipe."""

    def __init__(self, folder: Path, sdk_port: int, *arguments: str, start: tuple[str, ...] = QUICK) -> None:
        self.folder = folder
        secret = folder / "secret"
        secret.write_bytes(SECRET + b"\n")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MATCHPOD_")}
        own = {SECRET_VARIABLE: str(secret), "AGONES_SDK_HTTP_PORT": str(sdk_port)}
        with secret.open("rb") as own_input, (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            self.popen = subprocess.Popen(
                [*start, "--ip", "127.0.0.1", *arguments],
                stdin=own_input,
                stdout=out,
                stderr=err,
                env={**inherited, **own},
                cwd=folder,
            )

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text()

    @property
    def game_pid(self) -> int:
        self.wait_for("game server started")
        found = re.search(r"game server started  pid=(\d+)", self.err)
        assert found is not None
        return int(found[1])

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.err or self.popen.poll() is not None, text)
        assert text in self.err, self.err

    def stop(self) -> int:
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(TIMEOUT_S)
