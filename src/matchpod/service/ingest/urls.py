"""Define the paths and URLs to which game servers and their plugins send requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

LOGS_PATH: Final = "/ingest/logs/{token}"
REPORTS_PATH: Final = "/ingest/reports"
SHOTS_PATH: Final = "/ingest/shots/{token}"
ANTICHEAT_PATH: Final = "/ingest/anticheat/{token}"
MATCH_PATH: Final = "/ingest/match"
DEMOS_PATH: Final = "/ingest/demos"
"""The path to which demos are uploaded. It is served on a separate port."""


class IngestUrls(msgspec.Struct, frozen=True):
    """The ingest URLs below the URL `base`; `of_regions` has the base URLs of the regions that use another URL.

    Demos have separate base URLs. `demo_base` is None if no demos are recorded.
    """

    base: str
    of_regions: Mapping[str, str] = {}
    demo_base: str | None = None
    demos_of_regions: Mapping[str, str] = {}

    def of(self, region: str) -> IngestUrls:
        """Return the URLs for the game servers of a region."""
        demo_base = None if self.demo_base is None else self.demos_of_regions.get(region, self.demo_base)
        return IngestUrls(self.of_regions.get(region, self.base), demo_base=demo_base)

    def logs(self, log_token: str) -> str:
        """Return the URL to which a server posts its log."""
        return self.base + LOGS_PATH.format(token=log_token)

    def anticheat(self, report_token: str) -> str:
        """Return the URL for reports of an anti-cheat plugin. It has the token, as webhooks cannot send headers."""
        return self.base + ANTICHEAT_PATH.format(token=report_token)

    def shots(self, report_token: str) -> str:
        return self.base + SHOTS_PATH.format(token=report_token)

    @property
    def reports(self) -> str:
        """The URL to which the match plugin sends reports."""
        return self.base + REPORTS_PATH

    @property
    def match(self) -> str:
        """The URL from which the match plugin fetches its match."""
        return self.base + MATCH_PATH

    @property
    def demos(self) -> str | None:
        """The URL to which the match plugin uploads demos; None if no demos are recorded."""
        return None if self.demo_base is None else self.demo_base + DEMOS_PATH
