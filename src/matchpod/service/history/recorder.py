"""How does a match get into its history while it is played? What happened is appended, how it stands is replaced.

Items are numbered by the fold, which is the same whoever folds, so what is already stored is known by its number.
They are pushed to readers when they are committed, never before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from matchpod.core.timeline import MapItem
from matchpod.cs2.match_reader import MatchReader
from matchpod.ports import Database, DuplicateError, Statement
from matchpod.service.history import naming
from matchpod.service.history.rows import history_of
from matchpod.service.history.streams import Streams
from matchpod.storage import history, map_events, servers
from matchpod.storage.history import MapRow, MatchHistory
from matchpod.storage.servers import ServerRow

FLUSH_MS: Final = 250
"""The least time between two writes of one match: a reader hardly notices, and a busy round is a few rows."""

Writer = Callable[[Sequence[Statement]], Awaitable[None]]
"""Writes as the holder of the match's claim."""

_encode = msgspec.json.Encoder().encode


class Pages(msgspec.Struct, frozen=True):
    """Items of one map that follow each other, as they are stored."""

    map_id: str
    first_seq: int
    lines: list[bytes]


class Recorder:
    """The history of one match in the making; one at a time has the claim of its server."""

    def __init__(
        self, row: ServerRow, reader: MatchReader, *, db: Database, write: Writer, streams: Streams, server_name: str
    ) -> None:
        self._row = row
        self._reader = reader
        self._db = db
        self._write = write
        self._streams = streams
        self._server_name = server_name
        self._stored: dict[str, int] = {}
        """The last stored item of each map."""
        self._written = MatchHistory(maps=())
        self._flushed_ms = 0

    async def begin(self) -> None:
        """See what is stored already."""
        self._stored = await map_events.last_seqs(self._db, self._row.id)
        maps = await history.maps_of(self._db, self._row.id)
        self._written = MatchHistory(maps=tuple(maps), series=await history.series_of(self._db, self._row.id))

    def due_ms(self, now_ms: int) -> int | None:
        """When `write` is to be called: at once where a map began or ended; None while there is nothing new."""
        if not self._written.maps:
            return 0  # it began before there was a history
        if not self._reader.timeline.waiting:
            return None
        played = self._reader.match.current_map
        is_as_stored = self._written.maps[played.number - 1].status is played.status
        # A clock that was set back must not keep what happened from readers for as long.
        is_soon = is_as_stored and self._flushed_ms <= now_ms
        return self._flushed_ms + FLUSH_MS if is_soon else 0

    async def write(self, now_ms: int, also: Sequence[Statement] = ()) -> None:
        """Store what happened and how the match stands, together with other statements."""
        standing = history_of(self._row, self._reader.match, server_name=self._server_name)
        hold = servers.hold(self._row.id, self._row.fence)
        await self._commit([hold, *also, *self._changes(standing)], now_ms)
        self._written = standing
        self._flushed_ms = now_ms

    def final(self) -> MatchHistory:
        """The history of a match that is over, with the statistics of all its maps."""
        return history_of(self._row, self._reader.match, server_name=self._server_name, is_final=True)

    async def end(self, conclusion: Sequence[Statement], now_ms: int) -> None:
        """Store the end of the match (its `final` history is part of the conclusion), and what happened last."""
        await self._commit(conclusion, now_ms)
        for one in self._written.maps:
            self._streams.finish(one.id)

    async def _commit(self, statements: Sequence[Statement], now_ms: int) -> None:
        items = self._reader.timeline.take()
        pages = self._new_pages(items)
        try:
            await self._write([*statements, *appends(pages, now_ms)])
        except DuplicateError:
            # Whoever had the match before stored the same items after we had looked.
            self._stored = await map_events.last_seqs(self._db, self._row.id)
            pages = self._new_pages(items)
            await self._write([*statements, *appends(pages, now_ms)])
        for page in pages:
            self._stored[page.map_id] = page.first_seq + len(page.lines) - 1
            self._streams.publish(page.map_id, page.first_seq, page.lines)

    def _new_pages(self, items: Sequence[MapItem]) -> list[Pages]:
        return new_pages(items, self._row.game_id, self._stored)

    def _changes(self, standing: MatchHistory) -> list[Statement]:
        """The least that must be written; most changes are of a score, which no list is sorted or counted by."""
        if standing == self._written:
            return []
        if _counted(standing) != _counted(self._written):
            return history.replace(standing)
        before = set(self._written.maps)
        changed = tuple(one for one in standing.maps if one not in before)
        series = standing.series if standing.series != self._written.series else None
        return history.refresh(MatchHistory(maps=changed, series=series))


def new_pages(items: Sequence[MapItem], game_id: str, stored: dict[str, int]) -> list[Pages]:
    """The items that are not stored yet, by map, in order."""
    lines: dict[int, Pages] = {}
    for told in items:
        number, seq = told.map_number, told.item.seq
        page = lines.get(number)
        if page is None:
            map_id = naming.map_id(game_id, number)
            if seq <= stored.get(map_id, 0):
                continue
            page = lines[number] = Pages(map_id, seq, [])
        page.lines.append(_encode(told.item))
    return list(lines.values())


def appends(pages: Sequence[Pages], now_ms: int) -> list[Statement]:
    """The statements that store them."""
    return [map_events.append(page.map_id, page.first_seq, page.lines, at_ms=now_ms) for page in pages]


def _counted(standing: MatchHistory) -> tuple[object, ...]:
    """What lists are filtered, sorted and counted by."""
    series = standing.series
    return (
        *(_key(one) for one in standing.maps),
        None if series is None else (series.id, series.status, series.sort_ms),
    )


def _key(one: MapRow) -> tuple[str, str, int, str]:
    return one.id, one.status, one.sort_ms, one.map_name
