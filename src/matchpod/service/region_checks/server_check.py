"""Check a game server: open its console, send the commands of `cs2.server_check`, and wait for a log post.

The caller holds the server, so that no match gets it during the check. Afterwards the server is restored: the service's
log address is removed, and logging and hibernation are reset if the check changed them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import msgspec

from cs2_protocol import console_answers as answers
from cs2_protocol import console_commands, server_facts
from matchpod.core.requests.addresses import is_loopback
from matchpod.core.servers.check_report import (
    MAX_TEXT,
    CheckFinding,
    CheckState,
    CheckVerdict,
    ServerReport,
    server_report,
)
from matchpod.core.servers.log_addresses import check_token, installation_in, log_tokens_in
from matchpod.cs2 import server_check as reading
from matchpod.cs2.server_check import LogPost, Opening
from matchpod.ports import (
    Clock,
    ConsoleAuthError,
    ConsoleError,
    ConsoleFaultError,
    ConsoleLostError,
    Consoles,
    Database,
    DatabaseError,
    GameServer,
    RemoteConsole,
    ServerProbe,
)
from matchpod.service.identity.identifiers import TOKEN_RANDOM_BYTES, new_token
from matchpod.service.ingest.urls import IngestUrls
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.storage import region_checks

ROUND_TRIPS: Final = 3
"""Number of commands whose round-trip time is measured. The median is reported."""

ECHO: Final = "echo matchpod"

HIBERNATE: Final = "sv_hibernate_when_empty"

POLL_S: Final = 0.1
"""Interval in seconds at which the database is polled for the log post, which another process may have received."""

CLEAN_S: Final = 25.0
"""Timeout in seconds for restoring a server."""

CLEAN_COMMAND_S: Final = 4.0
"""Timeout in seconds for each command that restores a server. If the first connection hangs, there is time for
another."""

_log = logging.getLogger(__name__)


class GiveWayError(Exception):
    """The check must stop and leave its server to a match that waits for a server."""


class HoldLostError(GiveWayError):
    """The check no longer holds the server, and must not change it, because a match may be using it."""


class CheckTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of a check."""

    post_s: float = 10.0
    """Timeout for the first log post. It arrives within a second unless a DNS lookup delays it."""
    asleep_s: float = 3.0
    """Timeout for a log post of a hibernating server, after which the server is woken."""
    start_s: float = 90.0
    """Time within which the console of a server that was started for the check must become available."""
    pause_s: float = 0.5
    """Interval at which a console that is not ready is opened again."""


class CheckDeps(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of server checks."""

    db: Database
    clock: Clock
    consoles: Consoles
    probe: ServerProbe
    urls: IngestUrls
    turns: FoldTurns
    installation: str
    random_bytes: Callable[[int], bytes]
    pending_ms: int
    """How long a match waits for a server in a region that does not set a time of its own."""
    times: CheckTimes = CheckTimes()


class _Listening(msgspec.Struct, kw_only=True):
    """A log address that was added to the server, and what is needed to restore the server."""

    token: str
    url: str
    asleep: answers.CvarValue | None
    """The console variable that enables hibernation; None unless the server hibernates."""
    undo: list[str]
    """The commands that restore the server, in addition to the removal of the log address."""


class ServerCheck:
    """Checks a server. The caller must hold the server."""

    def __init__(
        self,
        deps: CheckDeps,
        check_id: str,
        name: str,
        server: GameServer,
        *,
        is_real_time: bool,
        go_on: Callable[[], Awaitable[None]],
        report: Callable[[ServerReport], Awaitable[None]],
    ) -> None:
        """Create a check that has no findings yet.

        `go_on` raises GiveWayError if a match waits for a server, or if the check no longer holds this server. `report`
        is called with all findings whenever they change.
        """
        self._deps = deps
        self._check_id = check_id
        self._name = name
        self._server = server
        self._is_real_time = is_real_time
        self._may_go_on = go_on
        self._is_held = True
        self._report = report
        self._findings: list[CheckFinding] = []

    async def run(self) -> ServerReport:
        """Check the server. Raise GiveWayError if a match waits for a server, or if the check lost its hold."""
        build: int | None = None
        try:
            async with self._console() as console:
                if console is None:
                    return server_report(self._name, self._findings)
                user = await self._other_user(console)
                if user is not None:
                    return ServerReport(server=self._name, state=CheckState.IN_USE, note=user)
                await self._add(await self._round_trip(console))
                build = await self._ask(console)
                await self._check_log(console)
        except ConsoleFaultError as exc:
            address = _console_address(self._server)
            await self._add(*reading.opening_findings(Opening.NO_CONSOLE, address, is_game_up=None, error=str(exc)))
        except ConsoleError as exc:
            await self._add(reading.lost_console_finding(str(exc)[:MAX_TEXT]))
        return server_report(self._name, self._findings, build=build)

    async def _add(self, *findings: CheckFinding) -> None:
        replaced = {finding.item for finding in findings}
        self._findings = [*(found for found in self._findings if found.item not in replaced), *findings]
        so_far = server_report(self._name, self._findings)
        await self._report(msgspec.structs.replace(so_far, state=CheckState.CHECKING))
        await self._go_on()

    async def _go_on(self) -> None:
        try:
            await self._may_go_on()
        except HoldLostError:
            self._is_held = False
            raise

    # --- the console ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _console(self) -> AsyncIterator[RemoteConsole | None]:
        """Open the console and add the findings. The context is None if the console cannot be used."""
        server = self._server
        console, opening, error = await self._open()
        is_game_up: bool | None = None
        if opening is Opening.NO_ANSWER and await self._deps.probe.accepts(server.rcon_host, server.rcon_port):
            opening = Opening.SILENT
        if console is None and opening is not Opening.WRONG_PASSWORD:
            is_game_up = await self._deps.probe.has_game(server.rcon_host, server.rcon_port)
        try:
            address = _console_address(server)
            await self._add(*reading.opening_findings(opening, address, is_game_up=is_game_up, error=error))
            yield console
        finally:
            if console is not None:
                await console.close()

    async def _open(self) -> tuple[RemoteConsole | None, Opening, str]:
        """Open the console. If the server was just started, wait until it has loaded its map."""
        until_s = time.monotonic() + (self._deps.times.start_s if self._server.is_fresh else 0.0)
        while True:
            console: RemoteConsole | None = None
            try:
                console = await self._deps.consoles.open(
                    self._server.rcon_host, self._server.rcon_port, self._server.rcon_password
                )
                if not self._server.is_fresh or await self._has_map(console):
                    return console, Opening.ACCEPTED, ""
                opening, error = Opening.SILENT, ""
            except ConsoleError as exc:
                opening, error = opening_of(exc), str(exc)
            if console is not None:
                await console.close()
            if time.monotonic() >= until_s or opening in (Opening.WRONG_PASSWORD, Opening.NO_CONSOLE):
                return None, opening, error
            await self._go_on()
            await asyncio.sleep(self._deps.times.pause_s)

    async def _has_map(self, console: RemoteConsole) -> bool:
        found = answers.parse_status_json(await console.run(console_commands.STATUS_JSON))
        return found is not None and bool(found.map)

    async def _other_user(self, console: RemoteConsole) -> str | None:
        """If the server sends its log to another installation, return a sentence that names that installation."""
        listed = await console.run(console_commands.LOG_LISTENERS)
        tokens = log_tokens_in(answers.parse_log_listeners(listed))
        others = [user for user in map(installation_in, tokens) if user not in (None, self._deps.installation)]
        if not others:
            return None
        return (
            f"Installation {others[0]} of Matchpod uses it. If that no longer exists, run "
            f"{console_commands.REMOVE_LOG_LISTENERS} on the server."
        )

    async def _round_trip(self, console: RemoteConsole) -> CheckFinding:
        times_ms = []
        for _ in range(ROUND_TRIPS):
            begun_s = time.perf_counter()
            await console.run(ECHO)
            times_ms.append((time.perf_counter() - begun_s) * 1000)
        return reading.round_trip_finding(times_ms)

    async def _ask(self, console: RemoteConsole) -> int | None:
        """Run the commands in `reading.QUESTIONS`, add the findings, and return the build of the game."""
        texts = await console.run_all(reading.QUESTIONS)
        found = dict(zip(reading.QUESTIONS, texts, strict=True))
        is_public = await self._deps.probe.is_public(self._server.ip)
        await self._add(*await self._deps.turns.call(lambda: reading.console_findings(found, is_public=is_public)))
        return reading.build_of(found[console_commands.STATUS])

    # --- the log --------------------------------------------------------------------------------------------------

    async def _check_log(self, console: RemoteConsole) -> None:
        deps = self._deps
        token = check_token(deps.installation, new_token(deps.random_bytes(TOKEN_RANDOM_BYTES)))
        url = deps.urls.logs(token)
        log_state, status, hibernate = await console.run_all(
            (server_facts.LOG_STATE, console_commands.STATUS, HIBERNATE)
        )
        was_on = server_facts.parse_log_state(log_state)
        asleep = answers.parse_cvar(hibernate, HIBERNATE) if server_facts.parse_hibernation(status) else None
        await deps.db.write([region_checks.expect_post(self._check_id, token, deps.clock.now_ms())])
        listening = _Listening(token=token, url=url, asleep=asleep, undo=["log off"] if was_on is False else [])
        try:
            await self._go_on()
            _, _, listed = await console.run_all(
                (console_commands.LOG_ON, console_commands.log_address_command(url), console_commands.LOG_LISTENERS)
            )
            kept = reading.log_address_finding(url, listed)
            await self._add(kept)
            if kept.verdict is CheckVerdict.OK:
                await self._await_post(console, listening)
        finally:
            await self._clean(console, listening)

    async def _await_post(self, console: RemoteConsole, listening: _Listening) -> None:
        """Wait for a log post. If a hibernating server sends no post, wake the server and wait again."""
        deps, asleep, token = self._deps, listening.asleep, listening.token
        begun_ms = deps.clock.now_ms()
        await console.run(ECHO)  # which the server logs
        may_wake = asleep is not None and not asleep.equals("0")
        post = await self._post(token, deps.times.asleep_s if may_wake else deps.times.post_s)
        was_woken = post is None and may_wake
        if asleep is not None and was_woken:
            await self._go_on()
            listening.undo.append(console_commands.set_command(HIBERNATE, asleep.value))
            await console.run_all((console_commands.set_command(HIBERNATE, "0"), ECHO))
            post = await self._post(token, deps.times.post_s)
        base = deps.urls.base
        if post is None:
            listed = await console.run(console_commands.LOG_LISTENERS)
            pending = server_facts.has_pending_request(listed, listening.url)
            missing = reading.missing_post_finding(
                base,
                waited_s=deps.times.post_s,
                is_pending=pending,
                is_base_local=is_loopback(urlsplit(base).hostname or ""),
                is_server_local=is_loopback(self._server.rcon_host),
            )
            await self._add(missing, reading.clock_finding(None, is_real_time=self._is_real_time))
            return
        seen = LogPost(
            after_ms=max(0, post.received_ms - begun_ms),
            received_ms=post.received_ms,
            source=post.source,
            stamp=post.stamp,
            was_woken=was_woken,
        )
        clock = reading.clock_finding(seen, is_real_time=self._is_real_time)
        await self._add(reading.log_post_finding(seen, base), clock)

    async def _post(self, token: str, within_s: float) -> region_checks.CheckPost | None:
        until_s = time.monotonic() + within_s
        while (post := await region_checks.post_of(self._deps.db, token)) is None and time.monotonic() < until_s:
            await self._go_on()
            await asyncio.sleep(POLL_S)
        return post

    async def _clean(self, console: RemoteConsole, listening: _Listening) -> None:
        """Restore the server. If its console is unavailable, the server drops the log address after its next post."""
        server = self._server
        try:
            async with asyncio.timeout(CLEAN_S):
                try:
                    await self._undo(console, listening)
                except ConsoleLostError:
                    again = await self._deps.consoles.open(server.rcon_host, server.rcon_port, server.rcon_password)
                    try:
                        await self._undo(again, listening)
                    finally:
                        await again.close()
        except (ConsoleError, DatabaseError, TimeoutError) as exc:
            about = {"server": self._name, "error": str(exc) or "timed out"}
            _log.warning("server not restored after its check", extra=about)

    async def _undo(self, console: RemoteConsole, listening: _Listening) -> None:
        remove = console_commands.remove_log_address_command(listening.url)
        _, listed = await console.run_all((remove, console_commands.LOG_LISTENERS), timeout_s=CLEAN_COMMAND_S)
        with suppress(GiveWayError):
            await self._go_on()  # updates `_is_held`
        if not self._is_held:
            return
        if answers.parse_log_listeners(listed) == (listening.url,):  # older builds can only remove all addresses
            await console.run(console_commands.REMOVE_LOG_LISTENERS, timeout_s=CLEAN_COMMAND_S)
        await console.run_all(listening.undo, timeout_s=CLEAN_COMMAND_S)


def _console_address(server: GameServer) -> str:
    host = f"[{server.rcon_host}]" if ":" in server.rcon_host else server.rcon_host
    return f"{host}:{server.rcon_port}"


def opening_of(error: ConsoleError) -> Opening:
    """Return why a console could not be opened."""
    if isinstance(error, ConsoleAuthError):
        return Opening.WRONG_PASSWORD
    if isinstance(error, ConsoleFaultError) or not isinstance(error, ConsoleLostError):
        return Opening.NO_CONSOLE
    cause = error.__cause__
    if isinstance(cause, (socket.gaierror, UnicodeError)):
        return Opening.UNKNOWN_HOST
    if isinstance(cause, TimeoutError):
        return Opening.NO_ANSWER
    # For a host with several addresses, asyncio raises a single error without an errno.
    if isinstance(cause, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(cause):
        return Opening.REFUSED
    if isinstance(cause, OSError) and not isinstance(cause, ConnectionError):
        return Opening.UNREACHABLE
    return Opening.CLOSED
