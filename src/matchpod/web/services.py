"""The services and limits that the handlers of requests need."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from matchpod.service.access.audit import Audit
from matchpod.service.access.organizations import Access
from matchpod.service.actions.requests import Actions
from matchpod.service.callbacks.deliveries import CallbackDeliveries
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.fair_turns import FairTurns
from matchpod.service.ingest.posts import Ingest
from matchpod.service.matches import Matches
from matchpod.service.operations.readiness import Readiness
from matchpod.service.reading.demos import Demos
from matchpod.service.reading.history import History
from matchpod.service.reading.match_records import MatchRecords
from matchpod.service.region_checks.requests import RegionChecks
from matchpod.service.regions.regions import Regions
from matchpod.service.rulings import Rulings
from matchpod.service.streams.map_streams import Streams
from matchpod.service.telemetry.prometheus import Registry
from matchpod.service.webhooks.management import Webhooks

METRICS_WAIT_S: Final = 2.0
"""Maximum time in seconds for which a request for the metrics waits. The timeout of scrapers is usually 10 s."""


class AccessLog(StrEnum):
    """Which requests have a line in the access log."""

    OFF = "off"
    ON = "on"
    """All requests except those of game servers."""
    ALL = "all"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for callers. `rate_limit` is the number of requests per key and minute; None for no limit."""

    max_body_bytes: int
    rate_limit: int | None = None
    metrics_wait_s: float = METRICS_WAIT_S


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """All services and settings that handlers use."""

    access: Access
    audit: Audit
    actions: Actions
    matches: Matches
    rulings: Rulings
    callbacks: CallbackDeliveries
    private_callbacks: PrivateCallbacks
    webhooks: Webhooks
    history: History
    demos: Demos
    records: MatchRecords
    streams: Streams
    ingest: Ingest
    regions: Regions
    region_checks: RegionChecks
    metrics: Registry
    readiness: Readiness
    limits: Limits
    fair_turns: FairTurns
    cors_origins: tuple[str, ...] = ()
    """The origins whose pages may read the API; `*` allows all origins."""
    access_log: AccessLog = AccessLog.OFF
    version: str
