"""A lease for the release of a server, as fleets see it."""

from __future__ import annotations


class LostError(Exception):
    """The lease is lost."""


class FakeLease:
    """The lease of a match with one log token, which is lost after a number of checks."""

    def __init__(self, log_token: str = "", *, valid_checks: int = 1_000) -> None:
        self._log_token = log_token
        self._valid_checks = valid_checks

    def check(self) -> None:
        if self._valid_checks == 0:
            raise LostError
        self._valid_checks -= 1

    def owns_log(self, token: str) -> bool:
        return token == self._log_token
