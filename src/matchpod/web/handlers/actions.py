"""Handlers for actions on matches."""

from __future__ import annotations

from matchpod.web.endpoint import Call, Site
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import private_json


async def request_action(site: Site, call: Call) -> Response:
    key = call.single_header(b"idempotency-key")
    body = await call.read_body(site.services.limits.max_body_bytes)
    accepted = await site.services.actions.request(call.caller, call.params[0], body, key)
    return private_json(accepted.action, 202, is_replayed=accepted.is_replayed)
