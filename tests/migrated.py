"""An empty SQLite database, migrated once per process and then copied: migrating takes longer than most tests."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.storage.migrate import migrate
from tests.vaults import VAULT


def create_migrated(path: Path) -> None:
    """Create the database at this path, unless there is one."""
    if not path.exists():
        path.write_bytes(template())


@cache
def template() -> bytes:
    async def create(path: Path) -> None:
        db = await SqliteDatabase.open(path)
        await migrate(db, VAULT.seal)
        await db.close()

    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:  # this one may run an event loop
        path = Path(folder) / "template.sqlite"
        thread.submit(asyncio.run, create(path)).result()
        return path.read_bytes()
