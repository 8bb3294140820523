"""Define the errors of the web layer, and format errors as responses with the right headers."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from matchpod.core.errors import (
    ActionNotPossibleError,
    ErrorCode,
    ForbiddenError,
    InvalidParamsError,
    MatchpodError,
    MethodNotAllowedError,
    RateLimitError,
    UnauthorizedError,
    UnavailableError,
)
from matchpod.core.requests.json_fields import MAX_FAULTS
from matchpod.service.identity.identifiers import REQUEST_RANDOM_BYTES, new_request_id
from matchpod.web.http import errors as http_errors
from matchpod.web.http.responses import Header, Response

ANYWHERE: Final[tuple[type[MatchpodError], ...]] = (MatchpodError, InvalidParamsError, UnavailableError)
"""The errors that every endpoint of the API may return; unknown parameters are rejected everywhere."""

WITH_KEY: Final = (UnauthorizedError, ForbiddenError, RateLimitError, *ANYWHERE)
"""The errors that every endpoint with a key may return."""

NOT_STORED: Final[Header] = (b"cache-control", b"no-store")
"""Forbids caching of errors: they may reveal what exists in an organization, and may soon no longer be true."""

_encoder = msgspec.json.Encoder()


class FaultDetail(msgspec.Struct, frozen=True):
    """A validation error, with the path of the field and a message about the expected value."""

    path: Annotated[str, Meta(description="The field, as in `gameSettings.maxRounds`.")]
    message: Annotated[str, Meta(description="The rule that the field breaks.")]


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of every error; `details` only if there are faults to list."""

    status_code: Annotated[int, Meta(description="The HTTP status.")]
    error: Annotated[ErrorCode, Meta(description="The error code.")]
    message: Annotated[str, Meta(description="What is wrong, in one sentence.")]
    details: Annotated[
        tuple[FaultDetail, ...] | msgspec.UnsetType,
        Meta(
            description=f"The first {MAX_FAULTS} faults of the request, then an item without a path with the number "
            "of further faults; left out without faults."
        ),
    ] = msgspec.UNSET
    retry_after: Annotated[
        int | msgspec.UnsetType,
        Meta(description="Seconds until a retry may succeed, if that is known; also in the header `Retry-After`."),
    ] = msgspec.UNSET
    request_id: Annotated[
        str, Meta(description="Identifies the request in the service's log; also in the header `X-Request-Id`.")
    ]


class GoneError(MatchpodError, code=ErrorCode.GONE, status=410):
    """The match has ended or does not exist. Stop sending."""


class UnsupportedMediaTypeError(MatchpodError, code=ErrorCode.UNSUPPORTED_MEDIA_TYPE, status=415):
    """The request body has a `Content-Encoding`, such as gzip."""


class RangeNotSatisfiableError(MatchpodError, code=ErrorCode.RANGE_NOT_SATISFIABLE, status=416):
    """The `Range` begins after the end of the file; `Content-Range` has the size of the file."""

    def __init__(self, size: int) -> None:
        super().__init__(f"The Range begins after the end of the file, which has {size} bytes.")
        self.size = size


class HeadersTooLargeError(MatchpodError, code=ErrorCode.HEADERS_TOO_LARGE, status=431):
    """The request has more than 100 headers."""


class NotImplementedByServerError(MatchpodError, code=ErrorCode.NOT_IMPLEMENTED, status=501):
    """The request body has a `Transfer-Encoding` other than `chunked`."""


class NotReadyError(UnavailableError):
    """The process cannot accept requests; `details` has the reasons."""

    def __init__(self, message: str, *, reasons: Sequence[str], retry_after_s: int = 1) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.reasons = tuple(reasons)


class InternalServerError(MatchpodError):
    """An internal error; the cause is in the log, under the request id."""


def error_response(error: MatchpodError, request_id: str) -> Response:
    body = ErrorBody(
        status_code=error.status,
        error=error.code,
        message=str(error),
        details=_details(error) or msgspec.UNSET,
        retry_after=(error.retry_after_s if isinstance(error, ActionNotPossibleError) else None) or msgspec.UNSET,
        request_id=request_id,
    )
    return Response(_encoder.encode(body), error.status, headers=(*error_headers(error), NOT_STORED))


def _details(error: MatchpodError) -> tuple[FaultDetail, ...]:
    if isinstance(error, InvalidParamsError):
        return tuple(FaultDetail(str(fault.path), fault.message) for fault in error.faults)
    if isinstance(error, ActionNotPossibleError):
        return (FaultDetail("type", str(error)),)
    if isinstance(error, NotReadyError):
        return tuple(FaultDetail("", reason) for reason in error.reasons)
    return ()


def connection_error_response(error: http_errors.HttpError) -> Response:
    """Return the response to a request that is rejected before it reaches the application, with a new request id."""
    request_id = new_request_id(secrets.token_bytes(REQUEST_RANDOM_BYTES))
    response = error_response(_connection_error(error), request_id)
    return msgspec.structs.replace(response, headers=((b"x-request-id", request_id.encode()), *response.headers))


def _connection_error(error: http_errors.HttpError) -> MatchpodError:
    match error.status:
        case http_errors.BAD_REQUEST:
            return InvalidParamsError(str(error))
        case http_errors.HEADERS_TOO_LARGE:
            return HeadersTooLargeError(str(error))
        case http_errors.NOT_IMPLEMENTED:
            return NotImplementedByServerError(str(error))
        case http_errors.UNAVAILABLE:
            return UnavailableError(str(error), retry_after_s=error.retry_after_s)
        case _:
            return InternalServerError(str(error))


def error_headers(error: MatchpodError) -> tuple[Header, ...]:
    """Return the headers of an error response: how to authenticate, what the endpoint supports, or when to retry."""
    if isinstance(error, UnauthorizedError):
        return ((b"www-authenticate", b"Bearer"),)
    if isinstance(error, MethodNotAllowedError):
        return ((b"allow", ", ".join(error.allowed).encode()),)
    if isinstance(error, RangeNotSatisfiableError):
        return ((b"content-range", b"bytes */%d" % error.size),)
    if isinstance(error, UnsupportedMediaTypeError):
        return ((b"accept-encoding", b"identity"),)
    if (
        isinstance(error, RateLimitError | UnavailableError | ActionNotPossibleError)
        and error.retry_after_s is not None
    ):
        return ((b"retry-after", b"%d" % error.retry_after_s),)
    return ()
