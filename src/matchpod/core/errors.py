"""Define the errors returned to callers, each with its code and HTTP status."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from matchpod.core.faults import Fault, FaultCode


class ErrorCode(StrEnum):
    """What is wrong, for programs. Codes may be added: treat an unknown one as its status says."""

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
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    HEADERS_TOO_LARGE = "HEADERS_TOO_LARGE"
    SERVER_ERROR = "SERVER_ERROR"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"


class MatchpodError(Exception):
    """Base class of all error responses. The message is one sentence that the caller can act on."""

    code: ClassVar[ErrorCode] = ErrorCode.SERVER_ERROR
    status: ClassVar[int] = 500


class InvalidParamsError(MatchpodError):
    """The body or query failed validation; `faults` lists the validation errors."""

    code = ErrorCode.INVALID_PARAMS
    status = 400

    def __init__(self, message: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class InvalidFieldsError(InvalidParamsError):
    """Fields of a request break rules. The message is made from the faults when it is shown.

    There may be `unlisted` faults more: then their number follows those that are listed.
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


class UnauthorizedError(MatchpodError):
    """The API key is missing or invalid."""

    code = ErrorCode.UNAUTHORIZED
    status = 401


class ForbiddenError(MatchpodError):
    """The API key is valid but lacks permission for this request."""

    code = ErrorCode.FORBIDDEN
    status = 403


class NotFoundError(MatchpodError):
    """The requested resource does not exist."""

    code = ErrorCode.NOT_FOUND
    status = 404


class MethodNotAllowedError(MatchpodError):
    """The path exists but does not support the method."""

    code = ErrorCode.METHOD_NOT_ALLOWED
    status = 405

    def __init__(self, message: str, allowed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allowed = allowed


class ServerNotRunningError(MatchpodError):
    """The match on this server has already ended in a way that conflicts with the request."""

    code = ErrorCode.SERVER_NOT_RUNNING
    status = 409


class ActionNotPossibleError(MatchpodError):
    """The match is in a state that does not allow the action; `retry_after_s` if it is known when it will."""

    code = ErrorCode.ACTION_NOT_POSSIBLE
    status = 409

    def __init__(self, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class MatchNotEndedError(MatchpodError):
    """The match is in progress, and the request needs one that has ended."""

    code = ErrorCode.MATCH_NOT_ENDED
    status = 409


class RulingTooLateError(MatchpodError):
    """The match ended too long ago: rulings on it can be neither made nor withdrawn."""

    code = ErrorCode.RULING_TOO_LATE
    status = 409


class IdempotencyConflictError(MatchpodError):
    """The idempotency key was already used with a different body."""

    code = ErrorCode.IDEMPOTENCY_CONFLICT
    status = 409


class CallbackWaitingError(MatchpodError):
    """An attempt to deliver the callback is under way or scheduled, so no other one is requested."""

    code = ErrorCode.CALLBACK_WAITING
    status = 409


class PayloadTooLargeError(MatchpodError):
    """The body exceeds the size limit."""

    code = ErrorCode.PAYLOAD_TOO_LARGE
    status = 413


class RateLimitError(MatchpodError):
    """Too many requests; `retry_after_s` is the time until the next one is allowed."""

    code = ErrorCode.RATE_LIMIT_EXCEEDED
    status = 429

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnavailableError(MatchpodError):
    """The service is starting, draining or overloaded, or cannot reach its database."""

    code = ErrorCode.SERVICE_UNAVAILABLE
    status = 503

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
