"""Say what each error code means and what callers do about it, for the API description and docs/errors.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from matchpod.core import errors
from matchpod.core.errors import ErrorCode, MatchpodError
from matchpod.core.rulings import RULING_DAYS
from matchpod.web.errors import (
    GoneError,
    HeadersTooLargeError,
    NotImplementedByServerError,
    UnsupportedMediaTypeError,
)


class ErrorHelp(msgspec.Struct, frozen=True, kw_only=True):
    """One error for callers: when it comes, and what to do."""

    error: type[MatchpodError]
    meaning: str
    advice: str


_HELP: Final = (
    ErrorHelp(
        error=errors.InvalidParamsError,
        meaning="The body or a parameter breaks a rule, or a parameter is unknown; `details` lists its faults.",
        advice="Correct what `message` and `details` say. The same request fails again.",
    ),
    ErrorHelp(
        error=errors.UnauthorizedError,
        meaning="The key or token is missing or not valid.",
        advice="Send `Authorization: Bearer KEY` with a key that is neither revoked nor expired.",
    ),
    ErrorHelp(
        error=errors.ForbiddenError,
        meaning="The key lacks the scope or role, or this belongs to another organization.",
        advice="Use a key with the scope and role that the endpoint needs, of the organization that created the match.",
    ),
    ErrorHelp(
        error=errors.NotFoundError,
        meaning="It does not exist.",
        advice="Check the path and the ids in it.",
    ),
    ErrorHelp(
        error=errors.MethodNotAllowedError,
        meaning="The path does not support the method; `Allow` lists those that it does.",
        advice="Use one of the methods in `Allow`.",
    ),
    ErrorHelp(
        error=errors.ServerNotRunningError,
        meaning="The match has already ended in another way.",
        advice="Nothing is left to cancel. Get the match to see how it ended.",
    ),
    ErrorHelp(
        error=errors.ActionNotPossibleError,
        meaning="The state of the match does not allow the action; `message` says why.",
        advice="`GET …/actions` says what is possible. If there is a `retryAfter`, repeat the request then.",
    ),
    ErrorHelp(
        error=errors.MatchNotEndedError,
        meaning="The match is still in progress.",
        advice="Repeat the request when the match has ended: its callback, or `endedAt` of the server, says so.",
    ),
    ErrorHelp(
        error=errors.RulingTooLateError,
        meaning=f"The match ended more than {RULING_DAYS} days ago.",
        advice="Its rulings are final.",
    ),
    ErrorHelp(
        error=errors.IdempotencyConflictError,
        meaning="The Idempotency-Key was used with another body.",
        advice="Use a new key for a new request. To repeat a request, send the same body.",
    ),
    ErrorHelp(
        error=errors.CallbackWaitingError,
        meaning="An attempt is under way or scheduled.",
        advice="Wait until the `state` of the callback is no longer `waiting`. Then it can be sent again.",
    ),
    ErrorHelp(
        error=GoneError,
        meaning="The match has ended or does not exist: stop sending.",
        advice="Only game servers and their plugins get this. They stop sending for this match.",
    ),
    ErrorHelp(
        error=errors.PayloadTooLargeError,
        meaning="The body exceeds the limit.",
        advice="Send a smaller body. The operator can raise the limit of API requests with `MATCHPOD_MAX_BODY_BYTES`.",
    ),
    ErrorHelp(
        error=UnsupportedMediaTypeError,
        meaning="The body has a `Content-Encoding`, such as gzip.",
        advice="Send the body as it is, without `Content-Encoding`.",
    ),
    ErrorHelp(
        error=errors.RateLimitError,
        meaning="Too many requests, requests that wait, live matches, open streams or failed log-ins; `Retry-After` "
        "is the seconds to wait.",
        advice="Wait for the seconds in `Retry-After`, then repeat the request. The message says which limit it is.",
    ),
    ErrorHelp(
        error=HeadersTooLargeError,
        meaning="The request has more than 100 headers.",
        advice="Send fewer headers. A proxy may have added some.",
    ),
    ErrorHelp(
        error=MatchpodError,
        meaning="An internal error; the request id identifies it in the service's log.",
        advice="Give the request id to the operator. The request may have had an effect: repeat a creation only with "
        "the same `Idempotency-Key`.",
    ),
    ErrorHelp(
        error=NotImplementedByServerError,
        meaning="The body has a `Transfer-Encoding` other than `chunked`.",
        advice="Send the body with `Content-Length`, or with `Transfer-Encoding: chunked`.",
    ),
    ErrorHelp(
        error=errors.UnavailableError,
        meaning="Starting, stopping, too busy, or the database is unavailable; `Retry-After` says when to retry.",
        advice="Repeat the request after the seconds in `Retry-After`, a creation with the same `Idempotency-Key`: it "
        "may have created its match.",
    ),
)

ERROR_GUIDE: Final[Mapping[ErrorCode, ErrorHelp]] = {guide.error.code: guide for guide in _HELP}
"""All error codes, in the order of their statuses."""
