"""Handlers for matches, servers and regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.core.requests.check_query import read_check_query
from matchpod.core.trace_context import TRACEPARENT, read_traceparent
from matchpod.service.identity.principals import Principal
from matchpod.web.endpoint import Call, Site
from matchpod.web.handlers.use_cases import keyed_body
from matchpod.web.http.responses import Header, PartedResponse, Response
from matchpod.web.json_responses import NO_CACHE, NO_STORE, final_json, private_json
from matchpod.web.query_strings import query_of
from matchpod.web.services import Services

LOG_TYPE: Final = "text/plain; charset=utf-8"

_encoder = msgspec.json.Encoder()


async def create(site: Site, call: Call) -> Response:
    key, body = await keyed_body(site, call)
    caller = read_traceparent(call.header(TRACEPARENT.encode()))
    creation = await site.services.matches.create(call.caller, body, key, caller=caller)
    return private_json(creation.server, 201, is_replayed=creation.is_replayed)


async def get_server(site: Site, call: Call) -> Response:
    encoded = await site.services.matches.get_encoded(call.caller, call.params[0])
    return Response(encoded.body, headers=NO_STORE, packable=encoded)


async def get_result(site: Site, call: Call) -> Response:
    result = await site.services.records.result(call.caller, call.params[0])
    return final_json(call, msgspec.Raw(result), has_ended=True)


async def get_log(site: Site, call: Call) -> PartedResponse:
    return await log_response(site.services, call.caller, call.params[0], headers=NO_STORE)


async def log_response(
    services: Services, principal: Principal, server_id: str, *, headers: Sequence[Header]
) -> PartedResponse:
    """Return the log of a server as a download. Used by the API and the console."""
    parts = await services.records.log(principal, server_id)
    name = b'attachment; filename="%s.log"' % server_id.encode()
    return PartedResponse(
        parts=parts, content_type=LOG_TYPE.encode(), headers=(*headers, (b"content-disposition", name))
    )


async def rule(site: Site, call: Call) -> Response:
    key, body = await keyed_body(site, call)
    ruling, is_replayed = await site.services.rulings.rule(call.caller, call.params[0], body, key)
    return private_json(ruling, 201, is_replayed=is_replayed)


async def check_region(site: Site, call: Call) -> Response:
    query = read_check_query(query_of(call))
    found = await site.services.region_checks.request_as(call.caller, call.params[0], query)
    return private_json(found, 202)


async def list_regions(site: Site, _: Call) -> Response:
    return Response(_encoder.encode(await site.services.regions.views()), headers=NO_CACHE)
