"""How is a request body read? Whole, within a limit and a time: nothing larger is ever held in memory."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope

from matchpod.core.errors import InvalidParamsError, PayloadTooLargeError

BODY_TIMEOUT_S = 30.0
"""A body of the limit over a slow line; who takes longer holds a place for nothing."""

_MAX_LENGTH_DIGITS = 18
"""A length with more digits is over every limit, and need not be turned into a number."""


class CallerGoneError(Exception):
    """The caller hung up before the body was complete: nobody waits for an answer."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body; PayloadTooLargeError as soon as it is known to be over the limit."""
    length = _announced_length(scope)
    if length > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await _receive_all(receive, limit)
    except TimeoutError as exc:
        raise InvalidParamsError(f"the request body was not complete after {BODY_TIMEOUT_S:.0f} s") from exc


async def _receive_all(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerGoneError
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)


def _announced_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:_MAX_LENGTH_DIGITS])
    return 0


def _too_large(limit: int) -> PayloadTooLargeError:
    return PayloadTooLargeError(f"The request body is over the limit of {limit} bytes.")
