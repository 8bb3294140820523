"""Append an event when a match begins to need attention, for organizations with webhooks that send such events.

Reasons for attention are computed from the state of a match. Every few seconds, each process checks the matches that it
drives, and the matches that no process drives yet. A reason is stored together with its event ("raised"), so that only
one process raises it. The same reason is raised again only if it has disappeared in the meantime.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.attention import Attention, Urgency, attention_of
from matchpod.core.webhook_events import WebhookEvent
from matchpod.ports import Clock, Database, DatabaseUnavailableError, Value
from matchpod.service.match_log.live import LocalMatches, logged_if_failed
from matchpod.service.reading.match_details import situation_of
from matchpod.service.regions.regions import Regions
from matchpod.service.streams import organization_event_lines
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage import callback_lists, organization_events, webhooks
from matchpod.storage.match_lists import open_of, summaries_of
from matchpod.storage.servers import ServerRow, ServerSummary

LOOK_S: Final = 5.0
"""Interval in seconds at which matches are checked. It need not be shorter, because people react within minutes."""
TURN: Final = 20
"""Number of matches that are checked before other tasks run."""
MAX_GIVEN_UP: Final = 100
"""Maximum number of given-up callbacks that are read per organization."""
GIVEN_UP_MS: Final = 24 * 60 * 60 * 1000
"""Maximum age at which a given-up callback still needs attention."""
_CALLBACK: Final = Attention(urgency=Urgency.SOON, kind="callback", text="callback given up")

_log = logging.getLogger(__name__)


class AttentionWatch:
    """Checks the matches of organizations whose webhooks send these events. Processes may share a database."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        live: LocalMatches,
        regions: Regions,
        metrics: Metrics,
        wake: Callable[[], None] = lambda: None,
        look_s: float = LOOK_S,
    ) -> None:
        """`wake` is called after an event was stored."""
        self._db = db
        self._clock = clock
        self._live = live
        self._regions = regions
        self._metrics = metrics
        self._wake = wake
        self._look_s = look_s

    async def run(self) -> None:
        """Check matches regularly until cancelled. Errors are logged, never raised."""
        while True:
            try:
                await self.look()
            except DatabaseUnavailableError as exc:
                _log.debug("match attention not checked", extra={"reason": str(exc)})
            except Exception:  # noqa: BLE001 - the loop must survive
                _log.exception("match attention not checked")
                self._metrics.crashes.inc("webhooks")
            await asyncio.sleep(self._look_s)

    async def look(self) -> None:
        """Raise new reasons for attention, and end reasons that have disappeared."""
        watched = await webhooks.organizations_with(self._db, WebhookEvent.ATTENTION_RAISED)
        await webhooks.end_unwatched_attention(self._db, watched)
        for org_id in watched:
            raised = await webhooks.raised_of(self._db, [org_id])
            lasting: set[tuple[str, str]] = set()
            elsewhere: set[str] = set()
            for number, row in enumerate(await open_of(self._db, org_id)):
                reasons = self._reasons(row)
                if reasons is None:
                    elsewhere.add(row.id)
                    continue
                lasting |= {(row.id, reason.kind) for reason in reasons}
                for reason in reasons:
                    if (row.id, reason.kind) not in raised:
                        await self._raise(row, reason)
                if number % TURN == 0:
                    await asyncio.sleep(0)  # let log posts and API requests be handled first
            lasting |= await self._given_up(org_id, raised)
            gone = [(server_id, kind) for server_id, kind in sorted(raised - lasting) if server_id not in elsewhere]
            if gone:
                await webhooks.end_attention(self._db, gone)

    def _reasons(self, row: ServerRow) -> tuple[Attention, ...] | None:
        """Return the reasons why a match needs attention; None if another process drives the match."""
        live = self._live.get(row.id)
        if live is None and row.phase is ServerPhase.RUNNING:
            return None
        progress = None
        if live is not None:
            with logged_if_failed(row.id):
                progress = live.progress()
        silent_ms = self._regions.silent.since_ms(row.id)
        return attention_of(situation_of(row, progress, self._clock.now_ms(), silent_ms=silent_ms))

    async def _given_up(self, org_id: str, raised: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """Raise attention for newly given-up callbacks. Return (server id, kind) for all given up recently."""
        from_ms = self._clock.now_ms() - GIVEN_UP_MS
        query = CallbacksQuery(page_size=MAX_GIVEN_UP, state=CallbackState.GIVEN_UP, from_ms=from_ms)
        _, found = await callback_lists.list_page(self._db, org_id, query)
        lasting = {(callback.server_id, _CALLBACK.kind) for callback in found}
        new = [server_id for server_id, kind in sorted(lasting) if (server_id, kind) not in raised]
        for row in await summaries_of(self._db, new) if new else []:
            await self._raise(row, _CALLBACK)
        return lasting

    async def _raise(self, row: ServerSummary, reason: Attention) -> None:
        now_ms = self._clock.now_ms()
        event = organization_event_lines.attention_raised(row, reason, at_ms=now_ms)
        values: dict[str, Value] = {
            "server_id": row.id,
            "kind": reason.kind,
            "org_id": row.org_id,
            "raised_at_ms": now_ms,
        }
        stored = organization_events.append(row.org_id, [event], at_ms=now_ms)
        if await webhooks.raise_attention(self._db, values, *stored):
            self._wake()
