"""Open the storage of demos that the settings name."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.ports import DemoStorage
from matchpod.settings import Settings

SPOOL_FOLDER = "demo-parts"


def open_demo_storage(settings: Settings) -> DemoStorage:
    """Return the storage; it is not asked for anything yet."""
    parts = urlsplit(settings.demo_storage_url)
    if parts.scheme == "file":
        return FolderStorage(Path(unquote(parts.path)))
    from matchpod.adapters.demo_storage.s3 import S3Storage  # imported here: it needs an extra, and half a second

    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return S3Storage(
        parts.netloc,
        unquote(parts.path),
        endpoint=options.get("endpoint"),
        region=options.get("region"),
        spool=settings.data_dir / SPOOL_FOLDER,
    )
