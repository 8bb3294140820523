"""What happened on each map, in order? Items are made while a match is folded, and numbered from 1 on each map.

Nothing is taken back: a restored round is an item itself. The same bytes give the same items with the same numbers, so
whoever folds a match again stores nothing twice. What happens between two maps belongs to the second, and play to the
map that is live. A match that is over says no more, so the end of its last map is its last item.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypedDict

import msgspec

from matchpod.core import events as ev
from matchpod.core import timeline_items as items
from matchpod.core.match import Match, Phase
from matchpod.core.model import PlayerId, Side, Team, is_human
from matchpod.core.played_map import MapStatus, PlayedMap
from matchpod.core.result import LAST_MS, anti_cheat_entry, iso_time, player_name
from matchpod.core.result_shapes import Score
from matchpod.core.timeline_items import Person, TimelineItem

MAX_ITEMS: Final = 100_000
"""Of one map: a day of deathmatch for 20. What comes after that, but for the end, is in the statistics only."""

MAX_TEXT_CHARS: Final = 256
"""Of names, chat and the server's own words: twice what the game lets anybody write."""

MAX_PEOPLE: Final = 256
"""People kept ready for the next item: four servers full."""

_MINUTE_MS: Final = 60_000
_BOT: Final = "BOT:"
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that a terminal obeys, end a line for some readers, or are none."""
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

_SOMEBODY: Final = Person(steam_id=None, name="", team=None)
"""A stranger who was there before he was kicked, or whom the log failed to name."""


class MapItem(msgspec.Struct, frozen=True, gc=False):
    """An item and the number of its map."""

    map_number: int
    item: TimelineItem


class Stamp(msgspec.Struct):
    """Times as callers read them; the minute is kept, for the next item is of the same one more often than not."""

    minute_ms: int = 0
    minute: str = "1970-01-01T00:00:"

    def text(self, at_ms: int) -> str:
        """UTC with milliseconds and `Z`."""
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
    """The items of a match that were not taken yet, and what must be known to make the next.

    `here` has the name of everybody whose coming was told and whose leaving was not. A map change takes nobody off it.
    """

    seqs: dict[int, int] = {}
    """The last number of each map."""
    waiting: list[MapItem] = []
    here: dict[PlayerId, str] = {}
    detections: int = 0
    """How many of the match's detections were told."""
    ended_map: int = 0
    """The number of the last map whose end was told."""
    is_paused: bool = False
    people: dict[PlayerId, Person] = {}
    """Who fought since anybody came, went, was renamed, took a side or stood in another team."""
    stamp: Stamp = msgspec.field(default_factory=Stamp)

    def take(self) -> list[MapItem]:
        """The items since the last time."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def follow(self, event: ev.GameEvent, match: Match) -> None:
        """An event was just applied to the match; those that are not in TOLD need not come here."""
        told = TOLD.get(type(event))
        if told is None:
            return
        tell, is_play = told
        if type(event) in _MOVES:
            self.people.clear()
        if match.phase is Phase.LIVE or not (is_play or _is_played_out(match)):
            tell(self, event, match)
        if len(match.detections) > self.detections:
            self._tell_detections(match)
        if type(event) not in ev.COMBAT_EVENTS:  # no fight ends a map
            self.look(match)

    def look(self, match: Match) -> None:
        """Has a map ended? Some do by time alone, unseen, or with the whole match; a restored one has not any more."""
        last = match.maps[-1]
        if last.status is MapStatus.LIVE:
            self.ended_map = min(self.ended_map, last.number - 1)
        for played in match.maps[self.ended_map :]:
            if played.started_at_ms is None or played.status is MapStatus.LIVE:
                continue  # nothing happened on it, or it goes on
            self.ended_map = played.number
            head = self._head(played.number, played.finished_at_ms or 0, played.latest_round)
            end = items.MapEndItem(**head, status=played.status, winner=played.winner, score=_score(played))
            self._keep(played.number, end)

    # --- play: what happens on the map that is live -------------------------------------------------------------

    def _map_live(self, event: ev.MapLive, match: Match) -> None:
        self.look(match)  # a map before it may be over only because this one began
        self._call_the_roll(event, match)
        number, head = self._in_play(event, match)
        name, side, score = plain(event.map_name), _team1_side(event, match), _score(match.current_map)
        self._keep(number, items.MapLiveItem(**head, map_name=name, team1_side=side, score=score))

    def _round_started(self, event: ev.RoundStarted, match: Match) -> None:
        rounds = match.current_map.ledger.rounds
        if not rounds or (rounds[-1].team1, rounds[-1].team2) != (event.team1, event.team2):
            self.people.clear()
        self._tell_arrivals(event, match)  # who plays is here, though the lines of his coming were lost
        number, head = self._in_play(event, match)
        self._keep(number, items.RoundStartItem(**head, team1_side=_team1_side(event, match)))

    def _round_decided(self, event: ev.RoundDecided, match: Match) -> None:
        played = match.current_map
        end = items.RoundEndItem(
            **self._head(played.number, event.at_ms, event.round_number),
            winner=None if match.settings.is_free_for_all else event.winner,
            winner_side=event.winner_side,
            reason=event.reason,
            score=_score(played),
        )
        self._keep(played.number, end)

    def _round_restored(self, event: ev.RoundRestored, match: Match) -> None:
        self._call_the_roll(event, match)
        number, head = self._in_play(event, match)
        score = _score(match.current_map)
        self._keep(number, items.RoundRestoredItem(**head, rounds_kept=event.rounds_kept, score=score))

    def _sides_swapped(self, event: ev.SidesSwapped, match: Match) -> None:
        number, head = self._in_play(event, match)
        self._keep(number, items.SideSwapItem(**head, team1_side=_team1_side(event, match)))

    def _pause_changed(self, event: ev.Paused | ev.Unpaused, match: Match) -> None:
        # The server prints the end of a pause twice: when it is asked for, and when play goes on.
        is_paused = match.current_map.is_paused
        if is_paused is not self.is_paused:
            self.is_paused = is_paused
            kind = items.PausedItem if is_paused else items.UnpausedItem
            number, head = self._in_play(event, match)
            self._keep(number, kind(**head, by=plain(event.by)))

    def _kill(self, event: ev.Kill, match: Match) -> None:
        # Every second item is one of these, so it is made without detours.
        played = match.maps[-1]
        kill = items.KillItem(
            seq=self.seqs.get(played.number, 0) + 1,
            timestamp=self.stamp.text(event.at_ms),
            round_number=played.round_number or played.latest_round,
            killer=self._fighter(match, event.killer),
            victim=self._fighter(match, event.victim),
            weapon=plain(event.weapon),
            team_kill=not event.is_enemy,
            headshot=event.is_headshot,
            wallbang=event.is_wallbang,
            through_smoke=event.is_through_smoke,
            attacker_blind=event.is_blind,
            noscope=event.is_noscope,
            in_air=event.is_in_air,
            distance=event.distance,
        )
        self._keep(played.number, kill)

    def _assist(self, event: ev.Assist, match: Match) -> None:
        if event.is_enemy:  # to have hurt a friend whom somebody killed is no help, and counts nowhere
            number, head = self._in_play(event, match)
            player, victim = self._fighter(match, event.player_id), self._fighter(match, event.victim)
            self._keep(number, items.AssistItem(**head, player=player, victim=victim, flash=event.is_flash))

    def _bomb_planted(self, event: ev.BombPlanted, match: Match) -> None:
        number, head = self._in_play(event, match)
        site = None if event.site is None else plain(event.site)
        self._keep(number, items.BombPlantedItem(**head, player=self._fighter(match, event.player_id), site=site))

    def _bomb_defused(self, event: ev.BombDefused, match: Match) -> None:
        number, head = self._in_play(event, match)
        player = None if event.player_id is None else self._fighter(match, event.player_id)
        self._keep(number, items.BombDefusedItem(**head, player=player))

    def _bomb_exploded(self, event: ev.BombExploded, match: Match) -> None:
        number, head = self._in_play(event, match)
        self._keep(number, items.BombExplodedItem(**head))

    # --- people: who comes, goes and talks, also before a map and between two -----------------------------------

    def _arrived(self, event: ev.PlayerConnected | ev.PlayerEntered | ev.PlayerJoinedSide, match: Match) -> None:
        if event.player_id in self.here:
            self.here[event.player_id] = event.name
        elif event.player_id in match.presence.connected:
            self._tell_arrival(event, match, event.player_id, event.name)

    def _renamed(self, event: ev.PlayerRenamed, _match: Match) -> None:
        if event.player_id in self.here:
            self.here[event.player_id] = event.name

    def _left(self, event: ev.PlayerDisconnected, match: Match) -> None:
        # Outside play this is how a map change looks. Who does not come back is missed when the next map is live.
        is_map_change = event.is_map_change and match.phase is not Phase.LIVE
        if event.player_id in self.here and not is_map_change:
            self._tell_leaving(event, match, event.player_id, event.reason)

    def _seen(self, event: ev.PlayersSeen, match: Match) -> None:
        presence = match.presence
        for player_id in [known for known in self.here if known in presence.unseen]:
            if player_id not in presence.connected:  # the console has not named him for long enough
                self._tell_leaving(event, match, player_id)
        self._tell_arrivals(event, match)

    def _chat(self, event: ev.ChatSaid, match: Match) -> None:
        if not is_human(event.player_id) or match.presence.is_unlisted(event.player_id):
            return
        number, head = self._now(event, match)
        player = _person(match, event.player_id, event.name)
        chat = items.ChatItem(**head, player=player, text=plain(event.text), team_only=event.is_team_only)
        self._keep(number, chat)

    def _state_alone(self, _event: ev.MapEnded | ev.CheatSuspected, _match: Match) -> None:
        """What such an event means is told by what the match made of it: an end, a detection, or nothing."""

    def _call_the_roll(self, event: ev.MapLive | ev.RoundRestored, match: Match) -> None:
        """Play begins: whoever did not come back from a map change or a restart has left."""
        for player_id in [known for known in self.here if known not in match.presence.connected]:
            self._tell_leaving(event, match, player_id)
        self._tell_arrivals(event, match)
        self.is_paused = match.current_map.is_paused

    def _tell_arrivals(self, event: ev.Event, match: Match) -> None:
        for player_id, connection in match.presence.connected.items():
            if player_id not in self.here:
                self._tell_arrival(event, match, player_id, connection.name or player_name(match, player_id))

    def _tell_arrival(self, event: ev.Event, match: Match, player_id: PlayerId, name: str) -> None:
        self.here[player_id] = name
        number, head = self._now(event, match)
        self._keep(number, items.PlayerConnectedItem(**head, player=_person(match, player_id, name)))

    def _tell_leaving(self, event: ev.Event, match: Match, player_id: PlayerId, reason: str = "") -> None:
        player = _person(match, player_id, self.here.pop(player_id))
        number, head = self._now(event, match)
        self._keep(number, items.PlayerDisconnectedItem(**head, player=player, reason=plain(reason)))

    def _tell_detections(self, match: Match) -> None:
        for found in match.detections[self.detections :]:
            head = self._head(found.map_number, found.detected_at_ms, found.round_number)
            entry = anti_cheat_entry(msgspec.structs.replace(found, detected_at_ms=0))
            entry = msgspec.structs.replace(entry, detected_at=head["timestamp"])  # one that a calendar has
            self._keep(found.map_number, items.AntiCheatItem(**head, detection=entry))
        self.detections = len(match.detections)

    # --- making items -------------------------------------------------------------------------------------------

    def _now(self, event: ev.Event, match: Match) -> tuple[int, _Head]:
        """The map that is played or comes next, and how its item begins."""
        number = match.map_number
        is_next = number != match.current_map.number
        return (number, self._head(number, event.at_ms, None)) if is_next else self._in_play(event, match)

    def _in_play(self, event: ev.Event, match: Match) -> tuple[int, _Head]:
        """The same while a map is live."""
        played = match.maps[-1]
        number = played.number
        return number, self._head(number, event.at_ms, played.round_number or played.latest_round)

    def _head(self, map_number: int, at_ms: int, round_number: int | None) -> _Head:
        seq = self.seqs.get(map_number, 0) + 1
        return {"seq": seq, "timestamp": self.stamp.text(at_ms), "round_number": round_number}

    def _fighter(self, match: Match, player_id: PlayerId) -> Person:
        person = self.people.get(player_id)
        if person is None:
            if len(self.people) >= MAX_PEOPLE:
                self.people.clear()
            person = self.people[player_id] = _person(match, player_id, player_name(match, player_id))
        return person

    def _keep(self, map_number: int, item: TimelineItem) -> None:
        if item.seq <= MAX_ITEMS or type(item) is items.MapEndItem:
            self.seqs[map_number] = item.seq
            self.waiting.append(MapItem(map_number, item))


def _is_played_out(match: Match) -> bool:
    """No map follows: the match is over, or it only waits to hear who won."""
    return match.phase is Phase.OVER or match.map_number > match.settings.series_format.length


def _score(played: PlayedMap) -> Score | None:
    return Score(played.team1_score, played.team2_score) if played.is_scored else None


def _team1_side(event: ev.MapLive | ev.RoundStarted | ev.SidesSwapped, match: Match) -> Side | None:
    return None if match.settings.is_free_for_all else event.team1_side  # without teams it is made up


def _person(match: Match, player_id: PlayerId, name: str) -> Person:
    if is_human(player_id):
        if match.presence.is_unlisted(player_id):
            return _SOMEBODY
        return Person(steam_id=player_id, name=plain(name), team=_team(match, player_id))
    if player_id.startswith(_BOT):
        return Person(steam_id=None, name=plain(player_id.removeprefix(_BOT)), team=_team(match, player_id))
    return _SOMEBODY


def _team(match: Match, player_id: PlayerId) -> Team | None:
    """As listed, else as the player stood when the round began, else as the game told."""
    settings = match.settings
    if settings.is_free_for_all:
        return None
    listed = settings.team_of(player_id)
    if listed is not None:
        return listed
    ledger = match.current_map.ledger
    record = ledger.open_round or (ledger.rounds[-1] if ledger.rounds else None)
    stood = None if record is None else record.team_of(player_id)
    return stood or match.presence.teams.get(player_id)


def plain(text: str) -> str:
    """Text of strangers, as long as it may be and without what a terminal obeys."""
    cut = text[:MAX_TEXT_CHARS]
    return cut if cut.isprintable() else _UNSAFE.sub(_REPLACEMENT, cut)


# The handlers take an event of their own type, which a common signature cannot say.
_Tell = Callable[[Timeline, Any, Match], None]

_PLAY: Final[dict[type[ev.Event], _Tell]] = {
    ev.MapLive: Timeline._map_live,
    ev.RoundStarted: Timeline._round_started,
    ev.RoundDecided: Timeline._round_decided,
    ev.RoundRestored: Timeline._round_restored,
    ev.SidesSwapped: Timeline._sides_swapped,
    ev.Paused: Timeline._pause_changed,
    ev.Unpaused: Timeline._pause_changed,
    ev.Kill: Timeline._kill,
    ev.Assist: Timeline._assist,
    ev.BombPlanted: Timeline._bomb_planted,
    ev.BombDefused: Timeline._bomb_defused,
    ev.BombExploded: Timeline._bomb_exploded,
}

_PEOPLE: Final[dict[type[ev.Event], _Tell]] = {
    ev.PlayerConnected: Timeline._arrived,
    ev.PlayerEntered: Timeline._arrived,
    ev.PlayerJoinedSide: Timeline._arrived,
    ev.PlayerRenamed: Timeline._renamed,
    ev.PlayerDisconnected: Timeline._left,
    ev.PlayersSeen: Timeline._seen,
    ev.ChatSaid: Timeline._chat,
    ev.MapEnded: Timeline._state_alone,
    ev.CheatSuspected: Timeline._state_alone,
}

_MOVES: Final = frozenset(_PEOPLE) - {ev.ChatSaid} | {ev.MapLive, ev.RoundRestored}
"""What may change somebody's name or team; a round does where others stand in it than in the one before."""

TOLD: Final[dict[type[ev.Event], tuple[_Tell, bool]]] = {
    **{kind: (tell, True) for kind, tell in _PLAY.items()},
    **{kind: (tell, False) for kind, tell in _PEOPLE.items()},
}
"""The events a timeline hears of, and whether they are told of a live map only. Nine of ten events are none of them."""
