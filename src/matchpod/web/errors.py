"""How is a failure told? One body for every error, whatever its status, and the headers that go with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.errors import (
    Fault,
    InvalidParamsError,
    MatchpodError,
    MethodNotAllowedError,
    RateLimitError,
    UnauthorizedError,
    UnavailableError,
)
from matchpod.web.endpoint import Answer, Header

_encoder = msgspec.json.Encoder()


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of every error; `details` only where there is something to list."""

    status_code: int
    error: str
    message: str
    details: tuple[Fault, ...] | msgspec.UnsetType = msgspec.UNSET
    request_id: str


class GoneError(MatchpodError):
    """What a game server sends is not wanted any more; it stops sending when it reads this status."""

    code = "GONE"
    status = 410


class NotReadyError(UnavailableError):
    """No requests can be taken by this process, for the reasons given."""

    def __init__(self, message: str, *, reasons: Sequence[str], retry_after_s: int = 1) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.faults = tuple(Fault("", reason) for reason in reasons)


class ServerFault(MatchpodError):  # noqa: N818 - the word is ours: a fault that is not the caller's
    """Our own fault; what it was stands in the log, under the request id."""


def answer_to(error: MatchpodError, request_id: str) -> Answer:
    """The response that tells an error."""
    faults = error.faults if isinstance(error, InvalidParamsError | NotReadyError) else ()
    body = ErrorBody(
        status_code=error.status,
        error=error.code,
        message=str(error),
        details=faults or msgspec.UNSET,
        request_id=request_id,
    )
    return Answer(_encoder.encode(body), error.status, headers=_headers(error))


def _headers(error: MatchpodError) -> tuple[Header, ...]:
    if isinstance(error, UnauthorizedError):
        return ((b"www-authenticate", b"Bearer"),)
    if isinstance(error, MethodNotAllowedError):
        return ((b"allow", ", ".join(error.allowed).encode()),)
    if isinstance(error, RateLimitError | UnavailableError):
        return ((b"retry-after", b"%d" % error.retry_after_s),)
    return ()
