"""How is the Database port kept by one SQLite file? One process has it to itself.

One thread writes. Transactions that wait together are committed together (one COMMIT, one wait for the disk), each
inside its own savepoint, so a failed one does not hurt the others. A write is answered only after its COMMIT.
Readers have their own connections, and threads but for look-ups; in WAL mode they neither wait for the writer nor
hold it up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from matchpod.ports import (
    DatabaseAwayError,
    DatabaseError,
    DuplicateError,
    NothingChangedError,
    Row,
    Statement,
    Value,
)

READERS: Final = 2
"""Queries are short and SQLite reads from memory most of the time: more threads would only wait for each other."""
WAITING_WRITES: Final = 10_000
"""Past this the disk does not keep up by far; callers are told so instead of waiting ever longer."""
GROUP_SIZE: Final = 256
"""The most transactions in one COMMIT: bounds how long the first of them waits for the last."""
READ_S: Final = 15.0
"""The longest wait for the rows of a query."""
BUSY_S: Final = 5.0
"""The longest wait for a lock that another program (a backup, a shell) holds."""

_AWAY_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
    }
)
_DUPLICATE_CODES: Final = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID}
)

_log = logging.getLogger(__name__)


class _Job:
    """A transaction that waits for the writer, and its answer until the COMMIT."""

    __slots__ = ("error", "future", "loop", "rows", "statements")

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[list[Row]]] = self.loop.create_future()
        self.rows: list[list[Row]] = []
        self.error: DatabaseError | None = None

    def settle(self) -> None:
        """Tell the caller, once the COMMIT is done; in the thread of his event loop."""
        if self.future.done():
            return  # he was cancelled, and what he wanted was done all the same
        if self.error is None:
            self.future.set_result(self.rows)
        else:
            self.future.set_exception(self.error)


class SqliteDatabase:
    """One SQLite file."""

    def __init__(self, path: Path, *, busy_s: float) -> None:
        self._path = path
        self._busy_s = busy_s
        self._writer = _connect(path, busy_s)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._accepting = threading.Lock()
        self._is_closed = False
        self._reader_of_thread = threading.local()
        self._looker = _connect(path, busy_s)
        # No waiting in the event loop: a file that somebody locks as a whole is away.
        for setting in ("query_only = ON", "busy_timeout = 0"):
            self._looker.execute(f"PRAGMA {setting}")
        self._reader_connections: list[sqlite3.Connection] = []
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-reader")
        self._thread = threading.Thread(target=self._write_until_closed, name="sqlite-writer", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, path: Path, *, busy_s: float = BUSY_S) -> SqliteDatabase:
        """Open the file, or make it; DatabaseAwayError when that is impossible."""
        return await asyncio.to_thread(cls, path, busy_s=busy_s)

    @property
    def is_shared(self) -> bool:
        """One process has the file to itself."""
        return False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        """The rows of a query, as of now."""
        if self._is_closed:
            raise DatabaseAwayError("the database is closed")
        try:
            async with asyncio.timeout(READ_S):
                return await asyncio.get_running_loop().run_in_executor(self._readers, self._query, sql, params or {})
        except TimeoutError as exc:
            raise DatabaseAwayError("SQLite did not answer in time") from exc

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        """The one row that an index finds, as of now.

        Asked from the event loop: it takes 15 µs from memory, and handing it to a thread takes 90.
        """
        if self._is_closed:
            raise DatabaseAwayError("the database is closed")
        with _our_errors():
            # All rows: a cursor that is left half-way would keep the past open.
            rows: list[Row] = self._looker.execute(sql, params).fetchall()
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run the statements as one transaction; it is on the disk when this returns."""
        job = _Job(statements)
        with self._accepting:
            if self._is_closed:
                raise DatabaseAwayError("the database is closed")
            if self._jobs.qsize() >= WAITING_WRITES:
                raise DatabaseAwayError("too many writes are waiting for the disk")
            self._jobs.put(job)
        # No timeout: the writer answers every job, and giving up on one that is then committed would be a lie.
        return await job.future

    async def close(self) -> None:
        """Commit what was accepted, then close the file; closing twice changes nothing."""
        with self._accepting:
            if self._is_closed:
                return
            self._is_closed = True
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._readers.shutdown()
        for connection in (self._looker, *self._reader_connections):
            connection.close()
        self._writer.close()

    # --- reading ------------------------------------------------------------------------------------------------

    def _query(self, sql: str, params: Mapping[str, Value]) -> list[Row]:
        with _our_errors():
            connection: sqlite3.Connection | None = getattr(self._reader_of_thread, "connection", None)
            if connection is None:
                connection = _connect(self._path, self._busy_s)
                self._reader_connections.append(connection)
                connection.execute("PRAGMA query_only = ON")
                self._reader_of_thread.connection = connection
            return list(connection.execute(sql, params))

    # --- writing ------------------------------------------------------------------------------------------------

    def _write_until_closed(self) -> None:
        is_open = True
        while is_open:
            jobs, is_open = self._next_group()
            try:
                self._commit(jobs)
            except Exception as exc:  # noqa: BLE001 - the only writer must survive, and its callers get an answer
                _log.exception("the SQLite writer failed unexpectedly")
                self._roll_back()
                _fail(jobs, DatabaseError(f"{type(exc).__name__}: {exc}"))
            _settle(jobs)

    def _next_group(self) -> tuple[list[_Job], bool]:
        """Everything that waits now (at least one), and False when the end was among it."""
        jobs: list[_Job] = []
        entry = self._jobs.get()
        while entry is not None:
            if not entry.future.cancelled():
                jobs.append(entry)
            if len(jobs) == GROUP_SIZE:
                return jobs, True
            try:
                entry = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, True
        return jobs, False

    def _commit(self, jobs: Sequence[_Job]) -> None:
        """Commit together; when the disk refuses the group, each alone: the small ones may still fit."""
        if not jobs:
            return
        try:
            with _our_errors():
                self._writer.execute("BEGIN IMMEDIATE")
        except DatabaseError as exc:
            _fail(jobs, exc)
            return
        try:
            for job in jobs:
                self._run(job)
            with _our_errors():
                self._writer.execute("COMMIT")
        except DatabaseError as exc:
            self._roll_back()
            if len(jobs) == 1:
                _fail(jobs, exc)
                return
            for job in jobs:
                job.error = None
                self._commit([job])

    def _run(self, job: _Job) -> None:
        """Run one transaction in its savepoint; raises only DatabaseAwayError, which ends the whole group."""
        self._writer.execute("SAVEPOINT one")
        try:
            with _our_errors():
                job.rows = [self._run_statement(statement) for statement in job.statements]
        except DatabaseAwayError:
            raise
        except DatabaseError as exc:
            job.error = exc
            self._writer.execute("ROLLBACK TO one")
        self._writer.execute("RELEASE one")

    def _run_statement(self, statement: Statement) -> list[Row]:
        cursor = self._writer.execute(statement.sql, statement.params)
        rows: list[Row] = cursor.fetchall()
        if statement.must_change and not rows and cursor.rowcount <= 0:
            raise NothingChangedError("the statement changed no row")
        return rows

    def _roll_back(self) -> None:
        # SQLite has already rolled back by itself after some errors, a full disk among them.
        with contextlib.suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")


def _settle(jobs: Sequence[_Job]) -> None:
    """Tell all callers at once: waking an event loop from another thread is most of what a small write costs."""
    for loop in {job.loop for job in jobs}:
        own = [job for job in jobs if job.loop is loop]
        with contextlib.suppress(RuntimeError):  # it is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle_all, own)


def _settle_all(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        job.settle()


def _fail(jobs: Sequence[_Job], error: DatabaseError) -> None:
    for job in jobs:
        job.error = error


def _connect(path: Path, busy_s: float) -> sqlite3.Connection:
    with _our_errors():
        # Transactions are ours alone (isolation_level None); each connection is used by one thread, closed by another.
        connection = sqlite3.connect(
            path, timeout=busy_s, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


@contextlib.contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        # Errors of the module itself (a missing parameter, say) carry no code.
        code: int = getattr(exc, "sqlite_errorcode", 0)
        if code in _DUPLICATE_CODES:
            raise DuplicateError(str(exc)) from exc
        if code & 0xFF in _AWAY_CODES:
            raise DatabaseAwayError(f"SQLite: {exc}") from exc
        raise DatabaseError(f"{type(exc).__name__}: {exc}") from exc
    except (OverflowError, ValueError) as exc:
        raise DatabaseError(f"a value does not fit: {exc}") from exc
