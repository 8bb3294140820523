"""Check whether the server of a running match is alive: by its process, its log posts and its console.

While log posts arrive, the server counts as alive. A command is sent to its console in three cases: no post arrived for
longer than usual; it is uncertain which players are on the server; or another server of the same host or region is
silent. Servers that fall silent together probably have a common cause, so they get more time before they count as lost.
`core.servers.server_loss` decides whether a server is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from cs2_protocol.console_answers import parse_log_listeners, parse_status_json
from cs2_protocol.console_commands import LOG_LISTENERS, STATUS_JSON, remove_log_address_command
from matchpod.core.failures import Failure
from matchpod.core.match.match import MatchPhase
from matchpod.core.servers.server_loss import (
    FleetReport,
    Judgment,
    ServerHealth,
    Signs,
    Silence,
    judge_server,
)
from matchpod.ports import ConsoleError, ConsoleFaultError
from matchpod.service.match_log.entries import EntryKind, NewEntry
from matchpod.service.match_log.fold import Fold
from matchpod.service.regions.regions import Region
from matchpod.service.runner import configure
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.effects import map_load_s
from matchpod.service.runner.lease import Lease

NO_LOG_MS: Final = 60_000
"""Time after which the log address is registered again if a server answers commands, but sends no posts. Each command
should produce a post, because servers log console commands."""

WARN_S: Final = 1.0
"""Time in seconds without an answer to a command after which a server is reported as silent, to show a warning before
the command times out. The report does not end the match earlier."""

FLEET_S: Final = 5.0
"""Maximum time in seconds that a fleet normally needs to report the state of a server."""

LATE_MS: Final = 1_000
"""Delay of a step beyond its planned time, above which this process counts as suspended or blocked. The delay then does
not count as silence."""

_log = logging.getLogger(__name__)


class LivenessProbe:
    """Probes a server. Calls `on_lost` with the reason if the server is lost, and `on_failed` after a console fault."""

    def __init__(
        self,
        lease: Lease,
        deps: Deps,
        region: Region,
        *,
        line: ConsoleLine,
        fold: Fold,
        on_lost: Callable[[str], None],
        on_failed: Callable[[Failure], None],
    ) -> None:
        self._lease = lease
        self._deps = deps
        self._intervals = deps.intervals
        self._clock = deps.clock
        self._region = region
        self._line = line
        self._fold = fold
        self._match = fold.match
        self._log_url = deps.urls_of(lease.row).logs(deps.tokens_of(lease.row).log)
        self._on_lost = on_lost
        self._on_failed = on_failed
        self._alive_ms = deps.clock.now_ms()
        self._log_ms = self._alive_ms
        self._posted_ms = 0
        self._reregistered_ms: int | None = None
        self._asked_ms: int | None = None
        """When the first console command since the last sign of life was sent; None if no command was sent."""
        self._listed: tuple[int, int] | None = None
        """Since when it is uncertain which players are on the server, and when the console first listed them after
        that."""
        self._is_reported = False
        self._silent = deps.regions.silent
        gap_ms = min(round(self._intervals.log_gap_ms / region.speed), self._silent.limits.ask_ms)
        self._ask_after_ms = max(self._intervals.quiet_ms, gap_ms)

    def log_received(self, at_ms: int) -> None:
        """Record a log post. `at_ms` may be in the future, if the clock was set back after the post was stored."""
        at_ms = min(at_ms, self._clock.now_ms())
        self._log_ms = max(self._log_ms, at_ms)
        self._posted_ms = self._log_ms
        self._reregistered_ms = None
        self._seen_alive(at_ms)

    async def run(self, *, put_off_s: float = 0.0) -> None:
        """Probe the server until it is lost or has a console fault. The first probe is after `put_off_s`."""
        try:
            with self._excusing_delay(put_off_s):
                await asyncio.sleep(put_off_s)
            while True:
                if not self._is_posting() or self._needs_list():  # otherwise its posts show that it is alive
                    judged = await self._probe()
                    if judged.health is ServerHealth.LOST:
                        self._on_lost(judged.why)
                        return
                with self._excusing_delay(self._intervals.probe_s):
                    await asyncio.sleep(self._intervals.probe_s)
        except ConsoleFaultError as exc:
            self._deps.metrics.console_failures.inc(self._region.code)
            _log.warning("console fault", extra={"server_id": self._lease.row.id, "error": str(exc)})
            self._on_failed(Failure.CONSOLE_FAULT)
        finally:
            self._silent.forget(self._lease.row.id)

    async def wait_for_fleet(self) -> None:
        """Wait until the fleet reports that the server is gone. Then call `on_lost`."""
        row = self._lease.row
        why = await self._region.fleet.wait_gone(row.id, row.slot or "")
        await asyncio.sleep(self._intervals.last_posts_s)
        self._on_lost(why)

    async def _probe(self) -> Judgment:
        """Ask the fleet about the server; ask its console if posts have stopped or it is uncertain who is connected."""
        row = self._lease.row
        with self._excusing_delay(FLEET_S):
            fleet = await self._region.fleet.observe(row.id, row.slot or "")
        if fleet is FleetReport.GONE:
            await asyncio.sleep(self._intervals.last_posts_s)
            return self._judge(fleet)
        if self._needs_list() and self._is_posting():
            # Do this only if posts arrive. Otherwise the server may have been restarted, and its list would be
            # misleading.
            await self._record_presence()
        ask_after_ms = self._intervals.quiet_ms if self._silent.has_near(self._silence()) else self._ask_after_ms
        if self._silent_ms() >= ask_after_ms:
            self._asked_ms = self._clock.now_ms() if self._asked_ms is None else self._asked_ms
            warning = asyncio.get_running_loop().call_later(WARN_S, self._report_silence)
            try:
                listeners = parse_log_listeners(await self._ask(LOG_LISTENERS))
                warning.cancel()
                await self._renew_address(listeners)
            except ConsoleFaultError:
                raise
            except (ConsoleError, TimeoutError) as exc:
                _log.debug("console of a silent server did not answer", extra={"server_id": row.id, "error": str(exc)})
            finally:
                warning.cancel()
        return self._judge(fleet)

    def _judge(self, fleet: FleetReport) -> Judgment:
        now_ms = self._clock.now_ms()
        together = 1 if self._asked_ms is None else self._report_silence()
        unposted_ms = None if self._reregistered_ms is None else self._alive_ms - self._reregistered_ms
        signs = Signs(
            fleet=fleet,
            silent_ms=self._silent_ms(),
            unanswered_ms=0 if self._asked_ms is None else now_ms - self._asked_ms,
            load_ms=self._load_ms(),
            together=together,
            no_posts_ms=unposted_ms,
        )
        return judge_server(signs, self._silent.limits)

    def _report_silence(self) -> int:
        """Report the server as silent. Return how many servers, including this server, have fallen silent together."""
        self._is_reported = True
        return self._silent.report(self._lease.row.id, self._silence())

    def _silence(self) -> Silence:
        row, silence_ms = self._lease.row, self._silent.limits.silence_ms
        return Silence(
            region=row.region,
            host=row.rcon_host or "",
            since_ms=self._alive_ms,
            is_loading=self._silent_ms() < silence_ms and bool(self._load_ms()),
        )

    async def _record_presence(self) -> None:
        """Append the console's list of players, so that the match can correct its list after lost log lines."""
        deps, row = self._deps, self._lease.row
        try:
            answer = await self._ask(STATUS_JSON)
        except ConsoleFaultError:
            raise
        except (ConsoleError, TimeoutError) as exc:
            _log.debug("console did not list players", extra={"server_id": row.id, "error": str(exc)})
            return
        status = await deps.turns.call(lambda: parse_status_json(answer))
        if status is not None:
            names = msgspec.json.encode({client.steam_id64: client.name for client in status.humans})
            listed = NewEntry(kind=EntryKind.PRESENCE, received_ms=deps.clock.now_ms(), body=names)
            doubt_ms = self._match.presence.doubt_since_ms
            if doubt_ms is not None and (self._listed is None or self._listed[0] != doubt_ms):
                self._listed = doubt_ms, listed.received_ms
            self._lease.check()  # this process may have been suspended after the answer
            await deps.log_writer.append(row.id, [listed])

    def _needs_list(self) -> bool:
        """True if it is uncertain which players are on the server, and the console has not listed them since.

        If this is still uncertain after the maximum time of a map load, the console is asked again. Until then, the log
        shows who joins and leaves.
        """
        doubt_ms = self._match.presence.doubt_since_ms
        if doubt_ms is None or self._listed is None or self._listed[0] != doubt_ms:
            return doubt_ms is not None
        return self._clock.now_ms() - self._listed[1] >= round(map_load_s(self._region.speed) * 1000)

    def _is_posting(self) -> bool:
        return self._clock.now_ms() - self._posted_ms < self._intervals.quiet_ms

    async def _ask(self, command: str) -> str:
        """Run a console command, and record that the server is alive if it answers."""
        with self._excusing_delay(self._intervals.ask_s):
            async with asyncio.timeout(self._intervals.ask_s):
                answer = await self._line.run(command, timeout_s=self._intervals.ask_s)
        self._seen_alive(self._clock.now_ms())
        return answer

    async def _renew_address(self, listeners: Sequence[str]) -> None:
        """Register the log address again if the server does not have it, or answers commands but sends no posts."""
        is_unused = self._reregistered_ms is None and self._alive_ms - self._log_ms >= NO_LOG_MS
        if self._log_url in listeners and not is_unused:
            return
        try:
            with self._excusing_delay(self._intervals.ask_s):
                async with asyncio.timeout(self._intervals.ask_s):
                    if is_unused:
                        await self._remove_address()
                    await configure.add_log_address(self._line, self._log_url)
        except configure.ConfigurationError as exc:
            _log.warning("log address rejected by server", extra={"server_id": self._lease.row.id, "error": str(exc)})
        else:
            _log.warning("log address registered again", extra={"server_id": self._lease.row.id})

    async def _remove_address(self) -> None:
        """Remove the log address, which the server may have stopped using, before it is registered again."""
        self._reregistered_ms = self._alive_ms
        _log.warning("server answers but posts no log", extra={"server_id": self._lease.row.id})
        await self._line.run(remove_log_address_command(self._log_url), timeout_s=self._intervals.ask_s)

    def _seen_alive(self, at_ms: int) -> None:
        self._alive_ms = max(self._alive_ms, at_ms)
        self._asked_ms = None
        if self._is_reported:
            self._is_reported = False
            self._silent.forget(self._lease.row.id)

    @contextmanager
    def _excusing_delay(self, planned_s: float) -> Iterator[None]:
        """Shift the times that silence is measured from if a step was over LATE_MS late, or the clock was set back."""
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
        if self._asked_ms is not None:
            self._asked_ms = min(self._asked_ms + by_ms, now_ms)
        if self._reregistered_ms is not None:
            self._reregistered_ms = min(self._reregistered_ms + by_ms, now_ms)

    def _silent_ms(self) -> int:
        return self._clock.now_ms() - self._alive_ms

    def _load_ms(self) -> int:
        """Return the timeout of a map load if the server may be loading a map; otherwise 0."""
        load_ms = round(map_load_s(self._region.speed) * 1000)
        changed_ms = self._match.presence.map_change_at_ms
        now_ms = self._fold.reader.match_ms(self._clock.now_ms())
        is_loading = changed_ms is not None and now_ms - changed_ms < load_ms
        return load_ms if is_loading or self._match.phase is MatchPhase.BETWEEN_MAPS else 0
