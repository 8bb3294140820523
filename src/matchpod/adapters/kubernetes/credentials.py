"""Provide the credentials of an account. Its token file is reread, or its exec program run again, when needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError
from matchpod.adapters.kubernetes.cluster import PemSource, UserAccount
from matchpod.adapters.kubernetes.exec_credentials import ExecCredentials, run_exec

TOKEN_FILE_S = 60.0
"""Time in seconds for which a token file is cached. The kubelet writes a new token well before the old token expires.
"""

EARLY_S = 60.0
"""Time in seconds before the expiry of credentials at which they are replaced."""


class Login(msgspec.Struct, frozen=True):
    """The credentials for a request: a token, a client certificate with its key, or both."""

    token: str | None = None
    certificate: PemSource | None = None
    key: PemSource | None = None

    def __repr__(self) -> str:
        """Omit the token."""
        return f"Login(certificate={self.certificate!r})"


class Credentials:
    def __init__(
        self,
        account: UserAccount,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._account = account
        self._clock_s = clock_s
        self._now = now
        self._token = account.token
        self._read_at_s: float | None = None
        self._printed: ExecCredentials | None = None
        self._running = asyncio.Lock()

    async def login(self) -> Login:
        """Return valid credentials; raise ClusterConfigError or UnreachableError if there are none."""
        account = self._account
        if account.exec_plugin is not None:
            return await self._exec_login()
        if account.token_file is not None and self._is_old():
            self._token = await asyncio.to_thread(self._read_token, account.token_file)
            self._read_at_s = self._clock_s()
        return Login(self._token, account.certificate, account.key)

    def expire(self, rejected: Login) -> None:
        """Discard credentials that the server has rejected, so that the next request gets new ones."""
        self._read_at_s = None
        if self._printed is not None and _login_of(self._printed, self._account) == rejected:
            self._printed = None

    def _is_old(self) -> bool:
        return self._read_at_s is None or self._clock_s() - self._read_at_s >= TOKEN_FILE_S

    def _read_token(self, file: Path) -> str:
        try:
            token = file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as exc:
            if self._token:
                return self._token  # the old token is still valid for a while
            reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
            raise ClusterConfigError(f"The token file {file} cannot be read: {reason}") from exc
        if not token:
            raise ClusterConfigError(f"The token file {file} is empty")
        return token

    async def _exec_login(self) -> Login:
        assert self._account.exec_plugin is not None
        async with self._running:  # requests that wait for credentials share a single run
            if self._printed is None or self._expires_soon(self._printed):
                self._printed = await run_exec(self._account.exec_plugin)
            return _login_of(self._printed, self._account)

    def _expires_soon(self, printed: ExecCredentials) -> bool:
        return printed.expires_at is not None and (printed.expires_at - self._now()).total_seconds() < EARLY_S


def _login_of(printed: ExecCredentials, account: UserAccount) -> Login:
    if printed.certificate_pem is None:
        return Login(printed.token, account.certificate, account.key)
    return Login(printed.token, PemSource(text=printed.certificate_pem), PemSource(text=printed.key_pem))
