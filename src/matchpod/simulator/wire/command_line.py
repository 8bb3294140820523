"""What does `simulate` do as a process? Starts what was asked for, says when it is ready, and ends when told.

0: ended as told. 1: a port is in use. 2: a word makes no sense. 139: the one server
crashed, as by a segfault. Ready lines go to standard output, all else to standard error; whether anybody reads them
makes no difference.
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

from matchpod.simulator.machine import Machine
from matchpod.simulator.wire.farm import Farm
from matchpod.simulator.wire.launch import HELP, Launch, LaunchError, read_words, scenario_list
from matchpod.simulator.wire.server import MachineMaker, SimulatedServer

CRASHED = 139
"""What a shell says of a process that ended by a segmentation fault."""

READER_S = 0.02
"""How often a reader of ready lines that does not keep up is looked after."""

GC_THRESHOLD = 50_000
"""New objects between two searches for cycles. A farm makes many objects and hardly any cycles."""


def main(words: Sequence[str], make_machine: MachineMaker = Machine) -> int:
    """Run what the words after `simulate` ask for; answers the exit code when it has ended."""
    try:
        launch = read_words(words)
    except LaunchError as fault:
        _write(sys.stderr, f"matchpod simulate: {fault}\n")
        return 2
    if launch.wants_help or launch.wants_list:
        _write(sys.stdout, HELP if launch.wants_help else scenario_list())
        return 0
    # A server takes three files and more: its port, a console, a post under way. The usual limit is 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return asyncio.run(Process(launch, make_machine).run())


class Process:
    """The running process."""

    def __init__(self, launch: Launch, make_machine: MachineMaker) -> None:
        self._launch = launch
        self._make_machine = make_machine
        self._running = len(launch.servers)
        self._signals = 0

    async def run(self) -> int:
        """Start, wait for the end, and clean up."""
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
            _write(sys.stderr, f"matchpod simulate: cannot listen: {fault.strerror or fault}\n")
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
            os._exit(0)  # asked twice: without farewell
        self._say("ending")
        self._end.set()
        self._start.cancel()

    def _on_exit(self, server: SimulatedServer) -> None:
        self._say(f"{_address(server)} {'crashed' if server.has_crashed else 'quit'}")
        if server.has_crashed and len(self._launch.servers) == 1:
            os._exit(CRASHED)
        self._running -= 1
        if self._running == 0:
            self._end.set()

    def _say(self, what: str) -> None:
        if not self._launch.is_quiet and _is_read(sys.stderr):
            _write(sys.stderr, f"{what}\n")


async def _announce(servers: Sequence[SimulatedServer]) -> None:
    """Say which servers are ready, as fast as somebody reads it: a pipe holds a few hundred lines."""
    for server in servers:
        while not _is_read(sys.stdout):
            await asyncio.sleep(READER_S)
        _write(sys.stdout, f"{_ready_line(server)}\n")


def _is_read(stream: TextIO | None) -> bool:
    """False when a line written now would wait for its reader."""
    if stream is None:
        return True
    poll = select.poll()
    try:
        poll.register(stream, select.POLLOUT)
    except (OSError, ValueError):
        return True  # no file of the system
    return bool(poll.poll(0))


def _write(stream: TextIO | None, text: str) -> None:
    """Write to a standard stream, if there is one and it goes anywhere."""
    if stream is None:
        return
    try:
        file = stream.fileno()
    except (OSError, ValueError):
        stream.write(text)
        return
    # Past the stream's own buffer, which would fail again when the process ends.
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
