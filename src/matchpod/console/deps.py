"""Define the dependencies of the console's pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from matchpod.console.origins import OriginRules
from matchpod.console.page_updates import Broadcasts
from matchpod.core.requests.history_query import MAX_PAGE_SIZE
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.access.key_management import KeyManagement
from matchpod.service.acknowledgements import Acknowledgements
from matchpod.service.match_claims import MatchClaims
from matchpod.service.operations.installation import Installation
from matchpod.service.overlays import Overlays
from matchpod.service.reading.match_details import MatchDetails
from matchpod.service.reading.wall import Overview
from matchpod.service.regions.alerts import RegionAlerts
from matchpod.service.regions.statistics import RegionStatistics
from matchpod.web import Services

MAX_CSV_ROWS: Final = 10_000
"""Maximum number of matches in a CSV file; if more are selected, the newest are exported."""


class ConsoleDeps(msgspec.Struct, frozen=True, kw_only=True):
    """The services that the pages use, and the state that all requests share."""

    services: Services
    sessions: ConsoleSessions
    audit: Audit
    overview: Overview
    acknowledgements: Acknowledgements
    claims: MatchClaims
    details: MatchDetails
    overlays: Overlays
    keys: KeyManagement
    installation: Installation
    region_statistics: RegionStatistics
    region_alerts: RegionAlerts
    scenarios: Mapping[str, str]
    """The scenarios of simulated servers, by name, with their descriptions."""
    sandbox_callback: str
    """The callback URL that the form suggests in a sandbox, if callbacks may be sent there."""
    origins: OriginRules
    broadcasts: Broadcasts
    now_ms: Callable[[], int]
    max_csv_rows: int = MAX_CSV_ROWS
    csv_page_size: int = MAX_PAGE_SIZE
