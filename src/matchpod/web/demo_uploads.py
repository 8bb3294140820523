"""The ASGI application of the port for demo uploads, which answers game servers and a liveness probe.

It runs in a separate process, so that large uploads do not delay log posts.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator
from typing import Final

from matchpod.core.demos import MissingReason
from matchpod.core.errors import (
    InvalidParamsError,
    MatchpodError,
    MethodNotAllowedError,
    NotFoundError,
    PayloadTooLargeError,
    UnauthorizedError,
    UnavailableError,
)
from matchpod.service.demos.uploads import Ended, UploadHead, Uploads
from matchpod.service.identity.identifiers import REQUEST_RANDOM_BYTES, new_request_id
from matchpod.service.ingest.posts import TOKEN_HEADER
from matchpod.service.ingest.urls import DEMOS_PATH
from matchpod.web.errors import InternalServerError, error_response
from matchpod.web.handlers.use_cases import OK_BODY
from matchpod.web.http.asgi import Receive, Scope, Send
from matchpod.web.http.request_head import CONTENT_ENCODING, is_encoded
from matchpod.web.http.responses import Response

MAX_MAP_NUMBER: Final = 99
RETRY_AFTER_S: Final = 5

_PROBES: Final = ("/healthz",)
_MAX_LENGTH_DIGITS: Final = 15
_MAX_ID_DIGITS: Final = 19

_log = logging.getLogger(__name__)


class UploadApplication:
    """The ASGI application of the upload port."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._random = random.Random()  # request ids are not secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = new_request_id(self._random.randbytes(REQUEST_RANDOM_BYTES))
        try:
            response = await self._respond(scope, receive)
        except MatchpodError as error:
            response = error_response(error, request_id)
        except Exception:  # noqa: BLE001 - a bug must not end the process
            _log.exception("upload failed", extra={"request_id": request_id})
            response = error_response(InternalServerError("Internal error."), request_id)
        await _send(send, response, request_id, is_head=scope["method"] == "HEAD")

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        path, method = scope["path"], scope["method"]
        if path in _PROBES and method in ("GET", "HEAD"):
            return Response(OK_BODY)
        if path != DEMOS_PATH and not path.startswith(f"{DEMOS_PATH}/"):
            raise NotFoundError("This port is only for demo uploads.")
        if method != "POST":
            raise MethodNotAllowedError("Upload demos with POST.", ("POST",))
        head = _head_of(scope)
        sender = await self._uploads.sender(head)
        if sender is None:
            raise UnauthorizedError(
                "The token is missing, belongs to no match whose demos are recorded, or the demo is of another match."
            )
        return _response_to(await self._uploads.receive(sender, head, _parts(receive)))


def _head_of(scope: Scope) -> UploadHead:
    headers = {name: value.decode("latin-1") for name, value in reversed(scope["headers"])}
    if is_encoded(headers.get(CONTENT_ENCODING, "").encode("latin-1")):
        raise InvalidParamsError("The demo has a Content-Encoding. Send it without one.")
    length = headers.get(b"content-length", "")
    number = headers.get(b"matchzy-mapnumber", headers.get(b"get5-mapnumber", ""))
    match_id = headers.get(b"matchzy-matchid", headers.get(b"get5-matchid", ""))
    is_number = number.isascii() and number.isdigit() and len(number) <= 2
    return UploadHead(
        token=scope["path"][len(DEMOS_PATH) + 1 :] or headers.get(TOKEN_HEADER.lower().encode(), ""),
        file_name=headers.get(b"matchzy-filename", headers.get(b"get5-filename", "")),
        map_number=int(number) if is_number else None,
        match_id=int(match_id)
        if match_id.isascii() and match_id.isdigit() and len(match_id) <= _MAX_ID_DIGITS
        else None,
        announced_bytes=int(length[:_MAX_LENGTH_DIGITS]) if length.isdigit() else None,
    )


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the body part by part as it arrives; raise EOFError if the connection is lost."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise EOFError
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


def _response_to(ended: Ended) -> Response:
    match ended.reason:
        case None:
            return Response(OK_BODY)
        case MissingReason.TOO_LARGE:
            raise PayloadTooLargeError("The demo exceeds MATCHPOD_MAX_DEMO_MB.")
        case MissingReason.OVER_QUOTA:
            raise PayloadTooLargeError("The organization's demos have used up their quota.")
        case MissingReason.CUT | MissingReason.TOO_SLOW:
            raise InvalidParamsError("The demo did not arrive completely, or not in time.")
        case _:
            raise UnavailableError("The demo could not be stored.", retry_after_s=RETRY_AFTER_S)


async def _send(send: Send, response: Response, request_id: str, *, is_head: bool) -> None:
    headers = [
        (b"content-type", response.content_type),
        (b"content-length", b"%d" % len(response.body)),
        (b"x-request-id", request_id.encode()),
        *response.headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else response.body})
