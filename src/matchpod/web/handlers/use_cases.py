"""Handlers that only call a use case, and return either its view as JSON or a plain confirmation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from matchpod.service.identity.principals import Principal
from matchpod.web.endpoint import KEY_HEADER, Call, Handler, Site
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import NO_STORE, final_json, private_json
from matchpod.web.query_strings import query_of
from matchpod.web.services import Services


class Accepted(msgspec.Struct, frozen=True):
    """The response body of a request that succeeds without a result."""

    ok: Annotated[bool, Meta(description="Always true.")]


OK_BODY = msgspec.json.encode(Accepted(ok=True))


def view(
    use_case: Callable[[Services], Callable[..., Awaitable[Any]]],
    read_query: Callable[[Sequence[tuple[str, str]]], object] | None = None,
    *,
    has_ended: Callable[[Any], bool] | None = None,
) -> Handler:
    """Return a handler that calls a use case with the caller, the path parameters and the query.

    An invalid query is reported before an unknown id. If `has_ended` is true for the view, the response has an ETag.
    """

    async def handle(site: Site, call: Call) -> Response:
        query = () if read_query is None else (read_query(query_of(call)),)
        found = await use_case(site.services)(call.caller, *call.params, *query)
        return private_json(found) if has_ended is None else final_json(call, found, has_ended=has_ended(found))

    return handle


def act(use_case: Callable[[Services], Callable[[Principal, str], Awaitable[object]]]) -> Handler:
    """Return a handler that calls a use case with the caller and the id in the path, and ignores the request body."""

    async def handle(site: Site, call: Call) -> Response:
        await use_case(site.services)(call.caller, call.params[0])
        return Response(OK_BODY, headers=NO_STORE)

    return handle


async def keyed_body(site: Site, call: Call) -> tuple[str | None, bytes]:
    """Return the idempotency key of a request (None if it has none) and its body."""
    return call.single_header(KEY_HEADER.lower().encode()), await call.read_body(site.services.limits.max_body_bytes)
