"""Give servers the passwords of their matches, and stop the fleet if several in a row reject those of its secret.

A server that rejects them is of no use, and is released. If the secret of the service or of the servers was replaced
without the other, that would go on until none is left. So after a few the fleet is stopped, until the secret changes
or a waiting server accepts a password. Trying that costs no server: it is not allocated for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from enum import StrEnum

from matchpod.adapters.fleets import agones_console
from matchpod.adapters.fleets.agones_cache import ServerCache
from matchpod.adapters.fleets.agones_options import AgonesOptions
from matchpod.adapters.fleets.agones_servers import console_of, place_of_server
from matchpod.adapters.kubernetes.objects import AgonesServer
from matchpod.ports import ConsoleError, Consoles, FleetUnavailableError

MAX_MISMATCHES = 3
"""Servers in a row that reject the passwords before the fleet is stopped."""

PROVEN_S = 10.0
"""How long an accepted password is proof that others are accepted too. Replaced servers take longer to start."""

_log = logging.getLogger(__name__)


class Fit(StrEnum):
    """The secret from which the first password of a server follows."""

    CURRENT = "current"
    PREVIOUS = "previous"
    NONE = "none"


class MismatchCount:
    """Counts servers in a row that accept no password of the current secrets. Decides how many may be tried at once."""

    def __init__(self) -> None:
        self.secrets: tuple[bytes, ...] | None = None
        self.in_flight = 0
        self._mismatches = 0
        self._proven_until_s = float("-inf")

    @property
    def is_stopped(self) -> bool:
        """True if no server may be used for now."""
        return self._mismatches >= MAX_MISMATCHES

    def may_try(self, now_s: float) -> bool:
        """True if another server may be tried: while no proof is recent, only as many as may fail."""
        return now_s < self._proven_until_s or self.in_flight < MAX_MISMATCHES - self._mismatches

    def change_secrets(self, secrets: tuple[bytes, ...]) -> bool:
        """Begin anew if the secrets differ from those before; True if they replace others."""
        before, self.secrets = self.secrets, secrets
        if before == secrets:
            return False
        self._mismatches, self._proven_until_s = 0, float("-inf")
        return before is not None

    def record(self, fit: Fit, now_s: float) -> None:
        """Record whether a server accepted a password."""
        is_fit = fit is not Fit.NONE
        self._mismatches = 0 if is_fit else self._mismatches + 1
        self._proven_until_s = now_s + PROVEN_S if is_fit else float("-inf")


class Passwords:
    """The first passwords of the servers of one fleet."""

    def __init__(
        self, options: AgonesOptions, consoles: Consoles, cache: ServerCache, on_password: Callable[[Fit], None]
    ) -> None:
        """`on_password` is called for each allocated server, with the secret that its password follows from."""
        self._options = options
        self._consoles = consoles
        self._cache = cache
        self._on_password = on_password
        self._count = MismatchCount()
        self._changed = asyncio.Event()
        # The waiting servers that rejected all passwords of these secrets: they always will.
        self._rejected_by: set[str] = set()

    def read(self) -> tuple[bytes, ...]:
        """Return the secrets of the fleet. FleetUnavailableError if they cannot be read; then the fleet has a fault."""
        try:
            secrets = self._options.read_secrets()
        except ValueError as exc:
            self._cache.set_secret_fault(str(exc))
            raise FleetUnavailableError(str(exc)) from exc
        if self._count.change_secrets(secrets):
            about = {"region": self._options.region, "has_previous": len(secrets) > 1}
            _log.info("fleet secret changed", extra=about)
            self._rejected_by.clear()
        self._note_state()
        return secrets

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a server may be tried. FleetUnavailableError if the fleet is stopped."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._options.turn_s
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until_s):
                while not (self._count.is_stopped or self._count.may_try(loop.time())):
                    await self._changed.wait()
        if self._count.is_stopped:
            raise FleetUnavailableError(self._fault())
        self._count.in_flight += 1
        try:
            yield
        finally:
            self._count.in_flight -= 1
            self._wake()

    async def replace(self, name: str, address: agones_console.ConsoleAddress, *, is_found: bool) -> None:
        """Replace the password of an allocated server with that of its match; FleetError if that fails.

        A server that accepts no password of the fleet is a fault of the fleet, not of the match.
        """
        try:
            accepted = await agones_console.take_over(
                self._consoles, address, is_found=is_found, timeout_s=self._options.console_s
            )
        except agones_console.PasswordMismatchError as exc:
            self._record(Fit.NONE)
            _log.warning("server rejected the fleet secret", extra={"region": self._options.region, "slot": name})
            raise FleetUnavailableError(str(exc)) from exc
        if accepted is not None:
            self._record(Fit.PREVIOUS if accepted else Fit.CURRENT)

    async def follow(self) -> None:
        """Read the secret again and again; while the fleet is stopped, try a waiting server. Until cancelled."""
        while True:
            try:
                secrets = self.read()
                if self._count.is_stopped and await self.probe(self._cache.ready(), secrets) is True:
                    self._count.record(Fit.CURRENT, asyncio.get_running_loop().time())
                    self._note_state()
            except FleetUnavailableError:
                pass  # it is recorded as the fault of the fleet
            except Exception:  # noqa: BLE001 - the loop must survive
                _log.exception("fleet secret check failed")
            await asyncio.sleep(self._options.read_s)

    async def probe(self, waiting: Sequence[AgonesServer], secrets: tuple[bytes, ...]) -> bool | None:
        """Try the newest waiting server that was not tried yet; None if there is none, or no valid answer."""
        untried = [server for server in waiting if server.metadata.uid not in self._rejected_by]
        server = max(untried, key=lambda candidate: candidate.metadata.creation_timestamp or "", default=None)
        console = console_of(place_of_server(server), self._options) if server is not None else None
        if server is None or console is None:
            return None
        address = agones_console.ConsoleAddress(*console, first_passwords(secrets, server.metadata.name))
        try:
            is_fit = await agones_console.fits(self._consoles, address)
        except ConsoleError:
            return None
        if not is_fit:
            self._rejected_by.add(server.metadata.uid)
        return is_fit

    def _record(self, fit: Fit) -> None:
        self._on_password(fit)
        self._count.record(fit, asyncio.get_running_loop().time())
        self._note_state()

    def _note_state(self) -> None:
        self._cache.set_secret_fault(self._fault() if self._count.is_stopped else None)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _fault(self) -> str:
        return (
            f"{MAX_MISMATCHES} game servers in a row rejected the password that follows from the fleet secret; "
            "the service and the servers must have the same secret."
        )


def first_passwords(secrets: Sequence[bytes], name: str) -> tuple[str, ...]:
    """Return the passwords that a waiting server of this name may have, one per secret."""
    return tuple(agones_console.first_password(secret, name) for secret in secrets)
