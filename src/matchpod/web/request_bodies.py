"""Read a request body within a size limit and a timeout. Nothing above the limit is kept in memory."""

from __future__ import annotations

import asyncio
from typing import Final

from matchpod.core.errors import InvalidParamsError, PayloadTooLargeError
from matchpod.core.requests.text_rules import printable
from matchpod.web.errors import UnsupportedMediaTypeError
from matchpod.web.http.asgi import Receive, Scope
from matchpod.web.http.request_head import CONTENT_ENCODING, is_encoded

BODY_TIMEOUT_S: Final = 30.0
"""Timeout in seconds for receiving a body; enough for the largest body over a slow connection."""

_MAX_LENGTH_DIGITS = 18
"""Maximum number of digits of a Content-Length to parse. A longer number exceeds every limit anyway."""


class ClientDisconnectedError(Exception):
    """The client has disconnected before the request could be answered, so no response is sent."""


async def read_body(scope: Scope, receive: Receive, limit: int, *, within_s: float = BODY_TIMEOUT_S) -> bytes:
    """Return the whole body; raise PayloadTooLargeError as soon as the body is known to exceed the limit.

    Raise UnsupportedMediaTypeError if the body has a content encoding, such as gzip.
    """
    _check_encoding(scope)
    if _content_length(scope) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(within_s):
            return await _receive_all(receive, limit)
    except TimeoutError as exc:
        raise InvalidParamsError(f"The request body was not complete after {within_s:.0f} s.") from exc


async def _receive_all(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)


def _check_encoding(scope: Scope) -> None:
    for name, value in scope["headers"]:
        if name == CONTENT_ENCODING and is_encoded(value):
            shown = printable(value.decode("latin-1"))
            raise UnsupportedMediaTypeError(f"The request body has the Content-Encoding {shown}. Send it without one.")


def _content_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:_MAX_LENGTH_DIGITS])
    return 0


def _too_large(limit: int) -> PayloadTooLargeError:
    return PayloadTooLargeError(f"The request body exceeds the limit of {limit} bytes.")
