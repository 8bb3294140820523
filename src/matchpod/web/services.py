"""What does the web need to answer requests? The use cases, and a few limits."""

from __future__ import annotations

import msgspec

from matchpod.service.access import Access
from matchpod.service.history.reading import History
from matchpod.service.history.streams import Streams
from matchpod.service.ingest import Ingest
from matchpod.service.matches import Matches
from matchpod.service.metrics import Metrics
from matchpod.service.readiness import Readiness
from matchpod.service.regions import Regions


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one caller may ask for; `rate_limit` is requests a minute and key, None for no limit."""

    max_body_bytes: int
    rate_limit: int | None = None


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that endpoints call."""

    access: Access
    matches: Matches
    history: History
    streams: Streams
    ingest: Ingest
    regions: Regions
    metrics: Metrics
    readiness: Readiness
    limits: Limits
    version: str
