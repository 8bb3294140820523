"""The ground under every command, and what is said when it is not there."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.app import GroundError, check_key, open_ground
from matchpod.ports import Statement
from matchpod.service.access import Access
from matchpod.settings import Settings, load_settings
from matchpod.storage.migrate import current_version
from matchpod.storage.schema import MIGRATIONS


def settings(folder: Path, **values: str) -> Settings:
    given = {f"MATCHPOD_{name.upper()}": value for name, value in values.items()}
    return load_settings({"MATCHPOD_DATA_DIR": str(folder), **given}, lambda _: None)


def fault(wanted: Settings) -> str:
    async def scenario() -> None:
        ground = await open_ground(wanted)
        await ground.close()

    with pytest.raises(GroundError) as caught:
        asyncio.run(scenario())
    return str(caught.value)


def test_folder_database_and_key_are_made(tmp_path: Path) -> None:
    async def scenario() -> None:
        ground = await open_ground(settings(tmp_path / "data"))
        try:
            assert await current_version(ground.db) == len(MIGRATIONS)
            assert ground.vault.open(ground.vault.seal("secret")) == "secret"
            assert ground.clock.now_ms() > 0
        finally:
            await ground.close()

    asyncio.run(scenario())
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "secret.key").stat().st_mode & 0o777 == 0o600


def test_a_key_from_the_settings_needs_no_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        ground = await open_ground(settings(tmp_path, secret_key=base64.b64encode(bytes(32)).decode()))
        await ground.close()

    asyncio.run(scenario())
    assert not (tmp_path / "secret.key").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert fault(settings(tmp_path / "file")) == f"The data folder {tmp_path}/file cannot be made: File exists."


def test_a_key_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_bytes(b"short")
    assert fault(settings(tmp_path)) == f"The key file {tmp_path}/secret.key must hold exactly 32 bytes."


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "matchpod.sqlite3").write_bytes(b"this is no database, just text that somebody put here")
    assert "file is not a database" in fault(settings(tmp_path))


def test_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "matchpod.sqlite3").mkdir()
    assert fault(settings(tmp_path)).startswith(f"The database {tmp_path}/matchpod.sqlite3 cannot be opened: ")


def test_a_database_of_a_newer_version(tmp_path: Path) -> None:
    async def scenario() -> None:
        db = await SqliteDatabase.open(tmp_path / "matchpod.sqlite3")
        await db.write(
            [
                Statement("CREATE TABLE schema_versions (version BIGINT PRIMARY KEY)"),
                Statement("INSERT INTO schema_versions (version) VALUES (999)"),
            ]
        )
        await db.close()

    asyncio.run(scenario())
    said = fault(settings(tmp_path))
    assert said.startswith("The database has version 999, this Matchpod knows versions up to ")
    assert said.endswith(" Use a newer Matchpod for it.")


def test_postgres_that_does_not_answer(tmp_path: Path) -> None:
    said = fault(settings(tmp_path, database_url=f"postgresql://me:hunter2@/matchpod?host={tmp_path}"))
    assert said.startswith("The PostgreSQL database cannot be opened: ")
    assert "hunter2" not in said


KEYS = [base64.b64encode(bytes([number]) * 32).decode() for number in range(2)]


async def begin(wanted: Settings, *organizations: str, replaced: str | None = None) -> None:
    """Open, replace a secret, check the key as a start does, and add organizations."""
    ground = await open_ground(wanted)
    try:
        access = Access(db=ground.db, clock=ground.clock, vault=ground.vault)
        if replaced is not None:
            await access.replace_webhook_secret(replaced)
        await check_key(ground)
        for name in organizations:
            await access.create_organization(name)
    finally:
        await ground.close()


def test_a_key_that_opens_nothing_that_is_stored_is_refused(tmp_path: Path) -> None:
    asyncio.run(begin(settings(tmp_path, secret_key=KEYS[0]), "acme", "other"))
    asyncio.run(begin(settings(tmp_path, secret_key=KEYS[0])))
    with pytest.raises(GroundError) as caught:
        asyncio.run(begin(settings(tmp_path, secret_key=KEYS[1])))
    said = str(caught.value)
    assert said.startswith("The key given as MATCHPOD_SECRET_KEY does not open what is stored in this database; ")
    assert KEYS[1] not in said


def test_a_key_file_that_was_lost_is_named_and_new_secrets_begin_anew(tmp_path: Path) -> None:
    asyncio.run(begin(settings(tmp_path), "acme", "other"))
    (tmp_path / "secret.key").unlink()
    with pytest.raises(GroundError, match=f"The key in the file {tmp_path}/secret.key does not open"):
        asyncio.run(begin(settings(tmp_path)))
    asyncio.run(begin(settings(tmp_path), replaced="acme"))
