"""Set match passwords on servers, and stop the fleet if several servers in a row reject the fleet's secret.

An allocated server that rejects the first passwords (derived from the fleet's secret) is released. If only the service
or only the servers got a new secret, all servers would be used up in this way. So after MAX_MISMATCHES rejections,
counted for all processes, the fleet is stopped until the secret changes or a waiting server accepts a password. Waiting
servers can be tried without allocating them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from enum import StrEnum

from matchpod.adapters.fleets import agones_console
from matchpod.adapters.fleets.agones_cache import ServerCache
from matchpod.adapters.fleets.agones_options import AgonesOptions
from matchpod.adapters.fleets.agones_servers import console_of, place_of_server
from matchpod.adapters.fleets.secret_trials import LocalTrials
from matchpod.adapters.kubernetes.objects import AgonesServer
from matchpod.ports import ConsoleError, Consoles, DatabaseError, FleetUnavailableError, SecretTrials

MAX_MISMATCHES = 3
"""Number of consecutive servers that must reject the passwords for the fleet to be stopped."""

PROVEN_S = 10.0
"""Time in seconds after an accepted password during which servers are tried without a limit. It is too short for
servers with another secret to start."""

LOOK_S = 0.5
"""Interval in seconds at which a waiting allocation checks whether another process has ended its trial."""

_log = logging.getLogger(__name__)


class Fit(StrEnum):
    """Which of the fleet's secrets the first password of a server was derived from."""

    CURRENT = "current"
    PREVIOUS = "previous"
    NONE = "none"


class Trial:
    """A trial of the secret on a server. `id` is None if no trial was reserved, and after the trial has ended."""

    def __init__(self, trial_id: str | None) -> None:
        self.id = trial_id


class Passwords:
    """Manages the first passwords of a fleet's servers, and stops the fleet if they are rejected."""

    def __init__(
        self,
        options: AgonesOptions,
        consoles: Consoles,
        cache: ServerCache,
        on_password: Callable[[Fit], None],
        *,
        trials: SecretTrials | None = None,
    ) -> None:
        """Call `on_password` with the `Fit` of each allocated server whose first password was tried."""
        self._options = options
        self._consoles = consoles
        self._cache = cache
        self._on_password = on_password
        self._trials = trials or LocalTrials()
        self._secrets: tuple[bytes, ...] | None = None
        self._rejections = 0
        """Number of servers that have rejected the secrets since a server last accepted them, as last read."""
        self._proven_until_s = float("-inf")
        self._changed = asyncio.Event()
        # UIDs of the waiting servers that rejected the passwords of all secrets. They are not tried again.
        self._rejected_by: set[str] = set()

    def read(self) -> tuple[bytes, ...]:
        """Return the secrets of the fleet. If they cannot be read, record the fault and raise FleetUnavailableError."""
        try:
            secrets = self._options.read_secrets()
        except ValueError as exc:
            self._cache.set_secret_fault(str(exc))
            raise FleetUnavailableError(str(exc)) from exc
        if secrets != self._secrets:
            if self._secrets is not None:
                about = {"region": self._options.region, "has_previous": len(secrets) > 1}
                _log.info("fleet secret changed", extra=about)
            self._secrets = secrets
            self._rejections, self._proven_until_s = 0, float("-inf")
            self._rejected_by.clear()
        self._note_state()
        return secrets

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Trial]:
        """Wait until a server may be tried; raise FleetUnavailableError if the fleet is stopped.

        Unless a server has accepted a secret recently, at most MAX_MISMATCHES servers are tried concurrently.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._options.turn_s
        secret, trial = self._fingerprint(), Trial(None)
        while loop.time() >= self._proven_until_s and not self._is_stopped:
            changed = self._changed
            trial.id = await self._trials.begin(secret, MAX_MISMATCHES)
            if trial.id is not None or loop.time() >= until_s:
                break
            await self._look()
            if not self._is_stopped:  # wait until a trial ends, here or in another process
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(min(until_s, loop.time() + LOOK_S)):
                        await changed.wait()
        if self._is_stopped:
            raise FleetUnavailableError(self._fault())
        try:
            yield trial
        finally:
            if trial.id is not None:
                await self._trials.drop(secret, trial.id)
            self._wake()

    async def replace(self, name: str, address: agones_console.ConsoleAddress, trial: Trial, *, is_found: bool) -> None:
        """Replace the first password of an allocated server with the match's password; raise FleetError if that fails.

        If the server accepts no password of the fleet, that is a fault of the fleet, not of the match.
        """
        try:
            accepted = await agones_console.take_over(
                self._consoles, address, is_found=is_found, timeout_s=self._options.console_s
            )
        except agones_console.PasswordMismatchError as exc:
            await self._record(Fit.NONE, trial)
            _log.warning("server rejected the fleet secret", extra={"region": self._options.region, "slot": name})
            raise FleetUnavailableError(str(exc)) from exc
        if accepted is not None:
            await self._record(Fit.PREVIOUS if accepted else Fit.CURRENT, trial)

    async def follow(self) -> None:
        """Read the secret periodically until cancelled; while the fleet is stopped, also try a waiting server."""
        while True:
            try:
                secrets = self.read()
                await self._look()
                if self._is_stopped and await self.probe(self._cache.ready(), secrets) is True:
                    await self._accepted(None)
            except FleetUnavailableError:
                pass  # `read` has already recorded the fault
            except DatabaseError as exc:
                about = {"region": self._options.region, "reason": str(exc)}
                _log.debug("fleet secret rejections not read or stored", extra=about)
            except Exception:  # noqa: BLE001 - the loop must survive
                _log.exception("fleet secret check failed")
            await asyncio.sleep(self._options.read_s)

    async def probe(self, waiting: Sequence[AgonesServer], secrets: tuple[bytes, ...]) -> bool | None:
        """Try the secrets on the newest untried waiting server. Return whether one is accepted; None if unknown."""
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

    async def _record(self, fit: Fit, trial: Trial) -> None:
        self._on_password(fit)
        if fit is not Fit.NONE:
            await self._accepted(trial)
            return
        secret, self._proven_until_s = self._fingerprint(), float("-inf")
        number = trial.id or await self._trials.begin(secret, MAX_MISMATCHES)
        if number is not None:
            trial.id = None
            await self._trials.reject(secret, number)
        await self._look()

    async def _accepted(self, trial: Trial | None) -> None:
        self._proven_until_s = asyncio.get_running_loop().time() + PROVEN_S
        number = None if trial is None else trial.id
        if number is not None or self._rejections:
            await self._trials.accept(self._fingerprint(), number)
        if trial is not None:
            trial.id = None
        self._set_rejections(0)

    async def _look(self) -> None:
        """Read from `trials` how many servers have rejected the secrets, in all processes."""
        self._set_rejections(await self._trials.rejected(self._fingerprint()))

    def _set_rejections(self, count: int) -> None:
        if count != self._rejections:
            self._rejections = count
            self._note_state()
            self._wake()

    @property
    def _is_stopped(self) -> bool:
        return self._rejections >= MAX_MISMATCHES

    def _fingerprint(self) -> str:
        """Return a fingerprint of the secrets. It does not reveal them, because they are long and random."""
        digest = hashlib.sha256(b"trials of a fleet secret")
        for secret in self._secrets or ():
            digest.update(hashlib.sha256(secret).digest())
        return digest.hexdigest()[:16]

    def _note_state(self) -> None:
        self._cache.set_secret_fault(self._fault() if self._is_stopped else None)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _fault(self) -> str:
        return (
            f"{MAX_MISMATCHES} game servers in a row rejected the password that is derived from the fleet secret; "
            "the service and the servers must have the same secret."
        )


def first_passwords(secrets: Sequence[bytes], name: str) -> tuple[str, ...]:
    """Return the passwords that the waiting server with this name may have, one per secret."""
    return tuple(agones_console.first_password(secret, name) for secret in secrets)
