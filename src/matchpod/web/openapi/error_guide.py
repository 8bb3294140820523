"""Tell callers what to do about each error, for the API description and docs/errors.md.

The docstring of an error class says what the error means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from matchpod.core import errors
from matchpod.core.errors import ErrorCode, MatchpodError
from matchpod.web.errors import (
    GoneError,
    HeadersTooLargeError,
    NotImplementedByServerError,
    RangeNotSatisfiableError,
    UnsupportedMediaTypeError,
)

ADVICE: Final[Mapping[type[MatchpodError], str]] = {
    errors.InvalidParamsError: "Correct the faults in `message` and `details`. The same request would fail again.",
    errors.UnauthorizedError: "Send `Authorization: Bearer KEY` with a key that is neither revoked nor expired.",
    errors.ForbiddenError: "Use a key with the scope and role that the endpoint needs, of the organization that "
    "created the match.",
    errors.NotFoundError: "Check the path and the ids in it.",
    errors.MethodNotAllowedError: "Use one of the methods in `Allow`.",
    errors.ServerNotRunningError: "Nothing is left to cancel. Get the match to see how it ended.",
    errors.ActionNotPossibleError: "`GET …/actions` lists what is possible. If there is a `retryAfter`, retry after "
    "that many seconds.",
    errors.MatchNotEndedError: "Retry when the match has ended: its callback reports the end, and its server then "
    "has an `endedAt`.",
    errors.RulingTooLateError: "Rulings on this match can no longer be changed.",
    errors.IdempotencyConflictError: "Use a new key for a new request. To retry a request, send the same body.",
    errors.CallbackWaitingError: "Wait until the `state` of the callback is no longer `waiting`. Then it can be sent "
    "again.",
    GoneError: "Only game servers and their plugins get this. They stop sending for this match.",
    errors.PayloadTooLargeError: "Send a smaller body. The operator can raise the limit of API requests with "
    "`MATCHPOD_MAX_BODY_BYTES`.",
    UnsupportedMediaTypeError: "Send the body as it is, without `Content-Encoding`.",
    RangeNotSatisfiableError: "Ask for a part that begins before the end of the file, or for all of it.",
    errors.RateLimitError: "Retry after the number of seconds in `Retry-After`. The message names the limit.",
    HeadersTooLargeError: "Send fewer headers. A proxy may have added some.",
    MatchpodError: "Give the request id to the operator. The request may have had an effect: retry a creation only "
    "with the same `Idempotency-Key`.",
    NotImplementedByServerError: "Send the body with `Content-Length`, or with `Transfer-Encoding: chunked`.",
    errors.UnavailableError: "Retry after the number of seconds in `Retry-After`. Retry a creation with the same "
    "`Idempotency-Key`, because the request may have created its match.",
}
"""Advice for callers per error class, in the order of their HTTP statuses."""

_ERRORS: Final[Mapping[ErrorCode, type[MatchpodError]]] = {error.code: error for error in ADVICE}


def meaning_of(code: ErrorCode) -> str:
    """Return what an error means: one sentence for callers."""
    return " ".join((_ERRORS[code].__doc__ or "").split())
