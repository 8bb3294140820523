"""`matchpod health`: the probe of a container, as a command."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.serve_process import matchpod, serving
from tests.e2e.service.running_service import free_port_range, wait_until


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Another program that listens on a port; it sends this answer to its first caller. Yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def respond() -> None:
            with listening.accept()[0] as caller:
                caller.recv(65_536)
                caller.sendall(answer)

        thread = threading.Thread(target=respond)
        thread.start()
        yield str(listening.getsockname()[1])
        thread.join()


def test_ready_service_is_healthy_and_a_draining_one_only_alive(tmp_path: Path) -> None:
    with serving(tmp_path, stop_grace_s="60") as service:
        port = str(urlsplit(service.url).port)
        ready = matchpod(tmp_path, "health", port=port)
        assert (ready.returncode, ready.stderr) == (0, "")
        assert ready.stdout.startswith(f"The service at {service.url}/readyz is ready (version ")
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: any(one["message"] == "stopping" for one in service.records()), "it drains")
        draining, alive = matchpod(tmp_path, "health", port=port), matchpod(tmp_path, "health", "--live", port=port)
        assert (draining.returncode, draining.stdout) == (1, "")
        url = f"{service.url}/readyz"
        assert draining.stderr == f"matchpod: The service at {url} is not ready: The service is draining.\n"
        assert (alive.returncode, alive.stderr) == (0, "")
        assert "/healthz is alive (version " in alive.stdout


def test_port_of_probes_is_asked_if_there_is_one(tmp_path: Path) -> None:
    (port,) = free_port_range(1)
    with serving(tmp_path, ops_port=str(port)) as service:
        assert service.url
        done = matchpod(tmp_path, "health", port="1", ops_port=str(port))
        assert (done.returncode, f":{port}/readyz is ready" in done.stdout) == (0, True), done.stderr


def test_service_that_does_not_listen_is_reported(tmp_path: Path) -> None:
    (port,) = free_port_range(1)
    done = matchpod(tmp_path, "health", port=str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == f"matchpod: The service at http://127.0.0.1:{port}/readyz does not answer: Connection refused.\n"
    )
    assert not (tmp_path / "data").exists()


def test_service_that_hangs_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = matchpod(tmp_path, "health", "--timeout", "0.2", port=str(silent.getsockname()[1]))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("/readyz did not answer within 0.2 s.\n")


def test_another_program_on_the_port_is_not_healthy(tmp_path: Path) -> None:
    for answer, problem in (
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "its answer with status 200 is not ours."),
        (b"SSH-2.0\r\n", "does not answer: SSH-2.0"),
    ):
        with answering(answer) as port:
            done = matchpod(tmp_path, "health", port=port)
        assert (done.returncode, done.stdout) == (1, "")
        assert problem in done.stderr
        assert done.stderr.count("\n") == 1


def test_any_free_port_cannot_be_asked(tmp_path: Path) -> None:
    done = matchpod(tmp_path, "health", port="0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "matchpod: MATCHPOD_PORT is 0, so the service listens on any free port; set it to the port to ask.\n"
    )
