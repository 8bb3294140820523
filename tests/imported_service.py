"""Start commands of Matchpod in processes that are forked from one that has imported everything.

A service that is started for a test spends most of its CPU time on imports. `make test` begins one process that has done
them; each command is a child of it, with the arguments, environment, folder and output that it would have otherwise.
Without it, as in a run of one test, `python -m matchpod` is started. Tests of how the program is started do that always.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pickle
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import matchpod.__main__

ROOT = Path(__file__).parents[1]
PACKAGES = ("matchpod.cli", "matchpod.app", "cs2_simulator")
MAX_REQUEST = 200_000
END_S = 60.0

_address: str | None = None
"""Where the process listens that has imported everything, also in processes that are forked from this one."""


class Command(NamedTuple):
    """What a process needs to know; its standard input, output and error are sent with it."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    folder: str


class ForkedProcess:
    """A process that is not our child, as far as tests use `subprocess.Popen`."""

    def __init__(self, command: Command, files: Sequence[int], address: str) -> None:
        self.returncode: int | None = None
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.connect(address)
        socket.send_fds(self._connection, [pickle.dumps(command)], list(files))
        self.pid = int(self._connection.recv(100))

    def poll(self) -> int | None:
        """Return the exit code of the process, or None while it runs."""
        if self.returncode is None:
            self._receive(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return the exit code."""
        if self.returncode is None and not self._receive(timeout):
            raise subprocess.TimeoutExpired("matchpod", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def _receive(self, timeout: float | None) -> bool:
        self._connection.settimeout(timeout)
        try:
            self.returncode = int(self._connection.recv(100))
        except (TimeoutError, BlockingIOError):
            return False
        self._connection.close()
        return True

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


Process = subprocess.Popen[bytes] | ForkedProcess


def start(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdout: Any,
    stderr: Any,
    prefix: Sequence[str] = (),
    is_imported: bool = True,
) -> Process:
    """Start a command of Matchpod, whose output goes to these files.

    It is a program of its own if `prefix` runs it, or if it is another version.
    """
    if _address is None or prefix or not is_imported:
        program = [*prefix, sys.executable, "-m", "matchpod", *arguments]
        return subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=env, cwd=cwd)
    output = [one if isinstance(one, int) else one.fileno() for one in (stdout, stderr)]
    with open(os.devnull, "rb") as nothing:
        return ForkedProcess(Command(tuple(arguments), dict(env), str(cwd)), [nothing.fileno(), *output], _address)


def run(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout: float, is_imported: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command of Matchpod to its end; return its output."""
    with ExitStack() as stack:
        ends = [os.pipe() for _ in range(2)]
        reading = [stack.enter_context(open(end, encoding="utf-8")) for end, _ in ends]
        process = start(arguments, env=env, cwd=cwd, stdout=ends[0][1], stderr=ends[1][1], is_imported=is_imported)
        for _, end in ends:
            os.close(end)
        texts = ["", ""]

        def read(number: int) -> None:
            texts[number] = reading[number].read()

        threads = [threading.Thread(target=read, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            for thread in threads:
                thread.join()
    return subprocess.CompletedProcess(["matchpod", *arguments], code, *texts)


# --- the process that has imported everything -------------------------------------------------------------------------


@contextmanager
def importing(folder: Path) -> Iterator[None]:
    """Run it for this process and those that are forked from it."""
    address = str(folder / "imported.socket")
    # The writing end stays open in this process and in those that are forked from it, not in programs that they run.
    its_input, ours = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(100)
        program = [sys.executable, "-m", "tests.imported_service", str(listener.fileno())]
        process = subprocess.Popen(program, stdin=its_input, cwd=ROOT, pass_fds=[listener.fileno()])
    os.close(its_input)
    global _address
    _address = address
    try:
        yield
    finally:
        _address = None
        os.close(ours)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(listener: socket.socket) -> None:
    """Import everything, and fork a process for each connection until standard input ends."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):  # which runs it
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    _serve(listener)


def _serve(listener: socket.socket) -> None:
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(0, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                return
            if key.fileobj is listener:
                connection = listener.accept()[0]
                pid = _fork(connection)
                connection.send(str(pid).encode())
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))
            else:
                pid, connection = key.data
                selector.unregister(key.fileobj)
                os.close(key.fd)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with suppress(OSError):  # the test has ended before
                    connection.send(str(code).encode())
                connection.close()


def _fork(connection: socket.socket) -> int:
    data, files, _, _ = socket.recv_fds(connection, MAX_REQUEST, 3)
    command: Command = pickle.loads(data)
    if pid := os.fork():
        for file in files:
            os.close(file)
        return pid
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, 1_000)
        _become(command)
        matchpod.__main__.main(command.arguments)
        code = 0
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else 0 if exc.code is None else 1
    except BaseException:  # noqa: BLE001 - printed as the interpreter does
        sys.excepthook(*sys.exc_info())
    finally:
        _end(code)
    raise AssertionError


def _become(command: Command) -> None:
    """Make this process as if it had been started with this command."""
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(command.environment)
    time.tzset()
    sys.argv[:] = [matchpod.__main__.__file__, *command.arguments]
    sys.path[0] = command.folder
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1 if os.isatty(1) else -1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, errors="backslashreplace")


def _end(code: int) -> None:
    """End as the interpreter does."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 120
    os._exit(code)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
