"""What is deleted when it is old, and how old is that? The same for the daily sweep and for `matchpod prune`.

Results, series, maps and statistics are kept forever. Nothing of a match that goes on is deleted.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database
from matchpod.storage import history_counts, map_events, raw_log, servers

DAY_MS: Final = 24 * 60 * 60 * 1000


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """For how many days after it was written something is kept."""

    raw_log_days: int
    event_days: int

    def log_from_ms(self, now_ms: int) -> int:
        """Log entries from this time on are kept."""
        return now_ms - self.raw_log_days * DAY_MS

    def events_from_ms(self, now_ms: int) -> int:
        """Events from this time on are kept."""
        return now_ms - self.event_days * DAY_MS


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """How much was deleted, or would be."""

    log_entries: int = 0
    events: int = 0
    idempotency_keys: int = 0
    empty_counts: int = 0

    @property
    def is_nothing(self) -> bool:
        """Nothing was old enough."""
        return self == Pruned()


async def prune(db: Database, keep: Retention, now_ms: int) -> Pruned:
    """Delete what is past its time, in short transactions; what was deleted before a failure stays deleted."""
    return Pruned(
        log_entries=await raw_log.prune(db, keep.log_from_ms(now_ms)),
        events=await map_events.prune(db, keep.events_from_ms(now_ms)),
        idempotency_keys=await servers.forget_idempotency(db, now_ms - servers.IDEMPOTENCY_MS),
        empty_counts=await history_counts.forget_empty(db),
    )


async def count_prunable(db: Database, keep: Retention, now_ms: int) -> Pruned:
    """How much `prune` would delete now."""
    return Pruned(
        log_entries=await raw_log.count_prunable(db, keep.log_from_ms(now_ms)),
        events=await map_events.count_prunable(db, keep.events_from_ms(now_ms)),
        idempotency_keys=await servers.count_forgettable_idempotency(db, now_ms - servers.IDEMPOTENCY_MS),
        empty_counts=await history_counts.count_empty(db),
    )
