"""Handlers for callbacks: their deliveries, and requests to send them again."""

from __future__ import annotations

from matchpod.core.requests.callback_query import read_callbacks_query
from matchpod.web.endpoint import Call, Site
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import private_json
from matchpod.web.query_strings import query_of


async def list_callbacks(site: Site, call: Call) -> Response:
    query = read_callbacks_query(query_of(call))
    return private_json(await site.services.callbacks.list(call.caller, query))


async def get_callback(site: Site, call: Call) -> Response:
    return private_json(await site.services.callbacks.get(call.caller, call.params[0]))


async def redeliver(site: Site, call: Call) -> Response:
    """Send a callback again; a request body is ignored."""
    return private_json(await site.services.callbacks.redeliver(call.caller, call.params[0]))


async def redeliver_given_up(site: Site, call: Call) -> Response:
    """Send the given-up callbacks since a time again."""
    body = await call.read_body(site.services.limits.max_body_bytes)
    return private_json(await site.services.callbacks.redeliver_given_up(call.caller, body))
