"""Rebuild a match from its snapshot and its log, or only from its log if the snapshot cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Set
from itertools import takewhile
from typing import Final

import msgspec

from matchpod.ports import Database
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold, SnapshotVersionError
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.storage import raw_log, snapshots
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow

PAGE_ENTRIES: Final = 100
"""Maximum number of entries per database read. Other tasks run between two reads."""

_log = logging.getLogger(__name__)


async def open_match(
    db: Database, row: ServerRow, speed: float, *, turns: FoldTurns, lost: Set[int] = frozenset()
) -> tuple[Fold, int]:
    """Return the state of a match from its snapshot, and the number of the last entry that it contains.

    If the snapshot cannot be read, the same state is rebuilt from the log.
    """
    found, seq = await load_snapshot(db, row)
    if found is not None or seq == row.log_from_seq:
        return found or Fold.begin(row, speed), seq
    return await replay(db, row, speed, turns=turns, last_seq=seq, lost=lost), seq


async def load_snapshot(db: Database, row: ServerRow) -> tuple[Fold | None, int]:
    """Return the stored snapshot of a match and its number; None if there is no snapshot that this version can read.

    A snapshot that is ahead of the log is ignored, because the database has failed over to a standby that lacked the
    newest entries.
    """
    snapshot = await snapshots.load(db, row.id)
    if snapshot is None or not row.log_from_seq <= snapshot.seq <= await raw_log.newest_seq(db, row.id):
        return None, row.log_from_seq
    try:
        return Fold.load(snapshot.state), snapshot.seq
    except SnapshotVersionError as exc:
        _log.warning("snapshot rejected, replaying the log", extra={"server_id": row.id, "error": str(exc)})
        return None, snapshot.seq


async def replay(
    db: Database,
    row: ServerRow,
    speed: float,
    *,
    turns: FoldTurns,
    last_seq: int | None = None,
    lost: Set[int] = frozenset(),
) -> Fold:
    """Fold the log of a match up to its end or to the entry `last_seq`. Entries in `lost` count as set aside."""
    fold = Fold.begin(row, speed)

    def step(entry: RawEntry) -> bool:
        turns.apply(fold, as_lost(entry) if entry.seq in lost else entry)
        return True

    await apply_after(db, row.id, row.log_from_seq, step, turns=turns, last_seq=last_seq)
    return fold


def as_lost(entry: RawEntry) -> RawEntry:
    """Return the entry as it would be stored after it was set aside."""
    return msgspec.structs.replace(entry, kind=EntryKind.SET_ASIDE)


async def apply_after(
    db: Database,
    server_id: str,
    seq: int,
    step: Callable[[RawEntry], bool],
    *,
    turns: FoldTurns,
    last_seq: int | None = None,
) -> None:
    """Call `step` for each entry after the number `seq`, up to the end of the match or to `last_seq`."""

    def is_before_end(entry: RawEntry) -> bool:
        return entry.kind != EntryKind.ENDED and (last_seq is None or entry.seq <= last_seq)

    while page := await page_after(db, server_id, seq):
        counted = list(takewhile(is_before_end, page))
        await turns.run(counted, step)
        if len(counted) < len(page):
            return
        seq = page[-1].seq


async def page_after(db: Database, server_id: str, seq: int) -> list[RawEntry]:
    """Return up to PAGE_ENTRIES entries after a sequence number."""
    return await raw_log.read_after(db, server_id, seq, limit=PAGE_ENTRIES)
