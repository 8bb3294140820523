"""Build the list of matches in the API, its list of servers, from the rows of servers and maps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from matchpod.core.model import GAME_TYPE, MatchType, Winner
from matchpod.core.requests.match_list_query import MatchListQuery
from matchpod.core.views.result_shapes import IsoTime, MapState, MapStates, Score, SeriesScore, SeriesScoreOrNull
from matchpod.core.views.series_maps import loaded_number
from matchpod.ports import Database
from matchpod.service.reading.endings import (
    AbsentPlayers,
    ConnectedPlayers,
    EndedAt,
    Ending,
    ErrorSentence,
    LogComplete,
    MissingPlayers,
    Reason,
)
from matchpod.service.reading.history_views import ListPage
from matchpod.service.reading.match_head import summarize
from matchpod.service.reading.servers import (
    AsGiven,
    CallbackUrl,
    CreatedBy,
    PublicStatus,
    RegionCode,
    ServerId,
    StoredPhase,
)
from matchpod.service.row_views import view_of
from matchpod.storage.match_lists import ListedMap, maps_of_listed
from matchpod.storage.servers import ServerSummary


class ServerItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server in a list; get the server for its live match, its roster and its password."""

    server_id: ServerId
    game_id: Annotated[str, Meta(description="The UUID of this session; the `sessionId` of callbacks.")]
    region: RegionCode
    status: PublicStatus
    phase: StoredPhase
    map_number: Annotated[
        int | None,
        Meta(
            description="The number of the map that is loaded or loading, from 1; of an ended match, the last one. "
            "Follows a running match within seconds. Null if unknown."
        ),
    ]
    series_score: SeriesScoreOrNull
    maps: MapStates
    ip: Annotated[str | None, Meta(description="The address players connect to; null until the server is running.")]
    port: Annotated[int | None, Meta(description="The game port; null until the server is running.")]
    callback_url: CallbackUrl
    external_match_id: AsGiven
    game_type: Annotated[str, Meta(description="Always `cs2`.")]
    created_at: IsoTime
    reason: Reason
    ended_at: EndedAt
    missing_players: MissingPlayers
    connected_players: ConnectedPlayers
    absent_players: AbsentPlayers
    log_complete: LogComplete
    error: ErrorSentence
    created_by: CreatedBy


class ServersPage(ListPage, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching servers, and their total number."""

    items: Annotated[tuple[ServerItem, ...], Meta(description="The items of this page, newest first.")]


class StoredMaps(msgspec.Struct, frozen=True, kw_only=True):
    """How the maps of a match stand, as stored; the same fields as in its live view."""

    map_number: int | None = None
    series_score: SeriesScore | None = None
    maps: tuple[MapState, ...] = ()


_NOTHING: Final = StoredMaps()
"""For a match that a version without histories created."""


async def stored_maps(db: Database, server_ids: Sequence[str]) -> dict[str, StoredMaps]:
    """How the maps of matches stand, by server id, in one query."""
    by_server: defaultdict[str, list[ListedMap]] = defaultdict(list)
    for one in await maps_of_listed(db, server_ids) if server_ids else ():
        by_server[one.server_id].append(one)
    return {server_id: _maps_of(found) for server_id, found in by_server.items()}


def servers_page(
    query: MatchListQuery, total: int, found: Sequence[tuple[ServerSummary, Ending]], maps: Mapping[str, StoredMaps]
) -> ServersPage:
    """A page of servers, each with its maps and how its match ended."""
    items = tuple(_item(row, ending, maps.get(row.id, _NOTHING)) for row, ending in found)
    return ServersPage(page=query.page, page_size=query.page_size, total=total, items=items)


def _maps_of(found: Sequence[ListedMap]) -> StoredMaps:
    states = tuple(_state(one) for one in found)
    won = found[0].team1_maps_won, found[0].team2_maps_won
    return StoredMaps(
        map_number=loaded_number(states),
        series_score=None if won[0] is None or won[1] is None else SeriesScore(won[0], won[1]),
        maps=states,
    )


def _state(one: ListedMap) -> MapState:
    return MapState(
        name=one.map_name,
        number=one.map_number,
        status=one.status,
        score=None if one.game_mode == MatchType.DEATHMATCH else Score(one.team1_score, one.team2_score),
        winner=None if one.winner is None else Winner(one.winner),
    )


def _item(row: ServerSummary, ending: Ending, maps: StoredMaps) -> ServerItem:
    return view_of(ServerItem, summarize(row, ending), maps, game_type=GAME_TYPE, created_by=row.created_by)
