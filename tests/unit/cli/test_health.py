"""`matchpod health` reports what it finds at the address of the settings."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from matchpod.cli.health import health
from tests.e2e.service.running_service import free_port_range


def ask(folder: Path, port: int, *args: str) -> Result:
    app = typer.Typer()
    app.command()(health)
    environment = {"MATCHPOD_DATA_DIR": str(folder / "data"), "MATCHPOD_PORT": str(port)}
    done = CliRunner().invoke(app, args, env=environment)
    assert not (folder / "data").exists()
    assert done.stdout == ""
    return done


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Another program that listens on a port; it sends this answer to its first caller. Yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def respond() -> None:
            with listening.accept()[0] as caller:
                caller.recv(65_536)
                caller.sendall(answer)

        thread = threading.Thread(target=respond)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_service_that_does_not_listen_is_reported(tmp_path: Path) -> None:
    (port,) = free_port_range(1)
    done = ask(tmp_path, port)
    url = f"http://127.0.0.1:{port}/readyz"
    assert done.exit_code == 1
    assert done.stderr == f"matchpod: The service at {url} does not answer: Connection refused.\n"


def test_service_that_hangs_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = ask(tmp_path, silent.getsockname()[1], "--timeout", "0.2")
    assert done.exit_code == 1
    assert done.stderr.endswith("/readyz did not answer within 0.2 s.\n")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "its response with status 200 has another format."),
        (b"SSH-2.0\r\n", "does not answer: SSH-2.0"),
    ],
)
def test_another_program_on_the_port_is_not_healthy(tmp_path: Path, answer: bytes, problem: str) -> None:
    with answering(answer) as port:
        done = ask(tmp_path, port)
    assert done.exit_code == 1
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


def test_any_free_port_cannot_be_asked(tmp_path: Path) -> None:
    done = ask(tmp_path, 0)
    assert (done.exit_code, done.stderr) == (
        2,
        "matchpod: MATCHPOD_PORT is 0, so the service listens on any free port; set it to the port to ask.\n",
    )
