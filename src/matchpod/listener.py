"""What does a caller's end look like? A small receiver of callbacks, to try Matchpod without writing one.

Whatever arrives is shown or refused, never an exception; who may reach it is whoever can reach the address.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from matchpod.service import webhook_signature

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""A best of five with all its players is well under one megabyte."""

BODY_S: Final = 30.0
"""For a body to come; our own sender gives up after 10 s."""

_BACKLOG: Final = 128


class Signature(StrEnum):
    """What is known of a callback's origin."""

    OK = "ok"
    WRONG = "wrong"
    NOT_CHECKED = "not checked"


class Side(msgspec.Struct, frozen=True, rename="camel"):
    """A team in a result."""

    name: str = ""
    series_score: int = 0


class MapScore(msgspec.Struct, frozen=True, rename="camel"):
    """A map in a result."""

    team1_score: int = 0
    team2_score: int = 0


class Score(msgspec.Struct, frozen=True, rename="camel"):
    """What is shown of a result, of either shape."""

    winner: str | None = None
    winner_steam_id: str | None = None
    map: str | None = None
    team1: Side | None = None
    team2: Side | None = None
    maps: tuple[MapScore, ...] = ()


class Callback(msgspec.Struct, frozen=True, rename="camel"):
    """What is shown of a callback."""

    event_type: str
    server_id: str
    external_match_id: str | None = None
    result: Score | None = None
    reason: str | None = None


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A callback as it came."""

    callback: Callback
    body: bytes
    attempt: str | None
    has_authorization: bool
    signature: Signature


class Listener:
    """The receiver, as an ASGI application."""

    def __init__(
        self,
        *,
        status: int,
        secrets: Sequence[str],
        now_s: Callable[[], int],
        on_arrival: Callable[[Arrival], None],
        on_refusal: Callable[[str], None],
    ) -> None:
        """Without `secrets` signatures are not checked; `status` is the answer to every callback."""
        self._status = status
        self._secrets = secrets
        self._now_s = now_s
        self._on_arrival = on_arrival
        self._on_refusal = on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return PlainTextResponse("Callbacks are sent here by POST.\n", 405, headers={"Allow": "POST"})
        try:
            async with asyncio.timeout(BODY_S):
                body = await _read(request)
        except (TimeoutError, ClientDisconnect):
            return self._refuse(408, "its body did not come")
        if body is None:
            return self._refuse(413, f"its body is over {MAX_BODY_BYTES >> 20} MiB")
        try:
            callback = msgspec.json.decode(body, type=Callback)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            return self._refuse(400, f"its body is no callback: {exc}")
        arrival = Arrival(
            callback=callback,
            body=body,
            attempt=request.headers.get("x-matchpod-attempt"),
            has_authorization="authorization" in request.headers,
            signature=self._check(request, body),
        )
        self._on_arrival(arrival)
        return Response(status_code=self._status)

    def _check(self, request: Request, body: bytes) -> Signature:
        if not self._secrets:
            return Signature.NOT_CHECKED
        is_ours = webhook_signature.verify(self._secrets, request.headers, body, now_s=self._now_s())
        return Signature.OK if is_ours else Signature.WRONG

    def _refuse(self, status: int, why: str) -> Response:
        self._on_refusal(why)
        return PlainTextResponse(f"{why}\n", status)


async def _read(request: Request) -> bytes | None:
    """The body; None when it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        if len(body) + len(chunk) > MAX_BODY_BYTES:
            return None
        body += chunk
    return bytes(body)


def bind(host: str, port: int) -> socket.socket:
    """The place to listen at, port 0 for any that is free; OSError when it is not to be had."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound


def url_of(host: str, port: int) -> str:
    """What to give as `callbackUrl` for a socket bound here, as this machine reaches it."""
    match host:
        case "0.0.0.0":
            host = "127.0.0.1"
        case "::":
            host = "::1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def listen(listener: Listener, bound: socket.socket) -> None:
    """Receive callbacks until interrupted (KeyboardInterrupt)."""
    import uvicorn  # here: the other commands start without its weight

    from matchpod.app.listening import server_config

    uvicorn.Server(server_config(listener, log_level="warning")).run(sockets=[bound])
