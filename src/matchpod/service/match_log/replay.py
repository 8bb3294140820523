"""Rebuild a match from its stored log, starting at its snapshot where there is one that this version can read."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Final

from matchpod.core.match import Phase
from matchpod.ports import Database
from matchpod.service.folding import ENDED, Fold, SnapshotVersionError
from matchpod.storage import raw_log, snapshots
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow

PAGE_ENTRIES: Final = 100
"""Entries read from the database at a time; other work runs between two pages."""

_log = logging.getLogger(__name__)


async def open_match(db: Database, row: ServerRow, speed: float) -> tuple[Fold, int]:
    """A match that has not ended, and the sequence number of the last entry that was applied to it."""
    snapshot = await snapshots.load(db, row.id)
    if snapshot is None or snapshot.seq < row.log_from_seq:
        return Fold.begin(row, speed), row.log_from_seq
    try:
        return Fold.from_bytes(snapshot.state), snapshot.seq
    except SnapshotVersionError as exc:
        _log.warning("snapshot of another version, match is replayed", extra={"server_id": row.id, "error": str(exc)})
    fold = await replay(db, row, speed, last_seq=snapshot.seq)
    if fold.reader.match.phase is Phase.OVER:
        # Snapshots are only stored of matches that go on, so the alarm that ends it here did not fire then.
        fold = await replay(db, row, speed, last_seq=snapshot.seq, fires_late_alarms=False)
    return fold, snapshot.seq


async def replay(
    db: Database, row: ServerRow, speed: float, *, last_seq: int | None = None, fires_late_alarms: bool = True
) -> Fold:
    """Fold the log of a match from its start to its end, or to an entry.

    Nothing in the log tells whether an alarm fired that was noticed late, or was put off (`Fold.sleep_through`).
    """
    fold = Fold.begin(row, speed)
    async for entry in _entries(db, row, last_seq):
        if not fires_late_alarms and fold.is_late(entry):
            fold.sleep_through(entry)
        fold.take(entry)
    return fold


async def _entries(db: Database, row: ServerRow, last_seq: int | None) -> AsyncIterator[RawEntry]:
    seq = row.log_from_seq
    while entries := await raw_log.read_after(db, row.id, seq, limit=PAGE_ENTRIES):
        for entry in entries:
            if entry.kind == ENDED or (last_seq is not None and entry.seq > last_seq):
                return
            yield entry
        seq = entries[-1].seq
