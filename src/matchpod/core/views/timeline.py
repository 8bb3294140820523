"""Build the timeline of each map while a match is folded. Items are numbered from 1 on each map.

Items are never removed: a restored backup adds an item. The same bytes produce the same items with the same
numbers, so folding a match again stores no duplicates. Events between two maps belong to the second map, events of play
to the live map. The end of the last map is the last item, since nothing is added after the end of the match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypedDict

import msgspec

from cs2_protocol.game import PlayerId, Side, Team, is_human
from matchpod.core import events as ev
from matchpod.core.match.match import Match, MatchPhase
from matchpod.core.match.played_map import MapStatus, PlayedMap
from matchpod.core.match.start_sides import decided_by
from matchpod.core.views import timeline_items as items
from matchpod.core.views.persons import person_of, sanitize
from matchpod.core.views.result import LAST_MS, anti_cheat_entry, iso_time, player_name
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.timeline_items import Person, TimelineItem

MAX_ITEMS: Final = 100_000
"""Most items per map: a day of deathmatch with 20 players. Later ones are dropped, except the end of the map."""

MAX_PEOPLE: Final = 256
"""Size limit of the cache of persons: four full servers."""

_MINUTE_MS: Final = 60_000


class MapItem(msgspec.Struct, frozen=True, gc=False):
    """A timeline item with the number of its map."""

    map_number: int
    item: TimelineItem


class Stamp(msgspec.Struct):
    """Formats timestamps. Caches the current minute, since consecutive items usually share it."""

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


class _Head(TypedDict):
    seq: int
    timestamp: str
    round_number: int | None


class Timeline(msgspec.Struct):
    """The pending items of a match, and the state needed to build the next ones.

    `here` maps each player with a connected item and no later disconnected item to their name; a map change keeps it.
    """

    seqs: dict[int, int] = {}
    """The last sequence number of each map."""
    waiting: list[MapItem] = []
    here: dict[PlayerId, str] = {}
    detections: int = 0
    """The number of the match's detections already added."""
    ended_map: int = 0
    """The number of the last map whose end was added."""
    is_paused: bool = False
    last_death: tuple[int, PlayerId] = (0, "")
    """Time and player of the last death item: a death by the bomb is logged twice."""
    people: dict[PlayerId, Person] = {}
    """Cache of persons in combat items; cleared by any event that may change a name or team."""
    stamp: Stamp = msgspec.field(default_factory=Stamp)

    def drain(self) -> list[MapItem]:
        """Return the pending items and clear the list."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def renumber(self, map_number: int, shift: int) -> None:
        """Shift the numbers of a map's pending and future items, to continue a timeline that was numbered otherwise."""
        self.seqs[map_number] = self.seqs.get(map_number, 0) + shift
        self.waiting = [
            MapItem(map_number, msgspec.structs.replace(one.item, seq=one.item.seq + shift))
            if one.map_number == map_number
            else one
            for one in self.waiting
        ]

    def apply(self, event: ev.GameEvent, match: Match) -> None:
        """Add items for an event just applied to the match; callers may skip types that are not in TIMELINE_EVENTS."""
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
            self.add_map_ends(match)

    def add_map_ends(self, match: Match) -> None:
        """Add an item for each map that has ended; it may have ended without an event, by timeout or with the match."""
        last = match.maps[-1]
        if last.status is MapStatus.LIVE:
            self.ended_map = min(self.ended_map, last.number - 1)
        for played in match.maps[self.ended_map :]:
            if played.started_at_ms is None or played.status is MapStatus.LIVE:
                continue  # never played, or still live
            self.ended_map = played.number
            head = self._head(match, played.number, played.finished_at_ms or 0, played.latest_round)
            end = items.MapEndItem(**head, status=played.status, winner=played.winner, score=_score(played))
            self._add(played.number, end)

    # --- play: events of the live map ---------------------------------------------------------------------------

    def _map_live(self, event: ev.MapLive, match: Match) -> None:
        self.add_map_ends(match)  # the start of this map may have ended an earlier one
        self._sync_players(event, match)
        number, head = self._head_in_play(event, match)
        name, side, score = sanitize(event.map_name), _team1_side(event, match), _score(match.current_map)
        by = None if event.rounds_played else decided_by(match.settings, number, side)
        self._add(number, items.MapLiveItem(**head, map_name=name, team1_side=side, sides_by=by, score=score))

    def _round_started(self, event: ev.RoundStarted, match: Match) -> None:
        rounds = match.current_map.ledger.rounds
        if not rounds or (rounds[-1].team1, rounds[-1].team2) != (event.team1, event.team2):
            self.people.clear()
        self._add_arrivals(event, match)  # players in the line-up whose connect lines were lost
        number, head = self._head_in_play(event, match)
        self._add(number, items.RoundStartItem(**head, team1_side=_team1_side(event, match)))

    def _round_decided(self, event: ev.RoundDecided, match: Match) -> None:
        played = match.current_map
        end = items.RoundEndItem(
            **self._head(match, played.number, event.at_ms, event.round_number),
            winner=None if match.settings.is_free_for_all else event.winner,
            winner_side=event.winner_side,
            reason=event.reason,
            score=_score(played),
        )
        self._add(played.number, end)

    def _round_restored(self, event: ev.RoundRestored, match: Match) -> None:
        self._sync_players(event, match)
        number, head = self._head_in_play(event, match)
        score = _score(match.current_map)
        self._add(number, items.RoundRestoredItem(**head, rounds_kept=event.rounds_kept, score=score))

    def _sides_swapped(self, event: ev.SidesSwapped, match: Match) -> None:
        number, head = self._head_in_play(event, match)
        self._add(number, items.SideSwapItem(**head, team1_side=_team1_side(event, match)))

    def _pause_changed(self, event: ev.Paused | ev.Unpaused, match: Match) -> None:
        # The server logs the end of a pause twice: when it is requested, and when play resumes.
        if match.current_map.is_paused is self.is_paused:
            return
        self.is_paused = match.current_map.is_paused
        number, head = self._head_in_play(event, match)
        if isinstance(event, ev.Unpaused):
            self._add(number, items.UnpausedItem(**head, by=sanitize(event.by)))
        else:
            caller = None if event.caller is None else self._fighter(match, event.caller)
            self._add(number, items.PausedItem(**head, by=sanitize(event.by), called_by=caller))

    def _kill(self, event: ev.Kill, match: Match) -> None:
        # Half of all items are kills, so this skips the helper methods.
        played = match.maps[-1]
        kill = items.KillItem(
            seq=self.seqs.get(played.number, 0) + 1,
            timestamp=self.stamp.text(match.times.ours(event.at_ms)),
            round_number=played.round_number or played.latest_round,
            killer=self._fighter(match, event.killer),
            victim=self._fighter(match, event.victim),
            weapon=sanitize(event.weapon),
            team_kill=not event.is_enemy,
            headshot=event.is_headshot,
            wallbang=event.is_wallbang,
            through_smoke=event.is_through_smoke,
            attacker_blind=event.is_blind,
            noscope=event.is_noscope,
            in_air=event.is_in_air,
            distance=event.distance,
        )
        self._add(played.number, kill)

    def _death(self, event: ev.Death, match: Match) -> None:
        # The ledger has applied the event: a death in freeze time, or of a player who is out, does not count.
        record, death = match.maps[-1].ledger.open_round, (event.at_ms, event.player_id)
        if record is None or death == self.last_death:
            return
        fall = record.death_by(event.cause, *death)
        if record.has_respawns or fall is not None:
            self.last_death = death
            number, head = self._head_in_play(event, match)
            player = self._fighter(match, event.player_id)
            self._add(number, items.DeathItem(**head, player=player, cause=sanitize(event.cause)))
            if fall is not None and fall.helper is not None:
                self._assist(ev.Assist(event.at_ms, fall.helper, event.player_id, is_flash=False, is_enemy=True), match)

    def _assist(self, event: ev.Assist, match: Match) -> None:
        if event.is_enemy:  # damage to a teammate who was then killed is no assist
            number, head = self._head_in_play(event, match)
            player, victim = self._fighter(match, event.player_id), self._fighter(match, event.victim)
            self._add(number, items.AssistItem(**head, player=player, victim=victim, flash=event.is_flash))

    def _bomb_planted(self, event: ev.BombPlanted, match: Match) -> None:
        number, head = self._head_in_play(event, match)
        site = None if event.site is None else sanitize(event.site)
        self._add(number, items.BombPlantedItem(**head, player=self._fighter(match, event.player_id), site=site))

    def _bomb_defused(self, event: ev.BombDefused, match: Match) -> None:
        number, head = self._head_in_play(event, match)
        player = None if event.player_id is None else self._fighter(match, event.player_id)
        self._add(number, items.BombDefusedItem(**head, player=player))

    def _bomb_exploded(self, event: ev.BombExploded, match: Match) -> None:
        number, head = self._head_in_play(event, match)
        self._add(number, items.BombExplodedItem(**head))

    # --- people: connections and chat, also before and between maps ---------------------------------------------

    def _arrived(self, event: ev.PlayerConnected | ev.PlayerEntered | ev.PlayerJoinedSide, match: Match) -> None:
        if event.player_id in self.here:
            self.here[event.player_id] = event.name
        elif event.player_id in match.presence.connected:
            self._add_arrival(event, match, event.player_id, event.name)

    def _renamed(self, event: ev.PlayerRenamed, _match: Match) -> None:
        if event.player_id in self.here:
            self.here[event.player_id] = event.name

    def _departed(self, event: ev.PlayerDisconnected, match: Match) -> None:
        # Outside play this is probably a map change. A player who does not return leaves when the next map goes live.
        is_map_change = event.is_map_change and match.phase is not MatchPhase.LIVE
        if event.player_id in self.here and not is_map_change:
            self._add_departure(event, match, event.player_id, event.reason)

    def _players_seen(self, event: ev.PlayersSeen, match: Match) -> None:
        presence = match.presence
        for player_id in [known for known in self.here if known in presence.unseen]:
            if player_id not in presence.connected:  # missing from the console's list for long enough
                self._add_departure(event, match, player_id)
        self._add_arrivals(event, match)

    def _chat(self, event: ev.ChatMessage, match: Match) -> None:
        if not is_human(event.player_id) or match.presence.is_unlisted(event.player_id):
            return
        number, head = self._head_now(event, match)
        player = _person(match, event.player_id, event.name)
        chat = items.ChatItem(**head, player=player, text=sanitize(event.text), team_only=event.is_team_only)
        self._add(number, chat)

    def _no_item(self, _event: ev.MapEnded | ev.CheatSuspected, _match: Match) -> None:
        """Add nothing here: `apply` adds the map end or detection that resulted from the event, if any."""

    def _sync_players(self, event: ev.MapLive | ev.RoundRestored, match: Match) -> None:
        """Add missed arrivals, and departures of players who did not return from a map change or restart."""
        for player_id in [known for known in self.here if known not in match.presence.connected]:
            self._add_departure(event, match, player_id)
        self._add_arrivals(event, match)
        self.is_paused = match.current_map.is_paused

    def _add_arrivals(self, event: ev.Event, match: Match) -> None:
        for player_id, connection in match.presence.connected.items():
            if player_id not in self.here:
                self._add_arrival(event, match, player_id, connection.name or player_name(match, player_id))

    def _add_arrival(self, event: ev.Event, match: Match, player_id: PlayerId, name: str) -> None:
        self.here[player_id] = name
        number, head = self._head_now(event, match)
        self._add(number, items.PlayerConnectedItem(**head, player=_person(match, player_id, name)))

    def _add_departure(self, event: ev.Event, match: Match, player_id: PlayerId, reason: str = "") -> None:
        player = _person(match, player_id, self.here.pop(player_id))
        number, head = self._head_now(event, match)
        self._add(number, items.PlayerDisconnectedItem(**head, player=player, reason=sanitize(reason)))

    def _add_detections(self, match: Match) -> None:
        for found in match.detections[self.detections :]:
            head = self._head(match, found.map_number, found.detected_at_ms, found.round_number)
            entry = anti_cheat_entry(match, msgspec.structs.replace(found, detected_at_ms=0))
            entry = msgspec.structs.replace(entry, detected_at=head["timestamp"])  # clamped to a valid date
            self._add(found.map_number, items.AntiCheatItem(**head, detection=entry))
        self.detections = len(match.detections)

    # --- making items -------------------------------------------------------------------------------------------

    def _head_now(self, event: ev.Event, match: Match) -> tuple[int, _Head]:
        """Return the number of the current or next map, and the common fields of its next item."""
        number = match.map_number
        is_next = number != match.current_map.number
        return (number, self._head(match, number, event.at_ms, None)) if is_next else self._head_in_play(event, match)

    def _head_in_play(self, event: ev.Event, match: Match) -> tuple[int, _Head]:
        """Return the number of the last map, and the common fields of its next item."""
        played = match.maps[-1]
        number = played.number
        return number, self._head(match, number, event.at_ms, played.round_number or played.latest_round)

    def _head(self, match: Match, map_number: int, at_ms: int, round_number: int | None) -> _Head:
        seq = self.seqs.get(map_number, 0) + 1
        return {"seq": seq, "timestamp": self.stamp.text(match.times.ours(at_ms)), "round_number": round_number}

    def _fighter(self, match: Match, player_id: PlayerId) -> Person:
        person = self.people.get(player_id)
        if person is None:
            if len(self.people) >= MAX_PEOPLE:
                self.people.clear()
            person = self.people[player_id] = _person(match, player_id, player_name(match, player_id))
        return person

    def _add(self, map_number: int, item: TimelineItem) -> None:
        if item.seq <= MAX_ITEMS or type(item) is items.MapEndItem:
            self.seqs[map_number] = item.seq
            self.waiting.append(MapItem(map_number, item))


def _has_no_next_map(match: Match) -> bool:
    """True if no map follows: the match is over, or waits only for the plugin to report the winner."""
    return match.phase is MatchPhase.OVER or match.map_number > match.settings.series_format.length


def _score(played: PlayedMap) -> Score | None:
    return Score(played.team1_score, played.team2_score) if played.is_scored else None


def _team1_side(event: ev.MapLive | ev.RoundStarted | ev.SidesSwapped, match: Match) -> Side | None:
    return None if match.settings.is_free_for_all else event.team1_side  # meaningless without teams


def _person(match: Match, player_id: PlayerId, name: str) -> Person:
    return person_of(match, player_id, name, _team(match, player_id))


def _team(match: Match, player_id: PlayerId) -> Team | None:
    """Return the team from the roster, else from the line-up of the round, else from the game."""
    settings = match.settings
    if settings.is_free_for_all:
        return None
    listed = settings.team_of(player_id)
    if listed is not None:
        return listed
    ledger = match.current_map.ledger
    record = ledger.open_round or (ledger.rounds[-1] if ledger.rounds else None)
    in_line_up = None if record is None else record.team_of(player_id)
    return in_line_up or match.presence.teams.get(player_id)


# Each handler accepts its own event type, which a common signature cannot express.
_Handler = Callable[[Timeline, Any, Match], None]

_PLAY: Final[dict[type[ev.Event], _Handler]] = {
    ev.MapLive: Timeline._map_live,
    ev.RoundStarted: Timeline._round_started,
    ev.RoundDecided: Timeline._round_decided,
    ev.RoundRestored: Timeline._round_restored,
    ev.SidesSwapped: Timeline._sides_swapped,
    ev.Paused: Timeline._pause_changed,
    ev.Unpaused: Timeline._pause_changed,
    ev.Kill: Timeline._kill,
    ev.Death: Timeline._death,
    ev.Assist: Timeline._assist,
    ev.BombPlanted: Timeline._bomb_planted,
    ev.BombDefused: Timeline._bomb_defused,
    ev.BombExploded: Timeline._bomb_exploded,
}

_PEOPLE: Final[dict[type[ev.Event], _Handler]] = {
    ev.PlayerConnected: Timeline._arrived,
    ev.PlayerEntered: Timeline._arrived,
    ev.PlayerJoinedSide: Timeline._arrived,
    ev.PlayerRenamed: Timeline._renamed,
    ev.PlayerDisconnected: Timeline._departed,
    ev.PlayersSeen: Timeline._players_seen,
    ev.ChatMessage: Timeline._chat,
    ev.MapEnded: Timeline._no_item,
    ev.CheatSuspected: Timeline._no_item,
}

_IDENTITY_EVENTS: Final = frozenset(_PEOPLE) - {ev.ChatMessage} | {ev.MapLive, ev.RoundRestored}
"""Events that may change a name or team. So may a round start with new line-ups, which its handler checks."""

TIMELINE_EVENTS: Final[dict[type[ev.Event], tuple[_Handler, bool]]] = {
    **{kind: (handler, True) for kind, handler in _PLAY.items()},
    **{kind: (handler, False) for kind, handler in _PEOPLE.items()},
}
"""Handlers by event type, and whether they apply to a live map only. About 90 % of all events have no handler."""
