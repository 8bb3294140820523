"""Return the free pages of an SQLite file to the file system: in steps while a service uses the file, or all at once.

Deleted rows leave free pages, which SQLite uses again before the file grows. A file that was created with incremental
vacuum (see `sqlite.py`) can also be shrunk in small steps. An older file needs a full VACUUM first.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from matchpod.adapters.disk import free_bytes
from matchpod.adapters.sqlite import PAGE_BYTES
from matchpod.ports import DatabaseUnavailableError

STEP_PAGES: Final = 64
"""Number of free pages returned to the file system per transaction. Each transaction blocks writers for some
milliseconds."""
PAUSE_S: Final = 0.05
KEPT_SHARE: Final = 0.1
"""Share of the file that stays free for new rows. With a retention of a month, the rows of a day need about a
thirtieth."""
BUSY_S: Final = 5.0
"""Timeout in seconds for a lock that another connection holds."""
SPARE_BYTES: Final = 16 * 1024 * 1024
"""Disk space in bytes that must remain free in addition to what a VACUUM needs."""

_INCREMENTAL: Final = 2
_MB: Final = 1_000_000

_log = logging.getLogger(__name__)


class VacuumError(Exception):
    """The file could not be made smaller; the message is a sentence for the operator."""


class Pages(msgspec.Struct, frozen=True, kw_only=True):
    """The number of pages in a file, and how many of them are free; `size` is the size of a page in bytes."""

    size: int
    count: int
    free: int
    is_incremental: bool
    """True if the file can be shrunk in steps."""

    @property
    def surplus(self) -> int:
        """Number of free pages in excess of KEPT_SHARE."""
        return max(0, self.free - int(self.count * KEPT_SHARE))


# --- while a service runs -----------------------------------------------------------------------------------------


async def give_back(path: Path, *, pause_s: float = PAUSE_S) -> int:
    """Shrink the file in steps while it is in use, until only KEPT_SHARE of it is free; return the bytes saved."""
    try:
        first = pages = await asyncio.to_thread(read_pages, path)
        if pages.surplus and not pages.is_incremental:
            _log.info(
                "free space stays in the database file: stop the service once and run `matchpod prune --vacuum`",
                extra={"free_mb": pages.free * pages.size // _MB},
            )
        while pages.surplus and pages.is_incremental:
            await asyncio.to_thread(_step, path, min(STEP_PAGES, pages.surplus))
            await asyncio.sleep(pause_s)
            before, pages = pages, await asyncio.to_thread(read_pages, path)
            if pages.count >= before.count:
                break  # new rows fill the file faster than it shrinks
        if pages.count < first.count:
            await asyncio.to_thread(_checkpoint, path)
    except sqlite3.Error as exc:
        raise DatabaseUnavailableError(f"SQLite: {exc}") from exc
    return (first.count - pages.count) * pages.size


def read_pages(path: Path) -> Pages:
    """Read the page size and the numbers of pages of a file."""
    with closing(_connect(path)) as connection:
        return _pages(connection)


def _step(path: Path, pages: int) -> None:
    with closing(_connect(path)) as connection:
        # `execute` would release only one page, because it stops after the first row.
        connection.executescript(f"PRAGMA incremental_vacuum({pages})")


def _checkpoint(path: Path) -> None:
    """Move the write-ahead log to the file without blocking other connections. Only then does the file shrink."""
    with closing(_connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


# --- while no service runs ----------------------------------------------------------------------------------------


def check_unused(path: Path) -> None:
    """Raise VacuumError if another process has the file open."""
    with closing(_connect(path, busy_s=0)) as connection:
        _lock(connection, path)


def vacuum(path: Path, *, free: Callable[[Path], int] = free_bytes) -> tuple[int, int]:
    """Rewrite the file without free pages, so that `give_back` can shrink it later. Return its size before and after.

    The new file has the page size of new installations. Raise VacuumError if another process has the file open, or if
    the disk lacks space: SQLite writes one copy of the file next to it, and one to its journal.
    """
    os.environ["SQLITE_TMPDIR"] = str(path.parent.absolute())  # the copy must not be in memory or on another disk
    before = path.stat().st_size
    try:
        with closing(_connect(path, busy_s=0)) as connection:
            _lock(connection, path)
            pages = _pages(connection)
            needed = 2 * (pages.count - pages.free) * pages.size + SPARE_BYTES
            if (found := free(path.parent)) < needed:
                needed_mb = -(-needed // _MB)
                raise VacuumError(
                    f"Making {path} smaller needs {needed_mb} MB of free disk space; only {found // _MB} MB are free."
                )
            # SQLite does not change the page size in WAL mode.
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
            connection.execute("VACUUM")
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
    except sqlite3.Error as exc:
        raise VacuumError(f"The file {path} could not be made smaller, and is as before: {exc}.") from exc
    return before, path.stat().st_size


def _lock(connection: sqlite3.Connection, path: Path) -> None:
    """Lock the file until the connection is closed; raise VacuumError if another process uses it."""
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.OperationalError as exc:
        raise VacuumError(
            f"Another process uses {path}. Stop the service first, and start it again afterwards."
        ) from exc


def _connect(path: Path, *, busy_s: float = BUSY_S) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=busy_s, isolation_level=None)


def _pages(connection: sqlite3.Connection) -> Pages:
    def value(name: str) -> int:
        ((found,),) = connection.execute(f"PRAGMA {name}").fetchall()
        return msgspec.convert(found, int)

    return Pages(
        size=value("page_size"),
        count=value("page_count"),
        free=value("freelist_count"),
        is_incremental=value("auto_vacuum") == _INCREMENTAL,
    )
