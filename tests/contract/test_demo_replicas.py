"""A folder for demos is for one process: a second replica refuses to start with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.app import demo_storage
from matchpod.app.demo_storage import demo_storage_fault, open_demo_storage
from matchpod.ports import Database
from matchpod.settings import load_settings
from matchpod.storage import heartbeats
from tests.contract import databases

harness = databases.harness

WITH_DEMOS = load_settings({"MATCHPOD_UPLOAD_PORT": "8081"}, lambda _: None)
WITHOUT = load_settings({}, lambda _: None)


class Shared(FolderStorage):
    """A storage that replicas share."""

    @property
    def is_shared(self) -> bool:
        return True


async def test_folder_is_refused_while_another_replica_runs(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_storage, "POLL_S", 1.5)
    folder = FolderStorage(tmp_path / "demos")
    assert await demo_storage_fault(WITH_DEMOS, db, folder) is None
    if not db.is_shared:
        return
    await heartbeats.beat(db, "other")
    assert str(await demo_storage_fault(WITH_DEMOS, db, folder)).startswith("Demos are stored in a folder, which only")
    assert await demo_storage_fault(WITHOUT, db, folder) is None
    assert await demo_storage_fault(WITH_DEMOS, db, Shared(tmp_path)) is None
    await heartbeats.end(db, "other")
    assert await demo_storage_fault(WITH_DEMOS, db, folder) is None


def test_storage_is_the_one_in_the_settings(tmp_path: Path) -> None:
    folder = load_settings({"MATCHPOD_DEMO_STORAGE": f"file://{tmp_path}/a%20b"}, lambda _: None)
    opened = open_demo_storage(folder)
    assert isinstance(opened, FolderStorage)
    assert not opened.is_shared
    bucket = load_settings({"MATCHPOD_DEMO_STORAGE": "s3://cup/x?endpoint=http://s3.example"}, lambda _: None)
    assert open_demo_storage(bucket).is_shared
