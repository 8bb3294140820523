"""Back up an SQLite database and the secret key to one file while a service uses them, and restore them.

A backup is a tar file, so that it can be opened without Matchpod. The database in it is marked as a copy. A service
that starts with a copy does not drive its matches, because the service with the original may be driving them (see
`app/database_copies.py`).
"""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from matchpod.adapters.database_place import BACKUP, PLACE_FILE
from matchpod.adapters.private_files import FILE_MODE, OWN_NAMES, SETTINGS_NAME, sync_folder
from matchpod.ports import Statement

STEP_PAGES: Final = 4_096
"""Number of pages copied between two progress reports."""
BUSY_S: Final = 30.0
"""Timeout in seconds for a lock on the database that the running service holds."""

_DRAFT: Final = ".matchpod-draft-"


class BackupError(Exception):
    """Writing or restoring a backup failed. The message is a sentence for the operator."""


class BackupInputError(BackupError):
    """A file or folder that the operator named cannot be used."""


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """When a backup was written (UTC), whether it has the key, and its size in bytes (restored: of the database)."""

    at: str
    has_key: bool
    size: int


def write_backup(
    database: Path,
    key: Path | None,
    target: Path,
    *,
    mark: Callable[[str], Sequence[Statement]],
    may_replace: bool = False,
    on_progress: Callable[[float], None] = lambda _: None,
    step_pages: int = STEP_PAGES,
) -> Contents:
    """Write a backup. If that fails, raise BackupError and leave no incomplete file behind.

    The database may be in use; the backup is a consistent snapshot. `key` is None if there is no key file. `mark`
    returns the statements that mark the database as a copy.
    """
    _check_target(target, database.parent, may_replace=may_replace)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with _sentences(f"The backup {target}", "written"), TemporaryDirectory(prefix=_DRAFT, dir=target.parent) as draft:
        copied, packed = Path(draft) / database.name, Path(draft) / "backup.tar"
        _copy_database(database, copied, on_progress, step_pages)
        _mark(copied, mark(f"{BACKUP}{at}"))
        with open(os.open(packed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
            _pack(file, copied, key, at)
            file.flush()
            os.fsync(file.fileno())
        size = packed.stat().st_size
        if may_replace:
            packed.replace(target)
        else:
            os.link(packed, target)  # unlike a rename, it never replaces a file
    sync_folder(target.parent)
    return Contents(at=at, has_key=key is not None, size=size)


def restore_backup(source: Path, database: Path, key: Path) -> Contents:
    """Restore the database and the key from a backup to the data folder; raise BackupError if that fails.

    The folder must exist and be empty, except for a settings file. The complete database is moved into it last.
    """
    folder = database.parent
    with _sentences(f"The backup {source}", "restored"):
        found = sorted(set(os.listdir(folder)) - {SETTINGS_NAME})
        if found:
            raise BackupInputError(f"The data folder {folder} is not empty ({found[0]}). Restore into an empty one.")
        with TemporaryDirectory(prefix=_DRAFT, dir=folder) as draft:
            at = _unpack(source, Path(draft), {database.name, key.name, PLACE_FILE})
            restored = {path.name for path in Path(draft).iterdir()}
            if database.name not in restored or at is None:
                raise BackupInputError(f"The file {source} is not a backup of Matchpod.")
            _check_database(Path(draft) / database.name, source)
            for name in sorted(restored, key=lambda name: name == database.name):
                (Path(draft) / name).rename(folder / name)
        sync_folder(folder)
        return Contents(at=at, has_key=key.name in restored, size=database.stat().st_size)


def _check_target(target: Path, folder: Path, *, may_replace: bool) -> None:
    if not target.parent.is_dir():
        raise BackupInputError(f"There is no folder {target.parent}.")
    if target.is_dir():
        raise BackupInputError(f"{target} is a folder. Name a file.")
    is_own = any(fnmatchcase(target.name, name) for name in (*OWN_NAMES, SETTINGS_NAME))
    if is_own and target.parent.resolve() == folder.resolve():
        raise BackupInputError(f"The file {target} belongs to the service. Choose another name.")
    if target.exists() and not may_replace:
        raise BackupInputError(f"The file {target} exists. Use --force to replace it.")


def _copy_database(source: Path, copied: Path, on_progress: Callable[[float], None], step_pages: int) -> None:
    with closing(_open(source)) as original, closing(sqlite3.connect(copied, isolation_level=None)) as copy:
        # Without a read transaction, every commit of the service would restart the copy.
        original.execute("BEGIN")
        original.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        original.backup(
            copy,
            pages=step_pages,
            progress=lambda _status, left, total: on_progress(1 - left / total if total else 1.0),
        )
        copy.execute("PRAGMA journal_mode = DELETE")  # makes the copy a single file without a journal


def _mark(copied: Path, statements: Sequence[Statement]) -> None:
    """Mark the database as a copy. If its schema is too old for that, only the PLACE_FILE of the backup marks it."""
    with closing(sqlite3.connect(copied)) as db, db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if "installation" in tables:
            for statement in statements:
                db.execute(statement.sql, dict(statement.params))


def _pack(file: io.BufferedWriter, copied: Path, key: Path | None, at: str) -> None:
    with tarfile.open(fileobj=file, mode="w") as tar:
        place = f"{BACKUP}{at}\n".encode()
        tar.addfile(_entry(PLACE_FILE, len(place)), io.BytesIO(place))
        for path in (copied, key):
            if path is not None:
                with path.open("rb") as content:
                    tar.addfile(_entry(path.name, os.fstat(content.fileno()).st_size), content)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, FILE_MODE, int(time.time())
    return entry


def _unpack(source: Path, draft: Path, names: set[str]) -> str | None:
    """Extract the files with these names to the draft folder; return the time of the backup, None if it is unknown."""
    with tarfile.open(source, mode="r:") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.name in names and member.isreg() else None
            if content is None:
                continue
            with open(os.open(draft / member.name, os.O_WRONLY | os.O_CREAT, FILE_MODE), "wb") as file:
                shutil.copyfileobj(content, file)
                file.flush()
                os.fsync(file.fileno())
    with suppress(FileNotFoundError):
        place = (draft / PLACE_FILE).read_text(errors="replace").strip()
        return place.removeprefix(BACKUP) if place.startswith(BACKUP) else None
    return None


def _check_database(path: Path, source: Path) -> None:
    with closing(_open(path)) as db:
        (fault,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if fault != "ok":
        raise BackupError(f"The database in {source} is damaged: {fault}.")


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_S, isolation_level=None)


@contextmanager
def _sentences(what: str, done: str) -> Iterator[None]:
    """Convert errors of files, tar archives and SQLite to a BackupError. Its message is a sentence for the operator."""
    try:
        yield
    except FileExistsError as exc:
        raise BackupError(f"{what} cannot be {done}: the file has just been created by another program.") from exc
    except OSError as exc:
        raise BackupError(f"{what} cannot be {done}: {exc.strerror or exc}.") from exc
    except (tarfile.TarError, sqlite3.Error) as exc:
        raise BackupError(f"{what} cannot be {done}: {exc}.") from exc
