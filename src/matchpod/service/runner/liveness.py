"""Liveness probe of the server of a running match: its process, its log posts and its console.

The console is asked only if the log is silent or the players are in doubt. A server that is silent too long is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from matchpod.core.match import MatchPhase
from matchpod.cs2.console_answers import parse_status_json
from matchpod.cs2.console_commands import STATUS_JSON, remove_log_address_command
from matchpod.ports import ConsoleError
from matchpod.service.match_log import entries
from matchpod.service.match_log.entries import EntryKind, NewEntry
from matchpod.service.match_log.fold import Fold
from matchpod.service.regions import Region
from matchpod.service.runner import configure
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.effects import map_load_s
from matchpod.service.runner.lease import Lease

PROBE_S: Final = 2.5
"""How often a server is probed."""

QUIET_MS: Final = 4_000
"""The console is asked after this long without a log post."""

LOST_MS: Final = 10_000
"""A server is lost after this long without a sign of life and with an unanswered question. With the timeout of that
question and the pause between probes, a loss is noticed within 15 s."""

PROBES_GONE: Final = 2
"""A process counts as gone after this many probes in a row without it: its last log posts may still be in flight."""

LAST_POSTS_S: Final = 0.5
"""How long to wait for the last log posts of a server that is gone: they may contain the end of the match."""

NO_LOG_MS: Final = 60_000
"""A server logs console commands, so asking it produces a log post. If it answers for this long and posts nothing,
our log address is registered again."""

NO_LOG_LOST_MS: Final = 180_000
"""The server is lost if no log post arrives within this time after its log address was registered again."""

ASK_S: Final = 3.0
"""Timeout of a question to the console."""

FLEET_S: Final = 5.0
"""How long a fleet usually takes at most to look for a server."""

LATE_MS: Final = 1_000
"""If a step ends later than planned by more than this, this process did not run: that time does not count."""

_log = logging.getLogger(__name__)


class LivenessProbe:
    """Probes one server; calls `on_lost` with the reason."""

    def __init__(
        self,
        lease: Lease,
        deps: Deps,
        region: Region,
        *,
        line: ConsoleLine,
        fold: Fold,
        on_lost: Callable[[str], None],
    ) -> None:
        self._lease = lease
        self._deps = deps
        self._clock = deps.clock
        self._region = region
        self._line = line
        self._fold = fold
        self._match = fold.match
        self._log_url = deps.ingest.logs(deps.tokens_of(lease.row).log)
        self._on_lost = on_lost
        self._alive_ms = deps.clock.now_ms()
        self._log_ms = self._alive_ms
        self._posted_ms = 0
        self._reregistered_ms: int | None = None
        self._unanswered = 0
        self._probes_gone = 0

    def log_received(self, at_ms: int) -> None:
        """Record a log post; its time may be in the future, if our clock was set back since it was stored."""
        at_ms = min(at_ms, self._clock.now_ms())
        self._log_ms = max(self._log_ms, at_ms)
        self._posted_ms = self._log_ms
        self._reregistered_ms = None
        self._seen_alive(at_ms)

    async def run(self) -> None:
        """Probe until the server is lost."""
        while True:
            why = await self._probe()
            if why:
                self._on_lost(why)
                return
            with self._excusing_delay(PROBE_S):
                await asyncio.sleep(PROBE_S)

    async def wait_for_fleet(self) -> None:
        """Wait until the fleet reports that the server is gone."""
        row = self._lease.row
        why = await self._region.fleet.wait_gone(row.id, row.slot or "")
        await asyncio.sleep(LAST_POSTS_S)
        self._on_lost(why)

    async def _probe(self) -> str:
        """Why the server is lost, or an empty string."""
        row = self._lease.row
        with self._excusing_delay(FLEET_S):
            is_alive = await self._region.fleet.is_alive(row.id, row.slot or "")
        if not is_alive:
            if self._is_posting():
                return ""  # it posts its log, so it runs: only its console refuses connections
            self._probes_gone += 1
            return "its process has ended" if self._probes_gone >= PROBES_GONE else ""
        self._probes_gone = 0
        if self._match.presence.is_doubtful and self._is_posting():
            # Without posts, the list may be that of a new process: its players would seem to have left.
            await self._record_presence()
        if self._silent_ms() < QUIET_MS:
            return ""
        if not self._is_lost():
            try:
                await self._ask()
                await self._renew_address()
            except (ConsoleError, TimeoutError) as exc:
                self._unanswered += 1
                _log.debug("console of a silent server did not answer", extra={"server_id": row.id, "error": str(exc)})
        if self._reregistered_ms is not None and self._alive_ms - self._reregistered_ms >= NO_LOG_LOST_MS:
            return "its log posts do not arrive"
        return f"no sign of life for {self._silent_ms() // 1000} s" if self._is_lost() else ""

    async def _record_presence(self) -> None:
        """Append the console's list of players, so that the match can correct its own: log lines may be missing."""
        deps, row = self._deps, self._lease.row
        try:
            status = parse_status_json(await self._ask())
        except (ConsoleError, TimeoutError) as exc:
            _log.debug("console did not list players", extra={"server_id": row.id, "error": str(exc)})
            return
        if status is not None:
            names = msgspec.json.encode({client.steam_id64: client.name for client in status.humans})
            listed = NewEntry(kind=EntryKind.PRESENCE, received_ms=deps.clock.now_ms(), body=names)
            await entries.append(deps.db, row.id, [listed], publish=deps.live.publish)

    def _is_posting(self) -> bool:
        return self._clock.now_ms() - self._posted_ms < QUIET_MS

    def _is_lost(self) -> bool:
        return self._unanswered > 0 and self._silent_ms() >= self._patience_ms()

    async def _ask(self) -> str:
        """Ask the console for its players; the answer shows that the server is alive."""
        with self._excusing_delay(ASK_S):
            async with asyncio.timeout(ASK_S):
                answer = await self._line.run(STATUS_JSON, timeout_s=ASK_S)
        self._seen_alive(self._clock.now_ms())
        return answer

    async def _renew_address(self) -> None:
        """Register our log address if it is missing, or if the server answers but posts nothing."""
        try:
            with self._excusing_delay(ASK_S):
                async with asyncio.timeout(ASK_S):
                    if self._reregistered_ms is None and self._alive_ms - self._log_ms >= NO_LOG_MS:
                        await self._remove_address()
                    is_missing = await configure.register_log(self._line, self._log_url)
        except configure.ConfigurationError as exc:
            _log.warning("log address rejected by server", extra={"server_id": self._lease.row.id, "error": str(exc)})
        else:
            if is_missing:
                _log.warning("log address was missing, registered again", extra={"server_id": self._lease.row.id})

    async def _remove_address(self) -> None:
        """Remove our log address so it is registered again: the server may have silently stopped using it."""
        self._reregistered_ms = self._alive_ms
        _log.warning("server answers but posts no log", extra={"server_id": self._lease.row.id})
        await self._line.run(remove_log_address_command(self._log_url), timeout_s=ASK_S)

    def _seen_alive(self, at_ms: int) -> None:
        self._alive_ms = max(self._alive_ms, at_ms)
        self._unanswered = 0

    @contextmanager
    def _excusing_delay(self, planned_s: float) -> Iterator[None]:
        """Do not count the time in which this process did not run during a step, or by which its clock was set."""
        began_ms = self._clock.now_ms()
        try:
            yield
        finally:
            now_ms = self._clock.now_ms()
            late_ms = now_ms - began_ms - round(planned_s * 1000)
            if late_ms > LATE_MS:
                self._shift_times(late_ms, now_ms)
            elif now_ms < began_ms:  # the clock was set back
                self._shift_times(now_ms - began_ms, now_ms)

    def _shift_times(self, by_ms: int, now_ms: int) -> None:
        self._alive_ms = min(self._alive_ms + by_ms, now_ms)
        self._log_ms = min(self._log_ms + by_ms, now_ms)
        self._posted_ms = min(self._posted_ms + by_ms, now_ms)
        if self._reregistered_ms is not None:
            self._reregistered_ms = min(self._reregistered_ms + by_ms, now_ms)

    def _silent_ms(self) -> int:
        return self._clock.now_ms() - self._alive_ms

    def _patience_ms(self) -> int:
        load_ms = round(map_load_s(self._region.speed) * 1000)
        changed_ms = self._match.presence.map_change_at_ms
        now_ms = self._fold.reader.match_ms(self._clock.now_ms())
        is_loading = changed_ms is not None and now_ms - changed_ms < load_ms
        return load_ms if is_loading or self._match.phase is MatchPhase.BETWEEN_MAPS else LOST_MS
