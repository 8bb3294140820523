"""Define the errors returned to callers, each with its code and HTTP status.

The message of an error is one sentence that the caller can act on. The docstring of each class is the meaning of the
error in the API description.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from matchpod.core.faults import Fault, FaultCode


class ErrorCode(StrEnum):
    """Machine-readable error code. Codes may be added; handle an unknown code by its HTTP status."""

    INVALID_PARAMS = "INVALID_PARAMS"
    UNAUTHORIZED = "UNAUTHORIZED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    SERVER_NOT_RUNNING = "SERVER_NOT_RUNNING"
    ACTION_NOT_POSSIBLE = "ACTION_NOT_POSSIBLE"
    MATCH_NOT_ENDED = "MATCH_NOT_ENDED"
    RULING_TOO_LATE = "RULING_TOO_LATE"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    CALLBACK_WAITING = "CALLBACK_WAITING"
    GONE = "GONE"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    RANGE_NOT_SATISFIABLE = "RANGE_NOT_SATISFIABLE"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    HEADERS_TOO_LARGE = "HEADERS_TOO_LARGE"
    SERVER_ERROR = "SERVER_ERROR"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"


class MatchpodError(Exception):
    """An internal error; the request id identifies it in the service's log."""

    code: ClassVar[ErrorCode] = ErrorCode.SERVER_ERROR
    status: ClassVar[int] = 500

    def __init_subclass__(cls, *, code: ErrorCode | None = None, status: int | None = None) -> None:
        """Set the code and the status of an error; by default, they are inherited from the base class."""
        cls.code, cls.status = code or cls.code, status or cls.status


class InvalidParamsError(MatchpodError, code=ErrorCode.INVALID_PARAMS, status=400):
    """The body or a parameter breaks a rule, or a parameter is unknown; `details` lists its faults."""

    def __init__(self, message: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class InvalidFieldsError(InvalidParamsError):
    """Fields of a request break rules. The message is built from the faults when it is shown.

    `unlisted` is the number of further faults. Unless it is 0, a fault that states this number is added at the end.
    """

    def __init__(self, faults: tuple[Fault, ...], *, request: str = "the request body", unlisted: int = 0) -> None:
        self._request = request
        self._total = len(faults) + unlisted
        if unlisted:
            faults = (*faults, Fault(FaultCode.NOT_LISTED, {"count": unlisted}))
        super().__init__("", faults)

    def __str__(self) -> str:
        if self._total == 1:
            fault = self.faults[0]
            return f"{str(fault.path) or self._request} {fault.message}"
        return f"{self._total} faults in {self._request}"


class UnauthorizedError(MatchpodError, code=ErrorCode.UNAUTHORIZED, status=401):
    """The key or token is missing or not valid."""


class ForbiddenError(MatchpodError, code=ErrorCode.FORBIDDEN, status=403):
    """The key lacks the scope or role, or the resource belongs to another organization."""


class NotFoundError(MatchpodError, code=ErrorCode.NOT_FOUND, status=404):
    """The resource does not exist."""


class MethodNotAllowedError(MatchpodError, code=ErrorCode.METHOD_NOT_ALLOWED, status=405):
    """The path does not support the method; `Allow` lists the supported methods."""

    def __init__(self, message: str, allowed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allowed = allowed


class ServerNotRunningError(MatchpodError, code=ErrorCode.SERVER_NOT_RUNNING, status=409):
    """The match has already ended in another way."""


class ActionNotPossibleError(MatchpodError, code=ErrorCode.ACTION_NOT_POSSIBLE, status=409):
    """The state of the match does not allow the action; `message` says why."""

    def __init__(self, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class MatchNotEndedError(MatchpodError, code=ErrorCode.MATCH_NOT_ENDED, status=409):
    """The match is still in progress."""


class RulingTooLateError(MatchpodError, code=ErrorCode.RULING_TOO_LATE, status=409):
    """The match ended more than 30 days ago."""


class IdempotencyConflictError(MatchpodError, code=ErrorCode.IDEMPOTENCY_CONFLICT, status=409):
    """The Idempotency-Key was used with another body."""


class CallbackWaitingError(MatchpodError, code=ErrorCode.CALLBACK_WAITING, status=409):
    """An attempt is under way or scheduled."""


class PayloadTooLargeError(MatchpodError, code=ErrorCode.PAYLOAD_TOO_LARGE, status=413):
    """The body exceeds the limit."""


class RateLimitError(MatchpodError, code=ErrorCode.RATE_LIMIT_EXCEEDED, status=429):
    """Too many requests, queued requests, live matches, open streams or failed log-ins; `Retry-After` is the number of
    seconds to wait.
    """

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnavailableError(MatchpodError, code=ErrorCode.SERVICE_UNAVAILABLE, status=503):
    """The service is starting, stopping or busy, or its database is unavailable; `Retry-After` says when to retry."""

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
