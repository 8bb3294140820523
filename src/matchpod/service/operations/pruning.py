"""Delete data past its retention time: logs, events, demos, the audit log and idempotency keys.

This is done daily, and by `matchpod prune`. Results, series, maps and statistics are kept forever. Nothing is deleted
from a match that has not ended.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from matchpod.ports import Database, DemoStorage, StorageError
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_audit_id
from matchpod.storage import (
    audit_log,
    console_sessions,
    demos,
    history_counts,
    map_events,
    organization_events,
    raw_log,
    servers,
    unfinished,
    webhook_deliveries,
)

DAY_MS: Final = 24 * 60 * 60 * 1000
STREAM_DAYS: Final = 7
"""Maximum number of days for which the events of organizations' streams are kept. Subscribers resume a stream after
seconds, or after a weekend."""

AUDIT_DAYS: Final = 365
"""Number of days for which audit entries are kept."""


DEMOS_AT_ONCE: Final = 100
MAX_KEPT: Final = 100
"""Number of failed deletions after which the storage counts as failed, and the deletion of demos ends until the next
run."""
LEFT_BEHIND_MS: Final = DAY_MS
"""Age at which the files left behind by an interrupted upload are deleted. No upload takes this long."""

_log = logging.getLogger(__name__)


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of days for which log entries, events and demos are kept."""

    raw_log_days: int
    event_days: int
    demo_days: int = 30

    def log_from_ms(self, now_ms: int) -> int:
        """Return the time before which log entries are deleted."""
        return now_ms - self.raw_log_days * DAY_MS

    def events_from_ms(self, now_ms: int) -> int:
        """Return the time before which events are deleted."""
        return now_ms - self.event_days * DAY_MS

    def demos_from_ms(self, now_ms: int) -> int:
        """Return the upload time before which demos are deleted."""
        return now_ms - self.demo_days * DAY_MS

    def stream_from_ms(self, now_ms: int) -> int:
        """Return the time before which events of organizations' streams, and their webhook deliveries, are deleted."""
        return now_ms - min(STREAM_DAYS, self.event_days) * DAY_MS


def audit_from_id(now_ms: int) -> str:
    """Return the id below which audit entries are deleted. Ids sort by time."""
    return new_audit_id(max(0, now_ms - AUDIT_DAYS * DAY_MS), bytes(ID_RANDOM_BYTES))


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of rows that were deleted or, in a count, that would be deleted."""

    log_entries: int = 0
    events: int = 0
    organization_events: int = 0
    webhook_deliveries: int = 0
    audit_entries: int = 0
    idempotency_keys: int = 0
    empty_counts: int = 0

    @property
    def is_empty(self) -> bool:
        """True if no rows were deleted or counted."""
        return self == Pruned()


async def prune(db: Database, keep: Retention, now_ms: int) -> Pruned:
    """Delete data past its retention time (except demos). Also delete counters that are 0.

    Rows are deleted in short transactions. A failure does not undo earlier transactions.
    """
    log_entries = await raw_log.prune(db, keep.log_from_ms(now_ms))
    await unfinished.prune(db)
    await console_sessions.delete_people(db, before_ms=now_ms - AUDIT_DAYS * DAY_MS)
    return Pruned(
        log_entries=log_entries,
        events=await map_events.prune(db, keep.events_from_ms(now_ms)),
        organization_events=await organization_events.prune(db, keep.stream_from_ms(now_ms)),
        webhook_deliveries=await webhook_deliveries.prune(db, keep.stream_from_ms(now_ms)),
        audit_entries=await audit_log.prune(db, audit_from_id(now_ms)),
        idempotency_keys=await servers.prune_idempotency_keys(db, now_ms - servers.IDEMPOTENCY_MS),
        empty_counts=await history_counts.delete_empty(db),
    )


async def count_prunable(db: Database, keep: Retention, now_ms: int) -> Pruned:
    """Count the rows that `prune` would delete now."""
    return Pruned(
        log_entries=await raw_log.count_prunable(db, keep.log_from_ms(now_ms)),
        events=await map_events.count_prunable(db, keep.events_from_ms(now_ms)),
        organization_events=await organization_events.count_prunable(db, keep.stream_from_ms(now_ms)),
        webhook_deliveries=await webhook_deliveries.count_prunable(db, keep.stream_from_ms(now_ms)),
        audit_entries=await audit_log.count_prunable(db, audit_from_id(now_ms)),
        idempotency_keys=await servers.count_prunable_idempotency_keys(db, now_ms - servers.IDEMPOTENCY_MS),
        empty_counts=await history_counts.count_empty(db),
    )


async def prune_demos(db: Database, storage: DemoStorage, keep: Retention, now_ms: int) -> int:
    """Delete the files of demos past their retention, and the remains of interrupted uploads; return their number.

    A file is deleted before its row is marked, so that the row still has the storage key if the deletion fails. Such a
    file is skipped until the next run. After MAX_KEPT failures, the storage itself has probably failed, and the run
    ends.
    """
    deleted, before_ms = 0, keep.demos_from_ms(now_ms)
    kept: set[str] = set()
    while len(kept) < MAX_KEPT:
        found = await demos.prunable(db, before_ms, DEMOS_AT_ONCE + len(kept))
        rest = [(demo_id, key) for demo_id, key in found if demo_id not in kept]
        if not rest:
            break
        for demo_id, key in rest:
            try:
                await storage.delete(key)
            except StorageError as exc:
                kept.add(demo_id)
                _log.warning("demo not deleted: storage failed", extra={"demo": demo_id, "error": str(exc)})
                if len(kept) == MAX_KEPT:
                    break
                continue
            await demos.mark_deleted(db, demo_id, key)
            deleted += 1
    try:
        deleted += await storage.clean_up(now_ms - LEFT_BEHIND_MS)
    except StorageError as exc:
        _log.warning("interrupted uploads not deleted: storage failed", extra={"error": str(exc)})
    return deleted
