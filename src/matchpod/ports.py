"""What does Matchpod need of the outside world? Each port is a small promise; adapters keep it, tests bring their own.

Sentences in the docstrings are the contract: one suite of tests runs against every adapter of a port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

Value = str | int | float | bytes | None
"""What a column can hold. Booleans are stored as 0 and 1, times as milliseconds since the epoch."""

Row = tuple[Value, ...]

# --- database -----------------------------------------------------------------------------------------------------


class Statement(msgspec.Struct, frozen=True):
    """One SQL statement with its named parameters (`:name` in the text).

    `must_change`: when it changes (or returns) no row the whole transaction is rolled back with NothingChangedError.
    """

    sql: str
    params: Mapping[str, Value] = {}
    must_change: bool = False


class DatabaseError(Exception):
    """The database did not do what it was asked."""


class DatabaseAwayError(DatabaseError):
    """It cannot be reached, or its disk is full: nothing was changed, try again later."""


class NothingChangedError(DatabaseError):
    """A statement that had to change a row found none: the transaction was rolled back."""


class DuplicateError(DatabaseError):
    """A row with this key is already there: the transaction was rolled back."""


class Database(Protocol):
    """SQL that both SQLite and PostgreSQL understand, with named parameters."""

    @property
    def is_shared(self) -> bool:
        """True when other processes may use the same database at the same time."""

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        """The rows of a query, as of now."""

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        """The one row that an index finds, as of now; for queries so short that a thread would cost more than they."""

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run the statements as one transaction, durably; answers the rows each returned (RETURNING), in order.

        All or nothing. When it returns, the change survives the death of this process and of the machine.
        """

    async def close(self) -> None:
        """Let go of everything; what was written stays."""


# --- fleets -------------------------------------------------------------------------------------------------------


class ServerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The server a match wants. `slot` is one of the fleet's, reserved for this match beforehand."""

    server_id: str
    slot: str
    map_name: str
    game_type: int
    game_mode: int
    rcon_password: str
    players: tuple[str, ...] = ()
    """Who will come: only a simulated server has any use for it."""
    environment: Mapping[str, str] = {}


class GameServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that was allocated: where players connect, and where its console is."""

    ip: str
    port: int
    rcon_host: str
    rcon_port: int
    rcon_password: str
    is_fresh: bool = True
    """False when another match may have been played on it: its map is to be loaded again."""


class FleetError(Exception):
    """A fleet could not do what it was asked; the message says why."""


class Fleet(Protocol):
    """Where the servers of a region come from. Everything is keyed by server id, so everything can be repeated."""

    @property
    def slots(self) -> Sequence[str]:
        """The names of the places for servers, one match each at a time; their number is the capacity."""

    async def allocate(self, order: ServerOrder) -> GameServer:
        """Start (or find) the server of this match; a repeated call finds the same one. FleetError when it fails."""

    async def is_alive(self, server_id: str, slot: str) -> bool:
        """False when the server is known to be gone; True when it runs, or when the fleet cannot tell."""

    async def release(self, server_id: str, slot: str) -> None:
        """End the server; returns when it is gone. Releasing an unknown server succeeds."""

    async def servers(self) -> Sequence[str]:
        """The ids of all matches whose server this fleet runs, for sweeps."""

    async def close(self) -> None:
        """Let go of the fleet; its servers go on."""


# --- remote consoles ----------------------------------------------------------------------------------------------


class ConsoleError(Exception):
    """A console did not answer."""


class ConsoleLostError(ConsoleError):
    """The connection is gone or was never made, or no answer came in time: open another one."""


class ConsoleRefusedError(ConsoleError):
    """The password is wrong, or we are banned: trying again does not help."""


class RemoteConsole(Protocol):
    """One authenticated connection to a server's console."""

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        """Run one command and return its whole answer. ConsoleLostError when none came; then it is closed."""

    async def close(self) -> None:
        """Close the connection; closing twice changes nothing."""


class Consoles(Protocol):
    """Opens consoles."""

    async def open(self, host: str, port: int, password: str) -> RemoteConsole:
        """Connect and authenticate. ConsoleLostError or ConsoleRefusedError when that fails."""


# --- callbacks ----------------------------------------------------------------------------------------------------


class CallbackRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One POST to a caller."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt; `status` None when there was no answer, `error` says why in a few words."""

    status: int | None = None
    duration_ms: int = 0
    error: str | None = None

    @property
    def is_done(self) -> bool:
        """True for an answer in the 200s."""
        return self.status is not None and 200 <= self.status < 300


class CallbackSender(Protocol):
    """Sends callbacks."""

    async def send(self, request: CallbackRequest) -> Delivery:
        """Make one attempt, 10 s in all whatever the receiver does; never raises, never follows a redirect."""

    async def close(self) -> None:
        """Close what is open."""


# --- the rest -----------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Time as one process sees it: wall time at its start plus the monotonic clock, so it never jumps."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""


class Vault(Protocol):
    """Keeps secrets unreadable at rest."""

    def seal(self, secret: str) -> bytes:
        """The secret as bytes that only this key opens; twice the same secret gives different bytes."""

    def open(self, sealed: bytes) -> str:
        """The secret. ValueError when the key is another one or the bytes were changed."""
