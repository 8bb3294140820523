"""How does the history of a match end that nobody followed to its end? Its log is read once more, and told the outcome.

So ends a match that its caller canceled, and one whose server never ran.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.match import Phase
from matchpod.core.outcome import OutcomeKind
from matchpod.core.played_map import MapStatus
from matchpod.core.timeline import MapItem
from matchpod.core.timeline_items import MapEndItem, TimelineItem
from matchpod.ports import Database
from matchpod.service.folding import Fold
from matchpod.service.history import naming
from matchpod.service.history.recorder import Pages, appends, new_pages
from matchpod.service.history.rows import history_of
from matchpod.service.history.streams import Streams
from matchpod.service.match_log.replay import replay
from matchpod.storage import history, map_events, outbox, servers
from matchpod.storage.history import MatchHistory
from matchpod.storage.outbox import Outcome
from matchpod.storage.servers import ServerRow


async def fold_to_end(db: Database, row: ServerRow, speed: float) -> Fold:
    """A match that has ended, as its stored log tells it; where the log does not end it, its outcome does."""
    outcome = await outbox.outcome_of(db, row.id)
    fold = await _fold(db, row, speed, outcome, is_awake=True)
    told = fold.reader.match.outcome
    if outcome is not None and told is not None and not told.is_finished and told.reason != outcome.reason:
        # An alarm ends it that had not ended it then: whoever followed it had slept through that one, and gone on.
        fold = await _fold(db, row, speed, outcome, is_awake=False)
    return fold


async def _fold(db: Database, row: ServerRow, speed: float, outcome: Outcome | None, *, is_awake: bool) -> Fold:
    fold = await replay(db, row, speed, fires_late_alarms=is_awake)
    if outcome is not None and (is_awake or outcome.result is not None):
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
    pages = await unstored(db, row, fold.reader.timeline.take())
    final = await final_history(db, row, fold, server_name=server_name)
    await db.write([servers.hold(row.id, row.fence), *appends(pages, now_ms), *history.replace(final)])
    for page in pages:
        streams.publish(page.map_id, page.first_seq, page.lines)
    for one in final.maps:
        streams.finish(one.id)


async def unstored(db: Database, row: ServerRow, items: Sequence[MapItem]) -> list[Pages]:
    """What is missing after the stored timelines of a match, numbered on from there.

    Whoever followed the match may have numbered it otherwise (an older version, or one that slept through an alarm):
    then the last stored item is looked for by what it says, and where it is not found only the end is told.
    """
    stored: dict[str, int] = {}
    missing: list[MapItem] = []
    for number, told in _by_map(items).items():
        map_id = naming.map_id(row.game_id, number)
        last = stored[map_id] = await map_events.last_seq(db, map_id)
        lines = await map_events.read_after(db, map_id, last - 1, limit=1) if last else []
        missing += _after(told, last, lines[0][1] if lines else b"")
    return new_pages(missing, row.game_id, stored)


def _by_map(items: Sequence[MapItem]) -> dict[int, list[MapItem]]:
    told: dict[int, list[MapItem]] = {}
    for item in items:
        told.setdefault(item.map_number, []).append(item)
    return told


def _after(told: Sequence[MapItem], last: int, line: bytes) -> Sequence[MapItem]:
    """The items that follow the stored one of this number and JSON, numbered on."""
    if not line or (last <= len(told) and _line(told[last - 1], last) == line):
        return told[last:]
    same = (index for index in range(len(told) - 1, -1, -1) if _line(told[index], last) == line)
    found = next(same, None)
    rest = told[found + 1 :] if found is not None else told[-1:]
    if found is None and not (isinstance(told[-1].item, MapEndItem) and not _is_end(line)):
        rest = ()
    return [
        MapItem(one.map_number, msgspec.structs.replace(one.item, seq=seq)) for seq, one in enumerate(rest, last + 1)
    ]


def _line(told: MapItem, seq: int) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(told.item, seq=seq))


def _is_end(line: bytes) -> bool:
    return isinstance(msgspec.json.decode(line, type=TimelineItem), MapEndItem)


def _agreed(final: MatchHistory, fold: Fold, outcome: Outcome | None) -> MatchHistory:
    """A caller may cancel while the last lines are on their way: then the log has a winner, and the match has none."""
    told = fold.reader.match.outcome
    if outcome is None or outcome.result is not None or told is None or told.kind is not OutcomeKind.FINISHED:
        return final
    if final.series is None:
        return final
    canceled = msgspec.structs.replace(final.series, status=MapStatus.CANCELLED, winner_team=None)
    return msgspec.structs.replace(final, series=canceled)
