"""Define the ports through which Matchpod uses databases, game servers, callback receivers, the clock and the vault.

The docstrings are the contract: one test suite runs against every adapter of a port.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Protocol

import msgspec

from matchpod.core.servers.server_loss import FleetReport

Value = str | int | float | bytes | None
"""A column value. Booleans are stored as 0 and 1, times as milliseconds since the epoch."""

Row = tuple[Value, ...]

Parameter = Value | Sequence[str] | Sequence[int] | Sequence[bytes]
"""A parameter of a statement; lists only with PostgreSQL."""

# --- database -----------------------------------------------------------------------------------------------------


class Statement(msgspec.Struct, frozen=True):
    """One SQL statement with its named parameters (`:name` in the text).

    `must_change`: how many rows it must change (or return), True for one: if there are fewer, the whole transaction is
    rolled back with NothingChangedError.
    `is_long`: its transaction may take as long as it needs, such as a migration of a large table.
    `is_urgent`: with PostgreSQL, its transaction does not wait for others of this process, and soon times out.
    """

    sql: str
    params: Mapping[str, Parameter] = {}
    must_change: int = False
    is_long: bool = False
    is_urgent: bool = False


class DatabaseError(Exception):
    """A database operation failed."""


class DatabaseUnavailableError(DatabaseError):
    """The database cannot be reached, or its disk is full: retry later. An interrupted COMMIT may have succeeded."""


class RowLockedError(DatabaseUnavailableError):
    """Another transaction keeps a row locked for too long: what needs other rows may succeed."""


class NothingChangedError(DatabaseError):
    """A `must_change` statement changed too few rows: the transaction was rolled back."""


class DuplicateError(DatabaseError):
    """A row with this key already exists: the transaction was rolled back."""


class Database(Protocol):
    """Runs SQL that both SQLite and PostgreSQL understand, with named parameters."""

    @property
    def is_shared(self) -> bool:
        """True if other processes may use the same database at the same time."""

    @property
    def is_postgres(self) -> bool:
        """True if statements may use what only PostgreSQL has, where that saves round trips or needs its clock."""

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        """Return the current rows of a query."""

    async def read_one(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        """Return the first row of an indexed query, or None; for queries cheaper than switching to a thread."""

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run the statements as one durable transaction; return the rows of each (RETURNING), in order.

        All or nothing. Once it has returned, the change survives a crash of this process or the machine.
        """

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        """Call `on_announced` with what other processes announce on a channel, until cancelled. Never fail.

        Announcements may be missed. A database without any waits until it is cancelled.
        """

    async def close(self) -> None:
        """Close all connections; committed writes are kept."""


# --- fleets -------------------------------------------------------------------------------------------------------


async def _is_of_no_match(token: str) -> bool:
    """Say that no other match has this token: the caller knows none."""
    return False


class ServerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The server a match needs. `slot` is one of the fleet's slots, already reserved for this match, if it has any."""

    server_id: str
    slot: str
    is_repeated: bool = False
    """An earlier attempt may have allocated a server for this match: find it before allocating another one."""
    map_name: str
    game_type: int
    game_mode: int
    rcon_password: str
    players: tuple[str, ...] = ()
    """The expected players; only simulated servers use them."""
    environment: Mapping[str, str] = {}
    is_of_other_match: Callable[[str], Awaitable[bool]] = _is_of_no_match
    """True for the log token of another open match of this installation."""


class GameServer(msgspec.Struct, frozen=True, kw_only=True):
    """An allocated server: where players connect, and where its console is."""

    ip: str
    port: int
    rcon_host: str
    rcon_port: int
    rcon_password: str
    is_fresh: bool = True
    """False if another match may have been played on it: its map must be reloaded."""
    tv_port: int | None = None
    """The port of GOTV, if the fleet knows it."""
    slot: str | None = None
    """In a fleet without slots: what it needs to know to find this server again, such as its name."""


class Capacity(msgspec.Struct, frozen=True):
    """Servers of a fleet: how many are ready for a match, allocated to one, and exist in total."""

    ready: int
    allocated: int
    total: int


class ListedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A running server of a fleet, as a sweep needs to know it."""

    server_id: str
    is_own: bool | None
    """Whether this installation started it; None if its start recorded no installation, as in early versions."""
    owner: str = ""
    """The id of the installation that started it, as far as it is known."""
    age_s: float
    """Seconds since it was started for its match."""


class FleetError(Exception):
    """A fleet operation failed; the message says why. An OSError is its cause (`raise … from`), if there was one."""


class FleetUnavailableError(FleetError):
    """The fleet cannot be reached or used at present: wait and retry, whichever match asks."""


class SlotInUseError(FleetError):
    """Another installation or match uses the server of this slot: try the others, and wait if none is free."""

    @classmethod
    def by_other_match(cls, slot: str) -> SlotInUseError:
        """The error for a server that is listed twice, of which another match has one slot."""
        return cls(f"the server {slot} is used by another match; list it once only, under one address")


class ServerLease(Protocol):
    """The right to release the server of a match, which may be lost meanwhile."""

    def check(self) -> None:
        """Call right before each effect on the server: raises if another process may have released it by now."""

    def owns_log(self, token: str) -> bool:
        """True if the match sends its log with this token."""


class Fleet(Protocol):
    """Provides the servers of a region. All operations are keyed by server id, so they can be retried.

    A fleet either has slots, which the service reserves, or decides itself which match gets a server.
    """

    @property
    def slots(self) -> Sequence[str] | None:
        """Names of the slots, each for one match at a time; None if the fleet decides itself."""

    @property
    def keeps_servers(self) -> bool:
        """True if a released server goes on running, and gets the next match of its slot."""

    @property
    def fault(self) -> str | None:
        """Why the fleet cannot be used at present, in one sentence; None if it can. Read from memory."""

    async def check(self) -> Sequence[str]:
        """Return what is wrong with its settings, one sentence each: the service does not start with them.

        What may heal by itself, such as a cluster that cannot be reached, becomes `fault` instead.
        """

    async def probe(self) -> str | None:
        """Try to log in to a waiting server, and return what is wrong; None if nothing is, or if that is unknown."""

    def waiting_server(self, slot: str) -> GameServer | None:
        """The running server of a slot, whether or not it is free; None if a server must be allocated first."""

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Follow the servers until cancelled; call `on_change` if one became ready or `fault` changed. Never fail."""

    async def capacity(self) -> Capacity | None:
        """Count the servers; None if the slots say everything. Raise FleetError if the number is unknown."""

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        """Start or find the server of this match; a repeated call finds the same one. Raise FleetError on failure.

        If no server is free, a fleet without slots returns None. A fleet with slots raises SlotInUseError if that of
        the order is not free, and leaves its server unchanged.
        """

    async def wait_gone(self, server_id: str, slot: str) -> str:
        """Wait until the server is known to be gone, and return why, within 2 s if the fleet sees its servers.

        A fleet that does not see them waits until it is cancelled.
        """

    def holds(self, server_id: str) -> bool:
        """True if a fleet without slots knows of a server that is allocated to a match."""

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        """Report whether the process or pod of a server exists. GONE is final: its match ends at once.

        A server that does not answer, or refuses connections, is UNKNOWN to a fleet that cannot see its process.
        """

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        """Stop the server and wait until it is gone, or clean up a static one. Releasing an unknown server succeeds.

        The error of a lost lease is passed on. If a sweep releases a server without a match, there is no lease, and
        `slot` is empty: find it by its id.
        """

    async def servers(self) -> Sequence[ListedServer]:
        """Return all servers that were started for matches and still run, also of other installations, for sweeps."""

    async def close(self) -> None:
        """Close the fleet; its servers keep running."""


# --- remote consoles ----------------------------------------------------------------------------------------------


class ConsoleError(Exception):
    """A console could not be opened, or did not answer. An OSError is its cause (`raise … from`), if there was one."""


class ConsoleLostError(ConsoleError):
    """The connection failed, was lost or timed out: open another one."""


class ConsoleAuthError(ConsoleError):
    """The password is wrong, or this address is banned: retrying does not help."""


class ConsoleFaultError(ConsoleError):
    """The server sent invalid data, or more than it may: its own fault, and retrying does not help."""


class RemoteConsole(Protocol):
    """One authenticated connection to a server's console."""

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        """Run one command and return its whole answer; close and raise ConsoleLostError if none arrives.

        Raise ConsoleFaultError if the answer is longer than the command may have, or the server sends too much.
        """

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 10.0) -> list[str]:
        """Run commands in order without waiting for each answer, and return the answers; errors as of `run`."""

    async def close(self) -> None:
        """Close the connection; closing twice has no effect."""


class Consoles(Protocol):
    """Opens consoles."""

    async def open(self, host: str, port: int, password: str) -> RemoteConsole:
        """Connect and authenticate. Raise ConsoleLostError, ConsoleAuthError or ConsoleFaultError on failure."""


class ServerProbe(Protocol):
    """Looks at a machine from outside, without a password."""

    async def accepts(self, host: str, port: int) -> bool | None:
        """True if a port accepts connections, False if it refuses them, None if nothing answers."""

    async def has_game(self, host: str, port: int) -> bool:
        """True if a game answers a query over UDP."""

    async def is_public(self, host: str) -> bool:
        """True if the host has a public address; also False if its name cannot be resolved."""


# --- callbacks ----------------------------------------------------------------------------------------------------


class CallbackRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One POST to a caller's receiver."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    org_id: str = ""
    """The organization whose callback it is: what hangs for one must not delay the others."""
    allow_private: bool = False
    """True if the receiver may have an address that is not public."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an attempt. Without an answer `status` is None, and `error` says why."""

    status: int | None = None
    duration_ms: int = 0
    error: str | None = None

    @property
    def is_success(self) -> bool:
        """True for a 2xx status."""
        return self.status is not None and 200 <= self.status < 300


class CallbackSender(Protocol):
    """Sends callbacks."""

    @property
    def capacity(self) -> int:
        """How many attempts it can make at a time."""

    async def send(self, request: CallbackRequest) -> Delivery:
        """Make one attempt, which takes at most 10 s in total; never raise, never follow a redirect."""

    async def close(self) -> None:
        """Abort all attempts in progress."""


class SecretTrials(Protocol):
    """Limits how many servers of a fleet are tried with a secret that none has accepted lately; for all processes.

    `secret` is a fingerprint. A DatabaseError passes through.
    """

    async def begin(self, secret: str, places: int) -> str | None:
        """Begin the trial of one more server and return its id; None if as many are being tried or have rejected it."""

    async def reject(self, secret: str, trial: str) -> None:
        """End a trial whose server rejected the secret: it counts until a server accepts the secret."""

    async def accept(self, secret: str, trial: str | None) -> None:
        """Note that a server accepted the secret; those that rejected it before count no longer."""

    async def drop(self, secret: str, trial: str) -> None:
        """End a trial that said nothing."""

    async def rejected(self, secret: str) -> int:
        """Return how many servers have rejected the secret since the last one accepted it."""


# --- demos --------------------------------------------------------------------------------------------------------


class StorageError(Exception):
    """The storage of demos could not be reached, or failed; the message says why."""


class StorageFullError(StorageError):
    """The storage has no space left."""


class DemoWriter(Protocol):
    """One file that is being written. Exactly one of `commit`, `keep_cut` and `discard` ends it.

    No method holds more of the file in memory than the part that it was given.
    """

    async def write(self, part: bytes) -> None:
        """Append a part. Raise StorageFullError or StorageError."""

    async def commit(self) -> None:
        """Make the file available under its key; once this returns, it survives a crash. Raise as `write`."""

    async def keep_cut(self) -> bool:
        """Keep what was written, apart from whole files; False if it was not kept. Never raise."""

    async def discard(self) -> None:
        """Delete what was written. Never raise."""


class DemoStorage(Protocol):
    """Stores the files of demos by key: letters, digits, `-`, `_`, `.` and `/`."""

    @property
    def is_shared(self) -> bool:
        """True if several processes on different machines may use it."""

    async def check(self) -> str | None:
        """Return what is wrong with the settings, in one sentence; None if nothing is, or if that is unknown."""

    async def create(self, key: str) -> DemoWriter:
        """Begin a file. Raise StorageFullError or StorageError."""

    def read(self, key: str, start: int, size: int) -> AsyncIterator[bytes] | None:
        """Return a part of a file, in pieces; None if callers read it at its `link`. Raise StorageError while reading.

        FileNotFoundError at the first piece if there is no such file.
        """

    async def link(self, key: str, *, file_name: str, expires_s: int) -> str | None:
        """Return a URL at which anyone can download a file for a while; None if callers have to `read` it.

        Raise StorageError.
        """

    async def delete(self, key: str) -> None:
        """Delete a file, whole or cut; deleting one that does not exist succeeds. Raise StorageError."""

    async def clean_up(self, before_ms: int) -> int:
        """Delete what uploads left behind that began before then and never ended; return how many. Raise StorageError.

        Files that were kept as cut are not among them.
        """

    async def free_bytes(self) -> int | None:
        """Return how much may still be written; None if that is not limited, or unknown."""

    async def close(self) -> None:
        """Close all connections."""


# --- traces -------------------------------------------------------------------------------------------------------


class SpanKind(Enum):
    """How a span relates to others; the values are those of OpenTelemetry."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A step in the life of a match, for OpenTelemetry; ids are hexadecimal digits."""

    name: str
    kind: SpanKind = SpanKind.INTERNAL
    trace_id: str
    span_id: str
    parent_id: str | None
    start_ms: int
    end_ms: int
    attributes: Mapping[str, str | int]
    error: str | None = None
    """What went wrong; None if nothing did."""


# --- the rest -----------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """The time of one process: wall time at its start plus the monotonic clock, so it never jumps."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since the epoch."""


class Vault(Protocol):
    """Encrypts secrets at rest."""

    def seal(self, secret: str) -> bytes:
        """Encrypt a secret; sealing the same secret twice gives different bytes."""

    def open(self, sealed: bytes) -> str:
        """Decrypt a secret. Raise ValueError if the key differs or the bytes were changed."""

    def reseal(self, sealed: bytes) -> bytes | None:
        """Encrypt a secret again with the first key; None if it was. Raise ValueError if no key opens it."""
