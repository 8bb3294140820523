"""How do we keep talking to a server? One console at a time, opened when needed and again when it was lost."""

from __future__ import annotations

import asyncio

from matchpod.ports import ConsoleError, RemoteConsole
from matchpod.service.runner.claim import Claim
from matchpod.service.runner.surroundings import Surroundings

ANSWER_S = 5.0
"""A server answers within a tick; one that does not is busy, loading, hung or gone."""


class ConsoleLine:
    """The console of one claimed server."""

    def __init__(self, claim: Claim, around: Surroundings) -> None:
        row = claim.row
        if row.rcon_host is None or row.rcon_port is None or row.rcon_password is None:
            raise ValueError("a server that was not allocated has no console")
        self._claim = claim
        self._consoles = around.consoles
        self._address = (row.rcon_host, row.rcon_port, around.vault.open(row.rcon_password))
        self._console: RemoteConsole | None = None
        self._opening = asyncio.Lock()

    async def run(self, command: str, *, timeout_s: float = ANSWER_S) -> str:
        """Run a command on the server, unless it is somebody else's by now; ConsoleError when no answer came."""
        async with self._opening:  # two may speak at once, over one connection
            if self._console is None:
                self._claim.check()
                self._console = await self._consoles.open(*self._address)
            console = self._console
        self._claim.check()
        try:
            return await console.run(command, timeout_s=timeout_s)
        except ConsoleError:
            if self._console is console:
                await self.close()
            raise

    async def close(self) -> None:
        """Hang up."""
        console, self._console = self._console, None
        if console is not None:
            await console.close()
