"""Delete entries that are past their retention: `matchpod prune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from matchpod.adapters import sqlite_space
from matchpod.adapters.sqlite_space import VacuumError
from matchpod.app import Resources
from matchpod.cli.resources import fail, load_process_settings, record_act, run_with_resources
from matchpod.service.access.audit import Action
from matchpod.service.operations import pruning
from matchpod.service.operations.pruning import AUDIT_DAYS, STREAM_DAYS, Pruned, Retention
from matchpod.storage import compaction, demos

_MB: Final = 1_000_000


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    vacuum: Annotated[
        bool,
        typer.Option("--vacuum", help="Then rewrite the SQLite file without free space. Stop the service first."),
    ] = False,
) -> None:
    """Delete entries that are older than the settings allow, as a running service does once a day.

    This command deletes logs, events and demos of ended matches, entries of the audit log, idempotency keys, and
    counters that have become 0. Results, series, maps and statistics are kept forever. Matches that ended more than a
    day ago are compressed.
    """

    async def work(resources: Resources) -> _Report:
        db, retention, now_ms = resources.db, resources.retention, resources.clock.now_ms()
        if dry_run:
            return _Report(
                retention,
                await pruning.count_prunable(db, retention, now_ms),
                await demos.count_prunable(db, retention.demos_from_ms(now_ms)),
                await compaction.count_due(db, now_ms),
            )
        days = (("logs", retention.raw_log_days), ("events", retention.event_days), ("demos", retention.demo_days))
        kept = ", ".join(f"{what} {_days(number)}" for what, number in days)
        await record_act(resources, Action.PRUNE_STARTED, detail=f"kept: {kept}")
        return _Report(
            retention,
            await pruning.prune(db, retention, now_ms),
            await pruning.prune_demos(db, resources.demo_storage, retention, now_ms),
            await compaction.compact(db, now_ms),
        )

    database = _file_to_vacuum(dry_run=dry_run) if vacuum else None
    _print_report(run_with_resources(work), dry_run=dry_run)
    if database is not None:
        try:
            before, after = sqlite_space.vacuum(database)
        except VacuumError as exc:
            fail(str(exc))
        typer.echo(f"{database}: {before / _MB:.1f} MB before, {after / _MB:.1f} MB now")


class _Report(NamedTuple):
    """The numbers of entries that were deleted and compressed or, in a dry run, would have been."""

    retention: Retention
    pruned: Pruned
    demos: int
    compacted: int


def _print_report(report: _Report, *, dry_run: bool) -> None:
    retention, pruned = report.retention, report.pruned
    rows = [
        (f"log entries older than {_days(retention.raw_log_days)}", pruned.log_entries),
        (f"events older than {_days(retention.event_days)}", pruned.events),
        (
            f"events of organizations' streams older than {_days(min(STREAM_DAYS, retention.event_days))}",
            pruned.organization_events,
        ),
        (
            f"deliveries of webhooks older than {_days(min(STREAM_DAYS, retention.event_days))}",
            pruned.webhook_deliveries,
        ),
        (f"files of demos older than {_days(retention.demo_days)}", report.demos),
        (f"entries of the audit log older than {_days(AUDIT_DAYS)}", pruned.audit_entries),
        ("idempotency keys older than 1 day", pruned.idempotency_keys),
        ("counters that have become 0", pruned.empty_counts),
    ]
    typer.echo("would be deleted:" if dry_run else "deleted:")
    width = max(len(str(number)) for _, number in rows)
    for name, number in rows:
        typer.echo(f"  {number:>{width}}  {name}")
    done = "would be compressed" if dry_run else "compressed"
    typer.echo(f"{done}: {report.compacted} matches that ended more than a day ago")


def _file_to_vacuum(*, dry_run: bool) -> Path | None:
    """Return the SQLite file to vacuum; None if it does not exist. If it cannot be vacuumed, exit with an error."""
    if dry_run:
        fail("--vacuum cannot be used with --dry-run.", code=2)
    settings = load_process_settings()
    if settings.database_url is not None:
        fail(
            "The database is in PostgreSQL, which reuses free space itself. To return it to the disk, stop the service"
            " and run VACUUM FULL.",
            code=2,
        )
    if not settings.database_path.exists():
        return None  # reported later, when the command opens the database
    try:
        sqlite_space.check_unused(settings.database_path)
    except VacuumError as exc:
        fail(str(exc))
    return settings.database_path


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days} days"
