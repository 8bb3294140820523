"""The errors of a connection. They are sent to the client without calling the application."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

BAD_REQUEST: Final = HTTPStatus.BAD_REQUEST.value
HEADERS_TOO_LARGE: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE.value
INTERNAL_ERROR: Final = HTTPStatus.INTERNAL_SERVER_ERROR.value
NOT_IMPLEMENTED: Final = HTTPStatus.NOT_IMPLEMENTED.value
UNAVAILABLE: Final = HTTPStatus.SERVICE_UNAVAILABLE.value


class HttpError(Exception):
    """A request is rejected with one of the statuses in this module. The message is for the client."""

    def __init__(self, message: str, status: int = BAD_REQUEST, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s
        """The Retry-After of a 503, in seconds."""
