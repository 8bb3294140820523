"""Migrate the database, or check whether it is up to date: `matchpod migrate`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from matchpod.app import ResourcesError, read_schema_version
from matchpod.cli.resources import check_extras, fail, load_process_settings, run_with_resources
from matchpod.cli.terminal import print_note
from matchpod.settings import Settings
from matchpod.storage.migrate import NewerSchemaError, SchemaVersion, current_version, describe
from matchpod.storage.schema import MIGRATIONS

if TYPE_CHECKING:
    from matchpod.app import Resources


def migrate(
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Change nothing. Missing migrations are listed. Exit code 0 if the database is up to date, 1 if"
            " migrations are missing or it cannot be read, 2 if it requires a newer version of Matchpod.",
        ),
    ] = False,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored",
            help="For a copy of a database: record that the original is gone, as `matchpod serve --restored` does, but"
            " without starting the service. See docs/backup.md.",
        ),
    ] = False,
) -> None:
    """Migrate the database to the schema of this version, and print the applied migrations. It can be repeated safely.

    Every command that opens the database migrates it first. Use this command in a job that runs before an upgrade.
    Processes of the previous release can keep running. See docs/upgrade.md.
    """
    settings = load_process_settings()
    check_extras(settings)
    if restored and (check or not settings.drive):
        fail(f"--restored cannot be used {'with --check' if check else 'while MATCHPOD_DRIVE is off'}.", code=2)
    before = _read(settings)
    if check:
        _check(before)
        return
    version, taken_over = run_with_resources(lambda resources: _migrate(resources, restored=restored), may_create=True)
    if before.applied < version:
        typer.echo(f"Migrated from version {before.applied} to {version}:")
        _list_migrations(before.applied, version)
    typer.echo(_summary(version))
    if restored:
        typer.echo(
            "Its matches are driven from here from now on." if taken_over else "It is not a copy; nothing was recorded."
        )


async def _migrate(resources: Resources, *, restored: bool) -> tuple[int, bool]:
    """Migrate the database. Return its version, and whether it was a copy that was now made the original."""
    from matchpod.app.database_copies import find_copy, settle

    is_copy = restored and await find_copy(resources) is not None
    if is_copy:
        await settle(resources)
    return await current_version(resources.db), is_copy


def _check(found: SchemaVersion) -> None:
    if found.required > len(MIGRATIONS):
        error = str(NewerSchemaError(found.required, len(MIGRATIONS)))
        fail(f"{error[:1].upper()}{error[1:]}. Use a newer version of Matchpod.", code=2)
    if found.applied < len(MIGRATIONS):
        print_note(f"The database has version {found.applied}. Missing up to version {len(MIGRATIONS)}:")
        _list_migrations(found.applied, len(MIGRATIONS))
        raise typer.Exit(1)
    typer.echo(_summary(found.applied))


def _read(settings: Settings) -> SchemaVersion:
    try:
        return asyncio.run(read_schema_version(settings))
    except ResourcesError as exc:
        fail(str(exc))


def _list_migrations(after: int, to: int) -> None:
    for version in range(after + 1, min(to, len(MIGRATIONS)) + 1):
        typer.echo(f"  {version}: {describe(version)}")


def _summary(version: int) -> str:
    if version > len(MIGRATIONS):
        return (
            f"The database has version {version}, of a newer Matchpod. This Matchpod knows versions up to"
            f" {len(MIGRATIONS)}, and can use the database."
        )
    return f"The database has version {version}."
