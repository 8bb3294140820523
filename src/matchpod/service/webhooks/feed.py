"""Create the webhook deliveries for the events of organizations, exactly once per event and webhook.

Each organization has a position: the number of its last processed event. The transaction that stores deliveries also
advances the position, and fails if the position has changed since it was read. So no event is lost or processed twice,
even if a process dies or if several processes read the same events. While no webhook is on, the feed needs only one
query every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from matchpod.core.errors import UnavailableError
from matchpod.core.views import organization_event_shapes as events
from matchpod.core.views.organization_event_shapes import MatchEventBase
from matchpod.core.webhook_events import WebhookEvent, WebhookFormat, is_wanted
from matchpod.ports import Clock, Database, DatabaseError, DatabaseUnavailableError, NothingChangedError, Statement
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_callback_id
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.webhooks import discord
from matchpod.service.webhooks.bodies import Bodies, PreparedEvent, read_event, type_of
from matchpod.storage import organization_events, webhook_deliveries, webhooks
from matchpod.storage.webhook_deliveries import DeliveryRow
from matchpod.storage.webhooks import Behind, WebhookRow

POLL_S: Final = 0.5
"""Interval in seconds at which new events are polled while any webhook is on."""
IDLE_S: Final = 2.0
"""Interval in seconds at which events are polled while no webhook is on. A new webhook misses no events, because it
sends all events since its creation."""
PAGE: Final = 200
"""Maximum number of events per database read. Most events are scores, which webhooks do not send."""
MAX_PREPARED: Final = 50
"""Maximum number of bodies that are built before they are stored. The body with a map's details may have 50 KB."""
MAX_ROWS: Final = 200
"""Maximum number of deliveries per transaction. The deliveries of the last event may exceed this limit."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""Maximum total size of the bodies per transaction in bytes. The deliveries of the last event may exceed this limit."""
MAX_UNSTORED: Final = 500
"""Number of consecutive events without deliveries after which the position is stored."""
MAX_WAITING: Final = 20_000
"""Maximum number of waiting deliveries per webhook. Further deliveries are given up at once, and can be redelivered."""
EARLIER: Final = 32
"""Number of events before the end of a match that are searched for events about its failed actions. It is larger than
the maximum number of open actions of a match."""

_log = logging.getLogger(__name__)


class FeedPace(msgspec.Struct, frozen=True, kw_only=True):
    """The poll intervals of the feed."""

    poll_s: float = POLL_S
    idle_s: float = IDLE_S


class EventFeed:
    """Creates the webhook deliveries of all organizations. Any number of processes may share a database."""

    def __init__(  # noqa: PLR0913 - one argument per collaborator
        self,
        *,
        db: Database,
        clock: Clock,
        bodies: Bodies,
        metrics: Metrics,
        owner: str,
        wake: Callable[[], None],
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        pace: FeedPace = FeedPace(),  # noqa: B008 - immutable
        max_waiting: int = MAX_WAITING,
    ) -> None:
        """`wake` is called after deliveries were stored."""
        self._db = db
        self._clock = clock
        self._bodies = bodies
        self._metrics = metrics
        self._owner = owner
        self._wake = wake
        self._random_bytes = random_bytes
        self._pace = pace
        self._max_waiting = max_waiting
        self._seen: dict[str, tuple[int, int]] = {}
        """By organization id: the stored position, and the number of the last event that was read. Events in between
        have no deliveries."""

    async def run(self) -> None:
        """Create deliveries until cancelled. Errors are logged, never raised."""
        while True:
            wait_s = self._pace.poll_s
            try:
                if not await self.feed():
                    wait_s = self._pace.idle_s
            except (DatabaseUnavailableError, UnavailableError) as exc:
                _log.debug("webhook events not read", extra={"reason": str(exc)})
            except Exception:  # noqa: BLE001 - the loop must survive
                _log.exception("webhook events not read")
                self._metrics.crashes.inc("webhooks")
            await asyncio.sleep(wait_s)

    async def feed(self) -> bool:
        """Create the deliveries of all new events. Return True if any webhook is switched on."""
        has_more = True
        while has_more:
            has_more = False
            for position in await webhooks.behind(self._db, owner=self._owner, now_ms=self._clock.now_ms()):
                has_more |= await self._turn(position)
        return await webhooks.have_any(self._db)

    async def _turn(self, position: Behind) -> bool:
        """Process a page of events of an organization. Return True if there may be further events.

        Unexpected errors are only logged, so that they do not affect other organizations.
        """
        try:
            return await self._read_page(position)
        except NothingChangedError:
            return False  # another process was faster, or the message was just sent; the next poll retries
        except (DatabaseUnavailableError, UnavailableError):
            raise
        except Exception:  # noqa: BLE001 - an error of one organization must not affect others
            _log.exception("webhook events not read", extra={"org_id": position.org_id})
            self._metrics.crashes.inc("webhooks")
            return False

    async def _read_page(self, position: Behind) -> bool:
        known, seen = self._seen.get(position.org_id, (position.seq, position.seq))
        start = max(position.seq, seen) if known == position.seq else position.seq
        page = await organization_events.read_after(self._db, position.org_id, start, limit=PAGE)
        if not page:
            return False
        if page[0][0] > start + 1 and start > 0:
            _log.warning("events deleted before webhooks sent them", extra={"org_id": position.org_id, "after": start})
        # Read the webhooks after the events, so that webhooks that were created before the events are found.
        active = await webhooks.switched_on(self._db, position.org_id)
        found, last = await self._prepare(position.org_id, page, active)
        await self._store(position, last, found, active)
        return len(page) == PAGE or last < page[-1][0]

    async def _prepare(
        self, org_id: str, page: Sequence[tuple[int, bytes]], active: Sequence[WebhookRow]
    ) -> tuple[list[PreparedEvent | bytes], int]:
        """Return the events to be delivered, and the number of the last event that was processed.

        Events about failed actions are returned as JSON if they are missing in the stream, to be appended to it.
        """
        found: list[PreparedEvent | bytes] = []
        last = page[0][0] - 1
        rows = size = 0
        for seq, line in page:
            if len(found) >= MAX_PREPARED or rows >= MAX_ROWS or size >= MAX_BYTES:
                break
            last = seq
            event = read_event(line)
            kind = None if event is None else type_of(event)
            if event is None or kind is None:
                continue
            if isinstance(event, events.MatchEndedEvent) and _any_wants(WebhookEvent.ACTION_FAILED, seq, active):
                found += await self._missed(org_id, seq, event)
            if _any_wants(kind, seq, active):
                prepared = await self._body(org_id, seq, event, kind)
                if prepared is not None:
                    found.append(prepared)
                    receivers = sum(_wants(webhook, kind, seq) for webhook in active)
                    rows, size = rows + receivers, size + receivers * len(prepared.body)
            await asyncio.sleep(0)  # let log posts and API requests be handled first
        return found, last

    async def _body(self, org_id: str, seq: int, event: MatchEventBase, kind: WebhookEvent) -> PreparedEvent | None:
        try:
            return await self._bodies.prepare(org_id, seq, event, kind)
        except (DatabaseError, UnavailableError):
            raise  # the next poll builds it
        except Exception:  # noqa: BLE001 - an error of one event must not prevent the delivery of others
            _log.exception("webhook event could not be built", extra={"org_id": org_id, "seq": seq})
            self._metrics.crashes.inc("webhooks")
            return None

    async def _missed(self, org_id: str, seq: int, event: events.MatchEndedEvent) -> list[bytes]:
        before = await organization_events.read_after(self._db, org_id, max(0, seq - 1 - EARLIER), limit=EARLIER)
        return await self._bodies.missed_failures(event, [line for number, line in before if number < seq])

    async def _store(
        self, position: Behind, last: int, found: Sequence[PreparedEvent | bytes], active: Sequence[WebhookRow]
    ) -> None:
        """Store the deliveries and the organization's new position in one transaction."""
        if not found and last - position.seq < MAX_UNSTORED:
            self._seen[position.org_id] = (position.seq, last)
            return
        now_ms = self._clock.now_ms()
        prepared = [event for event in found if isinstance(event, PreparedEvent)]
        lines = [line for line in found if isinstance(line, bytes)]
        statements = [webhooks.advance(position, last, owner=self._owner, now_ms=now_ms)]
        lost = 0
        for webhook in active:
            wanted = [event for event in prepared if _sends(webhook, event)]
            if wanted and webhook.format is WebhookFormat.DISCORD:
                statements += await self._message(webhook, wanted, now_ms)
            elif wanted:
                room = await self._room(webhook, len(wanted))
                lost += len(wanted) - room
                statements += self._deliveries(webhook, wanted, room, now_ms)
        statements += organization_events.append(position.org_id, lines, at_ms=now_ms)
        await self._db.write(statements)
        if lost:
            self._metrics.webhooks_given_up.inc(amount=lost)
        self._seen.pop(position.org_id, None)
        self._wake()

    async def _room(self, webhook: WebhookRow, number: int) -> int:
        """Return how many of `number` new deliveries may wait. The remaining deliveries are given up at once."""
        waiting = await webhook_deliveries.waiting_of(self._db, webhook.id, at_most=self._max_waiting)
        room = max(0, min(number, self._max_waiting - waiting))
        if number > room:
            _log.warning("too many waiting deliveries", extra={"webhook_id": webhook.id, "given_up": number - room})
        return room

    def _deliveries(
        self, webhook: WebhookRow, wanted: Sequence[PreparedEvent], room: int, now_ms: int
    ) -> list[Statement]:
        return [
            webhook_deliveries.insert(
                DeliveryRow(
                    id=new_callback_id(now_ms, self._random_bytes(ID_RANDOM_BYTES)),
                    org_id=webhook.org_id,
                    webhook_id=webhook.id,
                    server_id=event.server_id,
                    event_type=event.event.value,
                    seq=event.seq,
                    body=event.body,
                    created_at_ms=now_ms,
                    next_at_ms=now_ms if number < room else None,
                )
            )
            for number, event in enumerate(wanted)
        ]

    async def _message(self, webhook: WebhookRow, wanted: Sequence[PreparedEvent], now_ms: int) -> list[Statement]:
        """Return the statement that adds the events to the waiting message or, if none waits, stores a new message."""
        until_ms = now_ms + discord.MAX_MERGE_MS
        waiting = await webhook_deliveries.open_message(self._db, webhook.id, discord.MESSAGE_TYPE, until_ms=until_ms)
        body = None if waiting is None else waiting.body
        for event in wanted:
            body = discord.message(discord.line_of(event.head, event.title), body)
        if waiting is not None:
            return [webhook_deliveries.replace_body(waiting, body or b"")]
        servers = Counter(event.server_id for event in wanted)
        return [
            webhook_deliveries.insert(
                DeliveryRow(
                    id=new_callback_id(now_ms, self._random_bytes(ID_RANDOM_BYTES)),
                    org_id=webhook.org_id,
                    webhook_id=webhook.id,
                    server_id=next(iter(servers)) if len(servers) == 1 else None,
                    event_type=discord.MESSAGE_TYPE,
                    seq=wanted[-1].seq,
                    body=body or b"",
                    created_at_ms=now_ms,
                    next_at_ms=max(now_ms + discord.GATHER_MS, webhook.next_message_ms),
                )
            )
        ]


def _wants(webhook: WebhookRow, kind: WebhookEvent, seq: int) -> bool:
    return webhook.from_seq < seq and is_wanted(kind, chosen=webhook.events, format=webhook.format)


def _sends(webhook: WebhookRow, event: PreparedEvent) -> bool:
    if webhook.format is WebhookFormat.DISCORD and not discord.may_show(event.head):
        return False
    return _wants(webhook, event.event, event.seq)


def _any_wants(kind: WebhookEvent, seq: int, active: Sequence[WebhookRow]) -> bool:
    return any(_wants(webhook, kind, seq) for webhook in active)
