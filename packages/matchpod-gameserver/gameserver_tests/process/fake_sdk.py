"""A stand-in for the SDK server of Agones: its REST interface on loopback, with faults.

Its answers are those of `sdk-server --local`, which the tests in test_sdk_server.py also use if it is installed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

NAME = "cs2-eu-vbrtd-dg6x8"


class SdkFault(Enum):
    """What happens to a request."""

    ERROR = auto()
    """It is answered 500."""
    HANG = auto()
    """It is never answered."""
    DROP = auto()
    """The connection is closed instead of an answer."""
    LOST_ANSWER = auto()
    """It has its effect, and the connection is closed instead of an answer."""


class FakeSdk:
    """A context manager that listens on `port`; 0 means any free one."""

    def __init__(self, ports: Mapping[str, int], *, port: int = 0, name: str = NAME) -> None:
        self.ports = dict(ports)
        self.name = name
        self.state = "Scheduled"
        self.state_after_ready = "Ready"
        self.faults: dict[str, SdkFault] = {}
        """The fault of each path; changed by tests while it runs."""
        self.requests: list[str] = []
        """The requests that were accepted, as `METHOD PATH`."""
        self._closed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> FakeSdk:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._closed.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def count(self, request: str) -> int:
        return self.requests.count(request)

    def _answer(self, method: str, path: str) -> tuple[int, object]:
        answer: object = {}
        if (method, path) == ("GET", "/gameserver"):
            answer = {
                "object_meta": {"name": self.name, "namespace": "default", "labels": {}, "annotations": {}},
                "spec": {"health": {"disabled": False, "period_seconds": 5, "failure_threshold": 3}},
                "status": {
                    "state": self.state,
                    "address": "127.0.0.1",
                    "ports": [{"name": name, "port": port} for name, port in self.ports.items()],
                },
            }
        elif (method, path) == ("POST", "/ready"):
            self.state = self.state_after_ready
        elif (method, path) != ("POST", "/health"):
            return 404, {"code": 5, "message": "Not Found", "details": []}
        self.requests.append(f"{method} {path}")
        return 200, answer

    def _handler(sdk) -> Callable[..., BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.close_connection = True
                fault = sdk.faults.get(self.path)
                if fault is SdkFault.HANG:
                    sdk._closed.wait()
                if fault in (SdkFault.HANG, SdkFault.DROP):
                    return
                answer: object
                if fault is SdkFault.ERROR:
                    status, answer = 500, {"code": 13, "message": "made to fail", "details": []}
                else:
                    status, answer = sdk._answer(self.command, self.path)
                if fault is SdkFault.LOST_ANSWER:
                    return
                body = json.dumps(answer).encode()
                with suppress(ConnectionError):
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            do_GET = do_POST = handle_any  # noqa: N815 - named by http.server

            def log_message(self, *_: object) -> None:
                pass

        return Handler
