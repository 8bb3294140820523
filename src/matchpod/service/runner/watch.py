"""Is the server of a running match still there? Its process, its log and its console are the signs of life.

A server that speaks is not asked. One that keeps silent is asked over its console, and whether it still sends its
log to us; one that shows no sign for too long is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from matchpod.core.match import Match, Phase
from matchpod.cs2.console_answers import parse_status_json
from matchpod.cs2.console_commands import STATUS_JSON, forget_log_address_command
from matchpod.ports import ConsoleError
from matchpod.service.entries import store
from matchpod.service.folding import PRESENCE
from matchpod.service.regions import Region
from matchpod.service.runner import configure
from matchpod.service.runner.claim import Claim
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.hands import map_load_s
from matchpod.service.runner.surroundings import Surroundings

LOOK_S: Final = 2.5
"""How often a server is looked at."""

QUIET_MS: Final = 4_000
"""A server that said nothing for so long is asked."""

LOST_MS: Final = 10_000
"""No sign of life for so long, and a question that was not answered. With an answer that does not come and a pause
before the next look, a loss is noticed within 15 s."""

LOOKS_GONE: Final = 2
"""A process that is gone is believed to be at this look in a row: its last words may still be under way to us."""

NO_LOG_MS: Final = 60_000
"""A server logs what its console is asked, so its log comes at least when we ask. One that answers for so long and
sends none is given our address anew."""

DEAF_MS: Final = 180_000
"""If that does not help for so long, the match cannot be followed."""

ASK_S: Final = 3.0
"""For an answer to that question."""

_LOG = logging.getLogger(__name__)


class Watch:
    """Looks after one server; says once, with the reason, that it is lost."""

    def __init__(
        self,
        claim: Claim,
        around: Surroundings,
        region: Region,
        *,
        line: ConsoleLine,
        match: Match,
        on_lost: Callable[[str], None],
    ) -> None:
        self._claim = claim
        self._around = around
        self._clock = around.clock
        self._region = region
        self._line = line
        self._match = match
        self._log_url = around.log_url(claim.row.log_token)
        self._on_lost = on_lost
        self._sign_ms = around.clock.now_ms()
        self._log_ms = self._sign_ms
        self._told_again_ms: int | None = None
        self._unanswered = 0
        self._looks_gone = 0

    def heard(self, at_ms: int) -> None:
        """A post of the server's log came."""
        self._log_ms = max(self._log_ms, at_ms)
        self._told_again_ms = None
        self._show_sign(at_ms)

    async def run(self) -> None:
        """Look until the server is lost."""
        while True:
            why = await self._look()
            if why:
                self._on_lost(why)
                return
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> str:
        """Why the server is lost; empty: it is not."""
        row = self._claim.row
        if not await self._region.fleet.is_alive(row.id, row.slot or ""):
            self._looks_gone += 1
            return "its process is gone" if self._looks_gone >= LOOKS_GONE else ""
        self._looks_gone = 0
        if self._match.presence.is_doubtful:
            await self._tell_presence()
        if self._silent_ms() < QUIET_MS:
            return ""
        if not self._is_lost():
            try:
                await self._ask()
            except (ConsoleError, TimeoutError) as exc:
                self._unanswered += 1
                _LOG.debug("a silent server did not answer", extra={"server_id": row.id, "error": str(exc)})
        if self._told_again_ms is not None and self._sign_ms - self._told_again_ms >= DEAF_MS:
            return "its log does not reach us"
        return f"no sign of life for {self._silent_ms() // 1000} s" if self._is_lost() else ""

    async def _tell_presence(self) -> None:
        """Lines were lost: store who is on the server, as its console lists them, for the match to compare."""
        around, row = self._around, self._claim.row
        try:
            status = parse_status_json(await self._line.run(STATUS_JSON, timeout_s=ASK_S))
        except ConsoleError as exc:
            _LOG.debug("a server did not say who is on it", extra={"server_id": row.id, "error": str(exc)})
            return
        self._show_sign(around.clock.now_ms())
        if status is not None:
            names = msgspec.json.encode({client.steam_id64: client.name for client in status.humans})
            await store(around.db, around.live, row.id, PRESENCE, received_ms=around.clock.now_ms(), body=names)

    def _is_lost(self) -> bool:
        return self._unanswered > 0 and self._silent_ms() >= self._patience_ms()

    async def _ask(self) -> None:
        async with asyncio.timeout(ASK_S):
            await self._line.run(STATUS_JSON, timeout_s=ASK_S)
            self._show_sign(self._clock.now_ms())
            try:
                if self._told_again_ms is None and self._sign_ms - self._log_ms >= NO_LOG_MS:
                    await self._forget_address()
                if await configure.register_log(self._line, self._log_url):
                    _LOG.warning("server had forgotten our log address", extra={"server_id": self._claim.row.id})
            except configure.ConfigurationError as exc:
                _LOG.warning("server does not send its log", extra={"server_id": self._claim.row.id, "error": str(exc)})

    async def _forget_address(self) -> None:
        """Have our address removed, to be added anew: a server may have given up on it without a word."""
        self._told_again_ms = self._sign_ms
        _LOG.warning("server answers, but its log does not come", extra={"server_id": self._claim.row.id})
        await self._line.run(forget_log_address_command(self._log_url), timeout_s=ASK_S)

    def _show_sign(self, at_ms: int) -> None:
        self._sign_ms = max(self._sign_ms, at_ms)
        self._unanswered = 0

    def _silent_ms(self) -> int:
        return self._clock.now_ms() - self._sign_ms

    def _patience_ms(self) -> int:
        load_ms = round(map_load_s(self._region.speed) * 1000)
        changed_ms = self._match.presence.map_change_at_ms
        is_loading = changed_ms is not None and self._clock.now_ms() - changed_ms < load_ms
        return load_ms if is_loading or self._match.phase is Phase.BETWEEN_MAPS else LOST_MS
