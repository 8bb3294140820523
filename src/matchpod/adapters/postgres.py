"""Implement the Database port with PostgreSQL, which several replicas of the service may share.

A single statement is a transaction by itself; several statements run between BEGIN and COMMIT. A transaction that
PostgreSQL aborts because of a conflict (deadlock, serialization) is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeVar

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed; the protocols below type what we use
import msgspec

from matchpod import ports
from matchpod.adapters import postgres_hosts
from matchpod.adapters.sql_text import NumberedSql, number_parameters

_T = TypeVar("_T")

CONNECTIONS: Final = 10
"""Maximum number of pooled connections per process. LISTEN and urgent queries use one more connection each. PostgreSQL
allows 100 connections by default, which several replicas share."""
LISTEN_CHECK_S: Final = 5.0
"""Interval in seconds at which the LISTEN connection is checked, because its loss is not always reported."""
LISTEN_RETRY_S: Final = 1.0
"""Delay in seconds before a lost LISTEN connection is opened again."""
STATEMENTS: Final = 500
"""Maximum number of prepared statements per connection, more than the service has in total."""
RESET_S: Final = 2.0
"""Timeout in seconds for the rollback when a connection returns to the pool. After it, the connection is terminated."""
CONFLICT_TRIES: Final = 5
"""Maximum number of attempts for a transaction that PostgreSQL aborts because of conflicts."""
_MAX_TRANSLATIONS: Final = 1_000
"""Maximum number of cached translations. The service has far fewer statements, unless SQL is built dynamically by
mistake."""

_UNAVAILABLE_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.IdleInTransactionSessionTimeoutError,  # this process was frozen
    asyncpg.ReadOnlySQLTransactionError,  # a standby, before or after a failover
)

_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, ValueError)
"""All errors that a transaction may raise because of the database or of a value."""


class _Connection(Protocol):
    """The methods of an asyncpg connection that we use."""

    async def fetch(self, query: str, *args: ports.Parameter) -> Sequence[Sequence[ports.Value]]: ...

    async def execute(self, query: str, *args: ports.Parameter) -> str: ...

    def is_closed(self) -> bool: ...

    def terminate(self) -> None: ...


class _Pool(Protocol):
    """The methods of an asyncpg pool that we use."""

    async def acquire(self) -> _Connection: ...

    async def release(self, connection: _Connection, *, timeout: float) -> None: ...

    async def expire_connections(self) -> None: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


class _PooledConnection(asyncpg.Connection):  # type: ignore[misc]  # see the import
    """A connection that returns to the pool without a reset query.

    The pool still rolls back an open transaction. Nothing else needs a reset: settings, locks and cursors last for one
    transaction at most, and pooled connections do not listen.
    """

    def get_reset_query(self) -> str:
        """Return no query, because the default reset query costs a second round trip after every statement."""
        return ""


class PostgresLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts for the use of a database."""

    operation_s: float = 15.0
    """Timeout in seconds for getting a connection and running a transaction. After it, the database is reported as
    unavailable."""
    urgent_s: float = 1.5
    """Timeout in seconds for an urgent transaction, short enough that its caller has time for a retry."""
    idle_s: int = 15
    """Time in seconds after which PostgreSQL aborts an idle transaction, so that a frozen replica does not keep its
    locks."""
    close_s: float = 10.0
    """Timeout in seconds for running transactions during `close`. After it, their connections are terminated."""


DEFAULT_LIMITS: Final = PostgresLimits()


class PostgresDatabase:
    """A pool of connections to one PostgreSQL database."""

    def __init__(self, pool: _Pool, url: str, limits: PostgresLimits) -> None:
        self._pool = pool
        self._url = url
        self._limits = limits
        self._translations: dict[str, NumberedSql] = {}
        self._urgent: _Connection | None = None
        self._had_urgent = False
        """Whether a connection for urgent work was opened before, so that the next one replaces it."""
        self._urgent_lock = asyncio.Lock()

    @classmethod
    async def open(
        cls, url: str, limits: PostgresLimits = DEFAULT_LIMITS, *, connections: int | None = None
    ) -> PostgresDatabase:
        """Open a pool. Raise DatabaseUnavailableError if the server cannot be reached or rejects the login."""
        try:
            async with asyncio.timeout(limits.operation_s):
                pool: _Pool = await asyncpg.create_pool(
                    url,
                    connect=postgres_hosts.connect,
                    min_size=1,
                    max_size=connections or CONNECTIONS,
                    connection_class=_PooledConnection,
                    statement_cache_size=STATEMENTS,
                    max_cached_statement_lifetime=0,
                )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as exc:
            raise _to_database_error(exc) from exc
        return cls(pool, url, limits)

    @property
    def is_shared(self) -> bool:
        """Return True, because several replicas may use the same database."""
        return True

    @property
    def is_postgres(self) -> bool:
        return True

    async def read(self, sql: str, params: Mapping[str, ports.Value] | None = None) -> list[ports.Row]:
        statement = ports.Statement(sql, params or {})
        return await self._with_connection(lambda connection: self._run(connection, statement))

    async def read_one(self, sql: str, params: Mapping[str, ports.Value]) -> ports.Row | None:
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[ports.Statement]) -> list[list[ports.Row]]:
        """Run the statements as one transaction; it is committed when this returns."""

        async def transaction(connection: _Connection) -> list[list[ports.Row]]:
            if len(statements) == 1:
                return [await self._run(connection, statements[0])]
            await connection.execute(f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = '{self._limits.idle_s}s'")
            try:
                results = [await self._run(connection, statement) for statement in statements]
            except Exception:
                await connection.execute("ROLLBACK")
                raise
            await connection.execute("COMMIT")
            return results

        if any(statement.is_urgent for statement in statements):
            return await self._urgently(transaction)
        is_long = any(statement.is_long for statement in statements)
        return await self._with_connection(transaction, is_long=is_long)

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        """Until cancelled, call `on_announced` with the payload of each NOTIFY on a channel; reconnect if needed."""
        while True:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError):
                await self._listen_once(channel, on_announced)
            await asyncio.sleep(LISTEN_RETRY_S)

    async def _listen_once(self, channel: str, on_announced: Callable[[str], None]) -> None:
        """Listen on a new, dedicated connection until it is lost."""
        connection = await postgres_hosts.connect(self._url, timeout=self._limits.operation_s)
        try:
            await connection.add_listener(channel, lambda *announced: on_announced(announced[-1]))
            while True:
                await asyncio.sleep(LISTEN_CHECK_S)
                await connection.execute("SELECT 1", timeout=self._limits.operation_s)
        finally:
            connection.terminate()

    async def close(self) -> None:
        """Wait for running transactions until the timeout, then close all connections."""
        self._end_urgent()
        try:
            async with asyncio.timeout(self._limits.close_s):
                await self._pool.close()
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._pool.terminate()

    async def _with_connection(self, work: Callable[[_Connection], Awaitable[_T]], *, is_long: bool = False) -> _T:
        deadline_s = None if is_long else asyncio.get_running_loop().time() + self._limits.operation_s
        try:
            for _ in range(CONFLICT_TRIES - 1):
                try:
                    return await self._once(work, deadline_s)
                except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError):
                    continue
            return await self._once(work, deadline_s)
        except asyncpg.ReadOnlySQLTransactionError as exc:
            await self._pool.expire_connections()  # this was a standby; new connections may reach the primary
            raise _to_database_error(exc) from exc
        except _ERRORS as exc:
            raise _to_database_error(exc) from exc

    async def _once(self, work: Callable[[_Connection], Awaitable[_T]], deadline_s: float | None) -> _T:
        async with asyncio.timeout_at(deadline_s):
            connection = await self._pool.acquire()
        try:
            async with asyncio.timeout_at(deadline_s):
                return await work(connection)
        except (TimeoutError, asyncio.CancelledError):
            connection.terminate()  # a release would wait for PostgreSQL, which may be hanging
            raise
        finally:
            # If the reset fails, the result of `work` is still valid, and the pool replaces the connection.
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await self._pool.release(connection, timeout=RESET_S)

    async def _urgently(self, work: Callable[[_Connection], Awaitable[_T]]) -> _T:
        """Run urgent work on its dedicated connection. If the work fails, the next urgent work opens another one."""
        try:
            async with asyncio.timeout(self._limits.urgent_s), self._urgent_lock:
                try:
                    if self._urgent is None or self._urgent.is_closed():
                        self._urgent = await self._connect_urgent()
                    return await work(self._urgent)
                except BaseException:
                    self._end_urgent()
                    raise
        except _ERRORS as exc:
            raise _to_database_error(exc) from exc

    async def _connect_urgent(self) -> _Connection:
        connection: _Connection = await postgres_hosts.connect(self._url, within_s=self._limits.urgent_s)
        if self._had_urgent:
            await self._pool.expire_connections()  # pooled connections have probably been lost too
        self._had_urgent = True
        return connection

    def _end_urgent(self) -> None:
        if self._urgent is not None:
            self._urgent.terminate()
            self._urgent = None

    async def _run(self, connection: _Connection, statement: ports.Statement) -> list[ports.Row]:
        sql = self._translated(statement.sql)
        missing = [name for name in sql.names if name not in statement.params]
        if missing:
            raise ports.DatabaseError(f"no value for the parameters {', '.join(missing)}")
        values = [statement.params[name] for name in sql.names]
        if sql.returns_rows:
            rows: list[ports.Row] = [tuple(record) for record in await connection.fetch(sql.text, *values)]
            changed = len(rows)
        else:
            rows = []
            changed = _changed_rows(await connection.execute(sql.text, *values))
        if changed < statement.must_change:
            raise ports.NothingChangedError("the statement changed too few rows")
        return rows

    def _translated(self, sql: str) -> NumberedSql:
        found = self._translations.get(sql)
        if found is None:
            if len(self._translations) >= _MAX_TRANSLATIONS:
                self._translations.clear()
            found = self._translations[sql] = number_parameters(sql)
        return found


def _changed_rows(status: str) -> int:
    """Return the number of rows at the end of a command status (`UPDATE 3`); 0 if there is no number."""
    last = status.rpartition(" ")[2]
    return int(last) if last.isdecimal() else 0


def _to_database_error(exc: Exception) -> ports.DatabaseError:
    # A process that creates a table at the same time as another process gets one of these errors.
    if isinstance(exc, asyncpg.UniqueViolationError | asyncpg.DuplicateObjectError | asyncpg.DuplicateTableError):
        return ports.DuplicateError(exc.constraint_name or "a unique key")
    # A value that does not fit its column raises an InterfaceError that is also a ValueError. That is not an outage.
    if isinstance(exc, _UNAVAILABLE_ERRORS) and not isinstance(exc, ValueError):
        return ports.DatabaseUnavailableError(f"PostgreSQL is unavailable: {type(exc).__name__}")
    if isinstance(exc, asyncpg.LockNotAvailableError):
        return ports.RowLockedError("PostgreSQL: another transaction keeps a row locked")
    if isinstance(exc, asyncpg.DeadlockDetectedError | asyncpg.SerializationError):
        return ports.DatabaseUnavailableError(
            f"PostgreSQL aborted the transaction {CONFLICT_TRIES} times due to conflicts"
        )
    return ports.DatabaseError(f"{type(exc).__name__}: {exc}")
