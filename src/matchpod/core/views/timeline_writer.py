"""Number, timestamp and collect the items of timelines, and identify the people in them.

Items are numbered from 1 on each map, and never removed. A restored backup adds an item instead.
"""

from __future__ import annotations

from typing import Final, TypedDict

import msgspec

from cs2_protocol.game import PlayerId, Side, Team
from matchpod.core import events as ev
from matchpod.core.iso_dates import LAST_MS, iso_time
from matchpod.core.match.detail_limits import MIN_ITEMS
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import PlayedMap
from matchpod.core.views import timeline_items as items
from matchpod.core.views.result import player_name
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.shown_text import person_of
from matchpod.core.views.timeline_items import Person, TimelineItem

MAX_PEOPLE: Final = 256
"""Maximum size of the cache of persons: four full servers."""

_MINUTE_MS: Final = 60_000


class MapItem(msgspec.Struct, frozen=True, gc=False):
    """A timeline item with the number of its map."""

    map_number: int
    item: TimelineItem


class Stamp(msgspec.Struct):
    """Formats timestamps. It caches the current minute, because consecutive items usually share it."""

    minute_ms: int = 0
    minute: str = "1970-01-01T00:00:"

    def text(self, at_ms: int) -> str:
        """Format a time as UTC with milliseconds and `Z`; times out of range are clamped."""
        within_ms = at_ms - self.minute_ms
        if not 0 <= within_ms < _MINUTE_MS:
            self.minute_ms, within_ms = divmod(min(max(at_ms, 0), LAST_MS), _MINUTE_MS)
            self.minute_ms *= _MINUTE_MS
            self.minute = iso_time(self.minute_ms)[: len(self.minute)]
        return f"{self.minute}{within_ms / 1000:06.3f}Z"


class Head(TypedDict):
    """The fields that all items have."""

    seq: int
    timestamp: str
    round_number: int | None


class TimelineWriter(msgspec.Struct):
    """The pending items of a match, and the state needed to build the next items.

    `here` has the names of the players whose last item about their connection says that they connected. A map change
    does not remove them.
    """

    seqs: dict[int, int] = {}
    """The last sequence number of each map."""
    stamps: dict[int, str] = {}
    """The time of the last item of each map."""
    waiting: list[MapItem] = []
    here: dict[PlayerId, str] = {}
    detections: int = 0
    """Number of detections of the match that were already added."""
    actions: int = 0
    """Number of action changes of the match that were already added."""
    ended_map: int = 0
    """The number of the last map whose end was added."""
    is_paused: bool = False
    last_death: tuple[int, PlayerId] = (0, "")
    """Time and player of the last death item. It is compared because a death by the bomb is logged twice."""
    people: dict[PlayerId, Person] = {}
    """Cache of the people in combat items. It is cleared by every event that may change a name or a team."""
    stamp: Stamp = msgspec.field(default_factory=Stamp)
    max_items: int = MIN_ITEMS
    """Maximum number of items per map. Later items are dropped, except the end of the map."""

    def drain(self) -> list[MapItem]:
        """Return the pending items and clear the list."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def renumber(self, map_number: int, shift: int) -> None:
        """Add `shift` to the numbers of a map's pending and future items, to continue a stored timeline."""
        self.seqs[map_number] = self.seqs.get(map_number, 0) + shift
        self.waiting = [
            MapItem(map_number, msgspec.structs.replace(waiting.item, seq=waiting.item.seq + shift))
            if waiting.map_number == map_number
            else waiting
            for waiting in self.waiting
        ]

    def head_now(self, event: ev.Event, match: Match) -> tuple[int, Head]:
        """Return the number of the current or next map, and the common fields of the next item on that map."""
        number = match.map_number
        is_next = number != match.current_map.number
        return (number, self.head(match, number, event.at_ms, None)) if is_next else self.head_in_play(event, match)

    def head_in_play(self, event: ev.Event, match: Match) -> tuple[int, Head]:
        """Return the number of the last map, and the common fields of the next item on that map."""
        played = match.maps[-1]
        number = played.number
        return number, self.head(match, number, event.at_ms, played.round_number or played.latest_round)

    def head(self, match: Match, map_number: int, at_ms: int, round_number: int | None) -> Head:
        """Return the common fields of the next item of a map."""
        seq = self.seqs.get(map_number, 0) + 1
        return {"seq": seq, "timestamp": self.stamp.text(match.times.ours(at_ms)), "round_number": round_number}

    def fighter(self, match: Match, player_id: PlayerId) -> Person:
        """Return a player of a live map as a person, from the cache if possible."""
        person = self.people.get(player_id)
        if person is None:
            if len(self.people) >= MAX_PEOPLE:
                self.people.clear()
            person = self.people[player_id] = named_person(match, player_id, player_name(match, player_id))
        return person

    def add(self, map_number: int, item: TimelineItem) -> None:
        """Add an item, unless its map already has the maximum number of items."""
        if item.seq <= self.max_items or type(item) is items.MapEndItem:
            self.seqs[map_number] = item.seq
            self.stamps[map_number] = item.timestamp
            self.waiting.append(MapItem(map_number, item))


def score_of(played: PlayedMap) -> Score | None:
    """Return the score of a map; None in a deathmatch."""
    return Score(played.team1_score, played.team2_score) if played.is_scored else None


def team1_side_of(event: ev.MapLive | ev.RoundStarted | ev.SidesSwapped, match: Match) -> Side | None:
    """Return the side of the first team in an event; None if there are no teams, or lost lines make it uncertain."""
    is_doubtful = isinstance(event, ev.RoundStarted) and not event.is_certain
    return None if match.settings.is_free_for_all or is_doubtful else event.team1_side


def named_person(match: Match, player_id: PlayerId, name: str) -> Person:
    """Return a player as a person with this name and their current team."""
    return person_of(match, player_id, name, _team(match, player_id))


def _team(match: Match, player_id: PlayerId) -> Team | None:
    """Return the team from the roster, or else from the line-up of the round, or else as observed in the game."""
    if match.settings.is_free_for_all:
        return None
    listed = match.roster.team_of(player_id)
    if listed is not None:
        return listed
    ledger = match.current_map.ledger
    record = ledger.open_round or (ledger.rounds[-1] if ledger.rounds else None)
    in_line_up = None if record is None else record.team_of(player_id)
    return in_line_up or match.presence.teams.get(player_id)
