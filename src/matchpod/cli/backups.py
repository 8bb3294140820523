"""Back up an SQLite database with its key, and restore it: `matchpod backup` and `matchpod restore`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from matchpod.adapters.backup_file import BackupError, BackupInputError, restore_backup, write_backup
from matchpod.adapters.clock import SystemClock
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.app.resources import ResourcesError, make_folder
from matchpod.cli.resources import fail, load_process_settings
from matchpod.cli.terminal import print_note
from matchpod.ports import DatabaseError
from matchpod.service.access.audit import COMMAND_LINE, Action, Audit
from matchpod.settings import Settings
from matchpod.storage.installation_identity import set_place

_MB: Final = 1_000_000

_POSTGRES: Final = (
    "The database is in PostgreSQL, which has its own tools. Keep both of these, in two places:",
    '1. the database: pg_dump --format=custom --file=FILE "$MATCHPOD_DATABASE_URL"',
    "2. the key that decrypts its secrets: {key}",
    "docs/backup.md describes how to restore them.",
)


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write the SQLite database and the secret key to one file. The service may be running.

    The file contains the key and all matches, so keep it as safe as the data folder. With PostgreSQL, this command only
    prints how to make a backup.
    """
    settings = load_process_settings()
    key_path = settings.key_path.absolute() if settings.secret_key is None else None
    if settings.database_url is not None:
        key = "MATCHPOD_SECRET_KEY" if key_path is None else f"the file {key_path}"
        fail(*(sentence.format(key=key) for sentence in _POSTGRES), code=2)
    if not settings.database_path.exists():
        fail(f"There is no database in {settings.data_dir.absolute()}. Set MATCHPOD_DATA_DIR to its folder.", code=2)
    try:
        on_progress = _show_progress if sys.stderr.isatty() else lambda _: None
        contents = write_backup(
            settings.database_path, key_path, file, mark=set_place, may_replace=force, on_progress=on_progress
        )
    except BackupError as exc:
        fail(str(exc), code=_code(exc))
    what = "database and secret key" if contents.has_key else "database"
    typer.echo(f"{file}: {what} of {contents.at}, {contents.size / _MB:.1f} MB")
    _record(settings, file, what)
    if not contents.has_key:
        print_note("The key is not in the backup, because it is in MATCHPOD_SECRET_KEY. Store it in another place.")


def restore(file: Annotated[Path, typer.Argument(help="A file written by `matchpod backup`.")]) -> None:
    """Restore a backup into an empty data folder. A service that is started there serves reads only.

    If the original is gone, start the service once with `matchpod serve --restored`, so that it drives the matches.
    """
    settings = load_process_settings()
    if settings.database_url is not None:
        fail("MATCHPOD_DATABASE_URL is set. A backup is restored into SQLite; see docs/backup.md.", code=2)
    if not file.is_file():
        fail(f"There is no file {file}.", code=2)
    try:
        make_folder(settings.data_dir)
        contents = restore_backup(file, settings.database_path, settings.key_path)
    except (BackupError, ResourcesError) as exc:
        fail(str(exc), code=_code(exc))
    what = "database and secret key" if contents.has_key else "database"
    typer.echo(f"{settings.data_dir}: {what} of {contents.at}, {contents.size / _MB:.1f} MB")
    if not contents.has_key and settings.secret_key is None:
        print_note("The backup has no key. Set MATCHPOD_SECRET_KEY to the key of the original.")
    print_note("A service that is started here serves reads only. If the original is gone: matchpod serve --restored.")


def _record(settings: Settings, file: Path, what: str) -> None:
    """Record the backup in the audit log, without migrating the database; print a failure, such as a full disk."""

    async def record() -> None:
        db = await SqliteDatabase.open(settings.database_path)
        try:
            audit = Audit(db=db, clock=SystemClock())
            path = os.fsencode(file.absolute()).decode(errors="replace")  # a path need not be valid UTF-8
            await db.write(
                [audit.entry(Action.BACKUP_WRITTEN, org_id=None, actor=COMMAND_LINE, target=path, detail=what)]
            )
        finally:
            await db.close()

    try:
        asyncio.run(record())
    except DatabaseError as exc:
        print_note(f"The backup is complete, but not in the audit log: {exc}.")


def _code(exc: Exception) -> int:
    return 2 if isinstance(exc, BackupInputError) else 1


def _show_progress(part: float) -> None:
    typer.echo(f"\r{part:.0%} copied", nl=part >= 1, err=True)
