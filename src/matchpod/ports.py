"""Define the interfaces (ports) to databases, game servers, callback receivers, demo storages, the clock and the vault.

The docstrings are the contract. Each port has one test suite, which runs against all its adapters.
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
"""A value for a parameter of a statement. Only PostgreSQL accepts lists."""

# --- database -----------------------------------------------------------------------------------------------------


class Statement(msgspec.Struct, frozen=True):
    """One SQL statement with its named parameters (`:name` in the text).

    `must_change`: minimum number of rows that the statement must change or return; True means 1. With fewer rows, the
    transaction is rolled back, and NothingChangedError is raised.
    `is_long`: if True, the transaction has no time limit, for example to migrate a large table.
    `is_urgent`: if True, with PostgreSQL, the transaction does not wait for other transactions of this process, and its
    timeout is short.
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
    """Another transaction has kept a row locked for too long. Statements on other rows may succeed."""


class NothingChangedError(DatabaseError):
    """A statement with `must_change` changed or returned too few rows, so the transaction was rolled back."""


class DuplicateError(DatabaseError):
    """A row with the same key already exists, so the transaction was rolled back."""


class Database(Protocol):
    """A database. Its SQL has named parameters, and works on both SQLite and PostgreSQL."""

    @property
    def is_shared(self) -> bool:
        """True if other processes may use the same database at the same time."""

    @property
    def is_postgres(self) -> bool:
        """True if statements may use features of PostgreSQL that save round trips or use the database's clock."""

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        """Run a query, and return its current rows."""

    async def read_one(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        """Return the first row of an indexed query, or None. Only for queries cheaper than a switch to a thread."""

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run the statements in one durable transaction; return the rows (RETURNING) of each statement, in order.

        Either all statements take effect, or none. Once this method has returned, the changes survive a crash of this
        process or of the machine.
        """

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        """Call `on_announced` with the payload of each notification on a channel, until cancelled. Never raise an
        error.

        Other processes send the notifications. Some notifications may be missed. If the database does not support
        notifications, just wait until cancelled.
        """

    async def close(self) -> None:
        """Close all connections. Committed transactions are kept."""


# --- fleets -------------------------------------------------------------------------------------------------------


async def _is_of_no_match(token: str) -> bool:
    """Default of `is_of_other_match`, for callers that do not know the log tokens of other matches."""
    return False


class ServerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a match requires of its server. `slot` is reserved for the match; empty in fleets without slots."""

    server_id: str
    slot: str
    is_repeated: bool = False
    """True if an earlier attempt may have allocated a server for this match. Search for that server before allocating
    another."""
    map_name: str
    game_type: int
    game_mode: int
    rcon_password: str
    players: tuple[str, ...] = ()
    """The players who are expected. Only simulated servers use this."""
    environment: Mapping[str, str] = {}
    is_of_other_match: Callable[[str], Awaitable[bool]] = _is_of_no_match
    """Returns True if the log token belongs to another open match of this installation."""


class GameServer(msgspec.Struct, frozen=True, kw_only=True):
    """An allocated server: its address for players, and the address and password of its console."""

    ip: str
    port: int
    rcon_host: str
    rcon_port: int
    rcon_password: str
    is_fresh: bool = True
    """False if another match may have been played on the server before. Its map must then be loaded again."""
    tv_port: int | None = None
    """The GOTV port; None if the fleet does not know it."""
    slot: str | None = None
    """In a fleet without slots, the name or other key by which the fleet finds this server again."""


class Capacity(msgspec.Struct, frozen=True):
    """Numbers of servers in a fleet: ready for a match, allocated to a match, and all."""

    ready: int
    allocated: int
    total: int


class ListedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A running server of a fleet, as listed for sweeps (which release servers without a match)."""

    server_id: str
    is_own: bool | None
    """True if this installation started the server; None if unknown, because an early version may have started it."""
    owner: str = ""
    """The id of the installation that started the server; empty if unknown."""
    age_s: float
    """Time in seconds since the server was started for its match."""


class FleetError(Exception):
    """A fleet operation failed. The message says why; if an OSError was the cause, it is the `__cause__`."""


class FleetUnavailableError(FleetError):
    """The fleet is unavailable for all matches. Retry later."""


class SlotInUseError(FleetError):
    """Another installation or match uses the server of this slot. Try other slots; if none is free, wait."""

    @classmethod
    def by_other_match(cls, slot: str) -> SlotInUseError:
        """Return the error for a server that is listed as two slots, and that another match uses in the other slot."""
        return cls(f"the server {slot} is used by another match; list it once only, under one address")


class ServerLease(Protocol):
    """The right to release the server of a match. Another process may take over this right at any time."""

    def check(self) -> None:
        """Raise an error if another process may have released the server. Call it right before each effect on it."""

    def owns_log(self, token: str) -> bool:
        """True if this is the token with which the match's server sends its log."""


class Fleet(Protocol):
    """Provides the servers of a region. Each operation has the match's server id as its key, so it can be retried.

    In a fleet with slots, the service reserves a slot for each match. A fleet without slots chooses a server itself.
    """

    @property
    def slots(self) -> Sequence[str] | None:
        """Names of the slots; a slot is used by one match at a time. None for a fleet without slots."""

    @property
    def keeps_servers(self) -> bool:
        """True if servers continue to run after their release, for the next match of their slot."""

    @property
    def fault(self) -> str | None:
        """Why the fleet is unavailable, in one sentence; None if it is available. Returns immediately, without I/O."""

    async def check(self) -> Sequence[str]:
        """Return the faults in the fleet's settings, one sentence each. If there are any, the service does not start.

        Problems that may be temporary, such as an unreachable cluster, are reported by `fault` instead.
        """

    async def probe(self) -> str | None:
        """Try to log in to the console of a server without a match; return the fault, or None if none was found."""

    def waiting_server(self, slot: str) -> GameServer | None:
        """Return the server running in a slot, used by a match or not; None if a server must be allocated first."""

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` when a server becomes ready or `fault` changes, until cancelled. Never raise an error."""

    async def capacity(self) -> Capacity | None:
        """Count the servers; None if the slots show the capacity. Raise FleetError if the count is unavailable."""

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        """Allocate a server for this match. A repeated call returns the same server. Raise FleetError on failure.

        If no server is free, a fleet without slots returns None. A fleet with slots raises SlotInUseError if the
        order's slot is not free, and leaves the server of that slot unchanged.
        """

    async def wait_gone(self, server_id: str, slot: str) -> str:
        """Wait until the server has disappeared, and return the reason at most 2 s later.

        A fleet that cannot observe its servers waits until it is cancelled.
        """

    def holds(self, server_id: str) -> bool:
        """True if this is a fleet without slots, and it knows that this server is allocated to a match."""

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        """Report whether the process or pod of a server exists. GONE is final: the match then ends immediately.

        A fleet that cannot observe the process of a server returns UNKNOWN, even if the server does not answer or
        refuses connections.
        """

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        """Stop the server and wait until it is gone, or clean up a static server. Releasing an unknown server succeeds.

        An error of a lost lease is passed on to the caller. A sweep, which releases servers without a match, passes
        neither a lease nor a slot; the server has to be found by its id.
        """

    async def servers(self) -> Sequence[ListedServer]:
        """Return all running servers that were started for matches, including those of other installations."""

    async def close(self) -> None:
        """Close the fleet's own resources; its servers continue to run."""


# --- remote consoles ----------------------------------------------------------------------------------------------


class ConsoleError(Exception):
    """A console could not be opened, or did not answer. If an OSError was the cause, it is the `__cause__`."""


class ConsoleLostError(ConsoleError):
    """The connection failed, was lost or timed out. Retry with a new connection."""


class ConsoleAuthError(ConsoleError):
    """The password is wrong, or this address is banned. Retrying does not help."""


class ConsoleFaultError(ConsoleError):
    """The server sent invalid data or too much data. Retrying does not help."""


class RemoteConsole(Protocol):
    """One authenticated connection to a server's console."""

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        """Run one command and return its complete answer. If no answer arrives, close and raise ConsoleLostError.

        Raise ConsoleFaultError if the answer exceeds the limit of the command, or if the server sends too much data.
        """

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 10.0) -> list[str]:
        """Run commands in order without waiting for each answer, and return the answers. Raise the errors of `run`."""

    async def close(self) -> None:
        """Close the connection; closing twice has no effect."""


class Consoles(Protocol):
    """Opens connections to consoles."""

    async def open(self, host: str, port: int, password: str) -> RemoteConsole:
        """Connect and authenticate. Raise ConsoleLostError, ConsoleAuthError or ConsoleFaultError on failure."""


class ServerProbe(Protocol):
    """Sends probes to a machine over the network, without a password."""

    async def accepts(self, host: str, port: int) -> bool | None:
        """True if the port accepts a connection, False if it refuses the connection, None if there is no answer."""

    async def has_game(self, host: str, port: int) -> bool:
        """True if a game server answers a query on the UDP port."""

    async def is_public(self, host: str) -> bool:
        """True if the host has a public address; False if it has none, or if its name cannot be resolved."""


# --- callbacks ----------------------------------------------------------------------------------------------------


class CallbackRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One POST to a caller's receiver."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    org_id: str = ""
    """Id of the organization that the callback belongs to. A receiver that hangs must not delay other organizations."""
    allow_private: bool = False
    """True if requests to private addresses are allowed."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a delivery attempt. If there was no response, `status` is None and `error` says why."""

    status: int | None = None
    duration_ms: int = 0
    error: str | None = None

    @property
    def is_success(self) -> bool:
        """True for a 2xx status."""
        return self.status is not None and 200 <= self.status < 300


class CallbackSender(Protocol):
    """Sends callbacks over HTTP."""

    @property
    def capacity(self) -> int:
        """Maximum number of concurrent attempts."""

    async def send(self, request: CallbackRequest) -> Delivery:
        """Make one attempt within at most 10 s in total. Never raise an error, and never follow a redirect."""

    async def close(self) -> None:
        """Abort all attempts in progress."""


class SecretTrials(Protocol):
    """Limits the number of servers that get a fleet's secret before a server has accepted it, across all processes.

    A trial is one attempt to use the secret on a server. `secret` is the fingerprint of the secret. DatabaseErrors are
    passed on to the caller.
    """

    async def begin(self, secret: str, places: int) -> str | None:
        """Begin a trial and return its id; None if `places` servers are being tried now or have rejected the secret."""

    async def reject(self, secret: str, trial: str) -> None:
        """End a trial whose server rejected the secret.

        The rejection counts toward `places` in `begin` until a server accepts the secret.
        """

    async def accept(self, secret: str, trial: str | None) -> None:
        """Record that a server accepted the secret. Earlier rejections then no longer count."""

    async def drop(self, secret: str, trial: str) -> None:
        """End a trial without a result, for example because the server was unreachable."""

    async def rejected(self, secret: str) -> int:
        """Return the number of servers that have rejected the secret since a server last accepted it."""


# --- demos --------------------------------------------------------------------------------------------------------


class StorageError(Exception):
    """The demo storage is unavailable, or an operation failed. The message says why."""


class StorageFullError(StorageError):
    """The storage has no space left."""


class DemoWriter(Protocol):
    """Writes one demo file. Each file ends with exactly one call of `commit`, `keep_cut` or `discard`.

    No method holds more of the file in memory than the chunk that is passed to it.
    """

    async def write(self, part: bytes) -> None:
        """Append a chunk to the file. Raise StorageFullError or StorageError on failure."""

    async def commit(self) -> None:
        """Make the file available under its key. From then on, it survives a crash. Raises as `write` does."""

    async def keep_cut(self) -> bool:
        """Keep the incomplete file, separately from complete files; False if that failed. Never raise an error."""

    async def discard(self) -> None:
        """Delete the incomplete file. Never raise an error."""


class DemoStorage(Protocol):
    """Stores demo files by key. A key has letters, digits, `-`, `_`, `.` and `/`."""

    @property
    def is_shared(self) -> bool:
        """True if processes on different machines may use the storage at the same time."""

    async def check(self) -> str | None:
        """Return the fault in the settings, in one sentence; None if no fault is known."""

    async def create(self, key: str) -> DemoWriter:
        """Begin to write a file. Raise StorageFullError or StorageError on failure."""

    def read(self, key: str, start: int, size: int) -> AsyncIterator[bytes] | None:
        """Return a range of a file in chunks; None if callers must download the file from its `link`.

        Iterating over the chunks may raise StorageError. If the file does not exist, the first chunk raises
        FileNotFoundError.
        """

    async def link(self, key: str, *, file_name: str, expires_s: int) -> str | None:
        """Return a temporary public URL of a file; None if callers must `read` it. Raise StorageError on failure."""

    async def delete(self, key: str) -> None:
        """Delete a complete or incomplete file. Deleting an unknown file succeeds. Raise StorageError on failure."""

    async def clean_up(self, before_ms: int) -> int:
        """Delete the remains of uploads that began before a time and never ended; return how many.

        Incomplete files that `keep_cut` kept are not deleted. Raise StorageError on failure.
        """

    async def free_bytes(self) -> int | None:
        """Return the free space in bytes; None if it is unlimited or unknown."""

    async def close(self) -> None:
        """Close all connections."""


# --- traces -------------------------------------------------------------------------------------------------------


class SpanKind(Enum):
    """The kind of a span; the values are those of OpenTelemetry."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A step in the life of a match, for OpenTelemetry. Ids are hexadecimal."""

    name: str
    kind: SpanKind = SpanKind.INTERNAL
    trace_id: str
    span_id: str
    parent_id: str | None
    start_ms: int
    end_ms: int
    attributes: Mapping[str, str | int]
    error: str | None = None
    """Error message; None if the step succeeded."""


# --- the rest -----------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """The clock of a process: wall time at the start plus monotonic time since then, so it never jumps."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since the epoch."""


class Vault(Protocol):
    """Encrypts secrets at rest."""

    def seal(self, secret: str) -> bytes:
        """Encrypt a secret. Each call returns different bytes, even for the same secret."""

    def open(self, sealed: bytes) -> str:
        """Decrypt a secret. Raise ValueError if it was sealed with another key, or if the bytes were changed."""

    def reseal(self, sealed: bytes) -> bytes | None:
        """Encrypt a secret again with the first key; None if it is not necessary. ValueError if no key decrypts it."""
