"""Finalize the history of a match that its runner has not ended, from its log and its stored outcome.

This is the case if the caller cancels the match, if its server never runs, or if its runner keeps failing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.views.timeline_items import MapEndItem
from matchpod.core.views.timeline_writer import MapItem
from matchpod.ports import Database
from matchpod.service.history.recorder import TimelinePage, append_statements, new_pages
from matchpod.service.history.rows import history_of
from matchpod.service.identity import identifiers
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.replay import apply_after, replay
from matchpod.service.streams.channels import type_of
from matchpod.service.streams.map_streams import Streams
from matchpod.storage import history, map_events, outbox, servers
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow


async def fold_to_end(db: Database, row: ServerRow, speed: float, *, turns: FoldTurns) -> Fold:
    """Replay the log of an ended match. If it was canceled, cancel the replayed match for the stored reason.

    The log of a canceled match may contain another end, which was not stored before the cancellation. It is ignored.
    """
    outcome = await outbox.outcome_of(db, row.id)
    fold = await replay(db, row, speed, turns=turns)
    fold.finish()
    if outcome is not None and outcome.result is not None:
        fold.advance(outcome.at_ms)  # older versions did not log the deadline that ended the match
    if outcome is None or outcome.reason is None:
        return fold
    if fold.match.outcome is not None and fold.match.outcome.reason != outcome.reason:
        fold = await _replay_before_end(db, row, speed, turns=turns)
    fold.cancel(outcome.reason, outcome.at_ms)
    return fold


async def _replay_before_end(db: Database, row: ServerRow, speed: float, *, turns: FoldTurns) -> Fold:
    """Replay the entries before the entry that ends the match."""
    fold = Fold.begin(row, speed)
    ends: list[int] = []

    def step(entry: RawEntry) -> bool:
        turns.apply(fold, entry)
        if fold.is_over:
            ends.append(entry.seq)
        return not fold.is_over

    await apply_after(db, row.id, row.log_from_seq, step, turns=turns)
    return await replay(db, row, speed, turns=turns, last_seq=ends[0] - 1) if ends else fold


async def is_final(db: Database, row: ServerRow) -> bool:
    """True if the stored history of a match is already final."""
    maps = await history.maps_of(db, row.id)
    return bool(maps) and all(played.is_final for played in maps)


async def finalize(
    db: Database,
    row: ServerRow,
    *,
    speed: float,
    server_name: str,
    streams: Streams,
    turns: FoldTurns,
    now_ms: int,
) -> None:
    """Finalize the history of an ended match. Raise NothingChangedError if the lease is lost."""
    fold = await fold_to_end(db, row, speed, turns=turns)
    pages = await unstored_pages(db, row, fold.drain_timeline())
    final = history_of(row, fold.match, server_name=server_name, is_final=True)
    await db.write([servers.check_fence(row.id, row.fence), *append_statements(pages, now_ms), *history.replace(final)])
    for page in pages:
        streams.publish(page.map_id, page.first_seq, page.lines)
    for played in final.maps:
        streams.finish(played.id)


async def unstored_pages(db: Database, row: ServerRow, items: Sequence[MapItem]) -> list[TimelinePage]:
    """Return the items that the stored timelines lack at their end, with numbers that continue the stored numbers.

    An older version may have numbered the stored items differently. Then the last stored item is found by its content.
    If it is not found, only the item for the end of the map is returned, unless that is already stored.
    """
    stored: dict[str, int] = {}
    missing: list[MapItem] = []
    for number, map_items in _by_map(items).items():
        map_id = identifiers.map_id(row.game_id, number)
        last = stored[map_id] = await map_events.last_seq(db, map_id)
        lines = await map_events.read_after(db, map_id, last - 1, limit=1) if last else []
        missing += _items_after(map_items, last, lines[0][1] if lines else b"")
    return new_pages(missing, row.game_id, stored)


def _by_map(items: Sequence[MapItem]) -> dict[int, list[MapItem]]:
    by_map: dict[int, list[MapItem]] = {}
    for item in items:
        by_map.setdefault(item.map_number, []).append(item)
    return by_map


def _items_after(items: Sequence[MapItem], last: int, line: bytes) -> Sequence[MapItem]:
    """Return the items after the stored item with the number `last` and the JSON `line`, renumbered if necessary."""
    if not line or (last <= len(items) and _line(items[last - 1], last) == line):
        return items[last:]
    same = (index for index in range(len(items) - 1, -1, -1) if _line(items[index], last) == line)
    found = next(same, None)
    rest = items[found + 1 :] if found is not None else items[-1:]
    if found is None and not (isinstance(items[-1].item, MapEndItem) and not _is_end(line)):
        rest = ()
    return [
        MapItem(later.map_number, msgspec.structs.replace(later.item, seq=seq))
        for seq, later in enumerate(rest, last + 1)
    ]


def _line(item: MapItem, seq: int) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(item.item, seq=seq))


def _is_end(line: bytes) -> bool:
    return type_of(line) == str(MapEndItem.__struct_config__.tag).encode()
