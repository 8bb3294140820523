"""Read series and maps on behalf of callers: lists, details, rounds, timelines and leaderboards.

The web layer has already checked scope and query. Here, NotFoundError is raised if something does not exist, and
ForbiddenError if it belongs to another organization. Finalized maps are read from the database. The statistics of other
maps are computed from the match in memory, without an await, so that they are consistent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.core.match import series as series_rules
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import SeriesFormat, Winner
from matchpod.core.requests.history_query import (
    EventsQuery,
    LeaderboardQuery,
    ListQuery,
    read_map_id,
    read_series_id,
    read_server_id,
)
from matchpod.core.requests.match_list_query import MatchListQuery
from matchpod.core.rulings import Ruling
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.leaderboard import rank
from matchpod.core.views.marks import NO_MARKS, Marks, read_marks
from matchpod.ports import Database
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.history import rows
from matchpod.service.identity.principals import Principal, require_own
from matchpod.service.match_log.live import LocalMatches, logged_if_failed
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.reading import history_views as views
from matchpod.service.reading import match_lists
from matchpod.service.reading.endings import ending_of, endings_of, read_ruling
from matchpod.storage import demos, history, history_lists, map_events, servers
from matchpod.storage import rulings as stored_rulings
from matchpod.storage.demos import DemoRow
from matchpod.storage.history import MapRow, MapStats, SeriesRow
from matchpod.storage.list_positions import ListPositions
from matchpod.storage.servers import EndColumns, ServerRow, ServerSummary

_NOT_BEGUN: Final = (ServerPhase.ALLOCATING, ServerPhase.PENDING)


class History:
    """Reads series and maps. Each organization can read only its own."""

    def __init__(self, *, db: Database, live: LocalMatches, remote: RemoteMatches) -> None:
        self._db = db
        self._live = live
        self._remote = remote
        self._positions = ListPositions()

    # --- series ---------------------------------------------------------------------------------------------------

    @unavailable_on_outage
    async def series_list(self, principal: Principal, query: ListQuery) -> views.SeriesPage:
        """Return a page of the organization's series, newest first."""
        return await self._series_page(principal, query)

    @unavailable_on_outage
    async def server_series(self, principal: Principal, server_id: str, query: ListQuery) -> views.SeriesPage:
        """Return a page with a server's series. It is empty if the mode has no series, or if the query excludes it."""
        await self._own_server(principal, server_id)
        return await self._series_page(principal, msgspec.structs.replace(query, server_id=server_id))

    async def _series_page(self, principal: Principal, query: ListQuery) -> views.SeriesPage:
        total, listed = await history_lists.list_series(self._db, principal.org_id, query, positions=self._positions)
        endings = await endings_of(self._db, [(item.series.server_id, item.end) for item in listed])
        marks = await self._marks([item.series.server_id for item in listed])
        return views.series_page(query, total, list(zip(listed, endings, strict=True)), marks)

    @unavailable_on_outage
    async def series(self, principal: Principal, series_id: str) -> views.SeriesDetail:
        """Return the series with this id (`ser_…` or UUID), with the scores of its maps."""
        key = read_series_id(series_id)
        found = None if key is None else await history.get_series(self._db, key)
        row = require_own(principal, None if found is None else found[0], "series")
        end = EndColumns() if found is None else found[1]
        maps = await history.maps_of(self._db, row.server_id)
        if not _agree(row, maps):  # a map or the series ended between the two reads: read the series again
            row, end = await history.get_series(self._db, row.id) or (row, end)
        marks = await self._marks([row.server_id])
        ending = await ending_of(self._db, row.server_id, end)
        recorded = await demos_of_maps(self._db, [played.id for played in maps])
        return views.series_detail(row, maps, ending, marks.get(row.server_id, NO_MARKS), demos=recorded)

    # --- matches --------------------------------------------------------------------------------------------------

    @unavailable_on_outage
    async def matches(self, principal: Principal, query: MatchListQuery) -> match_lists.MatchesPage:
        """Return a page of the organization's matches with their teams, maps and scores, newest first."""
        return await match_lists.read_page(self._db, principal.org_id, query, self._positions)

    # --- maps -----------------------------------------------------------------------------------------------------

    @unavailable_on_outage
    async def maps(self, principal: Principal, query: ListQuery) -> views.MapsPage:
        """Return a page of the organization's maps, newest first."""
        total, listed = await history_lists.list_maps(self._db, principal.org_id, query, positions=self._positions)
        marks = await self._marks([row.server_id for row in listed])
        return views.maps_page(query, total, listed, rulings=await self._rulings(listed), marks=marks)

    @unavailable_on_outage
    async def map(self, principal: Principal, map_id: str) -> views.MapDetail:
        row, stats = await self._statistics(await self.own_map(principal, map_id))
        marks = await self._marks([row.server_id])
        ruling, recorded = await self._ruling(row), await demos_of_maps(self._db, [row.id])
        return views.map_detail(row, stats, ruling, marks.get(row.server_id, NO_MARKS), demo=recorded.get(row.id))

    @unavailable_on_outage
    async def events(self, principal: Principal, map_id: str, query: EventsQuery) -> views.EventsPage:
        """Return the next page of the map's timeline."""
        row = await self.own_map(principal, map_id)
        found = await map_events.read_after(self._db, row.id, query.after_seq, limit=query.limit)
        return views.events_page(row.id, query, found)

    @unavailable_on_outage
    async def rounds(self, principal: Principal, map_id: str) -> views.RoundsView:
        row, match = await self._current(await self.own_map(principal, map_id))
        if match is not None:
            return views.rounds_view(row, rows.rounds_of_map(match, row.map_number))
        if not row.is_final:
            return views.rounds_view(row, b"[]")
        stored = await history.rounds_of(self._db, row.id)
        return views.rounds_view(row, None if stored is None else stored.unpack())

    @unavailable_on_outage
    async def leaderboard(self, principal: Principal, map_id: str, query: LeaderboardQuery) -> views.LeaderboardView:
        row, stats = await self._statistics(await self.own_map(principal, map_id))
        players = rank(stats.leaderboard, sort_by=query.sort_by, limit=query.limit)
        return views.leaderboard_view(row, players, await self._ruling(row))

    # --- rows, also for streams -----------------------------------------------------------------------------------

    @unavailable_on_outage
    async def own_map(self, principal: Principal, map_id: str) -> MapRow:
        """Return the stored row of a map that belongs to the caller's organization."""
        key = read_map_id(map_id)
        return require_own(principal, None if key is None else await history.get_map(self._db, key), "map")

    @unavailable_on_outage
    async def own_maps(self, principal: Principal, server_id: str) -> list[MapRow]:
        """Return the stored rows of all maps of a server of the caller's organization, in the order of the maps."""
        await self._own_server(principal, server_id)
        return await history.maps_of(self._db, server_id)

    async def _own_server(self, principal: Principal, server_id: str) -> ServerSummary:
        key = read_server_id(server_id)
        return require_own(principal, None if key is None else await servers.summary(self._db, key), "server")

    async def _marks(self, server_ids: Sequence[str]) -> dict[str, Marks]:
        """Return the marks (labels and similar columns) of matches by server id. Matches without marks are left out."""
        found = await servers.marks_of(self._db, server_ids)
        return {server_id: read_marks(stored) for server_id, stored in found.items()}

    async def _rulings(self, maps: Sequence[MapRow]) -> dict[str, Ruling]:
        """Return the current rulings on the matches of these maps, by server id."""
        over = {row.server_id for row in maps if row.status in (MapStatus.FINISHED, MapStatus.CANCELLED)}
        found = await stored_rulings.current_of(self._db, sorted(over))
        return {server_id: ruling for server_id, text in found.items() if (ruling := read_ruling(text)) is not None}

    async def _ruling(self, row: MapRow) -> Ruling | None:
        return (await self._rulings((row,))).get(row.server_id)

    async def _statistics(self, row: MapRow) -> tuple[MapRow, MapStats]:
        """Return the current row of a map and its statistics, consistent with each other."""
        row, match = await self._current(row)
        if match is not None:
            return row, rows.stats_of_map(match, row.id, row.map_number)
        return row, (await history.stats_of(self._db, row.id) if row.is_final else None) or _no_stats(row)

    async def _current(self, row: MapRow) -> tuple[MapRow, Match | None]:
        """Return the current row of a map, and the match if the map's statistics must be computed from it.

        The match must be used before the next await.
        """
        if row.is_final:
            return row, None
        server = await servers.get(self._db, row.server_id)
        if server is None or server.phase in _NOT_BEGUN:
            return row, None
        if server.phase is not ServerPhase.RUNNING:
            # The match has ended, perhaps after the row was read. Statistics of a canceled match are stored some time
            # later.
            row = await history.get_map(self._db, row.id) or row
            if row.is_final:
                return row, None
        live = self._live.get(server.id)
        with logged_if_failed(server.id):
            match = await self._remote.match(server) if live is None else live.fold.match
            if rows.has_map(match, row.map_number):  # False if a newer version knows a mode that this version does not
                return _row_now(row, server, match), match
        return row, None


def _row_now(row: MapRow, server: ServerRow, match: Match) -> MapRow:
    """Build the current row of a map from the match. (Not async, because the match may change during an await.)"""
    now = rows.map_row(server, match, row.map_number, server_name=row.server_name)
    if row.status is MapStatus.CANCELLED and now.status is not MapStatus.FINISHED:
        # The match was canceled by a request, of which its log contains nothing.
        now = msgspec.structs.replace(now, status=row.status)
    elif row.status is MapStatus.LIVE and now.status in (MapStatus.FINISHED, MapStatus.CANCELLED):
        # The end of a map is stored together with its last timeline items. Until then the map is shown as live, so that
        # readers do not stop before the last items.
        now = msgspec.structs.replace(now, status=row.status, winner=None, finished_at_ms=None, duration_s=None)
    return now


def _no_stats(row: MapRow) -> MapStats:
    return MapStats(map_id=row.id, stats_version=1, players=b"[]", anti_cheat=b"[]", leaderboard=b"[]")


def _agree(series: SeriesRow, maps: list[MapRow]) -> bool:
    """True if a series and its maps are consistent with each other."""
    won1, won2 = series_rules.maps_won([Winner(row.winner) for row in maps if row.winner is not None])
    given = series.team1_maps_won - won1, series.team2_maps_won - won2  # maps won before the match have no rows
    is_open = series.status in (MapStatus.UPCOMING, MapStatus.LIVE)
    has_open = any(row.status in (MapStatus.UPCOMING, MapStatus.LIVE) for row in maps)
    is_won = min(given) >= 0 and sum(given) == SeriesFormat(series.format).length - len(maps)
    return is_won and is_open == has_open


async def demos_of_maps(db: Database, map_ids: Sequence[str]) -> dict[str, views.DemoOfMap]:
    """Return the demos of maps by map id. Maps without a recording are left out."""
    by_map: dict[str, list[DemoRow]] = {}
    for row in await demos.of_maps(db, map_ids):
        by_map.setdefault(row.map_id, []).append(row)
    shown = {map_id: views.demo_of_map(found) for map_id, found in by_map.items()}
    return {map_id: demo for map_id, demo in shown.items() if demo is not None}
