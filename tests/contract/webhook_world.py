"""A database with webhooks, matches whose events they send, fake receivers, and what delivers to them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.iso_dates import iso_time
from matchpod.core.outcome import Outcome
from matchpod.core.requests.webhook_request import DeliveriesQuery
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.organization_event_shapes import (
    AntiCheatEvent,
    AttentionRaisedEvent,
    MapFinishedEvent,
    MatchEventBase,
    MatchPausedEvent,
    RaisedAttention,
    ServerRunningEvent,
)
from matchpod.core.views.result_shapes import AntiCheatEntry
from matchpod.core.views.timeline_items import PausedItem
from matchpod.ports import Database
from matchpod.service.access.webhook_signature import verify
from matchpod.service.callbacks.queue_dispatcher import DispatchLimits
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.webhooks.bodies import Bodies
from matchpod.service.webhooks.dispatcher import PER_WEBHOOK, WebhookDispatcher
from matchpod.service.webhooks.feed import MAX_WAITING, EventFeed
from matchpod.service.webhooks.views import CreatedWebhook, DeliveryDetail, DeliveryItem
from matchpod.storage import organization_events
from tests.clocks import ManualClock
from tests.contract.callback_world import BEGAN_MS, Receivers
from tests.contract.parts import Parts
from tests.contract.test_storage_open_matches import end
from tests.contract.test_storage_servers import create, server
from tests.vaults import VAULT
from tests.waiting import until

URL = "https://events.example/in"
MAP_ID = "3f1c0a52-6c1e-5b7a-9d3e-0123456789ab"


def principal(org_id: str = "org_1") -> Principal:
    return Principal(org_id=org_id, key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))


class World(Parts):
    """Processes that share a database with webhooks."""

    def __init__(self, db: Database, *, max_webhooks: int = 3) -> None:
        without_private = {"callback_private": None, "public_url": "https://play.example"}
        super().__init__(db, clock=ManualClock(BEGAN_MS), settings={"max_webhooks": max_webhooks, **without_private})
        self.receivers = Receivers()
        self.private = self.services.private_callbacks
        self.webhooks = self.services.webhooks
        self._numbers = itertools.count(1)

    def feed(self, owner: str = "me", db: Database | None = None, *, max_waiting: int = MAX_WAITING) -> EventFeed:
        bodies = Bodies(db=db or self.db, history=self.history if db is None else Parts(db).history)
        return EventFeed(
            db=db or self.db, clock=self.clock, bodies=bodies, metrics=self.metrics, owner=owner,
            wake=lambda: None, max_waiting=max_waiting,
        )  # fmt: skip

    def dispatcher(self, owner: str = "me", *, max_per_host: int = PER_WEBHOOK, **limits: float) -> WebhookDispatcher:
        return WebhookDispatcher(
            db=self.db, clock=self.clock, vault=VAULT, sender=self.receivers, private_callbacks=self.private,
            metrics=self.metrics, owner=owner, version="1.2", wall_s=lambda: self.clock.at_ms / 1000,
            spread=lambda: 0.0, limits=msgspec.convert({"max_per_host": max_per_host, **limits}, DispatchLimits),
        )  # fmt: skip

    async def add(self, *events: str, url: str = URL, org_id: str = "org_1", format: str = "json") -> CreatedWebhook:
        body = {"url": url, "events": events or ["*"], "format": format}
        return await self.webhooks.create(principal(org_id), msgspec.json.encode(body))

    async def add_match(self, name: str = "srv_1", **fields: object) -> None:
        running = {"phase": ServerPhase.RUNNING, "status": ServerStatus.RUNNING, "running_at_ms": 5}
        await create(self.db, server(name, **{**running, **fields}))

    async def end_match(self, name: str = "srv_1", reason: CancelReason | None = None, org_id: str = "org_1") -> None:
        await end(self.db, server(name, org_id=org_id), Outcome(at_ms=self.clock.at_ms, reason=reason))

    async def happen(self, *events: MatchEventBase, org_id: str = "org_1") -> None:
        lines = [msgspec.json.encode(event) for event in events]
        await self.db.write(organization_events.append(org_id, lines, at_ms=self.clock.at_ms))

    def running(self, server_id: str = "srv_1") -> ServerRunningEvent:
        return ServerRunningEvent(**self._head(server_id), ip="203.0.113.5", port=27015)

    def paused(self, server_id: str = "srv_1") -> MatchPausedEvent:
        item = PausedItem(seq=next(self._numbers), timestamp=iso_time(self.clock.at_ms), round_number=3, by="mp_pause")
        return MatchPausedEvent(**self._head(server_id), map_id=MAP_ID, map_number=1, item=item)

    def detected(self, server_id: str = "srv_1") -> AntiCheatEvent:
        entry = AntiCheatEntry(
            steam_id="76561198000000001", name="x", team=None, type="aimbot", reason="snap", weapon="ak47",
            map_number=1, round_number=3, detected_at=iso_time(self.clock.at_ms),
        )  # fmt: skip
        return AntiCheatEvent(**self._head(server_id), map_id=MAP_ID, map_number=1, detection=entry)

    def map_ended(self, server_id: str = "srv_1") -> MapFinishedEvent:
        return MapFinishedEvent(
            **self._head(server_id), map_id=MAP_ID, map_number=1, score=None, winner=None, series_score=None, maps=()
        )

    def needs_attention(self, kind: str, text: str = "", since: str | None = None) -> AttentionRaisedEvent:
        reason = RaisedAttention(kind=kind, urgency="note", text=text, since=since, until=None)
        return AttentionRaisedEvent(**self._head("srv_1"), attention=reason)

    def _head(self, server_id: str) -> dict[str, Any]:
        return {"server_id": server_id, "external_match_id": None, "at": iso_time(self.clock.at_ms)}

    async def deliveries(self, webhook: CreatedWebhook, org_id: str = "org_1") -> list[DeliveryItem]:
        query = DeliveriesQuery(page_size=100)
        return list((await self.webhooks.deliveries(principal(org_id), webhook.id, query)).items)

    async def delivery(self, webhook: CreatedWebhook, delivery_id: str) -> DeliveryDetail:
        return await self.webhooks.delivery(principal(), webhook.id, delivery_id)

    async def until_states(self, webhook: CreatedWebhook, *states: str, org_id: str = "org_1") -> None:
        """Wait until the deliveries, newest first, are in these states."""

        async def are_there() -> bool:
            return [one.state.value for one in await self.deliveries(webhook, org_id)] == [*states]

        await until(are_there, f"deliveries in {states}")

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What receivers got, in the order of its arrival."""
        return [json.loads(request.body) for request in self.receivers.requests]

    @property
    def types(self) -> list[str]:
        return [str(body["type"]) for body in self.bodies]

    def are_signed(self, secrets: Sequence[str]) -> bool:
        return all(
            verify(secrets, request.headers, request.body, now_s=self.clock.at_ms // 1000)
            for request in self.receivers.requests
        )
