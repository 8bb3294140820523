"""How does the history of a match end that nobody followed to its end? Its log is read once more, and told the outcome.

So ends a match that its caller canceled, and one whose server never ran.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.core.match import Phase
from matchpod.core.outcome import OutcomeKind
from matchpod.core.played_map import MapStatus
from matchpod.ports import Database
from matchpod.service.folding import Fold
from matchpod.service.history.recorder import appends, new_pages
from matchpod.service.history.rows import history_of
from matchpod.service.history.streams import Streams
from matchpod.storage import history, map_events, outbox, raw_log, servers
from matchpod.storage.history import MatchHistory
from matchpod.storage.outbox import Outcome
from matchpod.storage.servers import ServerRow

READ_ENTRIES: Final = 100
"""Entries read at a time; others have their turn in between."""


async def fold_to_end(db: Database, row: ServerRow, speed: float) -> Fold:
    """A match that has ended, as its stored log tells it; where the log does not end it, its outcome does."""
    fold, seq = Fold.begin(row, speed), row.log_from_seq
    while entries := await raw_log.read_after(db, row.id, seq, limit=READ_ENTRIES):
        for entry in entries:
            fold.take(entry)
        seq = entries[-1].seq
    outcome = await outbox.outcome_of(db, row.id)
    if outcome is not None:
        fold.advance(outcome.at_ms)  # some matches end because their time is up, without a word of their server
    fold.settle()
    if outcome is not None and fold.reader.match.phase is not Phase.OVER:
        fold.cancel(outcome.reason or "", outcome.at_ms)
    return fold


async def final_history(
    db: Database, row: ServerRow, fold: Fold, *, server_name: str, stats_version: int = 1
) -> MatchHistory:
    """What is stored of a match that has ended; it says nothing else than the outcome that its caller was told."""
    final = history_of(row, fold.reader.match, server_name=server_name, is_final=True, stats_version=stats_version)
    return _agreed(final, fold, await outbox.outcome_of(db, row.id))


async def settle(
    db: Database, row: ServerRow, *, speed: float, server_name: str, streams: Streams, now_ms: int
) -> None:
    """Make the history of an ended match final, unless it is; NothingChangedError when somebody else holds it."""
    maps = await history.maps_of(db, row.id)
    if maps and all(one.is_final for one in maps):
        return
    fold = await fold_to_end(db, row, speed)
    stored = await map_events.last_seqs(db, row.id)
    pages = new_pages(fold.reader.timeline.take(), row.game_id, stored)
    final = await final_history(db, row, fold, server_name=server_name)
    await db.write([servers.hold(row.id, row.fence), *appends(pages, now_ms), *history.replace(final)])
    for page in pages:
        streams.publish(page.map_id, page.first_seq, page.lines)
    for one in final.maps:
        streams.finish(one.id)


def _agreed(final: MatchHistory, fold: Fold, outcome: Outcome | None) -> MatchHistory:
    """A caller may cancel while the last lines are on their way: then the log has a winner, and the match has none."""
    told = fold.reader.match.outcome
    if outcome is None or outcome.result is not None or told is None or told.kind is not OutcomeKind.FINISHED:
        return final
    if final.series is None:
        return final
    canceled = msgspec.structs.replace(final.series, status=MapStatus.CANCELLED, winner_team=None)
    return msgspec.structs.replace(final, series=canceled)
