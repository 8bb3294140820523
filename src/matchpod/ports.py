"""Define the ports through which Matchpod uses databases, game servers, callback receivers, the clock and the vault.

The docstrings are the contract. One test suite per port runs against all its adapters.
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
"""A parameter of a statement. Lists are allowed with PostgreSQL only."""

# --- database -----------------------------------------------------------------------------------------------------


class Statement(msgspec.Struct, frozen=True):
    """One SQL statement with its named parameters (`:name` in the text).

    `must_change`: the minimum number of rows that the statement must change or return; True means 1. With fewer rows,
    the transaction is rolled back, and NothingChangedError is raised.
    `is_long`: the transaction has no time limit, for example to migrate a large table.
    `is_urgent`: with PostgreSQL, the transaction does not wait for other transactions of this process, and its timeout
    is short.
    """

    sql: str
    params: Mapping[str, Parameter] = {}
    must_change: int = False
    is_long: bool = False
    is_urgent: bool = False


class DatabaseError(Exception):
    """A database operation failed."""


class DatabaseUnavailableError(DatabaseError):
    """The database is unavailable, or its disk is full. Retry later. An interrupted COMMIT may have succeeded."""


class RowLockedError(DatabaseUnavailableError):
    """Another transaction has kept a row locked for too long. Statements that need other rows may succeed."""


class NothingChangedError(DatabaseError):
    """A `must_change` statement changed too few rows, so the transaction was rolled back."""


class DuplicateError(DatabaseError):
    """A row with this key already exists, so the transaction was rolled back."""


class Database(Protocol):
    """Runs SQL that both SQLite and PostgreSQL understand, with named parameters."""

    @property
    def is_shared(self) -> bool:
        """True if other processes may use the same database at the same time."""

    @property
    def is_postgres(self) -> bool:
        """True if statements may use features of PostgreSQL, which save round trips or use the database's clock."""

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        """Return the current rows of a query."""

    async def read_one(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        """Return the first row of an indexed query, or None. For queries that are cheaper than a switch to a thread."""

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run the statements as one durable transaction; return the rows of each statement (RETURNING), in order.

        Either all statements take effect, or none. After the return, the changes survive a crash of this process or the
        machine.
        """

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        """Call `on_announced` with the payload of each notification on a channel, until cancelled. Never fail.

        Other processes send the notifications, some of which may be missed. A database without notifications just
        waits until it is cancelled.
        """

    async def close(self) -> None:
        """Close all connections; committed writes are kept."""


# --- fleets -------------------------------------------------------------------------------------------------------


async def _is_of_no_match(token: str) -> bool:
    """The default of `is_of_other_match`, for callers that do not know the tokens of other matches."""
    return False


class ServerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The requirements of a match for its server. `slot` is already reserved for the match; empty without slots."""

    server_id: str
    slot: str
    is_repeated: bool = False
    """True if an earlier attempt may have allocated a server for this match. Find that server before allocating one."""
    map_name: str
    game_type: int
    game_mode: int
    rcon_password: str
    players: tuple[str, ...] = ()
    """The expected players, which only simulated servers use."""
    environment: Mapping[str, str] = {}
    is_of_other_match: Callable[[str], Awaitable[bool]] = _is_of_no_match
    """Returns True for the log token of another open match of this installation."""


class GameServer(msgspec.Struct, frozen=True, kw_only=True):
    """An allocated server: the address for players, and the address and password of its console."""

    ip: str
    port: int
    rcon_host: str
    rcon_port: int
    rcon_password: str
    is_fresh: bool = True
    """False if another match may have been played on the server, so that its map must be reloaded."""
    tv_port: int | None = None
    """The GOTV port, if the fleet knows it."""
    slot: str | None = None
    """In a fleet without slots, the key with which the fleet finds this server again, such as its name."""


class Capacity(msgspec.Struct, frozen=True):
    """Numbers of servers in a fleet: ready for a match, allocated to a match, and in total."""

    ready: int
    allocated: int
    total: int


class ListedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A running server of a fleet, in the list for sweeps."""

    server_id: str
    is_own: bool | None
    """Whether this installation started the server; None if early versions started it without recording this."""
    owner: str = ""
    """The id of the installation that started the server; empty if unknown."""
    age_s: float
    """Seconds since the server was started for its match."""


class FleetError(Exception):
    """A fleet operation failed; the message says why. If an OSError caused it, that is its `__cause__`."""


class FleetUnavailableError(FleetError):
    """The fleet is unavailable for all matches. Wait and retry."""


class SlotInUseError(FleetError):
    """Another installation or match uses the server of this slot. Try the other slots, and wait if none is free."""

    @classmethod
    def by_other_match(cls, slot: str) -> SlotInUseError:
        """Return the error for a server that is listed twice, and that another match uses in its other slot."""
        return cls(f"the server {slot} is used by another match; list it once only, under one address")


class ServerLease(Protocol):
    """The right to release the server of a match. The right may be lost meanwhile."""

    def check(self) -> None:
        """Raise if another process may have released the server by now. Call right before each effect on the server."""

    def owns_log(self, token: str) -> bool:
        """True if the match sends its log with this token."""


class Fleet(Protocol):
    """Provides the servers of a region. All operations are keyed by server id, so they can be retried.

    A fleet either has slots, which the service reserves, or chooses a server for each match itself.
    """

    @property
    def slots(self) -> Sequence[str] | None:
        """Names of the slots, each for one match at a time; None for a fleet without slots."""

    @property
    def keeps_servers(self) -> bool:
        """True if a released server continues to run, and gets the next match of its slot."""

    @property
    def fault(self) -> str | None:
        """Why the fleet is unavailable, in one sentence; None if it is available. Read from memory."""

    async def check(self) -> Sequence[str]:
        """Return the faults in its settings, one sentence each. The service does not start with such settings.

        Conditions that may be temporary, such as an unreachable cluster, are reported by `fault` instead.
        """

    async def probe(self) -> str | None:
        """Try to log in to a waiting server, and return the fault; None if there is none, or if it is unknown."""

    def waiting_server(self, slot: str) -> GameServer | None:
        """Return the running server of a slot, free or not; None if a server must be allocated first."""

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Watch the servers until cancelled. Call `on_change` when a server is ready or `fault` changes. Never fail."""

    async def capacity(self) -> Capacity | None:
        """Count the servers; None if the slots show the capacity. Raise FleetError if the number is unknown."""

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        """Start or find the server of this match. A repeated call finds the same server. Raise FleetError on failure.

        If no server is free, a fleet without slots returns None. A fleet with slots raises SlotInUseError if the slot
        of the order is not free, and leaves the slot's server unchanged.
        """

    async def wait_gone(self, server_id: str, slot: str) -> str:
        """Wait until the server is known to be gone, and return the reason, within 2 s after the server is gone.

        A fleet that cannot observe its servers waits until it is cancelled.
        """

    def holds(self, server_id: str) -> bool:
        """True if a fleet without slots knows that this server is allocated to a match."""

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        """Report whether the process or pod of a server exists. GONE is final, and ends its match at once.

        A fleet that cannot observe the process of a server returns UNKNOWN, even if the server does not answer or
        refuses connections.
        """

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        """Stop the server and wait until it is gone, or clean up a static server. Releasing an unknown server succeeds.

        The error of a lost lease is passed on. When a sweep releases a server without a match, there is no lease, and
        `slot` is empty, so the server has to be found by its id.
        """

    async def servers(self) -> Sequence[ListedServer]:
        """Return all running servers that were started for matches, including other installations', for sweeps."""

    async def close(self) -> None:
        """Close the fleet; its servers keep running."""


# --- remote consoles ----------------------------------------------------------------------------------------------


class ConsoleError(Exception):
    """A console could not be opened, or did not answer. If an OSError caused it, that is its `__cause__`."""


class ConsoleLostError(ConsoleError):
    """The connection failed, was lost or timed out. Open another connection."""


class ConsoleAuthError(ConsoleError):
    """The password is wrong, or this address is banned. Retrying does not help."""


class ConsoleFaultError(ConsoleError):
    """The server sent invalid data or too much data. Retrying does not help."""


class RemoteConsole(Protocol):
    """One authenticated connection to a server's console."""

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        """Run one command and return its whole answer; close and raise ConsoleLostError if no answer arrives.

        Raise ConsoleFaultError if the answer exceeds the limit of the command, or if the server sends too much.
        """

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 10.0) -> list[str]:
        """Run commands in order without waiting for each answer, and return the answers. Raise the errors of `run`."""

    async def close(self) -> None:
        """Close the connection; closing twice has no effect."""


class Consoles(Protocol):
    """Opens consoles."""

    async def open(self, host: str, port: int, password: str) -> RemoteConsole:
        """Connect and authenticate. Raise ConsoleLostError, ConsoleAuthError or ConsoleFaultError on failure."""


class ServerProbe(Protocol):
    """Probes a machine over the network, without a password."""

    async def accepts(self, host: str, port: int) -> bool | None:
        """True if a port accepts connections, False if it refuses connections, None if there is no answer."""

    async def has_game(self, host: str, port: int) -> bool:
        """True if a game server answers a query over UDP."""

    async def is_public(self, host: str) -> bool:
        """True if the host has a public address; False if not, or if its name cannot be resolved."""


# --- callbacks ----------------------------------------------------------------------------------------------------


class CallbackRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One POST to a caller's receiver."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    org_id: str = ""
    """The organization of the callback. A receiver that hangs must not delay other organizations."""
    allow_private: bool = False
    """True if the receiver may have a private address."""


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
        """Maximum number of concurrent attempts."""

    async def send(self, request: CallbackRequest) -> Delivery:
        """Make one attempt, which takes at most 10 s in total; never raise, never follow a redirect."""

    async def close(self) -> None:
        """Abort all attempts in progress."""


class SecretTrials(Protocol):
    """Limits the number of servers that get a fleet's secret before one of them has accepted it, over all processes.

    A trial is one attempt to use the secret on a server. `secret` is its fingerprint. A DatabaseError is passed on.
    """

    async def begin(self, secret: str, places: int) -> str | None:
        """Begin a trial and return its id; None if `places` servers are being tried or have rejected the secret."""

    async def reject(self, secret: str, trial: str) -> None:
        """End a trial whose server rejected the secret.

        The rejection counts toward the limit of `begin` until a server accepts the secret.
        """

    async def accept(self, secret: str, trial: str | None) -> None:
        """Record that a server accepted the secret. Earlier rejections no longer count."""

    async def drop(self, secret: str, trial: str) -> None:
        """End a trial without a result."""

    async def rejected(self, secret: str) -> int:
        """Return the number of servers that have rejected the secret since a server last accepted it."""


# --- demos --------------------------------------------------------------------------------------------------------


class StorageError(Exception):
    """The demo storage is unavailable or failed; the message says why."""


class StorageFullError(StorageError):
    """The storage has no space left."""


class DemoWriter(Protocol):
    """Writes one file. Exactly one of `commit`, `keep_cut` and `discard` ends the writing.

    No method holds more of the file in memory than the part that is passed to it.
    """

    async def write(self, part: bytes) -> None:
        """Append a part. Raise StorageFullError or StorageError on failure."""

    async def commit(self) -> None:
        """Make the file available under its key. After the return it survives a crash. Raise the errors of `write`."""

    async def keep_cut(self) -> bool:
        """Keep the incomplete file, separate from complete files; False if it could not be kept. Never raise."""

    async def discard(self) -> None:
        """Delete the incomplete file. Never raise."""


class DemoStorage(Protocol):
    """Stores demo files by key. A key has letters, digits, `-`, `_`, `.` and `/`."""

    @property
    def is_shared(self) -> bool:
        """True if several processes on different machines may use it."""

    async def check(self) -> str | None:
        """Return the fault in the settings, in one sentence; None if there is none, or if it is unknown."""

    async def create(self, key: str) -> DemoWriter:
        """Begin a file. Raise StorageFullError or StorageError on failure."""

    def read(self, key: str, start: int, size: int) -> AsyncIterator[bytes] | None:
        """Return a part of a file, in pieces; None if callers have to download it from its `link`.

        Reading the pieces may raise StorageError. The first piece raises FileNotFoundError if there is no such file.
        """

    async def link(self, key: str, *, file_name: str, expires_s: int) -> str | None:
        """Return a temporary public URL of a file; None if callers have to `read` it. Raise StorageError on failure."""

    async def delete(self, key: str) -> None:
        """Delete a complete or incomplete file. Deleting an unknown file succeeds. Raise StorageError on failure."""

    async def clean_up(self, before_ms: int) -> int:
        """Delete leftovers of uploads that began before this time and never ended; return their number.

        Incomplete files that `keep_cut` kept are not deleted. Raise StorageError on failure.
        """

    async def free_bytes(self) -> int | None:
        """Return the free space; None if it is unlimited or unknown."""

    async def close(self) -> None:
        """Close all connections."""


# --- traces -------------------------------------------------------------------------------------------------------


class SpanKind(Enum):
    """The kind of a span, with the values of OpenTelemetry."""

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
    """The error; None if the step succeeded."""


# --- the rest -----------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """The clock of one process. It adds the monotonic clock to the wall time at the start, so it never jumps."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since the epoch."""


class Vault(Protocol):
    """Encrypts secrets at rest."""

    def seal(self, secret: str) -> bytes:
        """Encrypt a secret. Sealing the same secret twice returns different bytes."""

    def open(self, sealed: bytes) -> str:
        """Decrypt a secret. Raise ValueError if the key differs or the bytes were changed."""

    def reseal(self, sealed: bytes) -> bytes | None:
        """Encrypt a secret again with the first key; None if it already is. Raise ValueError if no key decrypts it."""
