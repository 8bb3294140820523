"""What can a caller read of series and maps? Lists, details, timelines and leaderboards of his own organization.

Scope and query were checked before; here the order is: an unknown thing, somebody else's thing. A map that is final
is read from what was stored at its end. Before that its numbers come from the match as it is being read, all from the
same moment, so that they agree with each other.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from matchpod.core import series as series_rules
from matchpod.core.errors import ForbiddenError, NotFoundError
from matchpod.core.history_query import (
    EventsQuery,
    LeaderboardQuery,
    ListQuery,
    read_map_id,
    read_series_id,
    read_server_id,
)
from matchpod.core.match import Match
from matchpod.core.model import Winner
from matchpod.core.played_map import MapStatus
from matchpod.core.server_status import ServerPhase
from matchpod.core.stats.leaderboard import LeaderboardPlayer, rank
from matchpod.ports import Database
from matchpod.service.availability import unavailable_when_away
from matchpod.service.history import rows, views
from matchpod.service.live import LiveMatches
from matchpod.service.principals import Principal
from matchpod.service.spectators import Spectators
from matchpod.storage import history, history_lists, map_events, servers
from matchpod.storage.history import MapRow, MapStats, SeriesRow
from matchpod.storage.servers import ServerRow, ServerSummary

_NOT_BEGUN: Final = (ServerPhase.ALLOCATING, ServerPhase.PENDING)

_LEADERBOARD: Final = msgspec.json.Decoder(list[LeaderboardPlayer])

_Owned = TypeVar("_Owned", MapRow, SeriesRow, ServerSummary)


class History:
    """The series and maps of all organizations, each seen by its own."""

    def __init__(self, *, db: Database, live: LiveMatches, spectators: Spectators) -> None:
        self._db = db
        self._live = live
        self._spectators = spectators

    # --- series ---------------------------------------------------------------------------------------------------

    @unavailable_when_away
    async def series_list(self, principal: Principal, query: ListQuery) -> views.SeriesPage:
        """The organization's series, newest first."""
        return views.series_page(query, *await history_lists.list_series(self._db, principal.org_id, query))

    @unavailable_when_away
    async def server_series(self, principal: Principal, server_id: str, query: ListQuery) -> views.SeriesPage:
        """The series played on one server: one, or none where the mode has no series."""
        await self._own_server(principal, server_id)
        if query.server_id not in (None, server_id):
            return views.series_page(query, 0, [])
        narrowed = msgspec.structs.replace(query, server_id=server_id)
        return views.series_page(query, *await history_lists.list_series(self._db, principal.org_id, narrowed))

    @unavailable_when_away
    async def series(self, principal: Principal, series_id: str) -> views.SeriesDetail:
        """The series of this id, `ser_…` or UUID, with the scores of its maps."""
        key = read_series_id(series_id)
        row = _own(principal, None if key is None else await history.get_series(self._db, key), "series")
        maps = await history.maps_of(self._db, row.server_id)
        if not _agree(row, maps):  # a map or the series ended between the two reads
            row = await history.get_series(self._db, row.id) or row
        return views.series_detail(row, maps)

    # --- maps -----------------------------------------------------------------------------------------------------

    @unavailable_when_away
    async def maps(self, principal: Principal, query: ListQuery) -> views.MapsPage:
        """The organization's maps, newest first."""
        return views.maps_page(query, *await history_lists.list_maps(self._db, principal.org_id, query))

    @unavailable_when_away
    async def map(self, principal: Principal, map_id: str) -> views.MapDetail:
        """The map with the statistics of its players."""
        return views.map_detail(*await self._standing(await self._own_map(principal, map_id)))

    @unavailable_when_away
    async def events(self, principal: Principal, map_id: str, query: EventsQuery) -> views.EventsPage:
        """The next items of the map's timeline."""
        row = await self._own_map(principal, map_id)
        found = await map_events.read_after(self._db, row.id, query.after_seq, limit=query.limit)
        return views.events_page(row.id, query, found)

    @unavailable_when_away
    async def leaderboard(self, principal: Principal, map_id: str, query: LeaderboardQuery) -> views.LeaderboardView:
        """The best players of the map."""
        row, stats = await self._standing(await self._own_map(principal, map_id))
        players = _LEADERBOARD.decode(stats.leaderboard)
        return views.leaderboard_view(row, rank(players, sort_by=query.sort_by, limit=query.limit))

    # --- for streams ----------------------------------------------------------------------------------------------

    @unavailable_when_away
    async def own_map(self, principal: Principal, map_id: str) -> MapRow:
        """The stored row of the organization's map."""
        return await self._own_map(principal, map_id)

    @unavailable_when_away
    async def own_maps(self, principal: Principal, server_id: str) -> list[MapRow]:
        """The stored rows of all maps of the organization's server, in their order."""
        await self._own_server(principal, server_id)
        return await history.maps_of(self._db, server_id)

    # --- the rest -------------------------------------------------------------------------------------------------

    async def _own_map(self, principal: Principal, map_id: str) -> MapRow:
        key = read_map_id(map_id)
        return _own(principal, None if key is None else await history.get_map(self._db, key), "map")

    async def _own_server(self, principal: Principal, server_id: str) -> ServerSummary:
        key = read_server_id(server_id)
        return _own(principal, None if key is None else await servers.summary(self._db, key), "server")

    async def _standing(self, row: MapRow) -> tuple[MapRow, MapStats]:
        """The map and its statistics, of the same moment."""
        if row.is_final:
            return row, await history.stats_of(self._db, row.id) or _no_stats(row)
        server = await servers.get(self._db, row.server_id)
        if server is None or server.phase in _NOT_BEGUN:
            return row, _no_stats(row)
        if server.phase is not ServerPhase.RUNNING:
            # It ended, perhaps since we looked; where its caller ended it, the numbers are stored a moment later.
            row = await history.get_map(self._db, row.id) or row
            if row.is_final:
                return row, await history.stats_of(self._db, row.id) or _no_stats(row)
        live = self._live.get(server.id)
        match = await self._spectators.match(server) if live is None else live.fold.reader.match
        return _folded(row, server, match)


def _folded(row: MapRow, server: ServerRow, match: Match) -> tuple[MapRow, MapStats]:
    """The map as the match has it; nothing may be waited for in here, as the match goes on."""
    now = rows.map_row(server, match, row.map_number, server_name=row.server_name)
    if row.status is MapStatus.CANCELLED and now.status is not MapStatus.FINISHED:
        # Its caller ended it, of which the server says nothing.
        now = msgspec.structs.replace(now, status=row.status)
    elif row.status is MapStatus.LIVE and now.status in (MapStatus.FINISHED, MapStatus.CANCELLED):
        # Its end is about to be stored together with its last events: who reads until both are there misses none.
        now = msgspec.structs.replace(now, status=row.status, winner=None, finished_at_ms=None, duration_s=None)
    return now, rows.stats_of_map(match, row.id, row.map_number)


def _no_stats(row: MapRow) -> MapStats:
    return MapStats(map_id=row.id, stats_version=1, players=b"[]", anti_cheat=b"[]", leaderboard=b"[]")


def _agree(series: SeriesRow, maps: list[MapRow]) -> bool:
    """Do a series and its maps tell of the same moment?"""
    won = series_rules.maps_won([Winner(row.winner) for row in maps if row.winner is not None])
    is_open = series.status in (MapStatus.UPCOMING, MapStatus.LIVE)
    has_open = any(row.status in (MapStatus.UPCOMING, MapStatus.LIVE) for row in maps)
    return won == (series.team1_maps_won, series.team2_maps_won) and is_open == has_open


def _own(principal: Principal, found: _Owned | None, what: str) -> _Owned:
    """What was found, when there is such a thing and it belongs to the caller."""
    if found is None:
        raise NotFoundError(f"There is no {what} with this id.")
    if found.org_id != principal.org_id:
        raise ForbiddenError(f"This {what} belongs to another organization.")
    return found
