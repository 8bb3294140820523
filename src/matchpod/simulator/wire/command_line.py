"""What does `simulate` do as a process? Starts what was asked for, says when it is ready, and ends when told.

0: ended as told. 1: a port is in use. 2: a word makes no sense. 139: the one server
crashed, as by a segfault. Ready lines go to standard output, all else to standard error.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import sys
from collections.abc import Sequence

from matchpod.simulator.machine import Machine
from matchpod.simulator.wire.farm import Farm
from matchpod.simulator.wire.launch import HELP, Launch, LaunchError, read_words, scenario_list
from matchpod.simulator.wire.server import MachineMaker, SimulatedServer

CRASHED = 139
"""What a shell says of a process that ended by a segmentation fault."""

GC_THRESHOLD = 50_000
"""New objects between two searches for cycles. A farm makes many objects and hardly any cycles."""


def main(words: Sequence[str], make_machine: MachineMaker = Machine) -> int:
    """Run what the words after `simulate` ask for; answers the exit code when it has ended."""
    try:
        launch = read_words(words)
    except LaunchError as fault:
        sys.stderr.write(f"matchpod simulate: {fault}\n")
        return 2
    if launch.wants_help or launch.wants_list:
        sys.stdout.write(HELP if launch.wants_help else scenario_list())
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
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        try:
            await farm.start()
        except OSError as fault:
            sys.stderr.write(f"matchpod simulate: cannot listen: {fault.strerror or fault}\n")
            return 1
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        for server in farm.servers:
            sys.stdout.write(f"{_ready_line(server)}\n")
        sys.stdout.flush()
        await self._end.wait()
        await farm.stop()
        return 0

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals > 1:
            os._exit(0)  # asked twice: without farewell
        self._say("ending")
        self._end.set()

    def _on_exit(self, server: SimulatedServer) -> None:
        self._say(f"{_address(server)} {'crashed' if server.has_crashed else 'quit'}")
        if server.has_crashed and len(self._launch.servers) == 1:
            sys.stderr.flush()
            os._exit(CRASHED)
        self._running -= 1
        if self._running == 0:
            self._end.set()

    def _say(self, what: str) -> None:
        if not self._launch.is_quiet:
            sys.stderr.write(f"{what}\n")
            sys.stderr.flush()


def _address(server: SimulatedServer) -> str:
    return f"{server.options.ip}:{server.options.port}"


def _ready_line(server: SimulatedServer) -> str:
    options = server.options
    return (
        f"listening on {_address(server)} (RCON), map {options.map}, scenario {options.scenario}, "
        f"seed {options.seed}, speed {options.speed:g}x"
    )
