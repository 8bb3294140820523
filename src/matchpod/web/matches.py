"""How are matches created, read and canceled over HTTP? Each handler takes apart a request for one use case."""

from __future__ import annotations

import msgspec

from matchpod.web.bodies import read_body
from matchpod.web.endpoint import Answer, Call, Header, Site

NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"),)
"""Answers carry passwords and live scores: no proxy may keep them."""

_encoder = msgspec.json.Encoder()


class Accepted(msgspec.Struct, frozen=True):
    """Done as asked."""

    ok: bool


OK_BODY = _encoder.encode(Accepted(ok=True))


async def create(site: Site, call: Call) -> Answer:
    """Create a match."""
    key = call.header(b"idempotency-key")
    body = await read_body(call.scope, call.receive, site.services.limits.max_body_bytes)
    server = await site.services.matches.create(call.caller, body, key)
    return Answer(_encoder.encode(server), 201, headers=NO_STORE)


async def get_server(site: Site, call: Call) -> Answer:
    """Read a server with its live match."""
    server = await site.services.matches.get(call.caller, call.params[0])
    return Answer(_encoder.encode(server), headers=NO_STORE)


async def cancel(site: Site, call: Call) -> Answer:
    """Cancel a match; a body is neither needed nor read."""
    await site.services.matches.cancel(call.caller, call.params[0])
    return Answer(OK_BODY, headers=NO_STORE)


async def by_external_id(site: Site, call: Call) -> Answer:
    """Read a match by the caller's own id."""
    match = await site.services.matches.by_external_id(call.caller, call.params[0])
    return Answer(_encoder.encode(match), headers=NO_STORE)


async def list_regions(site: Site, _: Call) -> Answer:
    """List the regions."""
    return Answer(_encoder.encode(await site.services.regions.views()))
