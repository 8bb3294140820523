"""Tests of many servers in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cs2_simulator.options import ServerOptions
from cs2_simulator.wire.farm import Farm
from cs2_simulator.wire.server import SimulatedServer
from simulator_tests.rcon_client import RconClient
from simulator_tests.wire.fake_machine import PASSWORD, FakeMachine
from simulator_tests.wire.log_receiver import LogReceiver
from simulator_tests.wire.loop_thread import LoopThread


class FarmHarness:
    def __init__(self, loop_thread: LoopThread, count: int, commands: tuple[str, ...]) -> None:
        self.loop_thread = loop_thread
        self.ended: list[SimulatedServer] = []
        options = [ServerOptions(port=0, speed=30, seed=str(number), commands=commands) for number in range(count)]
        self.farm = loop_thread.run(lambda: Farm(options, FakeMachine, on_exit=self.ended.append))
        loop_thread.call(self.farm.start())

    @property
    def ports(self) -> list[int]:
        return [server.options.port for server in self.farm.servers]

    def run(self, index: int, command: str) -> str:
        with RconClient(self.ports[index]) as client:
            assert client.log_in(PASSWORD)
            return client.run(command)


@contextmanager
def run_farm(count: int, *commands: str) -> Iterator[FarmHarness]:
    with LoopThread() as loop_thread:
        harness = FarmHarness(loop_thread, count, commands)
        try:
            yield harness
        finally:
            loop_thread.call(harness.farm.stop())


def test_every_server_has_its_own_port_and_instance_token() -> None:
    with LogReceiver() as receiver, run_farm(5, f"listen {receiver.url}", "say hello") as harness:
        assert len(set(harness.ports)) == 5
        assert [harness.run(index, "echo hello") for index in range(5)] == ["hello"] * 5
        receiver.wait_for_requests(5)
        assert len({request.header_map["X-Server-Instance-Token"] for request in receiver.requests[:5]}) == 5


def test_no_server_is_started_if_a_port_is_in_use() -> None:
    with run_farm(1) as harness:
        options = [ServerOptions(port=0), ServerOptions(port=harness.ports[0])]
        other = harness.loop_thread.run(lambda: Farm(options, FakeMachine, on_exit=harness.ended.append))
        with pytest.raises(OSError, match="in use"):
            harness.loop_thread.call(other.start())
        assert all(server.is_over for server in other.servers)
