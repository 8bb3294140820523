"""Tamper with what game servers post: cut the answer, hold, double, lose and reorder posts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from random import Random

from tests.chaos.http_messages import Request, Response

Forward = Callable[[Request], Awaitable[Response]]

INGEST = "/ingest/"
LOGS = "/ingest/logs/"
SHARE = 0.3
"""Share of the posts that a fault affects."""
HOLD_S = 1.5
_STORED = Response(200, b"", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


class Tampering(StrEnum):
    """What happens to a post."""

    CUT = "cut"
    """It is forwarded, but the server gets no answer and sends it again."""
    HOLD = "hold"
    """It is forwarded late."""
    DOUBLE = "double"
    """It is forwarded twice."""
    LOSE = "lose"
    """It is acknowledged, but not forwarded."""
    REORDER = "reorder"
    """It is acknowledged, and forwarded after the next one."""


class LogFaults:
    """The faults that are active now; each affects some posts, of one match or of all."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._active: list[tuple[Tampering, str | None]] = []
        self._held: dict[str, Request] = {}

    async def cause(self, kind: Tampering, token: str | None, lasts_s: float) -> None:
        """Tamper with posts for a while: of the match with this token, or of all."""
        self._active.append((kind, token))
        await asyncio.sleep(lasts_s)
        self._active.remove((kind, token))

    async def forward(self, request: Request, forward: Forward) -> Response | None:
        """Forward a request, tampered with if a fault is active; None if its connection is to be closed."""
        kind = self._choose(request)
        earlier = self._held.pop(request.path, None)
        if kind is Tampering.REORDER and earlier is None:
            self._held[request.path] = request
            return _STORED
        if kind is Tampering.LOSE:
            return _STORED
        if kind is Tampering.HOLD:
            await asyncio.sleep(HOLD_S)
        if kind is Tampering.DOUBLE:
            await forward(request)
        response = await forward(request)
        if earlier is not None:
            await forward(earlier)
        return None if kind is Tampering.CUT else response

    def _choose(self, request: Request) -> Tampering | None:
        for kind, token in self._active:
            prefix = INGEST if kind is Tampering.DOUBLE else LOGS
            is_meant = request.path.startswith(prefix) and (token is None or request.path.endswith(token))
            if request.method == "POST" and is_meant and self._rng.random() < SHARE:
                return kind
        return None
