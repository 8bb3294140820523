"""Handlers that only call a use case, and return its view as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from matchpod.web.endpoint import Call, Handler, Site
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import final_json, private_json
from matchpod.web.query_strings import query_of
from matchpod.web.services import Services


def view(
    use_case: Callable[[Services], Callable[..., Awaitable[Any]]],
    read_query: Callable[[Sequence[tuple[str, str]]], object] | None = None,
    *,
    has_ended: Callable[[Any], bool] | None = None,
) -> Handler:
    """Return a handler that calls a use case with the caller, the parameters of the path, and the query.

    An invalid query is reported before an unknown id. The view has an ETag once `has_ended` is true for it.
    """

    async def handle(site: Site, call: Call) -> Response:
        query = () if read_query is None else (read_query(query_of(call)),)
        found = await use_case(site.services)(call.caller, *call.params, *query)
        return private_json(found) if has_ended is None else final_json(call, found, has_ended=has_ended(found))

    return handle
