"""A receiver of callbacks: a real HTTP server that records every request and can be told to misbehave.

Signatures are checked by hand after Standard Webhooks, not by the code that made them.
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

Manner = Literal["accept", "fail", "redirect", "hang", "drip", "close"]
"""How a request is answered: 200, 500, 307 to /elsewhere, never, a byte a second for ever, or by hanging up."""

_STATUS = {"accept": 200, "fail": 500, "redirect": 307}

DRIP_S = 1.0


class Received(NamedTuple):
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at_s: float
    """When it was read, by the monotonic clock."""

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body)

    @property
    def id(self) -> str:
        """The id that a repeated callback repeats."""
        return self.headers["webhook-id"]

    def is_signed_with(self, secret: str) -> bool:
        """True when the body came from who knows the secret."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in self.headers["webhook-signature"].split()


class CallbackReceiver:
    """Listens from `with` to its end; every path is a mailbox of its own."""

    def __init__(self) -> None:
        self._received: list[Received] = []
        self._manners: dict[str, list[Manner]] = {}
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
        self._server.server_close()  # waits for those that hang
        self._thread.join()

    def url(self, path: str) -> str:
        """Where callbacks for this mailbox go."""
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def answer(self, path: str, *manners: Manner) -> str:
        """Answer the next requests at this path so, the last for ever; answers its URL."""
        self._manners[path] = list(manners)
        return self.url(path)

    def at(self, path: str) -> list[Received]:
        """What came to this path so far, in order."""
        return [one for one in self._received if one.path == path]

    def wait_for(self, path: str, count: int = 1, *, within_s: float = WAIT_S) -> list[Received]:
        """Wait until this path has received `count` requests."""
        wait_until(
            lambda: len(self.at(path)) >= count,
            lambda: f"{count} callbacks at {path}: {self.at(path)}",
            within_s=within_s,
        )
        return self.at(path)

    def _next_manner(self, path: str) -> Manner:
        manners = self._manners.get(path) or ["accept"]
        return manners.pop(0) if len(manners) > 1 else manners[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                manner = receiver._next_manner(self.path)
                receiver._received.append(Received(self.path, headers, body, time.monotonic()))
                self.close_connection = True
                with suppress(OSError):  # the sender has timed out
                    self._answer(manner)

            def _answer(self, manner: Manner) -> None:
                if manner == "hang":
                    receiver._closing.wait()
                elif manner == "drip":
                    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"." * 10_000:
                        self.wfile.write(bytes([byte]))
                        if receiver._closing.wait(DRIP_S):
                            return
                elif manner != "close":
                    self.send_response(_STATUS[manner])
                    self.send_header("Location", receiver.url("/elsewhere"))
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler
