"""Build the bodies of webhook deliveries. A body is an event whose `data` is the API's view of what the event is about.

The events are those of the organization's stream. `data` is read when the delivery is created, usually within a second
of the event. It contains no passwords, because bodies are stored and shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta

from matchpod.core.errors import NotFoundError
from matchpod.core.match.actions import ActionRequest, ActionState
from matchpod.core.match.match_actions import AT_END
from matchpod.core.views import organization_event_shapes as events
from matchpod.core.views.marks import LabelsIfAny, SimulatedIfSo, read_marks
from matchpod.core.views.organization_event_shapes import MatchEventBase, OrganizationEvent, RaisedAttention
from matchpod.core.views.result_shapes import AntiCheatEntry, IsoTime
from matchpod.core.views.timeline_items import PausedItem, UnpausedItem
from matchpod.core.webhook_events import TEST_EVENT, WebhookEvent
from matchpod.ports import Database
from matchpod.service.actions.views import ActionView, action_view
from matchpod.service.end_match import MATCH_OVER
from matchpod.service.identity.principals import Audience, Principal, Role, Scope
from matchpod.service.reading import history_views
from matchpod.service.reading.endings import ending_of, match_of
from matchpod.service.reading.history import History
from matchpod.service.reading.match_head import MatchView, ServerView, created_view, visible_row
from matchpod.service.streams import organization_event_lines
from matchpod.service.webhooks.discord import title_of
from matchpod.storage import history, match_actions, servers
from matchpod.storage.servers import ServerRow

Data = (
    ServerView
    | history_views.MapSummary
    | history_views.MapDetail
    | PausedItem
    | UnpausedItem
    | MatchView
    | ActionView
    | AntiCheatEntry
    | RaisedAttention
    | msgspec.Raw
)
"""The API's view of what an event is about."""


class WebhookBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of a webhook delivery."""

    type: Annotated[str, Meta(description="The type of the event.")]
    sequence: Annotated[
        int,
        Meta(
            description="The number of the event in your organization: the `id` in its stream. It grows with each "
            "event, so you can sort events that arrive late. 0 for a test."
        ),
    ]
    timestamp: IsoTime
    server_id: Annotated[str | None, Meta(description="The `serverId` of the match; null for a test.")]
    external_match_id: Annotated[str | None, Meta(description="Your own id of the match; null if it has none.")]
    labels: LabelsIfAny = UNSET
    simulated: SimulatedIfSo = UNSET
    data: Annotated[msgspec.Raw, Meta(description="The same object that the API returns.")]


class PreparedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to be sent by webhooks, with the body of its deliveries."""

    event: WebhookEvent
    seq: int
    server_id: str
    body: bytes
    head: MatchEventBase
    """The event as in the organization's stream."""
    title: str
    """The display name of the match."""


_TYPES: Final[Mapping[type[MatchEventBase], WebhookEvent]] = {
    events.ServerRunningEvent: WebhookEvent.SERVER_RUNNING,
    events.MapWentLiveEvent: WebhookEvent.MATCH_LIVE,
    events.MapFinishedEvent: WebhookEvent.MAP_ENDED,
    events.MatchPausedEvent: WebhookEvent.MATCH_PAUSED,
    events.MatchResumedEvent: WebhookEvent.MATCH_RESUMED,
    events.MatchRuledEvent: WebhookEvent.MATCH_RULED,
    events.AntiCheatEvent: WebhookEvent.ANTICHEAT_DETECTED,
    events.AttentionRaisedEvent: WebhookEvent.ATTENTION_RAISED,
    events.DemoAvailableEvent: WebhookEvent.DEMO_AVAILABLE,
}
_ACTIONS: Final = {ActionState.DONE: WebhookEvent.ACTION_DONE, ActionState.FAILED: WebhookEvent.ACTION_FAILED}

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(OrganizationEvent).decode


def read_event(line: bytes) -> MatchEventBase | None:
    """Decode a stored event; None if a later version stored it, with a type that this version does not know."""
    try:
        found = _decode(line)
    except msgspec.ValidationError:
        return None
    return found if isinstance(found, MatchEventBase) else None


def type_of(event: MatchEventBase) -> WebhookEvent | None:
    """Return the webhook event type of an event in the stream; None if webhooks do not send the event."""
    if isinstance(event, events.MatchEndedEvent):
        return WebhookEvent.MATCH_ENDED if event.outcome == MATCH_OVER else WebhookEvent.MATCH_CANCELED
    if isinstance(event, events.ActionChangedEvent):
        return _ACTIONS.get(event.state)
    return _TYPES.get(type(event))


class Bodies:
    """Builds the bodies of deliveries from stored rows."""

    def __init__(self, *, db: Database, history: History) -> None:
        self._db = db
        self._history = history

    async def prepare(self, org_id: str, seq: int, event: MatchEventBase, kind: WebhookEvent) -> PreparedEvent | None:
        """Return the event with its body; None if what it is about no longer exists."""
        row = await servers.get(self._db, event.server_id)
        if row is None or row.org_id != org_id:
            return None
        row = visible_row(row, Audience.MEMBERS)  # a body may be read by any member, and by unknown people
        try:
            data = await self._data(row, event)
        except NotFoundError:
            return None
        body = WebhookBody(
            type=kind.value,
            sequence=seq,
            timestamp=event.at,
            server_id=event.server_id,
            external_match_id=event.external_match_id,
            labels=event.labels,
            simulated=event.simulated,
            data=msgspec.Raw(_encode(data)),
        )
        return PreparedEvent(event=kind, seq=seq, server_id=row.id, body=_encode(body), head=event, title=title_of(row))

    async def _data(self, row: ServerRow, event: MatchEventBase) -> Data:
        match event:
            case events.ServerRunningEvent():
                ending = await ending_of(self._db, row.id, row)
                return created_view(row, rcon_password=None, ending=ending)
            case events.MapWentLiveEvent():
                return await self._map_summary(row, event.map_id)
            case events.MapFinishedEvent():
                return await self._history.map(_reader(row.org_id), event.map_id)
            case events.MatchPausedEvent() | events.MatchResumedEvent():
                return event.item
            case events.MatchEndedEvent():
                return await match_of(self._db, row)
            case events.MatchRuledEvent():
                return msgspec.structs.replace(await match_of(self._db, row), ruling=event.ruling)
            case events.ActionChangedEvent():
                return await self._action(row, event)
            case events.AntiCheatEvent():
                return event.detection
            case events.AttentionRaisedEvent():
                return event.attention
            case events.DemoAvailableEvent():
                return event.demo
            case _:
                raise NotFoundError("webhooks do not send this event")

    async def _map_summary(self, row: ServerRow, map_id: str) -> history_views.MapSummary:
        found = await history.get_map(self._db, map_id)
        if found is None:
            raise NotFoundError("There is no map with this id.")
        return history_views.map_summary(found, marks=read_marks(row.marks), ruling=None)

    async def _action(self, row: ServerRow, event: events.ActionChangedEvent) -> ActionView:
        found = await match_actions.get(self._db, row.id, event.action_id)
        if found is None:
            raise NotFoundError("There is no action with this id on this match.")
        return action_view(found, has_ended=row.has_ended, shows_actor=False)

    async def missed_failures(self, event: events.MatchEndedEvent, before: Sequence[bytes]) -> list[bytes]:
        """Return the events of actions that failed because the match ended, except those already in `before`.

        A cancellation writes no such events, because the process that cancels a match may not know the open actions.
        `before` has the events that precede the end of the match.
        """
        actions = await match_actions.of_server(self._db, event.server_id)
        found = [action for action in actions if action.detail == AT_END]
        if not found:
            return []
        row = await servers.get(self._db, event.server_id)
        if row is None:
            return []
        known = {
            earlier.action_id
            for earlier in map(read_event, before)
            if isinstance(earlier, events.ActionChangedEvent) and earlier.state is ActionState.FAILED
        }
        lines = []
        for action in reversed(found):
            with suppress(msgspec.ValidationError):  # skip types that only a later version knows
                request = msgspec.json.decode(action.request, type=ActionRequest)
                failed, at_ms = ActionState.FAILED, action.changed_at_ms
                if action.id not in known:
                    lines.append(
                        organization_event_lines.action_changed(row, request, failed, detail=AT_END, at_ms=at_ms)
                    )
        return lines


def test_body(timestamp: str) -> bytes:
    """Return the body of a test delivery."""
    body = WebhookBody(
        type=TEST_EVENT,
        sequence=0,
        timestamp=timestamp,
        server_id=None,
        external_match_id=None,
        data=msgspec.Raw(b"{}"),
    )
    return _encode(body)


def _reader(org_id: str) -> Principal:
    """Return a principal with which webhooks read the views of an organization, without passwords."""
    return Principal(org_id=org_id, key_id="webhooks", role=Role.ADMIN, scopes=frozenset({Scope.SERVERS_READ}))
