"""Handlers for liveness, readiness, metrics and the documentation of the API."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from matchpod.core.errors import NotFoundError
from matchpod.core.requests.query_fields import QueryFields
from matchpod.service.operations.readiness import ReadinessState
from matchpod.service.telemetry.prometheus import CONTENT_TYPE
from matchpod.web.auth import client_address
from matchpod.web.endpoint import Call, Site
from matchpod.web.errors import NotReadyError
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import NO_CACHE
from matchpod.web.query_strings import query_of

INTERNAL = "internal"
"""The query parameter with which the documentation page shows the endpoints for game servers and operators."""

METRICS_PER_S = 20
"""Maximum number of requests for the metrics per second, over all clients. These requests need no key, so clients take
turns: a client that sends a flood of requests delays only itself. Even thousands of scrapers stay below the limit."""

_encoder = msgspec.json.Encoder()


class Health(msgspec.Struct, frozen=True):
    """The health of the process."""

    status: Annotated[str, Meta(description="`ok` or `ready`.")]
    version: Annotated[str, Meta(description="The version of the service.")]
    warnings: Annotated[
        tuple[str, ...] | msgspec.UnsetType,
        Meta(description="Limitations of a ready process, as sentences for operators; left out without any."),
    ] = msgspec.UNSET


async def healthz(site: Site, _: Call) -> Response:
    """Report that the process is alive, whether it is ready or not."""
    return Response(_encoder.encode(Health("ok", site.services.version)), headers=NO_CACHE)


async def readyz(site: Site, _: Call) -> Response:
    """Report whether the process is ready and, if not, why."""
    reasons = await site.services.readiness.check()
    if reasons:
        raise NotReadyError("This process is not ready to accept requests.", reasons=reasons)
    warnings = tuple(await site.services.readiness.warnings())
    health = Health(ReadinessState.READY, site.services.version, warnings or msgspec.UNSET)
    return Response(_encoder.encode(health), headers=NO_CACHE)


async def metrics(site: Site, call: Call) -> Response:
    """Return all metrics in the Prometheus text format. They are at most a second old; too frequent requests wait."""
    await site.metrics_pace.turn(client_address(call) or "unknown")
    body = site.metrics.body()
    return Response(body, content_type=CONTENT_TYPE.encode(), headers=NO_CACHE, is_shared=True)


async def openapi(site: Site, _: Call) -> Response:
    return Response(site.openapi(), headers=NO_CACHE, is_shared=True)


async def internal_openapi(site: Site, _: Call) -> Response:
    return Response(site.internal_openapi(), headers=NO_CACHE, is_shared=True)


async def docs(site: Site, call: Call) -> Response:
    """Return the documentation page. Its script reads the query parameter `internal`, which needs no value."""
    others = [(name, value) for name, value in query_of(call) if name != INTERNAL]
    QueryFields(others, (INTERNAL,)).check()
    return site.pages[""]


async def docs_asset(site: Site, call: Call) -> Response:
    page = site.pages.get(call.params[0])
    if page is None:
        raise NotFoundError("There is no such file.")
    return page
