"""Build the timeline of each map of a match from its events. Items are numbered from 1 on each map.

Items are never removed. A restored backup adds an item instead. The same bytes produce the same items with the same
numbers, so folding a match again stores no duplicates. Events of play belong to the live map; other events between two
maps belong to the second map. The end of the last map is the last item: nothing is added after the end of the match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from matchpod.core import events as ev
from matchpod.core.match.actions import ActionState
from matchpod.core.match.match import Match, MatchPhase
from matchpod.core.views import timeline_items as items
from matchpod.core.views import timeline_play, timeline_players
from matchpod.core.views.result import anti_cheat_entry
from matchpod.core.views.timeline_writer import TimelineWriter


class Timeline(TimelineWriter):
    """The timelines of all maps of a match. They grow as events are applied to the match."""

    def apply(self, event: ev.GameEvent, match: Match) -> None:
        """Add the items of an event just applied to the match. Only types in TIMELINE_EVENTS need to be passed."""
        entry = TIMELINE_EVENTS.get(type(event))
        if entry is None:
            return
        handle, is_play = entry
        if type(event) in _IDENTITY_EVENTS:
            self.people.clear()
        if match.phase is MatchPhase.LIVE or not (is_play or _has_no_next_map(match)):
            handle(self, event, match)
        if len(match.detections) > self.detections:
            self._add_detections(match)
        if type(event) not in ev.COMBAT_EVENTS:  # combat never ends a map
            timeline_play.add_map_ends(self, match)

    def add_map_ends(self, match: Match) -> None:
        """Add an item for each map that has ended, including maps that ended without an event."""
        timeline_play.add_map_ends(self, match)

    def add_actions(self, match: Match, at_ms: int) -> None:
        """Add an item for each action that was requested, done or failed since the last call."""
        changes = match.action_changes[self.actions :]
        self.actions = len(match.action_changes)
        for change in changes:
            record = match.actions.get(change.action_id)
            if record is None or change.state is ActionState.SENT:
                continue
            played, number = match.current_map, match.map_number
            latest = played.round_number or played.latest_round if number == played.number else None
            item = items.ActionItem(
                **self.head(match, number, at_ms, latest),
                action_id=change.action_id,
                action=record.action.type,
                fields=record.action.fields(),
                reason=record.action.reason,
                by=record.action.by,
                state=change.state,
                detail=change.detail if change.state is ActionState.FAILED else None,
            )
            self.add(number, item)

    def _add_detections(self, match: Match) -> None:
        for found in match.detections[self.detections :]:
            head = self.head(match, found.map_number, found.detected_at_ms, found.round_number)
            entry = anti_cheat_entry(match, msgspec.structs.replace(found, detected_at_ms=0))
            entry = msgspec.structs.replace(entry, detected_at=head["timestamp"])  # clamped to a valid date
            self.add(found.map_number, items.AntiCheatItem(**head, detection=entry))
        self.detections = len(match.detections)


def _no_item(_timeline: TimelineWriter, _event: ev.MapEnded | ev.CheatSuspected, _match: Match) -> None:
    """Add no item here: if the event led to a map end or a detection, `apply` adds the item."""


def _has_no_next_map(match: Match) -> bool:
    """True if no map follows: the match is over, or only waits for the plugin to report the winner."""
    return match.phase is MatchPhase.OVER or match.map_number > match.settings.map_count


# Each handler accepts its own event type, which a common signature cannot express.
_Handler = Callable[[TimelineWriter, Any, Match], None]

_PLAY: Final[dict[type[ev.Event], _Handler]] = {
    ev.MapLive: timeline_play.add_map_live,
    ev.RoundStarted: timeline_play.add_round_start,
    ev.RoundDecided: timeline_play.add_round_end,
    ev.RoundRestored: timeline_play.add_restore,
    ev.SidesSwapped: timeline_play.add_side_swap,
    ev.Paused: timeline_play.add_pause,
    ev.Unpaused: timeline_play.add_pause,
    ev.Kill: timeline_play.add_kill,
    ev.Death: timeline_play.add_death,
    ev.Assist: timeline_play.add_assist,
    ev.BombPlanted: timeline_play.add_plant,
    ev.BombDefused: timeline_play.add_defuse,
    ev.BombExploded: timeline_play.add_explosion,
}

_PEOPLE: Final[dict[type[ev.Event], _Handler]] = {
    ev.PlayerConnected: timeline_players.follow_arrival,
    ev.PlayerEntered: timeline_players.follow_arrival,
    ev.PlayerJoinedSide: timeline_players.follow_arrival,
    ev.PlayerRenamed: timeline_players.follow_rename,
    ev.PlayerDisconnected: timeline_players.follow_departure,
    ev.PlayersSeen: timeline_players.follow_console,
    ev.ChatMessage: timeline_players.add_chat,
    ev.MapEnded: _no_item,
    ev.CheatSuspected: _no_item,
}

_IDENTITY_EVENTS: Final = frozenset(_PEOPLE) - {ev.ChatMessage} | {ev.MapLive, ev.RoundRestored}
"""Types of events that may change a name or a team. So may the start of a round with new line-ups; its handler checks
this."""

TIMELINE_EVENTS: Final[dict[type[ev.Event], tuple[_Handler, bool]]] = {
    **{kind: (handler, True) for kind, handler in _PLAY.items()},
    **{kind: (handler, False) for kind, handler in _PEOPLE.items()},
}
"""For each event type, its handler, and whether the handler applies to a live map only. About 90 % of all events have
no handler."""
