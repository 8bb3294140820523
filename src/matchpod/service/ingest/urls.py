"""Paths and URLs at which game servers and their plugins reach the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

LOGS_PATH: Final = "/ingest/logs/{token}"
REPORTS_PATH: Final = "/ingest/reports"
SHOTS_PATH: Final = "/ingest/shots/{token}"
ANTICHEAT_PATH: Final = "/ingest/anticheat/{token}"
MATCH_PATH: Final = "/ingest/match"


class IngestUrls(msgspec.Struct, frozen=True):
    """The ingest URLs below a base URL; `of_regions` are the bases of regions that have another one."""

    base: str
    of_regions: Mapping[str, str] = {}

    def of(self, region: str) -> IngestUrls:
        """Return the URLs for the game servers of a region."""
        return IngestUrls(self.of_regions.get(region, self.base))

    def logs(self, log_token: str) -> str:
        """Where a server posts its log."""
        return self.base + LOGS_PATH.format(token=log_token)

    def anticheat(self, report_token: str) -> str:
        """Where an anti-cheat plugin reports; the token is in the path because webhooks cannot send headers."""
        return self.base + ANTICHEAT_PATH.format(token=report_token)

    def shots(self, report_token: str) -> str:
        return self.base + SHOTS_PATH.format(token=report_token)

    @property
    def reports(self) -> str:
        """Where the match plugin reports."""
        return self.base + REPORTS_PATH

    @property
    def match(self) -> str:
        """Where the match plugin fetches its match."""
        return self.base + MATCH_PATH
