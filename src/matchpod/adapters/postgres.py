"""How is the Database port kept by PostgreSQL? Several replicas of the service may share one.

A write of one statement is its own transaction; several run between BEGIN and COMMIT. A transaction that PostgreSQL
gave up on because of another one (deadlock, serialization) was rolled back whole and is run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeVar

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed; what we use of it is said below

from matchpod.adapters.sql_text import NumberedSql, number_parameters
from matchpod.ports import (
    DatabaseAwayError,
    DatabaseError,
    DuplicateError,
    NothingChangedError,
    Row,
    Statement,
    Value,
)

_T = TypeVar("_T")

CONNECTIONS: Final = 10
"""Of one process: PostgreSQL allows 100 by default, and several replicas share them."""
OPERATION_S: Final = 15.0
"""The longest wait for a connection and its transaction together; a database that takes longer counts as away."""
GIVE_BACK_S: Final = 2.0
"""For a connection to be made as new for the next one who uses it; one that takes longer is cut."""
CLOSE_S: Final = 10.0
"""The longest wait for running transactions when closing; then connections are cut."""
CONFLICT_TRIES: Final = 5
"""How often a transaction is run that PostgreSQL gives up on in favour of another."""
_TRANSLATIONS_KEPT: Final = 1_000
"""There are far fewer statements; the limit only keeps texts built by mistake from piling up."""

_AWAY_ERRORS = (
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
    asyncpg.ReadOnlySQLTransactionError,  # a stand-by that is about to take over, or one that was left behind
)


class _Connection(Protocol):
    """What we use of asyncpg's connections."""

    async def fetch(self, query: str, *args: Value) -> Sequence[Sequence[Value]]: ...

    async def execute(self, query: str, *args: Value) -> str: ...

    def terminate(self) -> None: ...


class _Pool(Protocol):
    """What we use of asyncpg's pools."""

    async def acquire(self) -> _Connection: ...

    async def release(self, connection: _Connection, *, timeout: float) -> None: ...

    async def expire_connections(self) -> None: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


class PostgresDatabase:
    """A pool of connections to one PostgreSQL database."""

    def __init__(self, pool: _Pool) -> None:
        self._pool = pool
        self._translations: dict[str, NumberedSql] = {}

    @classmethod
    async def open(cls, url: str) -> PostgresDatabase:
        """Connect; DatabaseAwayError when nobody answers there or we are turned away."""
        try:
            async with asyncio.timeout(OPERATION_S):
                pool: _Pool = await asyncpg.create_pool(url, min_size=1, max_size=CONNECTIONS)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as exc:
            raise _our_error(exc) from exc
        return cls(pool)

    @property
    def is_shared(self) -> bool:
        """Replicas work side by side."""
        return True

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        """The rows of a query, as of now."""
        statement = Statement(sql, params or {})
        return await self._with_connection(lambda connection: self._run(connection, statement))

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        """The one row that an index finds, as of now."""
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run the statements as one transaction; it is committed when this returns."""

        async def transaction(connection: _Connection) -> list[list[Row]]:
            if len(statements) == 1:
                return [await self._run(connection, statements[0])]
            await connection.execute("BEGIN")
            try:
                answers = [await self._run(connection, statement) for statement in statements]
            except Exception:
                await connection.execute("ROLLBACK")
                raise
            await connection.execute("COMMIT")
            return answers

        return await self._with_connection(transaction)

    async def close(self) -> None:
        """Wait for what is running, then close every connection."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._pool.close()
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._pool.terminate()

    async def _with_connection(self, work: Callable[[_Connection], Awaitable[_T]]) -> _T:
        deadline_s = asyncio.get_running_loop().time() + OPERATION_S
        try:
            for _ in range(CONFLICT_TRIES - 1):
                try:
                    return await self._once(work, deadline_s)
                except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError):
                    continue
            return await self._once(work, deadline_s)
        except asyncpg.ReadOnlySQLTransactionError as exc:
            await self._pool.expire_connections()  # new ones may lead to whoever took over
            raise _our_error(exc) from exc
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, ValueError) as exc:
            raise _our_error(exc) from exc

    async def _once(self, work: Callable[[_Connection], Awaitable[_T]], deadline_s: float) -> _T:
        async with asyncio.timeout_at(deadline_s):
            connection = await self._pool.acquire()
        try:
            async with asyncio.timeout_at(deadline_s):
                return await work(connection)
        except (TimeoutError, asyncio.CancelledError):
            connection.terminate()  # else it is only given back when PostgreSQL, which may hang, has answered
            raise
        finally:
            # What was done is done, also when the connection does not survive: another one is made then.
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await self._pool.release(connection, timeout=GIVE_BACK_S)

    async def _run(self, connection: _Connection, statement: Statement) -> list[Row]:
        sql = self._translated(statement.sql)
        missing = [name for name in sql.names if name not in statement.params]
        if missing:
            raise DatabaseError(f"no value for the parameters {', '.join(missing)}")
        values = [statement.params[name] for name in sql.names]
        if sql.returns_rows:
            rows: list[Row] = [tuple(record) for record in await connection.fetch(sql.text, *values)]
            changed = len(rows)
        else:
            rows = []
            changed = _changed_rows(await connection.execute(sql.text, *values))
        if statement.must_change and not changed:
            raise NothingChangedError("the statement changed no row")
        return rows

    def _translated(self, sql: str) -> NumberedSql:
        found = self._translations.get(sql)
        if found is None:
            if len(self._translations) >= _TRANSLATIONS_KEPT:
                self._translations.clear()
            found = self._translations[sql] = number_parameters(sql)
        return found


def _changed_rows(status: str) -> int:
    """The number at the end of a command's status (`UPDATE 3`); a command without one changed no row."""
    last = status.rpartition(" ")[2]
    return int(last) if last.isdecimal() else 0


def _our_error(exc: Exception) -> DatabaseError:
    # Of two that create the same table at once, one is told of its name or of its type, as chance will have it.
    if isinstance(exc, asyncpg.UniqueViolationError | asyncpg.DuplicateObjectError | asyncpg.DuplicateTableError):
        return DuplicateError(exc.constraint_name or "a unique key")
    # A value that does not fit its column is both an InterfaceError and a ValueError: the database is there.
    if isinstance(exc, _AWAY_ERRORS) and not isinstance(exc, ValueError):
        return DatabaseAwayError(f"PostgreSQL is away: {type(exc).__name__}")
    if isinstance(exc, asyncpg.DeadlockDetectedError | asyncpg.SerializationError):
        return DatabaseAwayError("PostgreSQL gave up on the transaction again and again in favour of others")
    return DatabaseError(f"{type(exc).__name__}: {exc}")
