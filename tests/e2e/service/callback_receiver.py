"""Receive callbacks with a real HTTP server that records every request and can be configured to misbehave.

Signatures are verified with a separate implementation of Standard Webhooks, independent of the code under test.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, NamedTuple

from tests.e2e.service.running_service import WAIT_S, wait_until

Behavior = Literal["accept", "fail", "hang", "close"]
"""Response to a request: 200, 500, none, or a closed connection."""

_STATUS = {"accept": 200, "fail": 500}


class Received(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes
    at_s: float
    """Monotonic time at which it was read."""

    @property
    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)

    @property
    def id(self) -> str:
        """Return the id, which is the same in every attempt to deliver a callback."""
        return self.headers["webhook-id"]

    def is_signed_with(self, secret: str) -> bool:
        """True if the request has a valid signature for this secret."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in self.headers["webhook-signature"].split()


class CallbackReceiver:
    """A context manager that runs the server; requests are recorded, and behaviors configured, per path."""

    def __init__(self) -> None:
        self._received: list[Received] = []
        self._behaviors: dict[str, list[Behavior]] = {}
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1})

    def __enter__(self) -> CallbackReceiver:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()  # waits for hanging requests
        self._thread.join()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def configure(self, path: str, *behaviors: Behavior) -> str:
        """Set the behaviors for the next requests at this path, the last one for all later requests; return the URL."""
        self._behaviors[path] = list(behaviors)
        return self.url(path)

    def at(self, path: str) -> list[Received]:
        """Return the requests received at this path so far, in order."""
        return [one for one in self._received if one.path == path]

    def wait_for(self, path: str, count: int = 1, *, within_s: float = WAIT_S) -> list[Received]:
        wait_until(
            lambda: len(self.at(path)) >= count,
            lambda: f"{count} callbacks at {path}; received: {self.at(path)}",
            within_s=within_s,
        )
        return self.at(path)

    def _next_behavior(self, path: str) -> Behavior:
        behaviors = self._behaviors.get(path) or ["accept"]
        return behaviors.pop(0) if len(behaviors) > 1 else behaviors[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                behavior = receiver._next_behavior(self.path)
                receiver._received.append(Received(self.path, headers, body, time.monotonic()))
                self.close_connection = True
                with suppress(OSError):  # the sender has timed out
                    self._respond(behavior)

            def _respond(self, behavior: Behavior) -> None:
                if behavior == "hang":
                    receiver._closing.wait()
                elif behavior != "close":
                    self.send_response(_STATUS[behavior])
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler
