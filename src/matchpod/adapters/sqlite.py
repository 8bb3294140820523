"""Implement the Database port with an SQLite file that only this process uses.

A single thread writes. Queued transactions are committed together (one COMMIT, one wait for the disk), each in its own
savepoint, so a failed transaction does not affect the others. A write returns only after its COMMIT. Queries run in
reader threads with their own connections, except `read_one`. In WAL mode, readers and the writer do not block each
other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Final

from matchpod import ports
from matchpod.adapters.private_files import open_private

READERS: Final = 3
"""Number of reader threads. Queries are short, and SQLite mostly reads from memory, so more threads would only wait for
each other. The number is greater by one than the limit of concurrent reads per organization (`fair_turns.py`), so that
slow requests of one organization leave a thread free."""
WAITING_WRITES: Final = 10_000
"""Maximum number of queued writes. If it is reached, the disk is far too slow, and further writes are rejected."""
GROUP_SIZE: Final = 256
"""Maximum number of transactions per COMMIT. The first transaction of a group waits until all of them have run."""
PAGE_BYTES: Final = 1024
"""Page size in bytes of a new file. It is small, because each post changes (and so writes) a page of its match's index.
"""
CHECKPOINT_BYTES: Final = 64_000_000
"""Size in bytes of the write-ahead log at which its pages are moved to the file. Each post of a match changes mostly
the same pages, so rarer checkpoints write fewer bytes."""
CHECKPOINT_S: Final = 60.0
"""Maximum time in seconds between checkpoints while there are writes. It keeps the write-ahead log of a small
installation at 8 MB."""
READ_S: Final = 15.0
"""Timeout in seconds for a query."""
BUSY_S: Final = 5.0
"""Timeout in seconds for a lock that another program (a backup, a shell) holds."""

_ERRORS: Final = (sqlite3.Error, OverflowError, ValueError)
_UNAVAILABLE_CODES: Final = frozenset(
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
    """A queued transaction and its result. The result is reported after the COMMIT."""

    __slots__ = ("error", "future", "loop", "rows", "statements")

    def __init__(self, statements: Sequence[ports.Statement]) -> None:
        self.statements = statements
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[list[ports.Row]]] = self.loop.create_future()
        self.rows: list[list[ports.Row]] = []
        self.error: ports.DatabaseError | None = None

    def resolve(self) -> None:
        """Set the result of the future. Called after the COMMIT, in the event loop of the caller."""
        if self.future.done():
            return  # the caller was cancelled, although the transaction was committed
        if self.error is None:
            self.future.set_result(self.rows)
        else:
            self.future.set_exception(self.error)


class SqliteDatabase:
    def __init__(self, path: Path, *, busy_s: float, checkpoint_s: float) -> None:
        _create(path)
        self._path = path
        self._busy_s = busy_s
        self._checkpoint_s = checkpoint_s
        self._next_checkpoint_s = monotonic() + checkpoint_s
        self._writer = _connect(path, busy_s)
        ((page_bytes,),) = self._writer.execute("PRAGMA page_size").fetchall()
        self._writer.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_BYTES // page_bytes}")
        # Keep the pages that a savepoint may have to restore in memory, not in a temporary file.
        self._writer.execute("PRAGMA temp_store = MEMORY")
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._accepting = threading.Lock()
        self._is_closed = False
        self._reader_of_thread = threading.local()
        self._loop_reader = _connect(path, busy_s)
        # In the event loop, a query fails instead of waiting for a file that another program has locked.
        for setting in ("query_only = ON", "busy_timeout = 0"):
            self._loop_reader.execute(f"PRAGMA {setting}")
        self._reader_connections: list[sqlite3.Connection] = []
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-reader")
        self._thread = threading.Thread(target=self._write_until_closed, name="sqlite-writer", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, path: Path, *, busy_s: float = BUSY_S, checkpoint_s: float = CHECKPOINT_S) -> SqliteDatabase:
        """Open the file, creating it if it does not exist; raise DatabaseUnavailableError if that fails."""
        return await asyncio.to_thread(cls, path, busy_s=busy_s, checkpoint_s=checkpoint_s)

    @property
    def is_shared(self) -> bool:
        """Return False, because only this process uses the file."""
        return False

    @property
    def is_postgres(self) -> bool:
        return False

    async def read(self, sql: str, params: Mapping[str, ports.Value] | None = None) -> list[ports.Row]:
        if self._is_closed:
            raise ports.DatabaseUnavailableError("the database is closed")
        try:
            async with asyncio.timeout(READ_S):
                return await asyncio.get_running_loop().run_in_executor(self._readers, self._query, sql, params or {})
        except TimeoutError as exc:
            raise ports.DatabaseUnavailableError("the SQLite query timed out") from exc

    async def read_one(self, sql: str, params: Mapping[str, ports.Value]) -> ports.Row | None:
        """Return the first row of a query that uses an index, or None if there is none.

        The query runs in the event loop: when cached, it takes 15 µs, and passing it to a thread and back would take 90
        µs.
        """
        if self._is_closed:
            raise ports.DatabaseUnavailableError("the database is closed")
        try:
            # All rows are fetched, because an unfinished cursor would keep its read transaction open.
            rows: list[ports.Row] = self._loop_reader.execute(sql, params).fetchall()
        except _ERRORS as exc:  # `_translate_errors`, a context manager, would take 2 µs
            raise _translated(exc) from exc
        return rows[0] if rows else None

    def version(self) -> int | None:
        """Return a number that changes with each commit, by any program; None if the file cannot be read.

        Reading this number takes a third of the time of a query.
        """
        try:
            version: int = self._loop_reader.execute("PRAGMA data_version").fetchone()[0]
        except _ERRORS:
            return None
        return version

    async def write(self, statements: Sequence[ports.Statement]) -> list[list[ports.Row]]:
        """Run the statements as one transaction. When this returns, the transaction is on disk."""
        job = _Job(statements)
        with self._accepting:
            if self._is_closed:
                raise ports.DatabaseUnavailableError("the database is closed")
            if self._jobs.qsize() >= WAITING_WRITES:
                raise ports.DatabaseUnavailableError("too many writes are waiting for the disk")
            self._jobs.put(job)
        # There is no timeout: the writer resolves every job, and a job could still be committed after a timeout.
        return await job.future

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        """Wait until cancelled, because no other process uses the file."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Commit all accepted writes, then close the file. Calling it twice is fine."""
        with self._accepting:
            if self._is_closed:
                return
            self._is_closed = True
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._readers.shutdown()
        for connection in (self._loop_reader, *self._reader_connections):
            connection.close()
        self._writer.close()

    # --- reading ------------------------------------------------------------------------------------------------

    def _query(self, sql: str, params: Mapping[str, ports.Value]) -> list[ports.Row]:
        with _translate_errors():
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
            except Exception as exc:  # noqa: BLE001 - the only writer must survive, and its callers need a result
                _log.exception("SQLite writer failed")
                self._roll_back()
                _fail(jobs, ports.DatabaseError(f"{type(exc).__name__}: {exc}"))
            _resolve(jobs)
            if monotonic() >= self._next_checkpoint_s:
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Move pages of the write-ahead log to the file, except pages that a reader still needs."""
        with contextlib.suppress(sqlite3.Error):  # retried later; nothing is lost
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._next_checkpoint_s = monotonic() + self._checkpoint_s

    def _next_group(self) -> tuple[list[_Job], bool]:
        """Wait for a job. Return it and other queued jobs, at most GROUP_SIZE, and whether the database stays open."""
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
        """Commit jobs together. If that fails, commit each job alone, because small jobs may fit on a full disk."""
        if not jobs:
            return
        try:
            with _translate_errors():
                self._writer.execute("BEGIN IMMEDIATE")
        except ports.DatabaseError as exc:
            _fail(jobs, exc)
            return
        try:
            if len(jobs) == 1:  # no savepoint needed: if the job fails, there is nothing to commit
                with _translate_errors():
                    self._run_statements(jobs[0])
            else:
                for job in jobs:
                    self._run(job)
            with _translate_errors():
                self._writer.execute("COMMIT")
        except ports.DatabaseError as exc:
            self._roll_back()
            if len(jobs) == 1:
                _fail(jobs, exc)
                return
            for job in jobs:
                job.error = None
                self._commit([job])

    def _run(self, job: _Job) -> None:
        """Run a job in a savepoint and store its error. Only DatabaseUnavailableError is raised, to fail the group."""
        self._writer.execute("SAVEPOINT job")
        try:
            with _translate_errors():
                self._run_statements(job)
        except ports.DatabaseUnavailableError:
            raise
        except ports.DatabaseError as exc:
            job.error = exc
            self._writer.execute("ROLLBACK TO job")
        self._writer.execute("RELEASE job")

    def _run_statements(self, job: _Job) -> None:
        job.rows = [self._run_statement(statement) for statement in job.statements]

    def _run_statement(self, statement: ports.Statement) -> list[ports.Row]:
        cursor = self._writer.execute(statement.sql, statement.params)
        rows: list[ports.Row] = cursor.fetchall()
        if max(len(rows), cursor.rowcount) < statement.must_change:
            raise ports.NothingChangedError("the statement changed too few rows")
        return rows

    def _roll_back(self) -> None:
        # After some errors, such as a full disk, SQLite has rolled back the transaction itself.
        with contextlib.suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")


def _resolve(jobs: Sequence[_Job]) -> None:
    """Resolve all jobs of an event loop in one call, because waking a loop is most of the cost of a small write."""
    for loop in {job.loop for job in jobs}:
        own = [job for job in jobs if job.loop is loop]
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_resolve_in_loop, own)


def _resolve_in_loop(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        job.resolve()


def _fail(jobs: Sequence[_Job], error: ports.DatabaseError) -> None:
    for job in jobs:
        job.error = error


def _create(path: Path) -> None:
    """Create the file so that only its owner can read it; SQLite's journals get the same mode."""
    # O_EXCL: an existing file must not be opened, because closing it would release this process's locks on it.
    with contextlib.suppress(OSError):  # SQLite reports the error
        os.close(open_private(path, os.O_EXCL))


def _connect(path: Path, busy_s: float) -> sqlite3.Connection:
    with _translate_errors():
        # No implicit transactions (isolation_level None). Each connection is used by one thread, but closed by another.
        connection = sqlite3.connect(
            path, timeout=busy_s, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        try:
            # Only for a new file: an existing file keeps its settings, but each connection would write to it.
            if _is_empty(path):
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # see `sqlite_space.py`
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if not _has_temporary_folder():
                connection.execute("PRAGMA temp_store = MEMORY")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def _has_temporary_folder() -> bool:
    """True if SQLite finds a folder for the temporary files of large sorts. A hardened container may lack it.

    Checks the folders that SQLite tries. If SQLite cannot write to any of them, a sort fails with "disk I/O error".
    """
    named = [os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR")]
    places = [*filter(None, named), "/var/tmp", "/usr/tmp", "/tmp", "."]
    return any(os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK) for place in places)


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except _ERRORS as exc:
        raise _translated(exc) from exc


def _translated(exc: Exception) -> ports.DatabaseError:
    if not isinstance(exc, sqlite3.Error):
        return ports.DatabaseError(f"a value was rejected: {exc}")
    # Errors that Python's sqlite3 module raises itself, such as a missing parameter, have no error code.
    code: int = getattr(exc, "sqlite_errorcode", 0)
    if code in _DUPLICATE_CODES:
        return ports.DuplicateError(str(exc))
    if code & 0xFF in _UNAVAILABLE_CODES:
        return ports.DatabaseUnavailableError(f"SQLite: {exc}")
    return ports.DatabaseError(f"{type(exc).__name__}: {exc}")
