"""The simulator as a process of its own, with the clients of the documentation and with a receiver of logs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from simulator_tests.wire.log_receiver import LogReceiver, status
from tests.contract.simulator_process import PASSWORD, SimulatorProcess, free_ports
from tests.e2e.service.game_server import execute_at

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def test_example_scripts_in_the_documentation_work() -> None:
    with SimulatorProcess("--speed", "100") as server:
        command = [sys.executable, str(EXAMPLES / "rcon.py"), str(server.port)]
        done = subprocess.run(
            [*command, PASSWORD, "echo hello", "mp_maxrounds"], capture_output=True, text=True, check=True
        )
        assert done.stdout == "hello\nmp_maxrounds = 24\n"
        assert subprocess.run([*command, "wrong", "x"], capture_output=True, check=False).stderr == b"wrong password\n"
        (port,) = free_ports(1)
        receiver = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "log_receiver.py"), str(port), "echo"], stdout=subprocess.PIPE, text=True
        )
        try:
            execute_at(server.port, PASSWORD, "log on", f'logaddress_add_http "http://127.0.0.1:{port}/"', "echo hello")
            assert receiver.stdout is not None
            assert receiver.stdout.readline().endswith('command "echo hello"\n')
        finally:
            receiver.terminate()
            receiver.communicate()


def test_clock_waits_for_log_acknowledgement_in_lockstep() -> None:
    commands = ("log on", "mp_warmuptime 10", "sim_lockstep 1")
    with LogReceiver() as receiver, SimulatorProcess("--speed", "300") as server:
        execute_at(server.port, PASSWORD, *commands, f'logaddress_add_http "{receiver.url}"')
        receiver.wait_for(lambda: any(b"SFUI_Notice_" in request.body for request in receiver.requests))
        receiver.default = status(503)
        receiver.wait_for(lambda: len({request.body for request in receiver.requests[-3:]}) == 1)
        accepted = [request.body for request in receiver.requests if request.body != receiver.requests[-1].body]
        waiting, count = receiver.requests[-1].body, len(receiver.requests)
        receiver.wait_for(lambda: len(receiver.requests) > count + 1)
        assert {request.body for request in receiver.requests[count:]} == {waiting}
        receiver.default = status(200)
        receiver.wait_for(lambda: receiver.requests[-1].body not in (waiting, *accepted))
