"""Load the settings and open the resources for a command, or exit with an error message.

If settings are invalid, or need an extra that is not installed, all faults are printed, and the exit code is 2. If a
resource cannot be opened, the reason is printed, and the exit code is 1.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import typer

from matchpod.cli.terminal import print_note
from matchpod.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:  # imported at runtime where they are used, so that simple commands start quickly
    from matchpod.app import Resources
    from matchpod.service.access.audit import Action

_T = TypeVar("_T")


def load_process_settings() -> Settings:
    """Return the settings of this process. If they are invalid, exit with code 2."""
    try:
        return read_process_settings()
    except SettingsError as exc:
        fail(*exc.faults, code=2)


def read_process_settings() -> Settings:
    """Return the settings of this process; raise SettingsError if they are invalid."""
    return load_settings(os.environ, _read_file)


def check_extras(settings: Settings) -> None:
    """If these settings need an extra that is not installed, exit with code 2."""
    from matchpod.app.extras import missing_extras

    if missing := missing_extras(settings):
        fail(*missing, code=2)


def run_with_resources(
    work: Callable[[Resources], Awaitable[_T]],
    *,
    needs_key: bool = False,
    needs_original: bool = False,
    may_create: bool = False,
) -> _T:
    """Open the resources, run `work` and close them. If that fails, print the error and exit.

    With `needs_key`, fail if the vault key does not decrypt the stored secrets. With `needs_original`, fail if the
    database is a copy, because its matches and servers belong to another installation. Create a missing database only
    with `may_create`; otherwise a command in the wrong folder would show an empty database.
    """
    from matchpod.adapters.log_output import set_up_logging
    from matchpod.app import ResourcesError
    from matchpod.ports import DatabaseError
    from matchpod.service.access.organizations import AccessError

    settings = load_process_settings()
    check_extras(settings)
    if not may_create and settings.database_url is None and not settings.database_path.exists():
        where = f"There is no database in {settings.data_dir.absolute()}."
        fail(f"{where} Set MATCHPOD_DATA_DIR to the folder of the service, or start it first.", code=2)
    # The output of a command is its result, so its log has only warnings and errors.
    set_up_logging(log_format=settings.log_format, log_level="warning", stream=sys.stderr)
    try:
        return asyncio.run(_run(work, settings, needs_key=needs_key, needs_original=needs_original))
    except ResourcesError as exc:
        fail(str(exc))
    except AccessError as exc:
        fail(str(exc), code=2)
    except DatabaseError as exc:
        fail(f"Database error: {exc}.")


async def record_act(
    resources: Resources, action: Action, *, org_id: str | None = None, target: str = "", detail: str = ""
) -> None:
    """Record in the audit log what a command does."""
    from matchpod.service.access.audit import COMMAND_LINE, Audit

    audit = Audit(db=resources.db, clock=resources.clock)
    record = audit.entry(action, org_id=org_id, actor=COMMAND_LINE, target=target, detail=detail)
    await resources.db.write([record])


def fail(*sentences: str, code: int = 1) -> NoReturn:
    """Print these sentences to standard error and exit."""
    for sentence in sentences:
        print_note(sentence)
    raise typer.Exit(code)


async def _run(
    work: Callable[[Resources], Awaitable[_T]], settings: Settings, *, needs_key: bool, needs_original: bool
) -> _T:
    from matchpod.app import ResourcesError, check_vault_key, open_resources
    from matchpod.app.database_copies import find_copy

    resources = await open_resources(settings)
    try:
        if needs_original and (reason := await find_copy(resources)) is not None:
            raise ResourcesError(f"This database is a copy: {reason}. Use the original, or see docs/backup.md.")
        if needs_key:
            await check_vault_key(resources)
        return await work(resources)
    finally:
        await resources.close()


def _read_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise SettingsError([f"The file {path} cannot be read: {exc.strerror or exc}."]) from exc
