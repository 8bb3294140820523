"""Convert error responses of the Kubernetes API to typed exceptions with readable messages.

The API sends errors as JSON objects of kind Status. Components behind it (the extensions of Agones) or in front of it
(a proxy), and unknown paths, send plain text.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

MAX_MESSAGE_CHARS = 300
"""Maximum number of characters of an error message, because a proxy may send a whole page."""


class KubernetesError(Exception):
    """A call of the Kubernetes API failed; the message says why. The call may have had an effect."""


class ClusterConfigError(KubernetesError):
    """The settings of the connection cannot be used; no request was sent."""


class UnreachableError(KubernetesError):
    """There was no answer: the connection failed or was lost, or the call timed out."""


class MalformedAnswerError(KubernetesError):
    """The answer does not conform to the API."""


class ApiError(KubernetesError):
    """The API answered with an error. `reason` is the API's code for it; it is empty if the answer was plain text.

    `retry_after_s` is how many seconds a busy server asks its clients to wait; None if it did not name a time.
    """

    def __init__(self, status: int, reason: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{message} (HTTP {status})")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s


class RejectedError(ApiError):
    """A 4xx answer. The API has rejected the call, which had no effect."""


class ApiUnauthorizedError(RejectedError):
    """401: the credentials are missing, invalid or expired."""


class ApiForbiddenError(RejectedError):
    """403: a right is missing."""


class ApiNotFoundError(RejectedError):
    """404: the object does not exist. If `reason` is empty, the path does not exist."""

    @property
    def is_missing_api(self) -> bool:
        """True if the path does not exist, because Agones is not installed."""
        return not self.reason


class ConflictError(RejectedError):
    """409: the object has changed, or another object has this name."""


class ApiGoneError(RejectedError):
    """410: the resource version is too old; the objects must be listed again."""


class InvalidError(RejectedError):
    """422: a value is not valid."""


_TYPES = {
    401: ApiUnauthorizedError,
    403: ApiForbiddenError,
    404: ApiNotFoundError,
    409: ConflictError,
    410: ApiGoneError,
    422: InvalidError,
}

TOO_MANY_REQUESTS = 429
SERVICE_UNAVAILABLE = 503

_UNDECIDED = frozenset({408, TOO_MANY_REQUESTS})
"""4xx statuses that a busy or slow server sends. The request may have had an effect."""

MAX_RETRY_AFTER_S = 60.0
"""Upper bound in seconds for Retry-After, so that a proxy with a wrong clock does not stop a region for hours."""


class _Status(msgspec.Struct):
    """The fields that we read from a Status object."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0


def error_of(status: int, body: bytes, retry_after: str = "") -> ApiError:
    """Return the exception for an error response; `retry_after` is the header's value, or empty."""
    reason, message = "", ""
    try:
        decoded = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = body.decode("utf-8", errors="replace")
    else:
        if decoded.kind == "Status":
            reason, message = decoded.reason, decoded.message
    error = _error(status, reason, message)
    if status in (TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE):
        error.retry_after_s = read_retry_after(retry_after, datetime.now(UTC))
    return error


def read_retry_after(text: str, now: datetime) -> float | None:
    """Return the seconds in a Retry-After header (a number or date), at most MAX_RETRY_AFTER_S; None if invalid."""
    if text.isascii() and text.isdecimal():
        return min(float(text), MAX_RETRY_AFTER_S)
    try:
        wait_s = (parsedate_to_datetime(text) - now).total_seconds()
    except (ValueError, TypeError):  # a date without a time zone raises TypeError
        return None
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)


def error_of_event(raw_status: bytes) -> ApiError:
    try:
        decoded = msgspec.json.decode(raw_status, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        decoded = _Status()
    return _error(decoded.code or 500, decoded.reason, decoded.message)


def _error(status: int, reason: str, message: str) -> ApiError:
    readable = "".join(character if character.isprintable() else " " for character in message[:MAX_MESSAGE_CHARS])
    kind = _TYPES.get(status) or (RejectedError if 400 <= status < 500 and status not in _UNDECIDED else ApiError)
    return kind(status, reason, " ".join(readable.split()) or "no message")
