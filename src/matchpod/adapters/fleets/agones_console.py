"""Replace the first password of an allocated game server with the password of its match.

A waiting server starts before its match exists. Its first password is derived from its name and the fleet secret, which
only the service and the servers know. Labels, annotations and arguments contain no secrets. The game prints console
commands to its output, so the output of a pod contains the match's password, and read access to it must be restricted.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac

import msgspec

from cs2_protocol.console_commands import set_command
from matchpod import ports

PAUSE_S = 0.5
"""Delay in seconds before the connection to a console that did not answer is retried."""

MAX_REJECTED = 3
"""Maximum number of rejected passwords per server. After five within half a minute, the game bans our address."""


class PasswordMismatchError(ports.FleetError):
    """A server has rejected all passwords that are derived from the secrets of the fleet."""


def first_password(secret: bytes, name: str) -> str:
    """Return the password that the game server with this name has before it gets a match."""
    digest = hmac.new(secret, name.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class ConsoleAddress(msgspec.Struct, frozen=True):
    """The address of a server's console, and the passwords that it may accept: the first passwords, and the match's."""

    host: str
    port: int
    first_passwords: tuple[str, ...]
    match_password: str = ""

    def __repr__(self) -> str:
        """Omit the passwords."""
        return f"ConsoleAddress({self.host!r}, {self.port})"


async def take_over(
    consoles: ports.Consoles, address: ConsoleAddress, *, is_found: bool, timeout_s: float
) -> int | None:
    """Set the password of the match, and verify that it works; raise FleetError if that fails.

    `is_found`: an earlier attempt may have set that password already. Return the index in `address.first_passwords` of
    the accepted password; None if the password of the match was already set.
    """
    if not address.match_password:
        raise ports.FleetError("the match has no RCON password")
    try:
        command = set_command("rcon_password", address.match_password)
    except ValueError as exc:
        raise ports.FleetError(f"the RCON password cannot be set: {exc}") from exc
    taking = _TakeOver(consoles, address, command, may_be_set=is_found)
    try:
        async with asyncio.timeout(timeout_s):
            while not await taking.try_once():
                await asyncio.sleep(PAUSE_S)
    except ports.ConsoleFaultError as exc:
        raise ports.FleetError(str(exc)) from exc
    except TimeoutError as exc:
        raise ports.FleetError(f"the console did not answer within {timeout_s:g} s: {taking.last_fault}") from (
            taking.last_error or exc
        )
    return taking.accepted


async def fits(consoles: ports.Consoles, address: ConsoleAddress) -> bool:
    """True if a waiting server accepts one of its first passwords. Raise ConsoleLostError if it does not answer."""
    for password in address.first_passwords:
        try:
            console = await consoles.open(address.host, address.port, password)
        except ports.ConsoleAuthError:
            continue
        await console.close()
        return True
    return False


class _TakeOver:
    def __init__(self, consoles: ports.Consoles, address: ConsoleAddress, command: str, *, may_be_set: bool) -> None:
        self._consoles = consoles
        self._address = address
        self._command = command
        self._may_be_set = may_be_set
        self._candidates = list(enumerate(address.first_passwords))
        self._rejected = 0
        self.accepted: int | None = None
        self.last_error: ports.ConsoleError | None = None

    @property
    def last_fault(self) -> str:
        return str(self.last_error) if self.last_error else "it was not reached"

    async def try_once(self) -> bool:
        """Return True if the password of the match is set and works; False if the console does not answer."""
        try:
            if self._may_be_set and await self._opens(self._address.match_password):
                return True
            await self._set()
            return await self._opens(self._address.match_password)
        except ports.ConsoleLostError as exc:
            self.last_error = exc
            return False

    async def _set(self) -> None:
        for number, password in self._candidates:
            console = await self._open(password)
            if console is None:
                continue
            self.accepted, self._may_be_set = number, True
            self._candidates = [(number, password)]
            try:
                await console.run(self._command)
            except ports.ConsoleLostError:
                pass  # the server closes all connections when its password changes, perhaps before it answers
            finally:
                await console.close()
            return
        raise PasswordMismatchError(
            f"the console rejected the password that is derived from the fleet secret; "
            f"does the server have the same secret? ({self.last_error})"
        ) from self.last_error

    async def _opens(self, password: str) -> bool:
        console = await self._open(password)
        if console is not None:
            await console.close()
        elif self._rejected >= MAX_REJECTED:
            raise ports.FleetError(f"the console does not accept the password that was set: {self.last_error}")
        return console is not None

    async def _open(self, password: str) -> ports.RemoteConsole | None:
        """Open the console; return None if it rejects the password."""
        try:
            return await self._consoles.open(self._address.host, self._address.port, password)
        except ports.ConsoleAuthError as exc:
            self._rejected += 1
            self.last_error = exc
            return None
