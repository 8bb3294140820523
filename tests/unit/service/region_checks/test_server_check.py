"""Tests of why a console could not be opened."""

from __future__ import annotations

import errno
import socket

import pytest

from matchpod.cs2.server_check import Opening
from matchpod.ports import ConsoleAuthError, ConsoleError, ConsoleFaultError, ConsoleLostError
from matchpod.service.region_checks.server_check import opening_of

BOTH_REFUSED = OSError(f"Multiple exceptions: [Errno {errno.ECONNREFUSED}] Connect call failed, [Errno 101] …")


def lost(cause: BaseException | None) -> ConsoleError:
    error = ConsoleLostError("no connection")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "opening"),
    [
        (ConsoleAuthError("no"), Opening.WRONG_PASSWORD),
        (ConsoleFaultError("no packets"), Opening.NO_CONSOLE),
        (ConsoleError("anything else"), Opening.NO_CONSOLE),
        (lost(ConnectionRefusedError()), Opening.REFUSED),
        (lost(BOTH_REFUSED), Opening.REFUSED),
        (lost(TimeoutError()), Opening.NO_ANSWER),
        (lost(socket.gaierror(-2, "Name or service not known")), Opening.UNKNOWN_HOST),
        (lost(UnicodeError()), Opening.UNKNOWN_HOST),
        (lost(OSError(errno.EHOSTUNREACH, "No route to host")), Opening.UNREACHABLE),
        (lost(ConnectionResetError()), Opening.CLOSED),
        (lost(None), Opening.CLOSED),
    ],
)
def test_error_says_what_became_of_the_attempt(error: ConsoleError, opening: Opening) -> None:
    assert opening_of(error) is opening
