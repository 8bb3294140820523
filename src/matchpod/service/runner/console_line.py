"""Manage the RCON connection to the server of a leased match.

The connection is opened on first use, and reopened after it was lost. After a console fault (the server sent invalid or
too much data), it is not reopened, because the server would probably send such data again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from matchpod.ports import ConsoleError, ConsoleFaultError, RemoteConsole
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.lease import Lease

ANSWER_S = 5.0
"""Timeout in seconds for the answer to a command. A server answers within a tick, unless it is busy, loading, hung or
gone."""


_T = TypeVar("_T")


class ConsoleLine:
    """The console of a leased match's server."""

    def __init__(self, lease: Lease, deps: Deps) -> None:
        row = lease.row
        if row.rcon_host is None or row.rcon_port is None or row.rcon_password is None:
            raise ValueError("a server that was not allocated has no console")
        self._lease = lease
        self._consoles = deps.consoles
        self._turns = deps.turns
        self._address = (row.rcon_host, row.rcon_port, deps.vault.open(row.rcon_password))
        self._console: RemoteConsole | None = None
        self._opening = asyncio.Lock()
        self._fault: ConsoleFaultError | None = None

    async def run(self, command: str, *, timeout_s: float = ANSWER_S) -> str:
        """Run a command. Raise ConsoleError if there is no answer, LeaseLostError if the lease is lost."""
        (answer,) = await self.run_all((command,), timeout_s=timeout_s)
        return answer

    async def ask(self, command: str, parse: Callable[[str], _T], *, timeout_s: float = ANSWER_S) -> _T:
        """Run a command. Parse its answer in a turn of the folds, because parsing may take milliseconds."""
        return await self.ask_all((command,), lambda answers: parse(answers[0]), timeout_s=timeout_s)

    async def ask_all(
        self, commands: Sequence[str], parse: Callable[[Sequence[str]], _T], *, timeout_s: float = ANSWER_S
    ) -> _T:
        """Run commands without waiting for each answer. Parse all answers as `ask` does."""
        answers = await self.run_all(commands, timeout_s=timeout_s)
        return await self._turns.call(lambda: parse(answers))

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = ANSWER_S) -> list[str]:
        """Run commands in order without waiting for each answer. Raises the same errors as `run`."""
        try:
            return await self._run_all(commands, timeout_s)
        except ConsoleFaultError as exc:
            self._fault = exc
            raise

    async def _run_all(self, commands: Sequence[str], timeout_s: float) -> list[str]:
        async with self._opening:  # one connection for concurrent commands
            if self._fault is not None:
                raise ConsoleFaultError(*self._fault.args)
            if self._console is None:
                self._lease.check()
                self._console = await self._consoles.open(*self._address)
            console = self._console
        self._lease.check()
        try:
            return await console.run_all(commands, timeout_s=timeout_s)
        except ConsoleError:
            if self._console is console:
                await self.close()
            raise

    async def close(self) -> None:
        console, self._console = self._console, None
        if console is not None:
            await console.close()
