"""Record the history of a match while it is played: append timeline items, and update the rows of its maps and series.

The fold numbers the items deterministically, so items that are already stored are recognized by their numbers. New
items are published to stream subscribers only after they are committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from matchpod.core.match.played_map import PlayedMap
from matchpod.core.views.timeline_items import (
    AssistItem,
    BombDefusedItem,
    BombExplodedItem,
    BombPlantedItem,
    DeathItem,
    KillItem,
)
from matchpod.core.views.timeline_writer import MapItem
from matchpod.ports import Database, DuplicateError, Statement
from matchpod.service.history.rows import history_of
from matchpod.service.identity import identifiers
from matchpod.service.match_log.fold import Fold
from matchpod.service.streams.map_streams import Streams
from matchpod.service.streams.organization_event_lines import map_events_of
from matchpod.storage import history, map_events, servers
from matchpod.storage import organization_events as stored_events
from matchpod.storage.history import MatchHistory
from matchpod.storage.servers import ServerRow

FLUSH_MS: Final = 250
"""Minimum time between two writes per match, so that items are batched into few rows. Readers hardly notice the
delay."""

RETRY_MS: Final = 10_000
"""Time for which writing pauses after an error (a bug) prevented the history from being built."""

Writer = Callable[[Sequence[Statement]], Awaitable[object]]
"""A function that writes statements under the lease of the match."""

_Build = Callable[[Sequence[Statement], Sequence[bytes]], Sequence[Statement]]
"""A function that returns all statements of a write. Its arguments are the statements that store new items, and the
organization's new events."""

_COMBAT: Final = (KillItem, DeathItem, AssistItem, BombPlantedItem, BombDefusedItem, BombExplodedItem)
"""Types of items after which the map's row need not be written, if the map has rounds. The next item of another type
updates the row."""

_encode = msgspec.json.Encoder().encode


class TimelinePage(msgspec.Struct, frozen=True):
    """Consecutive timeline items of one map, as JSON."""

    map_id: str
    first_seq: int
    lines: list[bytes]


class Recorder:
    """Records the history of a match, under the lease of its server."""

    def __init__(
        self,
        row: ServerRow,
        fold: Fold,
        *,
        db: Database,
        write: Writer,
        streams: Streams,
        server_name: str,
        retry_ms: int = RETRY_MS,
    ) -> None:
        self._row = row
        self._fold = fold
        self._db = db
        self._write = write
        self._streams = streams
        self._server_name = server_name
        self._retry_ms = retry_ms
        self._stored: dict[str, int] = {}
        """The number of the last stored item of each map."""
        self._written = MatchHistory(maps=())
        self._flushed_ms = 0
        self._paused_until_ms = 0
        self._is_aligned = False

    async def begin(self) -> None:
        """Read the history of the match that is already stored."""
        self._stored = await map_events.last_seqs(self._db, self._row.id)
        maps = await history.maps_of(self._db, self._row.id)
        self._written = MatchHistory(maps=tuple(maps), series=await history.series_of(self._db, self._row.id))
        for played in maps:
            await self._streams.compare(played.id)

    def due_ms(self, now_ms: int) -> int | None:
        """Return the time to call `write`: 0 for at once, for example after a status change; None without new items."""
        if self.is_paused(now_ms):
            return self._paused_until_ms
        if not self._written.maps:
            return 0  # created by an early version without histories
        if not self._fold.has_timeline_items:
            return None
        has_same_status = self._has_status(self._fold.match.current_map)
        # If the clock was set back, write at once.
        may_wait = has_same_status and self._flushed_ms <= now_ms
        return self._flushed_ms + FLUSH_MS if may_wait else 0

    def is_paused(self, now_ms: int) -> bool:
        """True if `pause` was called less than `retry_ms` ago."""
        return 0 < self._paused_until_ms - now_ms <= self._retry_ms

    def pause(self, now_ms: int) -> None:
        """Do not write for `retry_ms`, because an error (a bug) prevents the history from being built."""
        self._paused_until_ms = now_ms + self._retry_ms

    async def write(self, now_ms: int, also: Sequence[Statement] = ()) -> None:
        """Store new items and the current state of the match, in one transaction with the statements in `also`."""
        current = self._written if not also and self._has_only_combat() else self._current()
        fenced = [servers.check_fence(self._row.id, self._row.fence), *also, *self._changes(current)]

        def build(items: Sequence[Statement], events: Sequence[bytes]) -> list[Statement]:
            return [*fenced, *items, *stored_events.append(self._row.org_id, events, at_ms=now_ms)]

        await self._commit(build, now_ms)
        self._written = current
        self._flushed_ms = now_ms

    def _current(self) -> MatchHistory:
        return history_of(self._row, self._fold.match, server_name=self._server_name)

    def _has_only_combat(self) -> bool:
        """True if all new items are combat items. Then the rows, which are expensive to build, need not be written."""
        played = self._fold.match.current_map
        return (
            played.is_scored
            and self._has_status(played)
            and all(isinstance(waiting.item, _COMBAT) for waiting in self._fold.reader.timeline.waiting)
        )

    def _has_status(self, played: PlayedMap) -> bool:
        """True if the stored row of a map has the map's current status."""
        maps = self._written.maps
        return bool(maps) and maps[played.number - 1].status is played.status

    def final(self) -> MatchHistory:
        """Return the history of an ended match, with the statistics of all its maps."""
        return history_of(self._row, self._fold.match, server_name=self._server_name, is_final=True)

    async def end(self, build_end: Callable[[Sequence[bytes]], Sequence[Statement]], now_ms: int) -> None:
        """Store the last items and the end of the match.

        `build_end` is called with the last events of the match for the organization's stream. It returns the statements
        that store these events, the `final` history and the end.
        """
        await self._commit(lambda items, events: [*build_end(events), *items], now_ms)
        for played in self._written.maps:
            self._streams.finish(played.id)

    async def _commit(self, build: _Build, now_ms: int) -> None:
        if not self._is_aligned:
            await self._align()
        items = self._fold.drain_timeline()
        try:
            try:
                pages = await self._write_new(build, items, now_ms)
            except DuplicateError:
                # The previous runner stored the same items after `begin` of this recorder.
                self._stored = await map_events.last_seqs(self._db, self._row.id)
                pages = await self._write_new(build, items, now_ms)
        except BaseException:  # also CancelledError; if the write was committed, the next write skips the items
            self._fold.return_timeline(items)
            raise
        for page in pages:
            self._stored[page.map_id] = page.first_seq + len(page.lines) - 1
            self._streams.publish(page.map_id, page.first_seq, page.lines)

    async def _write_new(self, build: _Build, items: Sequence[MapItem], now_ms: int) -> list[TimelinePage]:
        """Write the items that are not stored yet, and the organization's events that result from these items."""
        pages = new_pages(items, self._row.game_id, self._stored)
        events = map_events_of(self._row, self._fold.match, items, self._stored)
        await self._write(build(append_statements(pages, now_ms), events))
        if events:
            self._streams.organizations.wake()
        return pages

    async def _align(self) -> None:
        """Continue the numbers of the stored timelines, even if another version numbered their items differently."""
        self._is_aligned = True
        for played in self._fold.match.maps:
            map_id = identifiers.map_id(self._row.game_id, played.number)
            last = self._stored.get(map_id, 0)
            known = [item for item in self._fold.pending_items(played.number) if item.seq <= last]
            if not known:
                continue
            same = (known[-1].seq, _encode(known[-1]))
            if await map_events.read_after(self._db, map_id, same[0] - 1, limit=1) != [same]:
                self._fold.align_timeline(played.number, await map_events.read_after(self._db, map_id, 0, limit=last))

    def _changes(self, current: MatchHistory) -> list[Statement]:
        """Return the statements that store the changed rows.

        Most changes are scores. They need only an UPDATE, because they do not affect the columns by which lists are
        filtered and sorted.
        """
        if current == self._written:
            return []
        if _list_keys(current) != _list_keys(self._written):
            return history.replace(current)
        before = set(self._written.maps)
        changed = tuple(played for played in current.maps if played not in before)
        series = current.series if current.series != self._written.series else None
        return history.refresh(MatchHistory(maps=changed, series=series))


def new_pages(items: Sequence[MapItem], game_id: str, stored: dict[str, int]) -> list[TimelinePage]:
    """Return the items that are not stored yet, a page per map; `stored` is the last stored number by map id."""
    pages: dict[int, TimelinePage] = {}
    for item in items:
        number, seq = item.map_number, item.item.seq
        page = pages.get(number)
        if page is None:
            map_id = identifiers.map_id(game_id, number)
            if seq <= stored.get(map_id, 0):
                continue
            page = pages[number] = TimelinePage(map_id, seq, [])
        page.lines.append(_encode(item.item))
    return list(pages.values())


def append_statements(pages: Sequence[TimelinePage], now_ms: int) -> list[Statement]:
    return [map_events.append(page.map_id, page.first_seq, page.lines, at_ms=now_ms) for page in pages]


def _list_keys(current: MatchHistory) -> tuple[object, ...]:
    """Return the columns by which lists are filtered, sorted and counted."""
    series = current.series
    maps = [(played.id, played.status, played.sort_ms, played.map_name) for played in current.maps]
    return (*maps, None if series is None else (series.id, series.status, series.sort_ms))
