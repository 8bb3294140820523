"""Opening the resources of a command, and the error messages when that fails."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchpod.app import ResourcesError, check_vault_key, open_resources
from matchpod.app.resources import warn_of_open_files
from matchpod.service.access.organizations import Access
from matchpod.settings import Settings, load_settings
from matchpod.storage.migrate import current_version
from matchpod.storage.schema import MIGRATIONS


def settings(folder: Path, **values: str) -> Settings:
    variables = {f"MATCHPOD_{name.upper()}": value for name, value in values.items()}
    return load_settings({"MATCHPOD_DATA_DIR": str(folder), **variables}, lambda _: None)


async def opening_error(wanted: Settings) -> str:
    with pytest.raises(ResourcesError) as caught:
        await open_resources(wanted)
    return str(caught.value)


async def test_folder_database_and_key_are_created(tmp_path: Path) -> None:
    resources = await open_resources(settings(tmp_path / "data"))
    try:
        assert await current_version(resources.db) == len(MIGRATIONS)
        assert resources.vault.open(resources.vault.seal("secret")) == "secret"
        assert resources.clock.now_ms() > 0
    finally:
        await resources.db.close()


async def test_everything_is_for_its_owner_only_without_a_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        resources = await open_resources(settings(tmp_path / "new" / "data"))
        files = [path.name for path in (tmp_path / "new" / "data").iterdir()]
        open_to_others = [path for path in tmp_path.rglob("*") if path.stat().st_mode & 0o077]
        await resources.db.close()
    finally:
        os.umask(before)
    assert {"matchpod.sqlite3", "matchpod.sqlite3-wal", "matchpod.sqlite3-shm", "secret.key"} <= set(files)
    assert open_to_others == []


async def test_access_of_others_is_removed_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await (await open_resources(settings(tmp_path))).db.close()
    tmp_path.chmod(0o755)
    (tmp_path / "matchpod.sqlite3").chmod(0o644)
    await (await open_resources(settings(tmp_path))).db.close()
    (record,) = caplog.records
    assert record.message == "other users could read the data folder; their access was removed"
    assert vars(record)["paths"] == [tmp_path, tmp_path / "matchpod.sqlite3"]
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "matchpod.sqlite3").stat().st_mode & 0o777 == 0o600


STATIC = """
[[regions]]
code = "eu"
[regions.fleet]
kind = "static"
servers = [{ address = "192.0.2.1:27015", rcon_password = "hidden" }]
"""
TOKENS = """
[[regions]]
code = "eu"
[regions.fleet]
kind = "process"
ports = "27015-27015"
command = ["cs2", "{port}", "{cfg}"]
cfg_dir = "cfg"
steam_tokens = ["ABCDEFGH1234"]
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that all users can enter, unlike pytest's temporary folders."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def warned(caplog: pytest.LogCaptureFixture, wanted: Settings) -> dict[str, Path]:
    """Return the files that a start warns about, by what they contain."""
    caplog.clear()
    warn_of_open_files(wanted)
    assert all(record.levelno == logging.WARNING and "chmod o-rwx" in record.message for record in caplog.records)
    return {vars(record)["contains"]: vars(record)["file"] for record in caplog.records}


@pytest.mark.parametrize(
    ("content", "has_secret"),
    [
        (STATIC, True),
        (TOKENS, True),
        (f'secret_key = "{base64.b64encode(bytes(32)).decode()}"', True),
        ('database_url = "postgresql://me:hidden@db/name"\nlog_level = "info"', True),
        ('log_level = "info"', False),
        ("", False),
    ],
)
def test_settings_with_secrets_that_all_users_can_read_are_warned_about(
    open_folder: Path, caplog: pytest.LogCaptureFixture, content: str, *, has_secret: bool
) -> None:
    file = open_folder / "matchpod.toml"
    file.write_text(content)
    file.chmod(0o644)
    variables = {"MATCHPOD_DATA_DIR": str(open_folder / "data"), "MATCHPOD_CONFIG": str(file)}
    wanted = load_settings(variables, lambda path: path.read_bytes())
    assert warned(caplog, wanted) == ({"settings": file} if has_secret else {})
    assert "hidden" not in caplog.text
    file.chmod(0o640)
    assert warned(caplog, wanted) == {}


def test_key_files_that_all_users_can_read_are_warned_about(
    open_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, key = open_folder / "first-key", open_folder / "secret.key"
    for file in (first, key):
        file.touch()
        file.chmod(0o644)
    wanted = settings(open_folder, first_key_file=str(first))
    assert warned(caplog, wanted) == {"secret key": key, "first API key": first}
    unused = settings(open_folder, secret_key=base64.b64encode(bytes(32)).decode())
    assert warned(caplog, unused) == {}
    for file in (first, key):
        file.chmod(0o600)
    assert warned(caplog, wanted) == {}


async def test_folder_shared_with_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "report.doc").touch()
    tmp_path.chmod(0o755)
    message = await opening_error(settings(tmp_path))
    assert message.startswith(
        f"The data folder {tmp_path} contains files that are not Matchpod's, and other users can access it; use "
    )
    assert message.endswith(f"or run: chmod 700 {tmp_path}.")
    assert [path.name for path in tmp_path.iterdir()] == ["report.doc"]


async def test_key_from_the_settings_needs_no_file(tmp_path: Path) -> None:
    resources = await open_resources(settings(tmp_path, secret_key=base64.b64encode(bytes(32)).decode()))
    await resources.db.close()
    assert not (tmp_path / "secret.key").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("secret.key", b"short", "The key file {}/secret.key must contain exactly 32 bytes."),
        ("matchpod.sqlite3", b"plain text, long enough to be read as a SQLite header", "file is not a database"),
        ("matchpod.sqlite3", None, "The database {}/matchpod.sqlite3 cannot be opened: "),
    ],
    ids=["key of the wrong length", "no database", "folder instead of a database"],
)
async def test_unusable_file_is_reported(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    assert message.format(tmp_path) in await opening_error(settings(tmp_path))


async def test_error_about_an_unreachable_postgres_hides_the_password(tmp_path: Path) -> None:
    url, key = f"postgresql://me:hunter2@/matchpod?host={tmp_path}", base64.b64encode(bytes(32)).decode()
    message = await opening_error(settings(tmp_path, database_url=url, secret_key=key))
    assert message.startswith("The PostgreSQL database cannot be opened: ")
    assert "hunter2" not in message


KEYS = [base64.b64encode(bytes([number]) * 32).decode() for number in range(2)]


async def start(wanted: Settings, *organizations: str) -> None:
    """Open the resources, check the vault key as `serve` does, and add organizations."""
    resources = await open_resources(wanted)
    try:
        access = Access(db=resources.db, clock=resources.clock, vault=resources.vault)
        await check_vault_key(resources)
        for name in organizations:
            await access.create_organization(name)
    finally:
        await resources.db.close()


def test_key_that_decrypts_no_stored_secret_is_rejected(tmp_path: Path) -> None:
    asyncio.run(start(settings(tmp_path, secret_key=KEYS[0]), "acme", "other"))
    asyncio.run(start(settings(tmp_path, secret_key=KEYS[0])))
    with pytest.raises(ResourcesError) as caught:
        asyncio.run(start(settings(tmp_path, secret_key=KEYS[1])))
    message = str(caught.value)
    assert message.startswith("The key given as MATCHPOD_SECRET_KEY does not decrypt the secrets in this database. ")
    assert KEYS[1] not in message


async def test_postgres_needs_a_secret_key_unless_there_is_a_key_file(tmp_path: Path) -> None:
    wanted = settings(tmp_path, database_url=f"postgresql://me@/matchpod?host={tmp_path}")
    message = await opening_error(wanted)
    assert message.startswith(
        "MATCHPOD_SECRET_KEY is not set: processes that share a PostgreSQL database need the same"
    )
    assert not (tmp_path / "secret.key").exists()
    (tmp_path / "secret.key").write_bytes(bytes(32))
    assert (await opening_error(wanted)).startswith("The PostgreSQL database cannot be opened")
