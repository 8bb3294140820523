"""What does every command stand on? The data folder, the database with its newest tables, the key and the clock."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.adapters.vault import KeyFileVault, VaultKeyError
from matchpod.ports import Clock, Database, DatabaseError, Vault
from matchpod.settings import Settings
from matchpod.storage import organizations
from matchpod.storage.migrate import NewerSchema, migrate

_FOLDER_MODE: Final = 0o700
"""The folder holds the key and every match: nobody else on the machine has a reason to look."""


class GroundError(Exception):
    """The machine does not give what is needed; the message is a sentence for whoever runs it."""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What every command stands on."""

    settings: Settings
    db: Database
    vault: Vault
    clock: Clock

    async def close(self) -> None:
        """Let go of the database."""
        await self.db.close()


async def open_ground(settings: Settings) -> Ground:
    """The ground; GroundError when the machine does not give it."""
    make_folder(settings.data_dir)
    vault = _open_vault(settings)
    db = await _open_database(settings)
    try:
        await _migrate(db)
    except GroundError:
        await db.close()
        raise
    return Ground(settings=settings, db=db, vault=vault, clock=SystemClock())


async def check_key(ground: Ground) -> None:
    """GroundError when nothing that is stored can be opened: what is sealed then would be lost to everybody else."""
    stored = await organizations.list(ground.db)
    if not stored or any(_opens(ground.vault, one.webhook_secret) for one in stored):
        return
    settings = ground.settings
    key = f"in the file {settings.key_path}" if settings.secret_key is None else "given as MATCHPOD_SECRET_KEY"
    raise GroundError(
        f"The key {key} does not open what is stored in this database; use the key that it was made with, or"
        " replace the secret of every organization: matchpod orgs webhook-secret NAME --replace."
    )


def _opens(vault: Vault, sealed: bytes) -> bool:
    try:
        vault.open(sealed)
    except ValueError:
        return False
    return True


def make_folder(folder: Path) -> None:
    """Make the data folder; one that exists is left as it is."""
    try:
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as exc:
        raise GroundError(f"The data folder {folder} cannot be made: {exc.strerror or exc}.") from exc


def _open_vault(settings: Settings) -> Vault:
    try:
        if settings.secret_key is not None:
            return KeyFileVault.from_text(settings.secret_key.reveal())
        return KeyFileVault.from_file(settings.key_path)
    except VaultKeyError as exc:
        raise GroundError(_sentence(exc)) from exc


async def _open_database(settings: Settings) -> Database:
    try:
        if settings.database_url is not None:
            return await PostgresDatabase.open(settings.database_url.reveal())
        return await SqliteDatabase.open(settings.database_path)
    except DatabaseError as exc:
        place = "The PostgreSQL database" if settings.database_url else f"The database {settings.database_path}"
        raise GroundError(f"{place} cannot be opened: {exc}.") from exc


async def _migrate(db: Database) -> None:
    try:
        await migrate(db)
    except NewerSchema as exc:
        raise GroundError(f"{_sentence(exc)} Use a newer Matchpod for it.") from exc
    except DatabaseError as exc:
        raise GroundError(f"The tables of the database cannot be made: {exc}.") from exc


def _sentence(fault: Exception) -> str:
    text = str(fault)
    return f"{text[:1].upper()}{text[1:]}."
