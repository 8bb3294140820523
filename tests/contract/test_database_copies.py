"""Find out whether a database is a copy: by its data folder for SQLite, by its numbers for PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.backup_file import restore_backup, write_backup
from matchpod.adapters.database_place import PLACE_FILE, PlaceFile
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.app import database_copies
from matchpod.app.database_copies import claim_place, find_copy, settle
from matchpod.app.resources import Resources, ResourcesError, open_resources
from matchpod.ports import Database
from matchpod.settings import load_settings
from matchpod.storage import migrate as migrations
from matchpod.storage.installation_identity import read_place, set_place, store_place
from matchpod.storage.schema import MIGRATIONS
from tests.contract import databases
from tests.contract.databases import HookedDatabase, create_postgres_database, run_postgres_program
from tests.migrated import create_migrated
from tests.vaults import VAULT
from tests.waiting import until

postgres_url = databases.postgres_url


async def opened(folder: Path, **values: str) -> Resources:
    if "database_url" in values:
        values["secret_key"] = "A" * 43 + "="
    variables = {f"MATCHPOD_{name.upper()}": value for name, value in values.items()}
    return await open_resources(load_settings({"MATCHPOD_DATA_DIR": str(folder), **variables}, lambda _: None))


async def claimed(folder: Path, *, is_restored: bool = False, **values: str) -> str | None:
    """Claim the place of a database, as each start of a service does; return why it must not drive matches."""
    resources = await opened(folder, **values)
    try:
        return await claim_place(resources, is_restored=is_restored)
    finally:
        await resources.db.close()


@pytest.fixture
def original(tmp_path: Path) -> Path:
    folder = tmp_path / "original"
    folder.mkdir(0o700)
    create_migrated(folder / "matchpod.sqlite3")
    return folder


# --- SQLite -----------------------------------------------------------------------------------------------------------


async def test_database_is_no_copy_after_ordinary_restarts(original: Path) -> None:
    for _ in range(3):
        assert await claimed(original) is None
    os.chown(original / PLACE_FILE, os.getuid(), os.getgid())  # as Kubernetes does when it mounts a volume
    assert await claimed(original) is None
    moved = original.rename(original.with_name("moved"))
    assert await claimed(moved) is None


@pytest.mark.parametrize("has_token", [False, True])
async def test_file_system_without_stable_inodes_makes_no_copy(original: Path, has_token: bool) -> None:
    assert await claimed(original) is None
    resources = await opened(original)
    place = (await read_place(resources.db)).place
    assert place is not None
    token, _, changed_ns = place.split()
    await store_place(resources.db, f"{token if has_token else 'other'} 1 {changed_ns}", earlier=None)
    found = await find_copy(resources)
    await resources.db.close()
    assert (found is None) == has_token


async def test_folder_that_was_copied_is_a_copy_until_an_operator_says_otherwise(
    original: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await claimed(original) is None
    copied = original.with_name("copied")
    shutil.copytree(original, copied)  # with the times of the files, as `cp -a`
    for _ in range(2):
        assert "its data folder was copied" in (await claimed(copied) or "")
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 2
    assert await claimed(original) is None, "the original is not disturbed"
    assert await claimed(copied, is_restored=True) is None
    assert await claimed(copied) is None
    assert await claimed(original) is None


async def test_database_without_its_folder_is_a_copy(original: Path) -> None:
    assert await claimed(original) is None
    for name in ("with-key", "alone"):
        copied = original.with_name(name)
        copied.mkdir(0o700)
        shutil.copy(original / "matchpod.sqlite3", copied)
    assert f"no file {PLACE_FILE}" in (await claimed(copied) or "")


async def test_older_state_in_the_same_folder_is_a_copy(original: Path) -> None:
    assert await claimed(original) is None
    saved = (original / "matchpod.sqlite3").read_bytes()
    resources = await opened(original)
    await settle(resources)  # as a running service does every few minutes
    await resources.db.close()
    (original / "matchpod.sqlite3").write_bytes(saved)
    assert "replaced with another database" in (await claimed(original) or "")


class PowerFailureError(Exception):
    """The process dies at this moment."""


def dying(db: Database, *, dies_after_first: bool) -> HookedDatabase:
    """Return a database whose process dies after the first write, or before the second."""
    writes: list[object] = []

    async def before(statements: object) -> None:
        writes.append(statements)
        if len(writes) == 2:
            raise PowerFailureError

    async def after(_: object) -> None:
        if dies_after_first:
            raise PowerFailureError

    return HookedDatabase(db, before_write=before, after_write=after)


@pytest.mark.parametrize("before_the_file", [True, False])
@pytest.mark.parametrize("is_first", [True, False])
async def test_processes_that_die_while_they_claim_make_no_copy(
    original: Path, before_the_file: bool, is_first: bool
) -> None:
    if not is_first:
        assert await claimed(original) is None
    for _ in range(3):
        resources = await opened(original)
        db = dying(resources.db, dies_after_first=before_the_file)
        with pytest.raises(PowerFailureError):
            await claim_place(msgspec.structs.replace(resources, db=db), is_restored=False)
        await resources.db.close()
    assert await claimed(original) is None


async def test_backup_is_a_copy_wherever_it_is_restored(original: Path, tmp_path: Path) -> None:
    assert await claimed(original) is None
    key = original / "secret.key"
    write_backup(original / "matchpod.sqlite3", key, tmp_path / "file", mark=set_place)
    restored = tmp_path / "restored"
    restored.mkdir(0o700)
    restore_backup(tmp_path / "file", restored / "matchpod.sqlite3", restored / "secret.key")
    assert "it is a backup of 20" in (await claimed(restored) or "")
    shutil.copy(restored / "matchpod.sqlite3", original)  # without the file beside it
    assert "it is a backup of 20" in (await claimed(original) or "")
    assert await claimed(restored, is_restored=True) is None
    assert await claimed(restored) is None


async def test_backup_of_an_older_version_is_a_copy_too(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (original / "matchpod.sqlite3").unlink()
    before = next(at for at, one in enumerate(MIGRATIONS) if "CREATE TABLE installation" in one[0])
    with monkeypatch.context() as older:
        older.setattr(migrations, "MIGRATIONS", MIGRATIONS[:before])
        db = await SqliteDatabase.open(original / "matchpod.sqlite3")
        await migrations.migrate(db, VAULT.seal)
        await db.close()
    write_backup(original / "matchpod.sqlite3", None, tmp_path / "file", mark=set_place)
    restored = tmp_path / "restored"
    restored.mkdir(0o700)
    restore_backup(tmp_path / "file", restored / "matchpod.sqlite3", restored / "secret.key")
    assert "it is a backup of 20" in (await claimed(restored) or "")
    assert await claimed(original) is None


async def test_running_service_changes_its_token(original: Path) -> None:
    assert await claimed(original) is None
    resources, token = await opened(original), PlaceFile(original).read()
    renewing = asyncio.create_task(database_copies.renew_place(resources, pause_s=0.01))
    await until(lambda: PlaceFile(original).read() != token)
    renewing.cancel()
    with suppress(asyncio.CancelledError):
        await renewing
    await resources.db.close()
    assert await claimed(original) is None


async def test_place_that_cannot_be_recorded_does_not_prevent_a_start(
    original: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (original / PLACE_FILE).mkdir(0o700)
    with pytest.raises(ResourcesError, match=f"{PLACE_FILE} cannot be read"):
        await claimed(original)
    (original / PLACE_FILE).rmdir()
    (original / PLACE_FILE).symlink_to(original / "none" / "none")  # can be neither read nor created
    assert await claimed(original) is None
    assert "identity of the database not recorded" in caplog.messages
    (original / PLACE_FILE).unlink()
    assert await claimed(original) is None


async def test_setting_keeps_a_process_from_driving_matches(original: Path) -> None:
    assert await claimed(original, drive="off") == "This process serves reads only: MATCHPOD_DRIVE is off."
    assert not (original / PLACE_FILE).exists()


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


async def test_dump_or_template_of_a_postgres_database_is_a_copy(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = create_postgres_database(request)
    for folder in ("one", "two"):  # a container may start without its old data folder
        assert await claimed(tmp_path / folder, database_url=url) is None
    dumped, file = create_postgres_database(request), tmp_path / "dump"
    run_postgres_program(request, "pg_dump", "--format=custom", f"--file={file}", url)
    run_postgres_program(request, "pg_restore", f"--dbname={dumped}", str(file))
    for copied in (create_postgres_database(request, template=url), dumped):
        for _ in range(2):
            assert "another PostgreSQL database" in (await claimed(tmp_path, database_url=copied) or "")
        assert await claimed(tmp_path, database_url=copied, is_restored=True) is None
        assert await claimed(tmp_path, database_url=copied) is None
    assert await claimed(tmp_path, database_url=url) is None
    run_postgres_program(request, "pg_restore", "--clean", f"--dbname={url}", str(file))
    assert "another PostgreSQL database" in (await claimed(tmp_path, database_url=url) or ""), "restored in place"
