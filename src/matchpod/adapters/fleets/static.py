"""Provide game servers from a fixed list of running servers. Each serves one match at a time, and is then cleaned up.

This fleet does not start or stop servers. Several processes may share the list: the service stores in its table of
slots which match uses which server. The list may be replaced. A server that was removed from it gets no other match,
and is forgotten after the release of its match.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from cs2_protocol.console_answers import parse_log_listeners, parse_status
from cs2_protocol.console_commands import LOG_LISTENERS, REMOVE_LOG_LISTENERS, STATUS, end_match_command, kick_command
from matchpod import ports
from matchpod.adapters.fleets.fixed_slots import FixedSlots
from matchpod.adapters.rcon_client import probe_port
from matchpod.core.servers.log_addresses import installation_in, log_tokens_in
from matchpod.core.servers.server_loss import FleetReport
from matchpod.cs2.match_commands import reset_commands

CLEAN_TRIES = 3
"""Maximum number of attempts to clean up a server. While it loads a map, it accepts connections but does not answer."""

CLEAN_PAUSE_S = 2.0
"""Delay in seconds between two attempts to clean up a server."""

CLEAN_S = 30.0
"""Timeout in seconds for one attempt to clean up a server, so that a server with many players and slow answers does not
block its slot for hours."""

FAREWELL = "The match is over"
"""The kick reason for players who are still on the server when it is cleaned up."""

_log = logging.getLogger(__name__)


class StaticServer(msgspec.Struct, frozen=True):
    """A running server. `address` is an IP address or host name with a port; players and the console connect to it."""

    address: str
    rcon_password: str

    def __repr__(self) -> str:
        """Omit the password, because the text may be logged."""
        return f"StaticServer({self.address!r})"


class StaticFleet(FixedSlots):
    """Provides the servers of a list. Each server is one slot."""

    def __init__(
        self,
        servers: Sequence[StaticServer],
        consoles: ports.Consoles,
        *,
        owner: str = "",
        clean_pause_s: float = CLEAN_PAUSE_S,
        clean_s: float = CLEAN_S,
    ) -> None:
        """`owner` is the id of this installation."""
        self._servers = _by_address(servers)
        self._leaving: dict[str, _Login] = {}
        """Servers that are no longer listed but may still have a match."""
        self._on_change = _ignore_change
        self._consoles = consoles
        self._owner = owner
        self._clean_pause_s = clean_pause_s
        self._clean_s = clean_s

    @property
    def slots(self) -> Sequence[str]:
        """The addresses of the servers."""
        return tuple(self._servers)

    def replace_servers(self, servers: Sequence[StaticServer]) -> None:
        """Replace the list. Matches on servers that are not in the new list continue."""
        listed = _by_address(servers)
        known = {**self._leaving, **self._servers}
        self._leaving = {address: login for address, login in known.items() if address not in listed}
        self._servers = listed
        self._on_change()

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Until cancelled, call `on_change` whenever the list is replaced."""
        self._on_change = on_change
        try:
            await super().follow(on_change)
        finally:
            self._on_change = _ignore_change

    @property
    def keeps_servers(self) -> bool:
        return True

    def waiting_server(self, slot: str) -> ports.GameServer | None:
        login = self._login(slot)
        if login is None:
            return None
        host, port, password = login
        return ports.GameServer(
            ip=host, port=port, rcon_host=host, rcon_port=port, rcon_password=password, is_fresh=False
        )

    async def allocate(self, order: ports.ServerOrder) -> ports.GameServer:
        """Return the server of this slot; raise SlotInUseError if another installation or another match uses it.

        Another match may use it under another slot if the list has the server twice, for example by host name and by
        IP.
        """
        server = self.waiting_server(order.slot)
        if server is None:
            raise ports.FleetError(f"this fleet has no server {order.slot}")
        try:
            address = await _resolve(server.ip, server.port)
            console = await self._consoles.open(server.rcon_host, server.rcon_port, server.rcon_password)
            try:
                tokens = await _log_tokens(console.run)
            finally:
                await console.close()
        except ports.ConsoleError as exc:
            raise ports.FleetError(f"the server is not ready: {exc}") from exc
        others = [user for user in map(installation_in, tokens) if user not in (None, self._owner)]
        if others:
            raise ports.SlotInUseError(
                f"the server {order.slot} is used by installation {others[0]} of Matchpod; if that installation no"
                f" longer exists, run {REMOVE_LOG_LISTENERS} on the server"
            )
        for token in tokens:
            if await order.is_of_other_match(token):
                raise ports.SlotInUseError.by_other_match(order.slot)
        return msgspec.structs.replace(server, ip=address)

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        """Return GONE if the server was in none of the lists that this process has read, otherwise UNKNOWN.

        The server's process cannot be observed, and a server that accepts no connections may be restarting.
        """
        return FleetReport.GONE if self._login(slot) is None else FleetReport.UNKNOWN

    async def release(self, server_id: str, slot: str, lease: ports.ServerLease | None = None) -> None:
        """End the match on the server and kick all players.

        The server is left unchanged if it does not answer, or if another match already uses it (this process may have
        been frozen for a while).
        """
        if (login := self._login(slot)) is None:
            return
        for attempt in range(CLEAN_TRIES):
            if attempt:
                await asyncio.sleep(self._clean_pause_s)
            try:
                async with asyncio.timeout(self._clean_s):
                    await self._clean(slot, login, lease)
                break
            except (ports.ConsoleLostError, TimeoutError):
                if await probe_port(*login[:2]) is False:
                    break
            except ports.ConsoleFaultError as exc:
                _log.warning("server not cleaned up: console fault", extra={"slot": slot, "error": str(exc)})
                break
            except ports.ConsoleError:
                break
        else:
            _log.warning("server not cleaned up: console does not answer", extra={"slot": slot})
        self._leaving.pop(slot, None)

    async def servers(self) -> Sequence[ports.ListedServer]:
        """Return no servers, because listed servers keep running between matches, so a sweep has nothing to release."""
        return ()

    async def close(self) -> None:
        """Do nothing: the servers keep running."""

    def _login(self, slot: str) -> _Login | None:
        return self._servers.get(slot) or self._leaving.get(slot)

    async def _clean(self, slot: str, login: _Login, lease: ports.ServerLease | None) -> None:
        check = _check_nothing if lease is None else lease.check
        check()
        console = await self._consoles.open(*login)

        async def run(command: str) -> str:
            check()
            return await console.run(command)

        try:
            others = [token for token in await _log_tokens(run) if lease is None or not lease.owns_log(token)]
            if others:
                about = {"slot": slot, "owner": installation_in(others[0])}
                _log.warning("server not cleaned up: another match uses it", extra=about)
                return
            await run(end_match_command())
            await _kick_all(run)
            for command in reset_commands():
                await run(command)
        finally:
            await console.close()


_Login = tuple[str, int, str]
"""Host, port and RCON password of a server's console."""

_Run = Callable[[str], Awaitable[str]]
"""Runs a console command and returns its answer."""


def _ignore_change() -> None:
    """Do nothing, because `follow` is not running."""


def _check_nothing() -> None:
    """Do nothing, because there is no lease to check."""


async def _log_tokens(run: _Run) -> tuple[str, ...]:
    """Return the tokens in the URLs to which a server sends its log."""
    return log_tokens_in(parse_log_listeners(await run(LOG_LISTENERS)))


async def _kick_all(run: _Run) -> None:
    for player in parse_status(await run(STATUS)):
        if not player.is_bot:
            await run(kick_command(player.user_id, FAREWELL))


def _by_address(servers: Sequence[StaticServer]) -> dict[str, _Login]:
    return {server.address: (*_split(server.address), server.rcon_password) for server in servers}


async def _resolve(host: str, port: int) -> str:
    """Return an IP address of a host, preferably IPv4; raise ConsoleLostError if the name cannot be resolved."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise ports.ConsoleLostError(f"the host name {host} cannot be resolved: {exc}") from exc
    addresses = sorted(found, key=lambda entry: entry[0] is not socket.AF_INET)
    return str(addresses[0][4][0])


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise ValueError(f"`{address}` is not an address with a port")
    return host.removeprefix("[").removesuffix("]"), int(port)
