"""Receive callbacks and check their signatures, to try out Matchpod without writing a receiver.

Any request gets a response; invalid requests are rejected without raising an exception. There is no access control:
anyone who can reach the address can send requests.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.app.http_server import HttpServer
from matchpod.core.errors import InvalidParamsError, PayloadTooLargeError
from matchpod.service.access import webhook_signature
from matchpod.web.errors import UnsupportedMediaTypeError
from matchpod.web.http.asgi import Receive, Scope, Send
from matchpod.web.request_bodies import ClientDisconnectedError, read_body

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a callback in bytes. The callback of a best of five with all its players is well below one
megabyte."""


class Signature(StrEnum):
    """The outcome of a signature check."""

    OK = "ok"
    WRONG = "wrong"
    NOT_CHECKED = "not checked"


class CallbackTeam(msgspec.Struct, frozen=True, rename="camel"):
    """A team in a result."""

    name: str = ""
    series_score: int = 0


class MapScore(msgspec.Struct, frozen=True, rename="camel"):
    """A map in a result."""

    team1_score: int = 0
    team2_score: int = 0


class CallbackResult(msgspec.Struct, frozen=True, rename="camel"):
    """The displayed fields of a result, of a series or of a deathmatch."""

    winner: str | None = None
    winner_steam_id: str | None = None
    map: str | None = None
    team1: CallbackTeam | None = None
    team2: CallbackTeam | None = None
    maps: tuple[MapScore, ...] = ()


class Callback(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a callback that are displayed."""

    event_type: str
    server_id: str
    external_match_id: str | None = None
    result: CallbackResult | None = None
    forfeit: bool = False
    reason: str | None = None


class ReceivedCallback(msgspec.Struct, frozen=True, kw_only=True):
    """A callback that was received: its raw body, its relevant headers and the outcome of the signature check."""

    callback: Callback
    body: bytes
    attempt: str | None
    has_authorization: bool
    signature: Signature


class CallbackReceiver:
    """The receiver of callbacks, as an ASGI application."""

    def __init__(
        self,
        *,
        status: int,
        secrets: Sequence[str],
        now_s: Callable[[], int],
        on_callback: Callable[[ReceivedCallback], None],
        on_rejection: Callable[[str], None],
    ) -> None:
        """Answer every callback with `status`. Without `secrets`, signatures are not checked."""
        self._status = status
        self._secrets = secrets
        self._now_s = now_s
        self._on_callback = on_callback
        self._on_rejection = on_rejection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, as an ASGI application."""
        status, text = await self._answer(scope, receive)
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text))]
        if status == 405:
            headers.append((b"allow", b"POST"))
        await send({"type": "http.response.start", "status": status, "headers": headers if text else []})
        await send({"type": "http.response.body", "body": text})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        if scope["method"] != "POST":
            return 405, b"Send callbacks with POST.\n"
        try:
            body = await read_body(scope, receive, MAX_BODY_BYTES)
        except PayloadTooLargeError:
            return self._reject(413, f"the body is larger than {MAX_BODY_BYTES >> 20} MiB")
        except UnsupportedMediaTypeError:
            return self._reject(415, "the body has a Content-Encoding")
        except (InvalidParamsError, ClientDisconnectedError):
            return self._reject(408, "the body did not arrive")
        try:
            callback = msgspec.json.decode(body, type=Callback)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            return self._reject(400, f"the body is not a callback: {exc}")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        received = ReceivedCallback(
            callback=callback,
            body=body,
            attempt=headers.get("x-matchpod-attempt"),
            has_authorization="authorization" in headers,
            signature=self._check_signature(headers, body),
        )
        self._on_callback(received)
        return self._status, b""

    def _check_signature(self, headers: Mapping[str, str], body: bytes) -> Signature:
        if not self._secrets:
            return Signature.NOT_CHECKED
        is_valid = webhook_signature.verify(self._secrets, headers, body, now_s=self._now_s())
        return Signature.OK if is_valid else Signature.WRONG

    def _reject(self, status: int, reason: str) -> tuple[int, bytes]:
        self._on_rejection(reason)
        return status, f"{reason}\n".encode()


def url_of(host: str, port: int) -> str:
    """Return the `callbackUrl` with which a service on this machine reaches a socket bound to this host and port."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def listen(receiver: CallbackReceiver, bound: socket.socket, *, on_listening: Callable[[], None]) -> None:
    """Run the receiver until SIGINT or SIGTERM."""

    async def serve() -> None:
        server = HttpServer(receiver, on_listening=on_listening)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, server.stop)
        await server.serve(bound)

    asyncio.run(serve())
