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
