"""Handlers for series, maps, rounds, events and leaderboards; an invalid query is reported before an unknown id."""

from __future__ import annotations

from matchpod.core.requests import history_query
from matchpod.web.endpoint import Call, Site
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import final_json, is_over, private_json
from matchpod.web.query_strings import query_of


async def list_series(site: Site, call: Call) -> Response:
    query = history_query.read_series_query(query_of(call))
    return private_json(await site.services.history.series_list(call.caller, query))


async def get_series(site: Site, call: Call) -> Response:
    view = await site.services.history.series(call.caller, call.params[0])
    return final_json(call, view, has_ended=is_over(view.status))


async def list_server_series(site: Site, call: Call) -> Response:
    query = history_query.read_server_series_query(query_of(call))
    return private_json(await site.services.history.server_series(call.caller, call.params[0], query))


async def list_maps(site: Site, call: Call) -> Response:
    query = history_query.read_maps_query(query_of(call))
    return private_json(await site.services.history.maps(call.caller, query))


async def get_map(site: Site, call: Call) -> Response:
    view = await site.services.history.map(call.caller, call.params[0])
    return final_json(call, view, has_ended=is_over(view.status))


async def get_rounds(site: Site, call: Call) -> Response:
    view = await site.services.history.rounds(call.caller, call.params[0])
    return final_json(call, view, has_ended=is_over(view.status))


async def get_events(site: Site, call: Call) -> Response:
    """Get the next items of a map's timeline."""
    query = history_query.read_events_query(query_of(call))
    return private_json(await site.services.history.events(call.caller, call.params[0], query))


async def get_leaderboard(site: Site, call: Call) -> Response:
    query = history_query.read_leaderboard_query(query_of(call))
    view = await site.services.history.leaderboard(call.caller, call.params[0], query)
    return final_json(call, view, has_ended=is_over(view.status))
