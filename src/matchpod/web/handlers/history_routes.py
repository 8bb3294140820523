"""The endpoints for series, maps, leaderboards and timelines; `routes` adds them to its list."""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests import history_query
from matchpod.service.reading import history_views as views
from matchpod.service.reading.demos import DemoView
from matchpod.web import event_streams
from matchpod.web.endpoint import Endpoint, api_read
from matchpod.web.errors import RangeNotSatisfiableError
from matchpod.web.handlers import demos, parameters, use_cases
from matchpod.web.http.responses import EVENT_STREAM


def _has_ended(view: views.MapDetail | views.RoundsView | views.LeaderboardView | views.SeriesDetail) -> bool:
    """True if a map or series with this status no longer changes, so that its response may be cached."""
    return view.status in (MapStatus.FINISHED, MapStatus.CANCELLED)


_GET_MAP: Final = api_read(
    path="/api/v1/cs2/matches/{mapId}",
    name="getMap",
    summary="Get a map and its players",
    text="While the map is live, the statistics are current. `players` has the same shape as in the `result`.",
    parameters=(parameters.MAP_ID,),
    returns=views.MapDetail,
    has_etag=True,
    links=("getMapDemo", "getMapDemoFile", "getMapEvents", "getMapLeaderboard", "getMapRounds", "getSeries"),
    handler=use_cases.view(lambda services: services.history.map, has_ended=_has_ended),
)
_GET_ROUNDS: Final = api_read(
    path="/api/v1/cs2/matches/{mapId}/rounds",
    name="getMapRounds",
    summary="Get the rounds of a map",
    text="Each round with its winner, score, times, survivors, bomb, and the statistics of its teams and players. "
    "While the map is live, the last item is the current round. A deathmatch has no rounds.",
    parameters=(parameters.MAP_ID,),
    returns=views.RoundsView,
    has_etag=True,
    handler=use_cases.view(lambda services: services.history.rounds, has_ended=_has_ended),
)
_GET_EVENTS: Final = api_read(
    path="/api/v1/cs2/matches/{mapId}/events",
    name="getMapEvents",
    summary="Poll the timeline of a map",
    text="Items in order, after `afterSeq`. Pass the `nextAfterSeq` of the response as the next `afterSeq` to get "
    "every item exactly once. A restored round is an item too and removes no earlier item.",
    parameters=(parameters.MAP_ID, parameters.AFTER_SEQ, parameters.EVENTS_LIMIT),
    returns=views.EventsPage,
    handler=use_cases.view(lambda services: services.history.events, history_query.read_events_query),
)
_STREAM_MAP: Final = api_read(
    path="/api/v1/cs2/matches/{mapId}/events/stream",
    name="streamMapEvents",
    summary="Follow the timeline of a map",
    text="Server-sent events: `event` is the `type` of an item, `id` its `seq`, `data` the item as when polling. "
    "The stream ends with the match; if nothing is left to send, the status is 204.",
    parameters=(parameters.MAP_ID, *parameters.LAST_EVENT_OF_MAP),
    content_type=EVENT_STREAM,
    handler=event_streams.map_stream,
)


_GET_DEMO: Final = api_read(
    path="/api/v1/cs2/matches/{mapId}/demo",
    name="getMapDemo",
    summary="Get the state of the demo of a map",
    text="A demo is recorded if `gameSettings.recordDemo` asks for it. After the map, the GOTV delay and about half a "
    "minute pass before the server begins the upload. If the match was restored, a map may have several files.",
    parameters=(parameters.MAP_ID,),
    returns=DemoView,
    handler=use_cases.view(lambda services: services.demos.demo),
)
_GET_DEMO_FILE: Final = api_read(
    path="/api/v1/cs2/matches/{mapId}/demo/file",
    name="getMapDemoFile",
    summary="Download the demo of a map",
    text="The bytes of the file, or a redirect to where they are stored, depending on the settings of the service.",
    parameters=(parameters.MAP_ID, parameters.DEMO_NUMBER, parameters.RANGE),
    content_type=demos.DEMO_TYPE,
    is_file=True,
    errors=(RangeNotSatisfiableError,),
    handler=demos.get_demo_file,
)


def _alias(endpoint: Endpoint, path: str) -> Endpoint:
    return msgspec.structs.replace(
        endpoint,
        path=path,
        name=f"{endpoint.name}Alias",
        alias_of=endpoint.name,
        summary=f"{endpoint.summary} (alias)",
        text=f"The same as `{endpoint.path}`, which is preferred; this path continues to work.",
    )


HISTORY: Final[tuple[Endpoint, ...]] = (
    api_read(
        path="/api/v1/cs2/series",
        name="listSeries",
        summary="List series",
        text="Newest first. Series that have not started are last and match no date filter.",
        parameters=parameters.SERIES_LIST,
        returns=views.SeriesPage,
        links=("getListedSeries",),
        handler=use_cases.view(lambda services: services.history.series_list, history_query.read_series_query),
    ),
    api_read(
        path="/api/v1/cs2/series/{seriesId}",
        name="getSeries",
        summary="Get a series and its maps",
        text="Every competitive and wingman match is a series, even if it has a single map.",
        parameters=(parameters.SERIES_ID,),
        returns=views.SeriesDetail,
        has_etag=True,
        links=("getMapOfSeries",),
        handler=use_cases.view(lambda services: services.history.series, has_ended=_has_ended),
    ),
    api_read(
        path="/api/v1/cs2/servers/{serverId}/series",
        name="listServerSeries",
        summary="List the series of a server",
        text="A server plays one match, so there is at most one series.",
        parameters=(parameters.SERVER_OF_SERIES, *parameters.SERVER_SERIES_LIST),
        returns=views.SeriesPage,
        links=("getListedSeries",),
        handler=use_cases.view(lambda services: services.history.server_series, history_query.read_server_series_query),
    ),
    api_read(
        path="/api/v1/cs2/matches",
        name="listMaps",
        summary="List maps",
        text="Each map of a match is an item. Newest first. Maps that have not started are last and match no date "
        "filter.",
        parameters=parameters.MAPS_LIST,
        returns=views.MapsPage,
        links=("getListedMap",),
        handler=use_cases.view(lambda services: services.history.maps, history_query.read_maps_query),
    ),
    _GET_MAP,
    _alias(_GET_MAP, "/api/v1/cs2/maps/{mapId}"),
    _GET_ROUNDS,
    _GET_DEMO,
    _GET_DEMO_FILE,
    _GET_EVENTS,
    _alias(_GET_EVENTS, "/api/v1/cs2/maps/{mapId}/events"),
    api_read(
        path="/api/v1/cs2/matches/{mapId}/leaderboard",
        name="getMapLeaderboard",
        summary="Get the leaderboard of a map",
        text="The top players by one statistic; ties are ordered by kills, then damage, then name.",
        parameters=(parameters.MAP_ID, parameters.SORT_BY, parameters.LEADERBOARD_LIMIT),
        returns=views.LeaderboardView,
        has_etag=True,
        handler=use_cases.view(
            lambda services: services.history.leaderboard, history_query.read_leaderboard_query, has_ended=_has_ended
        ),
    ),
    _STREAM_MAP,
    _alias(_STREAM_MAP, "/api/v1/cs2/maps/{mapId}/events/stream"),
    api_read(
        path="/api/v1/servers/{id}/stream",
        name="streamServerEvents",
        summary="Follow the timelines of a whole match",
        text="Like the stream of a map, but for all maps of the server's match. It ends with the match. Each item also "
        "has `mapId` and `mapNumber`, and each `id` is the last `seq` of every map, joined by dots.",
        parameters=(parameters.SERVER_ID, *parameters.LAST_EVENT_OF_SERVER),
        content_type=EVENT_STREAM,
        handler=event_streams.server_stream,
    ),
    api_read(
        path="/api/v1/stream",
        name="streamOrganizationEvents",
        summary="Follow all matches of your organization",
        text="Server-sent events: `event` is the `type` of an event, `data` the event, `id` its number. In your "
        "organization, the numbers begin with 1 and have no gaps. The stream does not end by itself.",
        parameters=parameters.LAST_EVENT_OF_ORGANIZATION,
        content_type=EVENT_STREAM,
        events="OrganizationEvent",
        handler=event_streams.organization_stream,
    ),
)
