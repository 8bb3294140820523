"""What can be wrong with a request, and how is it said? Each error carries its code and HTTP status."""

from __future__ import annotations

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with a body: where, and what would be right."""

    path: str
    message: str


class MatchpodError(Exception):
    """An answer to a caller that is not a success. The message is one sentence a caller can act on."""

    code = "SERVER_ERROR"
    status = 500


class InvalidParamsError(MatchpodError):
    """A body or query that fails validation, with all its faults."""

    code = "INVALID_PARAMS"
    status = 400

    def __init__(self, message: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class UnauthorizedError(MatchpodError):
    """No key, or one that opens nothing."""

    code = "UNAUTHORIZED"
    status = 401


class ForbiddenError(MatchpodError):
    """The key is good, but not for this."""

    code = "FORBIDDEN"
    status = 403


class NotFoundError(MatchpodError):
    """There is no such thing."""

    code = "NOT_FOUND"
    status = 404


class MethodNotAllowedError(MatchpodError):
    """The path is known, the method is not."""

    code = "METHOD_NOT_ALLOWED"
    status = 405

    def __init__(self, message: str, allowed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allowed = allowed


class ServerNotRunningError(MatchpodError):
    """The server has ended in another way than the caller now wants."""

    code = "SERVER_NOT_RUNNING"
    status = 409


class IdempotencyConflictError(MatchpodError):
    """The idempotency key was used for another body."""

    code = "IDEMPOTENCY_CONFLICT"
    status = 409


class PayloadTooLargeError(MatchpodError):
    """The body is over the limit."""

    code = "PAYLOAD_TOO_LARGE"
    status = 413


class RateLimitError(MatchpodError):
    """Too many requests; `retry_after_s` says when the next one is welcome."""

    code = "RATE_LIMIT_EXCEEDED"
    status = 429

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnavailableError(MatchpodError):
    """Not now: the service starts, drains, or cannot reach its database."""

    code = "SERVICE_UNAVAILABLE"
    status = 503

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
