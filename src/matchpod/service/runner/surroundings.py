"""What does every step of a match need? The outside world and the shared parts of the service, in one value."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from matchpod.core.model import GameSettings
from matchpod.ports import Clock, Consoles, Database, Vault
from matchpod.service.folding import settings_of
from matchpod.service.history.streams import Streams
from matchpod.service.identifiers import ID_RANDOM_BYTES, new_callback_id
from matchpod.service.ingest import report_url
from matchpod.service.live import LiveMatches
from matchpod.service.measures import Measures
from matchpod.service.regions import Regions
from matchpod.storage.servers import ServerRow


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps share."""

    db: Database
    clock: Clock
    vault: Vault
    regions: Regions
    live: LiveMatches
    streams: Streams
    consoles: Consoles
    measures: Measures
    ingest_base: str
    """Where game servers reach us."""
    pending_ms: int
    """How long a match waits for a place."""
    random_bytes: Callable[[int], bytes]
    on_concluded: Callable[[], None]
    """Called when a match got its outcome: a callback may be due."""

    def log_url(self, log_token: str) -> str:
        """Where a server posts its log."""
        return f"{self.ingest_base}/ingest/logs/{log_token}"

    def detections_url(self, report_token: str) -> str:
        """Where a server's anti-cheat plugin reports; plugins that post to webhooks cannot send headers."""
        return f"{self.ingest_base}/ingest/anticheat/{report_token}"

    @property
    def report_url(self) -> str:
        """Where a server's match plugin reports."""
        return report_url(self.ingest_base)

    @property
    def match_url(self) -> str:
        """Where a server's plugin fetches its match."""
        return f"{self.ingest_base}/ingest/match"

    def settings_of(self, row: ServerRow) -> GameSettings:
        """What is played on a server, its password included."""
        return settings_of(row, self.vault.open(row.server_password) if row.server_password else None)

    def new_callback_id(self) -> str:
        """An id for a callback."""
        return new_callback_id(self.clock.now_ms(), self.random_bytes(ID_RANDOM_BYTES))
