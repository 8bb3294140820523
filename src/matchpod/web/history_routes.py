"""The endpoints for series, maps, leaderboards and timelines; part of the list in `routes`."""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.core.errors import InvalidParamsError, NotFoundError
from matchpod.service.history.views import EventsPage, LeaderboardView, MapDetail, MapsPage, SeriesDetail, SeriesPage
from matchpod.service.principals import Scope
from matchpod.web import event_streams, history, parameters
from matchpod.web.endpoint import EVENT_STREAM, Endpoint, Tag
from matchpod.web.failures import WITH_KEY

_GET_MAP: Final = Endpoint(
    method="GET",
    path="/api/v1/cs2/matches/{mapId}",
    name="getMap",
    tag=Tag.API,
    summary="Get a map and its players",
    text="While the map is live, the statistics are current. `players` has the same shape as in the `result`.",
    access=Scope.SERVERS_READ,
    parameters=(parameters.MAP_ID,),
    returns=MapDetail,
    links=("getMapEvents", "getMapLeaderboard", "getSeries"),
    errors=(*WITH_KEY, NotFoundError),
    handler=history.get_map,
)
_GET_EVENTS: Final = Endpoint(
    method="GET",
    path="/api/v1/cs2/matches/{mapId}/events",
    name="getMapEvents",
    tag=Tag.API,
    summary="Poll the timeline of a map",
    text="Items in order, after `afterSeq`. Pass the `nextAfterSeq` of the response as the next `afterSeq` to get "
    "every item exactly once. A restored round is an item too and removes no earlier item.",
    access=Scope.SERVERS_READ,
    parameters=(parameters.MAP_ID, parameters.AFTER_SEQ, parameters.EVENTS_LIMIT),
    returns=EventsPage,
    errors=(*WITH_KEY, InvalidParamsError, NotFoundError),
    handler=history.get_events,
)
_STREAM_MAP: Final = Endpoint(
    method="GET",
    path="/api/v1/cs2/matches/{mapId}/events/stream",
    name="streamMapEvents",
    tag=Tag.API,
    summary="Follow the timeline of a map",
    text="Server-sent events: `event` is the `type` of an item, `id` its `seq`, `data` the item as when polling. "
    "The stream ends with the match; if nothing is left to send, the status is 204.",
    access=Scope.SERVERS_READ,
    parameters=(parameters.MAP_ID, *parameters.LAST_EVENT_OF_MAP),
    content_type=EVENT_STREAM,
    errors=(*WITH_KEY, InvalidParamsError, NotFoundError),
    handler=event_streams.map_stream,
)


def _alias(endpoint: Endpoint, path: str) -> Endpoint:
    """Return the same endpoint at another path."""
    return msgspec.structs.replace(
        endpoint,
        path=path,
        name=f"{endpoint.name}Alias",
        summary=f"{endpoint.summary} (alias)",
        text=f"The same as `{endpoint.path}`.",
    )


HISTORY: Final[tuple[Endpoint, ...]] = (
    Endpoint(
        method="GET",
        path="/api/v1/cs2/series",
        name="listSeries",
        tag=Tag.API,
        summary="List series",
        text="Newest first. Series that have not started are last and match no date filter.",
        access=Scope.SERVERS_READ,
        parameters=parameters.SERIES_LIST,
        returns=SeriesPage,
        links=("getListedSeries",),
        errors=(*WITH_KEY, InvalidParamsError),
        handler=history.list_series,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/cs2/series/{seriesId}",
        name="getSeries",
        tag=Tag.API,
        summary="Get a series and its maps",
        text="Every competitive and wingman match is a series, even if it has a single map.",
        access=Scope.SERVERS_READ,
        parameters=(parameters.SERIES_ID,),
        returns=SeriesDetail,
        links=("getMapOfSeries",),
        errors=(*WITH_KEY, NotFoundError),
        handler=history.get_series,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/cs2/servers/{serverId}/series",
        name="listServerSeries",
        tag=Tag.API,
        summary="List the series of a server",
        text="A server plays one match, so there is at most one series.",
        access=Scope.SERVERS_READ,
        parameters=(parameters.SERVER_OF_SERIES, *parameters.SERIES_LIST),
        returns=SeriesPage,
        links=("getListedSeries",),
        errors=(*WITH_KEY, InvalidParamsError, NotFoundError),
        handler=history.list_server_series,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/cs2/matches",
        name="listMaps",
        tag=Tag.API,
        summary="List maps",
        text="Each map of a match is one item. Newest first. Maps that have not started are last and match no date "
        "filter.",
        access=Scope.SERVERS_READ,
        parameters=parameters.MAPS_LIST,
        returns=MapsPage,
        links=("getListedMap",),
        errors=(*WITH_KEY, InvalidParamsError),
        handler=history.list_maps,
    ),
    _GET_MAP,
    _alias(_GET_MAP, "/api/v1/cs2/maps/{mapId}"),
    _GET_EVENTS,
    _alias(_GET_EVENTS, "/api/v1/cs2/maps/{mapId}/events"),
    Endpoint(
        method="GET",
        path="/api/v1/cs2/matches/{mapId}/leaderboard",
        name="getMapLeaderboard",
        tag=Tag.API,
        summary="Get the leaderboard of a map",
        text="The best players by one statistic; ties are ordered by kills, then damage, then name.",
        access=Scope.SERVERS_READ,
        parameters=(parameters.MAP_ID, parameters.SORT_BY, parameters.LEADERBOARD_LIMIT),
        returns=LeaderboardView,
        errors=(*WITH_KEY, InvalidParamsError, NotFoundError),
        handler=history.get_leaderboard,
    ),
    _STREAM_MAP,
    _alias(_STREAM_MAP, "/api/v1/cs2/maps/{mapId}/events/stream"),
    Endpoint(
        method="GET",
        path="/api/v1/servers/{id}/stream",
        name="streamServerEvents",
        tag=Tag.API,
        summary="Follow the timelines of a whole match",
        text="Like the stream of a map, for all maps of the server's match; it ends with the match. Each item also has "
        "`mapId` and `mapNumber`, and each `id` is the last `seq` of every map, joined by dots.",
        access=Scope.SERVERS_READ,
        parameters=(parameters.SERVER_ID, *parameters.LAST_EVENT_OF_SERVER),
        content_type=EVENT_STREAM,
        errors=(*WITH_KEY, InvalidParamsError, NotFoundError),
        handler=event_streams.server_stream,
    ),
)
