"""Run the command `cs2-simulator`, also available as `matchpod simulate`: start servers and announce them.

The command runs until all servers have exited or a signal arrives. Exit codes: 0 normal end, 1 address or port not
available, 2 invalid arguments, 139 the only server crashed (as by a segfault). Ready lines are written to standard
output, everything else to standard error. A reader that is too slow never blocks the servers.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import select
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from cs2_protocol.rcon import PASSWORD_VARIABLE
from cs2_simulator.machine import Machine
from cs2_simulator.wire.farm import Farm
from cs2_simulator.wire.launch import HELP, Launch, LaunchError, parse_arguments, scenario_list
from cs2_simulator.wire.server import MachineFactory, SimulatedServer

CRASHED = 139
"""Exit code that a shell reports for a segmentation fault."""

READER_POLL_S = 0.02
"""Interval in seconds at which a blocked standard output is polled."""

GC_THRESHOLD = 50_000
"""Number of new objects between two garbage collections. A farm creates many objects, but hardly any reference
cycles."""

PROGRAM = "cs2-simulator"


def run() -> None:
    """Run the command line and exit; the entry point of `cs2-simulator` and of `python -m cs2_simulator`."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str], make_machine: MachineFactory = Machine, *, program: str = PROGRAM) -> int:
    """Run the command with these arguments, and return the exit code.

    `program` is the name of the command in messages.
    """
    try:
        launch = parse_arguments(arguments, rcon_password=os.environ.get(PASSWORD_VARIABLE, ""))
    except LaunchError as fault:
        _write(sys.stderr, f"{program}: {fault}\n")
        return 2
    if launch.wants_help or launch.wants_list:
        _write(sys.stdout, HELP.replace(PROGRAM, program) if launch.wants_help else scenario_list())
        return 0
    # A server needs three or more file descriptors (port, RCON client, log post). The usual soft limit is 1024.
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    return asyncio.run(Process(launch, make_machine, program).run())


class Process:
    """The running process of the command."""

    def __init__(self, launch: Launch, make_machine: MachineFactory, program: str) -> None:
        self._launch = launch
        self._program = program
        self._make_machine = make_machine
        self._running = len(launch.servers)
        self._signals = 0

    async def run(self) -> int:
        """Start the servers, run until all have exited or a signal arrives, and clean up. Return the exit code."""
        self._end = asyncio.Event()
        farm = Farm(self._launch.servers, self._make_machine, on_exit=self._on_exit)
        self._start = asyncio.create_task(farm.start())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        try:
            await self._start
        except asyncio.CancelledError:
            return 0
        except OSError as fault:
            _write(sys.stderr, f"{self._program}: cannot listen: {fault.strerror or fault}\n")
            return 1
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        announcement = asyncio.create_task(_announce(farm.servers))
        await self._end.wait()
        await farm.stop()
        announcement.cancel()
        return 0

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals > 1:
            os._exit(0)  # second signal: exit without cleanup
        self._report("stopping")
        self._end.set()
        self._start.cancel()

    def _on_exit(self, server: SimulatedServer) -> None:
        self._report(f"{_address(server)} {'crashed' if server.has_crashed else 'quit'}")
        if server.has_crashed and len(self._launch.servers) == 1:
            os._exit(CRASHED)
        self._running -= 1
        if self._running == 0:
            self._end.set()

    def _report(self, text: str) -> None:
        if not self._launch.is_quiet and _is_writable(sys.stderr):
            _write(sys.stderr, f"{text}\n")


async def _announce(servers: Sequence[SimulatedServer]) -> None:
    """Print a ready line per server, not faster than they are read. A pipe buffers only a few hundred lines."""
    for server in servers:
        while not _is_writable(sys.stdout):
            await asyncio.sleep(READER_POLL_S)
        _write(sys.stdout, f"{_ready_line(server)}\n")


def _is_writable(stream: TextIO | None) -> bool:
    """False if a write would block because the reader is behind."""
    if stream is None:
        return True
    poll = select.poll()
    try:
        poll.register(stream, select.POLLOUT)
    except (OSError, ValueError):
        return True  # not a file descriptor
    return bool(poll.poll(0))


def _write(stream: TextIO | None, text: str) -> None:
    """Write to a standard stream. If the stream is missing or closed, do nothing."""
    if stream is None:
        return
    try:
        file = stream.fileno()
    except (OSError, ValueError):
        stream.write(text)
        return
    # Bypass the stream's buffer: after a failed write, Python would flush the buffer at exit and fail again.
    rest = text.encode("utf-8", "replace")
    with suppress(OSError):
        while rest:
            rest = rest[os.write(file, rest) :]


def _address(server: SimulatedServer) -> str:
    return f"{server.options.ip}:{server.options.port}"


def _ready_line(server: SimulatedServer) -> str:
    options = server.options
    return (
        f"listening on {_address(server)} (RCON), map {options.map}, scenario {options.scenario}, "
        f"seed {options.seed}, speed {options.speed:g}x"
    )
