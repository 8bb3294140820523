"""Define the dependencies of the runner's steps: ports, and components of the service that all steps share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from matchpod.core.model import GameSettings
from matchpod.ports import Clock, Consoles, Database, Vault
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_callback_id
from matchpod.service.ingest.tokens import IngestTokens, open_tokens
from matchpod.service.ingest.urls import IngestUrls
from matchpod.service.match_log.fold import settings_of
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.service.match_log.suspects import Suspects
from matchpod.service.regions.regions import Regions
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.machine_faults import MachineFaults
from matchpod.service.runner.pulse import Pulse
from matchpod.service.runner.used_slots import UsedSlots
from matchpod.service.streams.map_streams import Streams
from matchpod.service.telemetry.match_spans import NO_SPANS, MatchSpans
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage.servers import ServerRow


class Deps(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of all steps."""

    db: Database
    clock: Clock
    vault: Vault
    regions: Regions
    live: LocalMatches
    log_writer: LogWriter
    streams: Streams
    consoles: Consoles
    turns: FoldTurns
    suspects: Suspects
    metrics: Metrics
    ingest: IngestUrls
    pending_ms: int
    """Maximum time that a match waits for a free slot before it fails."""
    max_matches: int | None = None
    """Maximum number of matches that this process drives; None for no limit."""
    intervals: Intervals = Intervals()
    pulse: Pulse = msgspec.field(default_factory=Pulse)
    machine_faults: MachineFaults = msgspec.field(default_factory=MachineFaults)
    used_slots: UsedSlots = msgspec.field(default_factory=UsedSlots)
    kept: set[str] = msgspec.field(default_factory=set)
    """The servers that are kept for demos, and whose players this process has already kicked."""
    packing: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Held while the log of an ended match is compressed, because this takes 13 MB, and many matches may end at
    once."""
    installation: str = ""
    """The id of this installation, for the tokens of new servers."""
    spans: MatchSpans = NO_SPANS
    random_bytes: Callable[[int], bytes]
    on_match_ended: Callable[[], None]
    """Called after a match has ended, because its callback may be due."""

    def settings_of(self, row: ServerRow) -> GameSettings:
        """Return the game settings of a server, including its password."""
        return settings_of(row, self.vault.open(row.server_password) if row.server_password else None)

    def urls_of(self, row: ServerRow) -> IngestUrls:
        """Return the URLs to which a server and its plugins send requests."""
        return self.ingest.of(row.region)

    def tokens_of(self, row: ServerRow) -> IngestTokens:
        return open_tokens(row, self.vault)

    def new_callback_id(self) -> str:
        return new_callback_id(self.clock.now_ms(), self.random_bytes(ID_RANDOM_BYTES))
