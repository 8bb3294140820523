"""An HTTP receiver for tests that records requests and sends configurable responses.

It uses plain sockets and threads, so that it can misbehave: hang, respond slowly, close early, send invalid data.
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
class ReceivedRequest:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    at_s: float
    connection: int

    @property
    def header_map(self) -> dict[str, str]:
        return dict(self.headers)


@dataclass
class Response:
    """How to respond to a request: which bytes, how slowly, and whether to close or hang."""

    data: bytes = OK
    drip_s: float = 0.0
    closes: bool = False
    hangs: bool = False
    during: Callable[[], object] = field(default=lambda: None)


def status(code: int, body: bytes = b"") -> Response:
    return Response(b"HTTP/1.1 %d Status\r\nContent-Length: %d\r\n\r\n%s" % (code, len(body), body))


class LogReceiver:
    """A receiver on its own port. Sends the queued `responses` first, then always `default`."""

    def __init__(self) -> None:
        self.responses: deque[Response] = deque()
        self.default = Response()
        self.requests: list[ReceivedRequest] = []
        self.changed = threading.Condition()
        self.is_down = False
        self.port = 0
        self.connections = 0
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._released = threading.Event()

    def __enter__(self) -> LogReceiver:
        self.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/log"

    def start(self) -> None:
        listening = socket.create_server(("127.0.0.1", self.port), backlog=512)
        self.port = listening.getsockname()[1]
        self.is_down = False
        self._released.clear()
        self._sockets = [listening]
        self._start_thread(lambda: self._accept(listening))

    def stop(self) -> None:
        """Close all sockets. New connections are refused."""
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

    def wait_for(self, is_met: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(is_met, TIMEOUT_S), f"only {len(self.requests)} requests received"

    def wait_for_requests(self, count: int) -> list[ReceivedRequest]:
        self.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    def _start_thread(self, work: Callable[[], None]) -> None:
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
            self._start_thread(lambda peer=peer, number=number: self._serve(peer, number))  # type: ignore[misc]

    def _serve(self, peer: socket.socket, number: int) -> None:
        try:
            with peer, peer.makefile("rb") as lines:
                while not self.is_down:
                    request = _read_request(lines.readline, lines.read, number)
                    if request is None:
                        return
                    with self.changed:
                        self.requests.append(request)
                        response = self.responses.popleft() if self.responses else self.default
                        self.changed.notify_all()
                    response.during()
                    if not self._respond(peer, response):
                        return
        except OSError:
            return

    def _respond(self, peer: socket.socket, response: Response) -> bool:
        if response.hangs:
            self._released.wait(TIMEOUT_S)
            return False
        if response.drip_s:
            for byte in response.data:
                peer.sendall(bytes([byte]))
                time.sleep(response.drip_s)
        else:
            peer.sendall(response.data)
        return not response.closes


def _read_request(
    read_line: Callable[[], bytes], read: Callable[[int], bytes], connection: int
) -> ReceivedRequest | None:
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
    return ReceivedRequest(method, target, headers, body, time.monotonic(), connection)
