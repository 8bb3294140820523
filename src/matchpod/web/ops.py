"""How do operators see that all is well? Liveness, readiness, numbers, and the documentation of the API."""

from __future__ import annotations

import msgspec

from matchpod.core.errors import NotFoundError
from matchpod.service.metrics import CONTENT_TYPE
from matchpod.service.readiness import ReadinessState
from matchpod.web.endpoint import Answer, Call, Header, Site
from matchpod.web.errors import NotReadyError

_FRESH: tuple[Header, ...] = ((b"cache-control", b"no-cache"),)

_encoder = msgspec.json.Encoder()


class Health(msgspec.Struct, frozen=True):
    """How the process is."""

    status: str
    version: str


async def healthz(site: Site, _: Call) -> Answer:
    """Answer as long as the process lives, whatever else is wrong."""
    return Answer(_encoder.encode(Health("ok", site.services.version)), headers=_FRESH)


async def readyz(site: Site, _: Call) -> Answer:
    """Tell whether requests are welcome, or why not."""
    reasons = await site.services.readiness.check()
    if reasons:
        raise NotReadyError("This process cannot take requests now.", reasons=reasons)
    return Answer(_encoder.encode(Health(ReadinessState.READY, site.services.version)), headers=_FRESH)


async def metrics(site: Site, _: Call) -> Answer:
    """Tell all numbers."""
    text = site.services.metrics.text().encode()
    return Answer(text, content_type=CONTENT_TYPE.encode(), headers=_FRESH)


async def openapi(site: Site, _: Call) -> Answer:
    """Describe the API for programs."""
    return Answer(site.openapi(), headers=_FRESH)


async def docs(site: Site, _: Call) -> Answer:
    """Describe the API for people."""
    return site.pages[""]


async def docs_asset(site: Site, call: Call) -> Answer:
    """Hand out what the page for people is made of."""
    page = site.pages.get(call.params[0])
    if page is None:
        raise NotFoundError("There is no such file.")
    return page
