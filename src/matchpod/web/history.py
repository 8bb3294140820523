"""How is the history read over HTTP? Each handler takes apart a request for one use case; a bad query comes first."""

from __future__ import annotations

import msgspec

from matchpod.core.history_query import (
    read_events_query,
    read_leaderboard_query,
    read_maps_query,
    read_series_query,
)
from matchpod.web.endpoint import Answer, Call, Site
from matchpod.web.matches import NO_STORE
from matchpod.web.query_strings import query_of

_encoder = msgspec.json.Encoder()


async def list_series(site: Site, call: Call) -> Answer:
    """List the series of the organization."""
    query = read_series_query(query_of(call))
    return _answer(await site.services.history.series_list(call.caller, query))


async def get_series(site: Site, call: Call) -> Answer:
    """Read a series with its maps."""
    return _answer(await site.services.history.series(call.caller, call.params[0]))


async def list_server_series(site: Site, call: Call) -> Answer:
    """List the series of a server."""
    query = read_series_query(query_of(call))
    return _answer(await site.services.history.server_series(call.caller, call.params[0], query))


async def list_maps(site: Site, call: Call) -> Answer:
    """List the maps of the organization."""
    query = read_maps_query(query_of(call))
    return _answer(await site.services.history.maps(call.caller, query))


async def get_map(site: Site, call: Call) -> Answer:
    """Read a map with its players."""
    return _answer(await site.services.history.map(call.caller, call.params[0]))


async def get_events(site: Site, call: Call) -> Answer:
    """Read on in the timeline of a map."""
    query = read_events_query(query_of(call))
    return _answer(await site.services.history.events(call.caller, call.params[0], query))


async def get_leaderboard(site: Site, call: Call) -> Answer:
    """Read the best players of a map."""
    query = read_leaderboard_query(query_of(call))
    return _answer(await site.services.history.leaderboard(call.caller, call.params[0], query))


def _answer(view: object) -> Answer:
    return Answer(_encoder.encode(view), headers=NO_STORE)
