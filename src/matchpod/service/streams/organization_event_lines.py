"""Build the JSON of the events in an organization's stream, from changes of its matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

import msgspec

from matchpod.core.iso_dates import iso_time
from matchpod.core.match.actions import ActionRequest, ActionState
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import MapStatus
from matchpod.core.outcome import Outcome
from matchpod.core.rulings import Ruling
from matchpod.core.server_status import ServerStatus
from matchpod.core.views.attention import Attention
from matchpod.core.views.marks import LabelsIfAny, SimulatedIfSo, read_marks
from matchpod.core.views.organization_event_shapes import (
    ActionChangedEvent,
    AntiCheatEvent,
    AttentionRaisedEvent,
    DemoAvailableEvent,
    GapEvent,
    MapFinishedEvent,
    MapWentLiveEvent,
    MatchCreatedEvent,
    MatchEndedEvent,
    MatchPausedEvent,
    MatchResumedEvent,
    MatchRuledEvent,
    PositionEvent,
    RaisedAttention,
    ScoreChangedEvent,
    ServerRunningEvent,
)
from matchpod.core.views.result_shapes import MapState, SeriesScore
from matchpod.core.views.series_maps import map_states_at, series_score_at, state_then
from matchpod.core.views.timeline_items import (
    AntiCheatItem,
    MapEndItem,
    MapLiveItem,
    PausedItem,
    RoundEndItem,
    RoundRestoredItem,
    UnpausedItem,
)
from matchpod.core.views.timeline_writer import MapItem
from matchpod.service.identity.identifiers import map_id as id_of_map
from matchpod.service.row_views import time_text
from matchpod.storage.servers import ServerRow, ServerSummary

_encode = msgspec.json.Encoder().encode

POSITION: Final = _encode(PositionEvent())

_ITEMS: Final = (
    MapLiveItem, RoundEndItem, RoundRestoredItem, MapEndItem, PausedItem, UnpausedItem, AntiCheatItem
)  # fmt: skip


class _Head(TypedDict):
    server_id: str
    external_match_id: str | None
    at: str
    labels: LabelsIfAny
    simulated: SimulatedIfSo


class _MapHead(_Head):
    map_id: str
    map_number: int


class _Maps(TypedDict):
    series_score: SeriesScore | None
    maps: tuple[MapState, ...]


def match_created(row: ServerRow) -> bytes:
    return _encode(MatchCreatedEvent(**_head(row, iso_time(row.created_at_ms)), region=row.region))


def server_running(row: ServerRow, *, ip: str, port: int, at_ms: int) -> bytes:
    """Return the event for a server to which players may now connect."""
    return _encode(ServerRunningEvent(**_head(row, iso_time(at_ms)), ip=ip, port=port))


def action_changed(
    row: ServerRow, action: ActionRequest, state: ActionState, *, detail: str | None = None, at_ms: int
) -> bytes:
    """Return the event for a new state of an action."""
    event = ActionChangedEvent(
        **_head(row, iso_time(at_ms)),
        action_id=action.id,
        action=action.type,
        fields=action.fields(),
        state=state,
        detail=detail,
        reason=action.reason,
        by=action.by,
    )
    return _encode(event)


def match_ended(row: ServerRow, outcome: Outcome, *, kind: str, status: ServerStatus) -> bytes:
    """Return the event for an ended match; `kind` is the event type of its callback."""
    head = _head(row, iso_time(outcome.at_ms))
    forfeit = msgspec.UNSET if outcome.forfeited_to is None else True
    return _encode(MatchEndedEvent(**head, outcome=kind, reason=outcome.reason, status=status.value, forfeit=forfeit))


def match_ruled(row: ServerRow, ruling: Ruling | None, *, at_ms: int) -> bytes:
    """Return the event for a ruling; if `ruling` is None, for the withdrawal of a ruling."""
    return _encode(MatchRuledEvent(**_head(row, iso_time(at_ms)), ruling=ruling))


def attention_raised(row: ServerSummary, reason: Attention, *, at_ms: int) -> bytes:
    """Return the event for a new reason why a match needs attention."""
    raised = RaisedAttention(
        kind=reason.kind,
        urgency=reason.urgency.name.lower(),
        text=reason.words,
        since=time_text(reason.since_ms),
        until=time_text(reason.until_ms),
    )
    return _encode(AttentionRaisedEvent(**_head(row, iso_time(at_ms)), attention=raised))


def demo_available(row: ServerSummary, demo: bytes, *, map_id: str, map_number: int, at_ms: int) -> bytes:
    """Return the event for a demo that can now be downloaded; `demo` is the JSON that the API returns for it.

    Append the event (`storage.organization_events`) in the transaction that makes the demo available, so that it is
    sent exactly once to the organization's stream and webhooks.
    """
    head = _head(row, iso_time(at_ms))
    return _encode(DemoAvailableEvent(**head, map_id=map_id, map_number=map_number, demo=msgspec.Raw(demo)))


def gap(first_id: int, last_id: int) -> bytes:
    """Return the event that is sent in place of deleted events."""
    return _encode(GapEvent(first_id=first_id, last_id=last_id))


def map_events_of(row: ServerRow, match: Match, items: Sequence[MapItem], stored: Mapping[str, int]) -> list[bytes]:
    """Return the events for timeline items that are not stored yet; `stored` is the last stored number by map id.

    Items are stored in batches, so the state of `match` may be newer than an item.
    """
    found: list[bytes] = []
    for item in items:
        if not isinstance(item.item, _ITEMS):  # most items are kills, which have no event
            continue
        event = _map_event(row, match, item)
        if event is not None and item.item.seq > stored.get(event.map_id, 0):
            found.append(_encode(event))
    return found


def _map_event(
    row: ServerRow, match: Match, item: MapItem
) -> (
    MapWentLiveEvent
    | ScoreChangedEvent
    | MapFinishedEvent
    | MatchPausedEvent
    | MatchResumedEvent
    | AntiCheatEvent
    | None
):
    match item.item:
        case PausedItem() as paused:
            return MatchPausedEvent(**_map_head(row, item), item=paused)
        case UnpausedItem() as resumed:
            return MatchResumedEvent(**_map_head(row, item), item=resumed)
        case AntiCheatItem() as found:
            return AntiCheatEvent(**_map_head(row, item), detection=found.detection)
        case MapLiveItem() as live:
            return MapWentLiveEvent(
                **_map_head(row, item),
                map_name=live.map_name,
                score=live.score,
                **_maps(match, state_then(match, item.map_number, status=MapStatus.LIVE, score=live.score)),
            )
        case RoundEndItem() | RoundRestoredItem() as decided if decided.score is not None:
            state = state_then(match, item.map_number, status=MapStatus.LIVE, score=decided.score)
            return ScoreChangedEvent(
                **_map_head(row, item),
                round_number=decided.round_number,
                score=decided.score,
                series_score=series_score_at(match, state),
            )
        case MapEndItem(status=MapStatus.FINISHED) as end:
            # Only finished maps: a canceled map ends together with its match, which has an event of its own.
            state = state_then(match, item.map_number, status=end.status, score=end.score, winner=end.winner)
            return MapFinishedEvent(**_map_head(row, item), score=end.score, winner=end.winner, **_maps(match, state))
        case _:
            return None


def _maps(match: Match, current: MapState) -> _Maps:
    return {"series_score": series_score_at(match, current), "maps": map_states_at(match, current)}


def _head(row: ServerSummary, at: str) -> _Head:
    marks = read_marks(row.marks)
    return {
        "server_id": row.id,
        "external_match_id": row.external_match_id,
        "at": at,
        "labels": marks.labels,
        "simulated": marks.simulated,
    }


def _map_head(row: ServerRow, item: MapItem) -> _MapHead:
    head = _head(row, item.item.timestamp)
    return {**head, "map_id": id_of_map(row.game_id, item.map_number), "map_number": item.map_number}
