"""Many servers in one process: each for itself, all gone when the farm stops."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from matchpod.simulator.options import ServerOptions
from matchpod.simulator.wire.farm import Farm
from matchpod.simulator.wire.server import SimulatedServer
from tests.e2e.simulator.log_receiver import LogReceiver
from tests.e2e.simulator.loop_thread import LoopThread
from tests.e2e.simulator.rcon_client import RconClient
from tests.e2e.simulator.stand_in import PASSWORD, StandInMachine


class Running:
    """A farm in a loop of its own."""

    def __init__(self, threads: LoopThread, count: int, commands: tuple[str, ...]) -> None:
        self.threads = threads
        self.ended: list[SimulatedServer] = []
        options = [ServerOptions(port=0, speed=30, seed=str(number), commands=commands) for number in range(count)]
        self.farm = threads.do(lambda: Farm(options, StandInMachine, on_exit=self.ended.append))
        threads.call(self.farm.start())

    @property
    def ports(self) -> list[int]:
        return [server.options.port for server in self.farm.servers]

    def run(self, index: int, command: str) -> str:
        with RconClient(self.ports[index]) as client:
            assert client.log_in(PASSWORD)
            return client.run(command)


@contextmanager
def running(count: int, *commands: str) -> Iterator[Running]:
    with LoopThread() as threads:
        one = Running(threads, count, commands)
        try:
            yield one
        finally:
            threads.call(one.farm.stop())


def test_every_server_has_its_own_port_and_instance() -> None:
    with LogReceiver() as receiver, running(5, f"listen {receiver.url}", "say hello") as one:
        assert len(set(one.ports)) == 5
        assert [one.run(index, "echo hello") for index in range(5)] == ["hello"] * 5
        receiver.wait_for_requests(5)
        assert len({request.named["X-Server-Instance-Token"] for request in receiver.requests[:5]}) == 5


def test_death_of_one_leaves_the_others_alone() -> None:
    with running(3) as one:
        with RconClient(one.ports[1]) as client:
            client.log_in(PASSWORD)
            client.send(5, 2, b"crash")
            client.receive()
            assert client.is_closed()
        assert [server.has_crashed for server in one.farm.servers] == [False, True, False]
        assert one.run(0, "echo alive") == one.run(2, "echo alive") == "alive"
        with pytest.raises(ConnectionRefusedError):
            RconClient(one.ports[1])


def test_server_can_be_started_anew_on_its_port() -> None:
    with running(2) as one:
        ports = one.ports
        one.run(0, "echo first life")
        server = one.threads.call(one.farm.restart(0))
        assert one.ports == ports
        assert not server.is_over
        assert one.run(0, "echo second life") == "second life"


def test_many_lives_leave_nothing_behind() -> None:
    with LogReceiver() as receiver, running(1, f"listen {receiver.url}", "beat 50") as one:
        for _ in range(20):
            one.threads.call(one.farm.restart(0))
        one.ended.clear()
        gc.collect()
        alive = [found for found in gc.get_objects() if isinstance(found, SimulatedServer)]
        assert len(alive) <= 2


def test_port_in_use_starts_no_server_at_all() -> None:
    with running(1) as one:
        options = [ServerOptions(port=0), ServerOptions(port=one.ports[0])]
        other = one.threads.do(lambda: Farm(options, StandInMachine, on_exit=one.ended.append))
        with pytest.raises(OSError, match="in use"):
            one.threads.call(other.start())
        assert all(server.is_over for server in other.servers)
