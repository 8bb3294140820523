"""Open the configured demo storage, and check that it can be used."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.ports import Database, DemoStorage
from matchpod.settings import Settings
from matchpod.storage import heartbeats

SPOOL_FOLDER: Final = "demo-parts"
POLL_S: Final = 0.5

_ONE_PROCESS: Final = (
    "Demos are stored in a folder, which only one process may use, and another replica of the service is running. Set "
    "MATCHPOD_DEMO_STORAGE to a bucket of an S3 service, or run one replica."
)


def open_demo_storage(settings: Settings) -> DemoStorage:
    """Return the configured demo storage. It is not connected yet."""
    folder, parts = demo_folder(settings), urlsplit(settings.demo_storage_url)
    if folder is not None:
        return FolderStorage(folder)
    from matchpod.adapters.demo_storage.s3 import S3Storage  # imported here, because it is slow and needs an extra

    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return S3Storage(
        parts.netloc,
        unquote(parts.path),
        endpoint=options.get("endpoint"),
        region=options.get("region"),
        spool=settings.data_dir / SPOOL_FOLDER,
    )


def demo_folder(settings: Settings) -> Path | None:
    """Return the folder where demos are stored; None if they are stored in a bucket."""
    parts = urlsplit(settings.demo_storage_url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


async def demo_storage_fault(settings: Settings, db: Database, storage: DemoStorage) -> str | None:
    """Return why the service cannot use the demo storage; None if it can.

    If another process seems to be running, wait a few seconds for its heartbeat to expire, because it may be dead.
    """
    if settings.upload_port is None:
        return None
    if not storage.is_shared and db.is_shared:
        waits = int((heartbeats.DEAD_MS / 1000 + 1) / POLL_S)
        for _ in range(waits):
            if not await heartbeats.loads(db):
                break
            await asyncio.sleep(POLL_S)
        else:
            return _ONE_PROCESS
    return await storage.check()
