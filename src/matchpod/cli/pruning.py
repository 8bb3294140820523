"""How is what is old deleted from a terminal? `matchpod prune`: what a running service does by itself once a day."""

from __future__ import annotations

from typing import Annotated

import typer

from matchpod.app import Ground
from matchpod.cli.opening import run_on_ground
from matchpod.service import pruning
from matchpod.service.pruning import Pruned, Retention
from matchpod.settings import Settings


def retention_of(settings: Settings) -> Retention:
    """How long the settings keep what."""
    return Retention(raw_log_days=settings.raw_log_days, event_days=settings.event_days)


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing; only count what would be.")] = False,
) -> None:
    """Delete what is older than the settings allow, as a running service does once a day.

    That are logs and events of ended matches, used idempotency keys, and counts that have become 0. Results, series,
    maps and statistics are kept forever.
    """

    async def work(ground: Ground) -> tuple[Retention, Pruned]:
        keep, now_ms = retention_of(ground.settings), ground.clock.now_ms()
        work = pruning.count_prunable if dry_run else pruning.prune
        return keep, await work(ground.db, keep, now_ms)

    keep, pruned = run_on_ground(work)
    rows = [
        (f"log entries older than {_days(keep.raw_log_days)}", pruned.log_entries),
        (f"events older than {_days(keep.event_days)}", pruned.events),
        ("idempotency keys older than 1 day", pruned.idempotency_keys),
        ("counts that have become 0", pruned.empty_counts),
    ]
    typer.echo("would be deleted:" if dry_run else "deleted:")
    width = max(len(str(number)) for _, number in rows)
    for name, number in rows:
        typer.echo(f"  {number:>{width}}  {name}")


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days} days"
