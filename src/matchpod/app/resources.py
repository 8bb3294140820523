"""Open the resources that commands need: the data folder, the migrated database, the vault key and the clock."""

from __future__ import annotations

import getpass
import logging
import os
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.private_files import SharedFolderError, is_open_to_others, make_data_folder
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.adapters.vault import KeyFileVault, VaultKeyError
from matchpod.app.demo_storage import open_demo_storage
from matchpod.ports import Clock, Database, DatabaseError, DemoStorage, Vault
from matchpod.service.operations.pruning import Retention
from matchpod.service.operations.readiness import MAX_DIFFERENCE_MS
from matchpod.settings import Settings, has_secrets
from matchpod.storage import organizations
from matchpod.storage.database_checks import database_ms
from matchpod.storage.installation_identity import installation_id
from matchpod.storage.migrate import NewerSchemaError, SchemaVersion, migrate, read_version

_log = logging.getLogger(__name__)


class ResourcesError(Exception):
    """A resource cannot be opened. The message is a sentence for the operator."""


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """The open resources of a command."""

    settings: Settings
    db: Database
    vault: Vault
    clock: Clock
    installation: str
    """The id of this installation. It was created together with the database."""
    demo_storage: DemoStorage

    async def close(self) -> None:
        """Close the demo storage and the database."""
        await self.demo_storage.close()
        await self.db.close()

    @property
    def retention(self) -> Retention:
        settings = self.settings
        return Retention(
            raw_log_days=settings.raw_log_days, event_days=settings.event_days, demo_days=settings.demo_days
        )


async def open_resources(settings: Settings) -> Resources:
    """Open all resources, and migrate the database. Raise ResourcesError if that fails."""
    make_folder(settings.data_dir)
    _check_database_user(settings)
    vault = _open_vault(settings)
    db = await open_database(settings)
    try:
        await _migrate(db, vault)
        clock = await open_clock(db)
        installation = await _read_installation(db)
    except ResourcesError:
        await db.close()
        raise
    return Resources(
        settings=settings,
        db=db,
        vault=vault,
        clock=clock,
        installation=installation,
        demo_storage=open_demo_storage(settings),
    )


async def read_schema_version(settings: Settings) -> SchemaVersion:
    """Return the schema version of the database, but do not migrate it. Raise ResourcesError if that fails."""
    if settings.database_url is None and not settings.database_path.exists():
        return SchemaVersion(applied=0, required=0)
    _check_database_user(settings)
    db = await open_database(settings)
    try:
        return await read_version(db)
    except DatabaseError as exc:
        raise ResourcesError(f"The version of the database cannot be read: {exc}.") from exc
    finally:
        await db.close()


async def check_vault_key(resources: Resources) -> None:
    """Raise ResourcesError if the vault key decrypts none of the stored secrets, so it must be the wrong key."""
    stored = await organizations.list(resources.db)
    if not stored or any(_can_decrypt(resources.vault, organization.webhook_secret) for organization in stored):
        return
    settings = resources.settings
    key = f"in the file {settings.key_path}" if settings.secret_key is None else "given as MATCHPOD_SECRET_KEY"
    raise ResourcesError(
        f"The key {key} does not decrypt the secrets in this database. Use the key that they were stored with, or"
        " replace the secret of every organization: matchpod orgs webhook-secret NAME --replace."
    )


def _can_decrypt(vault: Vault, sealed: bytes) -> bool:
    try:
        vault.open(sealed)
    except ValueError:
        return False
    return True


def make_folder(folder: Path) -> None:
    """Create the data folder if needed. Other users get no access, because it contains the key and all matches."""
    try:
        changed = make_data_folder(folder)
    except SharedFolderError as exc:
        raise ResourcesError(f"The data folder {folder} {exc}.") from exc
    except PermissionError as exc:
        raise ResourcesError(_not_writable(folder)) from exc
    except OSError as exc:
        raise ResourcesError(f"The data folder {folder} cannot be created: {exc.strerror or exc}.") from exc
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ResourcesError(_not_writable(folder))
    if changed:
        _log.warning("other users could read the data folder; their access was removed", extra={"paths": changed})


def warn_of_open_files(settings: Settings) -> None:
    """Warn if all users of this machine can read a file with secrets. Such files were created by an operator."""
    files = {
        "settings": settings.config,
        "secret key": settings.key_path if settings.secret_key is None else None,
        "first API key": settings.first_key_file,
    }
    for what, file in files.items():
        if file is None or not is_open_to_others(file):
            continue
        if file != settings.config or has_secrets(file.read_bytes()):
            _log.warning(
                "all users of this machine can read a file with secrets; take their access away: chmod o-rwx FILE",
                extra={"file": file, "contains": what},
            )


def _not_writable(folder: Path) -> str:
    """Return the error text, with this process's user and the folder's owner. In containers, these often differ."""
    place = next(place for place in (folder.absolute(), *folder.absolute().parents) if os.path.exists(place))
    me, owner = f"uid {os.geteuid()}, gid {os.getegid()}", place.stat()
    what = "cannot be written" if place == folder.absolute() else f"cannot be created in {place}"
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"The data folder {folder} {what}: the file system is read-only."
    mode = f"uid {owner.st_uid}, gid {owner.st_gid} with mode {stat.S_IMODE(owner.st_mode):o}"
    return (
        f"The data folder {folder} {what} by this process ({me}): it belongs to {mode}. Run the service as its owner,"
        f" or give it to this user: chown {os.geteuid()}:{os.getegid()} {place}"
    )


def _open_vault(settings: Settings) -> Vault:
    try:
        if settings.secret_key is not None:
            return KeyFileVault.from_text(settings.secret_key.reveal())
        if settings.database_url is not None and not settings.key_path.exists():
            raise ResourcesError(
                "MATCHPOD_SECRET_KEY is not set: processes that share a PostgreSQL database need the same key, and it"
                " must outlive the data folder. Set it to 32 random bytes in base64, as printed by: openssl rand"
                " -base64 32"
            )
        return KeyFileVault.from_file(settings.key_path)
    except VaultKeyError as exc:
        raise ResourcesError(_sentence(exc)) from exc


def _check_database_user(settings: Settings) -> None:
    """Raise ResourcesError if the database URL has no user name, and the user of this process has no name either."""
    url = None if settings.database_url is None else urlsplit(settings.database_url.reveal())
    if url is None or url.username or "user" in parse_qs(url.query) or os.environ.get("PGUSER"):
        return
    try:
        getpass.getuser()
    except (KeyError, OSError) as exc:  # `getuser` raises OSError since Python 3.13
        raise ResourcesError(
            f"MATCHPOD_DATABASE_URL has no user name, and the user of this process (uid {os.geteuid()}) has no name"
            " either. Write the URL as postgresql://user@host/name."
        ) from exc


async def open_database(settings: Settings, *, connections: int | None = None) -> Database:
    """Open the database, but do not migrate it. Raise ResourcesError if that fails.

    `connections` is the size of the PostgreSQL connection pool; None for the default size.
    """
    try:
        if settings.database_url is not None:
            from matchpod.adapters.postgres import PostgresDatabase  # imported here, because SQLite does not need it

            return await PostgresDatabase.open(settings.database_url.reveal(), connections=connections)
        return await SqliteDatabase.open(settings.database_path)
    except DatabaseError as exc:
        place = "The PostgreSQL database" if settings.database_url else f"The database {settings.database_path}"
        raise ResourcesError(f"{place} cannot be opened: {exc}.") from exc


async def _migrate(db: Database, vault: Vault) -> None:
    try:
        await migrate(db, vault.seal)
    except NewerSchemaError as exc:
        raise ResourcesError(f"{_sentence(exc)} Use a newer version of Matchpod.") from exc
    except DatabaseError as exc:
        raise ResourcesError(f"The database cannot be migrated: {exc}.") from exc


async def _read_installation(db: Database) -> str:
    try:
        return await installation_id(db)
    except DatabaseError as exc:
        raise ResourcesError(f"The id of the installation cannot be stored: {exc}.") from exc


async def open_clock(db: Database) -> Clock:
    """Return the clock. With a shared database, it has the database's time, because leases need equal clocks."""
    try:
        database_now_ms = await database_ms(db)
    except DatabaseError as exc:
        raise ResourcesError(f"The time of the database cannot be read: {exc}.") from exc
    system = SystemClock()
    if database_now_ms is None:
        return system
    difference_ms = system.now_ms() - database_now_ms
    if abs(difference_ms) > MAX_DIFFERENCE_MS:
        about = {"difference_s": difference_ms / 1000}
        _log.warning("clock of this machine differs from the database clock: using the database clock", extra=about)
    return SystemClock(wall_ns=lambda: database_now_ms * 1_000_000)


def _sentence(exc: Exception) -> str:
    text = str(exc)
    return f"{text[:1].upper()}{text[1:]}."
