"""Define the API shapes of the events in an organization's stream: a closed set, distinguished by `type`.

Events about the beginning or end of a map contain all maps of the match. Events about a score contain only their map:
they are most of the events, and the other maps have not changed.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from matchpod.core.effects import CancelReason
from matchpod.core.match.actions import ActionState, ActionType
from matchpod.core.model import Winner
from matchpod.core.rulings import Ruling
from matchpod.core.views.marks import LabelsIfAny, SimulatedIfSo
from matchpod.core.views.result_shapes import AntiCheatEntry, Forfeited, MapName, MapStates, Score, SeriesScore
from matchpod.core.views.timeline_items import PausedItem, UnpausedItem

MapId = Annotated[str, Meta(description="The `id` of the map.")]
MapNumber = Annotated[int, Meta(description="The number of the map in its match, from 1.")]
SeriesScoreThen = Annotated[
    SeriesScore | None,
    Meta(description="Maps won by each team, after this event; null if the match type has no series."),
]
RoundOfScore = Annotated[int | None, Meta(description="The last round that counts; null before the first.")]


class RaisedAttention(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A reason to look at a match."""

    kind: Annotated[
        str,
        Meta(
            description="`roster`, `silence`, `gone`, `call`, `pause`, `pending`, `tries`, `callback`, `loss` or "
            "`leads`. There may be more later."
        ),
    ]
    urgency: Annotated[str, Meta(description="`now`, `soon` or `note`: how soon a person should look.")]
    text: Annotated[str, Meta(description="The reason in words.")]
    since: Annotated[str | None, Meta(description="Since when; null if that is not known.")]
    until: Annotated[str | None, Meta(description="When the time for it ends; null if there is none.")]


class MatchEventBase(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", gc=False):
    """Common fields of all events of matches."""

    server_id: Annotated[str, Meta(description="The `serverId` of the match.")]
    external_match_id: Annotated[str | None, Meta(description="Your own id of the match; null if it has none.")]
    at: Annotated[
        str,
        Meta(
            description="ISO 8601 in UTC. By the clock of the game server for what happened in the game, otherwise by "
            "that of the service: events are ordered by their `id`."
        ),
    ]
    labels: LabelsIfAny = UNSET
    simulated: SimulatedIfSo = UNSET


class MatchCreatedEvent(MatchEventBase, frozen=True, kw_only=True, tag="match_created"):
    """A match was created; its server is `allocating`."""

    region: Annotated[str, Meta(description="The code of the region.")]


class ServerRunningEvent(MatchEventBase, frozen=True, kw_only=True, tag="server_running"):
    """The server is `running`: players may connect."""

    ip: Annotated[str, Meta(description="The address that players connect to.")]
    port: Annotated[int, Meta(description="The port that players connect to.")]


class MapWentLiveEvent(MatchEventBase, frozen=True, kw_only=True, tag="map_live"):
    """A map is live. A second event for the same map means that it was restarted."""

    map_id: MapId
    map_number: MapNumber
    map_name: MapName
    score: Annotated[Score | None, Meta(description="The score; null in a deathmatch.")]
    series_score: SeriesScoreThen
    maps: MapStates


class ScoreChangedEvent(MatchEventBase, frozen=True, kw_only=True, tag="score_changed"):
    """A round was decided, or an earlier round was restored, which may lower the score."""

    map_id: MapId
    map_number: MapNumber
    round_number: RoundOfScore
    score: Annotated[Score, Meta(description="The new score.")]
    series_score: SeriesScoreThen


class MapFinishedEvent(MatchEventBase, frozen=True, kw_only=True, tag="map_ended"):
    """A map was played to its end. A restored round can reopen it, and then it ends again."""

    map_id: MapId
    map_number: MapNumber
    score: Annotated[Score | None, Meta(description="The final score; null in a deathmatch.")]
    winner: Annotated[Winner | None, Meta(description="Who won the map; null if unknown, and in a deathmatch.")]
    series_score: SeriesScoreThen
    maps: MapStates


class MatchPausedEvent(MatchEventBase, frozen=True, kw_only=True, tag="match_paused"):
    """Play stops at the next freeze time: a pause, or a timeout of a team."""

    map_id: MapId
    map_number: MapNumber
    item: Annotated[PausedItem, Meta(description="The item of the map's timeline.")]


class MatchResumedEvent(MatchEventBase, frozen=True, kw_only=True, tag="match_resumed"):
    """Play goes on after a pause."""

    map_id: MapId
    map_number: MapNumber
    item: Annotated[UnpausedItem, Meta(description="The item of the map's timeline.")]


class AntiCheatEvent(MatchEventBase, frozen=True, kw_only=True, tag="anti_cheat"):
    """A detection of the anti-cheat: a hint for human review, never a verdict."""

    map_id: MapId
    map_number: MapNumber
    detection: Annotated[AntiCheatEntry, Meta(description="The detection, as in the details of the map.")]


class AttentionRaisedEvent(MatchEventBase, frozen=True, kw_only=True, tag="attention_raised"):
    """A person should look at the match. Only sent while a webhook of the organization has `attention.raised`."""

    attention: Annotated[RaisedAttention, Meta(description="Why.")]


class DemoAvailableEvent(MatchEventBase, frozen=True, kw_only=True, tag="demo_available"):
    """The demo of a map can be downloaded."""

    map_id: MapId
    map_number: MapNumber
    demo: Annotated[msgspec.Raw, Meta(description="The demo, as when getting it.")]


class ActionChangedEvent(MatchEventBase, frozen=True, kw_only=True, tag="action"):
    """A person asked for an action on the match, or it was sent, is done or failed."""

    action_id: Annotated[str, Meta(description="The id of the action.")]
    action: Annotated[ActionType, Meta(description="What was asked for.")]
    fields: Annotated[dict[str, str | int], Meta(description="The fields of the request that its type has.")]
    state: Annotated[ActionState, Meta(description="`requested`, `sent`, `done` or `failed`.")]
    detail: Annotated[str | None, Meta(description="Why it failed, or what happens until it is done; otherwise null.")]
    reason: Annotated[str | None, Meta(description="As given in the request, or null.")]
    by: Annotated[str | None, Meta(description="As given in the request, or null.")]


class MatchEndedEvent(MatchEventBase, frozen=True, kw_only=True, tag="match_ended"):
    """The match has its outcome: the last event of the match, unless an admin rules on it."""

    outcome: Annotated[str, Meta(description="As in the callback: `match_over` or `match_canceled`.")]
    reason: Annotated[CancelReason | None, Meta(description="Why it was canceled; null if it has a result.")]
    status: Annotated[str, Meta(description="The new status of the server: `stopped` or `failed`.")]
    forfeit: Forfeited = UNSET


class MatchRuledEvent(MatchEventBase, frozen=True, kw_only=True, tag="ruling"):
    """An admin ruled on a match that has ended, or withdrew the ruling. Its outcome stays as it was."""

    ruling: Annotated[Ruling | None, Meta(description="The ruling that counts now; null if it was withdrawn.")]


class PositionEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="position"):
    """The first event if no position was given, or a position above all ids. Its `id` is the newest `id`."""


class GapEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="gap"):
    """Events after your position were deleted, as they were too old: read the current state from the lists."""

    first_id: Annotated[int, Meta(description="The `id` of the first deleted event after your position.")]
    last_id: Annotated[int, Meta(description="The `id` of the last deleted event.")]


OrganizationEvent = (
    MatchCreatedEvent
    | ServerRunningEvent
    | MapWentLiveEvent
    | ScoreChangedEvent
    | MapFinishedEvent
    | MatchPausedEvent
    | MatchResumedEvent
    | AntiCheatEvent
    | AttentionRaisedEvent
    | DemoAvailableEvent
    | ActionChangedEvent
    | MatchEndedEvent
    | MatchRuledEvent
    | PositionEvent
    | GapEvent
)
