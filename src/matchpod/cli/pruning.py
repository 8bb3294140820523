"""Delete entries that are older than the settings allow: `matchpod prune`."""

from __future__ import annotations

from typing import Annotated

import typer

from matchpod.app import Resources
from matchpod.cli.resources import run_with_resources
from matchpod.service.operations import pruning
from matchpod.service.operations.pruning import AUDIT_DAYS, STREAM_DAYS, Pruned, Retention
from matchpod.settings import Settings


def retention_of(settings: Settings) -> Retention:
    """Return the retention periods that the settings define."""
    return Retention(raw_log_days=settings.raw_log_days, event_days=settings.event_days)


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
) -> None:
    """Delete entries that are older than the settings allow, as a running service does once a day.

    These are logs and events of ended matches, entries of the audit log, idempotency keys, and counters that have
    become 0. Results, series, maps and statistics are kept forever.
    """

    async def work(resources: Resources) -> tuple[Retention, Pruned]:
        retention, now_ms = retention_of(resources.settings), resources.clock.now_ms()
        work = pruning.count_prunable if dry_run else pruning.prune
        return retention, await work(resources.db, retention, now_ms)

    retention, pruned = run_with_resources(work)
    rows = [
        (f"log entries older than {_days(retention.raw_log_days)}", pruned.log_entries),
        (f"events older than {_days(retention.event_days)}", pruned.events),
        (
            f"events of organizations' streams older than {_days(min(STREAM_DAYS, retention.event_days))}",
            pruned.organization_events,
        ),
        (f"entries of the audit log older than {_days(AUDIT_DAYS)}", pruned.audit_entries),
        ("idempotency keys older than 1 day", pruned.idempotency_keys),
        ("counters that have become 0", pruned.empty_counts),
    ]
    typer.echo("would be deleted:" if dry_run else "deleted:")
    width = max(len(str(number)) for _, number in rows)
    for name, number in rows:
        typer.echo(f"  {number:>{width}}  {name}")


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days} days"
