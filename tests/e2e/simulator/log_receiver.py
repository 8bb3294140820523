"""An HTTP receiver of the tests' own: records what comes, and answers well or badly as it is told.

Plain sockets and threads, so that it can do what no decent server does: hang, drip, close early, talk nonsense.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

TIMEOUT_S = 600.0

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Received:
    """One request."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    at_s: float
    connection: int

    @property
    def named(self) -> dict[str, str]:
        return dict(self.headers)


@dataclass
class Answer:
    """What to do with a request: send bytes, slowly perhaps, or nothing, and close or not."""

    data: bytes = OK
    drip_s: float = 0.0
    closes: bool = False
    hangs: bool = False
    during: Callable[[], None] = field(default=lambda: None)


def status(code: int, body: bytes = b"") -> Answer:
    """A plain answer."""
    return Answer(b"HTTP/1.1 %d Told\r\nContent-Length: %d\r\n\r\n%s" % (code, len(body), body))


class LogReceiver:
    """A receiver on a port of its own. `answers` are used up first, then `usual` is given to everybody."""

    def __init__(self) -> None:
        self.answers: deque[Answer] = deque()
        self.usual = Answer()
        self.requests: list[Received] = []
        self.news = threading.Condition()
        self.is_down = False
        self.port = 0
        self.connections = 0
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._released = threading.Event()

    def __enter__(self) -> LogReceiver:
        self.go_up()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.go_down()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/log"

    def go_up(self) -> None:
        """Listen, on the port it had before."""
        listening = socket.create_server(("127.0.0.1", self.port), backlog=512)
        self.port = listening.getsockname()[1]
        self.is_down = False
        self._released.clear()
        self._sockets = [listening]
        self._start(lambda: self._accept(listening))

    def go_down(self) -> None:
        """Close everything; new connections are refused."""
        self.is_down = True
        self._released.set()
        for one in tuple(self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        for one in self._sockets:
            one.close()
        self._threads.clear()

    def wait_for(self, is_enough: Callable[[], bool]) -> None:
        """Wait until a condition on what was received holds."""
        with self.news:
            assert self.news.wait_for(is_enough, TIMEOUT_S), f"only {len(self.requests)} requests came"

    def wait_for_requests(self, count: int) -> list[Received]:
        self.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listening: socket.socket) -> None:
        while not self.is_down:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            self._sockets.append(peer)
            self.connections += 1
            number = self.connections
            self._start(lambda peer=peer, number=number: self._serve(peer, number))  # type: ignore[misc]

    def _serve(self, peer: socket.socket, number: int) -> None:
        try:
            with peer, peer.makefile("rb") as lines:
                while not self.is_down:
                    request = _read_request(lines.readline, lines.read, number)
                    if request is None:
                        return
                    with self.news:
                        self.requests.append(request)
                        answer = self.answers.popleft() if self.answers else self.usual
                        self.news.notify_all()
                    answer.during()
                    if not self._answer(peer, answer):
                        return
        except OSError:
            return

    def _answer(self, peer: socket.socket, answer: Answer) -> bool:
        """Send the answer; True when the connection goes on."""
        if answer.hangs:
            self._released.wait(TIMEOUT_S)
            return False
        if answer.drip_s:
            for byte in answer.data:
                peer.sendall(bytes([byte]))
                time.sleep(answer.drip_s)
        else:
            peer.sendall(answer.data)
        return not answer.closes


def _read_request(read_line: Callable[[], bytes], read: Callable[[int], bytes], connection: int) -> Received | None:
    first = read_line()
    if not first.endswith(b"\r\n"):
        return None
    method, target, version = first.decode().split()
    assert version == "HTTP/1.1"
    headers: list[tuple[str, str]] = []
    while (line := read_line()) != b"\r\n":
        assert line.endswith(b"\r\n")
        name, _, value = line.decode().rstrip("\r\n").partition(": ")
        headers.append((name, value))
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    body = read(length)
    if len(body) < length:
        return None
    return Received(method, target, headers, body, time.monotonic(), connection)
