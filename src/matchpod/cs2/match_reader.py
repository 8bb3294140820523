"""How do bytes become a match? One reader a match: log posts, plugin reports and log files in, events and effects out.

The whole of it is plain data. Stored at any point and loaded again it goes on as if nothing had happened, and the
same bytes give the same match however they were cut into posts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from matchpod.core.effects import Effect
from matchpod.core.events import (
    PRESENCE_EVENTS,
    CheatSuspected,
    GameEvent,
    LogGap,
    PlayersSeen,
    ServerRestarted,
    ShotsCounted,
)
from matchpod.core.match import Match
from matchpod.core.model import GameSettings, PlayerId
from matchpod.core.timeline import TOLD, Timeline
from matchpod.core.timers import Timers, to_ms
from matchpod.cs2.anticheat_reports import PluginDetection
from matchpod.cs2.interpreter import Interpreter
from matchpod.cs2.log_batches import Gap, LogCursor, LogPost, MapLoad, Restarted, Taken, Unfinished
from matchpod.cs2.log_clock import LogClock
from matchpod.cs2.log_lines.reader import LineReader
from matchpod.cs2.log_lines.world_lines import LoadingMap, Unknown
from matchpod.cs2.map_flow import MapFlow, MapPhase
from matchpod.cs2.matchzy import read_report
from matchpod.cs2.plugin_facts import PluginFacts, series_words


class Reading(msgspec.Struct):
    """What some input meant, and what must be done about it."""

    events: list[GameEvent] = []
    effects: list[Effect] = []


class MatchReader(msgspec.Struct, kw_only=True):
    """A match being read."""

    match: Match
    interpreter: Interpreter
    timeline: Timeline
    """Without a default: a state from before there was one is read again, for its numbers would begin anew."""
    cursor: LogCursor = msgspec.field(default_factory=LogCursor)
    clock: LogClock = msgspec.field(default_factory=LogClock)
    lines: LineReader = msgspec.field(default_factory=LineReader)
    plugin: PluginFacts = msgspec.field(default_factory=PluginFacts)
    is_configured: bool = True
    """False while the server is set up: only who comes and goes is of interest then."""
    lines_read: int = 0
    lines_unknown: int = 0

    @classmethod
    def create(cls, settings: GameSettings, created_at_ms: int, timers: Timers | None = None) -> MatchReader:
        """A reader for a server that has said nothing yet."""
        match = Match.create(settings, created_at_ms, timers)
        return cls(match=match, interpreter=Interpreter.of(settings), timeline=Timeline())

    def read_post(self, post: LogPost) -> Reading:
        """Take in a post of log lines."""
        taken = self.cursor.take(post)
        events = self._notices(taken, post.received_ms)
        if post.sent_ms is not None:
            self.clock.anchor(post.sent_ms, post.received_ms)
        self._interpret(taken.lines, events, received_ms=post.received_ms)
        self.interpreter.flow.hear(post.received_ms)
        return self._fold(events, post.received_ms)

    def read_file(self, lines: Iterable[bytes]) -> Reading:
        """Take in the lines of a log file; its own times are the only clock."""
        events: list[GameEvent] = []
        self._interpret(lines, events)
        return self._fold(events, None)

    def read_report(self, body: bytes, received_ms: int) -> Reading:
        """Take in a report of the match plugin."""
        report = read_report(body)
        current = self.match.current_map
        # Times of a match are the server's: in a world that runs faster, ours are behind.
        at_ms = current.last_event_at_ms or received_ms
        flow, maps_won = self.interpreter.flow, sum(self.match.series_score)
        events = self.plugin.read(report, at_ms, flow, map_number=current.number, maps_won=maps_won)
        events += series_words(report, at_ms)
        self.interpreter.flow.hear(received_ms)
        return self._fold(events, received_ms)

    def read_detection(self, found: PluginDetection, received_ms: int) -> Reading:
        """Take in a detection of an anti-cheat plugin, for a player it names by id or by the name he goes by."""
        player_id = found.player_id or self._player_named(found.name)
        if not player_id:
            return Reading()
        suspected = CheatSuspected(received_ms, player_id, found.kind, found.reason, found.weapon, found.name)
        return self._fold([suspected], received_ms)

    def read_shots(self, player_id: PlayerId, *, fired: int, hit: int, received_ms: int) -> Reading:
        """Take in a plugin's running count of a player's shots on this map; logs alone never tell."""
        return self._fold([ShotsCounted(received_ms, player_id, fired, hit)], received_ms)

    def read_presence(self, names: dict[PlayerId, str], received_ms: int) -> Reading:
        """Take in who is on the server, as its console lists them; asked for where the log lost lines."""
        load_ms = to_ms(self.match.timers.client_load_s)
        return self._fold([PlayersSeen(received_ms, names, load_ms)], received_ms)

    def configure(self, *, is_done: bool) -> None:
        """The server is being set up, or has been: what it plays meanwhile, with other settings, does not count."""
        if is_done and not self.is_configured:
            self.interpreter.flow = _fresh_flow(self.match.settings, self.interpreter.flow)
        self.is_configured = is_done

    def tick(self, now_ms: int) -> Reading:
        """Let time pass."""
        reading = self.settle(now_ms)
        reading.effects += self.match.tick(now_ms)
        self.timeline.look(self.match)
        return reading

    def settle(self, now_ms: int) -> Reading:
        """Believe what had one witness only, if its time has come; a recording that ends is settled at its deadline."""
        events: list[GameEvent] = []
        self.interpreter.flow.settle(now_ms, events)
        return self._fold(events, now_ms)

    def end_series(self, now_ms: int) -> Reading:
        """The server says no more: end a series of which enough is known."""
        effects = self.match.end_series(now_ms)
        self.timeline.look(self.match)
        return Reading([], effects)

    def next_deadline_ms(self) -> int | None:
        """When `tick` must be called at the latest."""
        deadlines = [self.match.next_deadline_ms(), self.interpreter.flow.next_deadline_ms()]
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    def _notices(self, taken: Taken, received_ms: int) -> list[GameEvent]:
        events: list[GameEvent] = []
        loaded: str | None = None
        for notice in taken.notices:
            match notice:
                case MapLoad(game_map=name):
                    loaded = name
                case Gap(missing_bytes=lost) | Unfinished(dropped_bytes=lost):
                    self.interpreter.flow.sides.seen.clear()  # whoever was seen may have changed sides since
                    self.interpreter.flow.awaits_start = False  # the start may be among what was lost
                    events.append(LogGap(received_ms, lost))
                    if loaded and isinstance(notice, Gap):  # its `Loading map` is among what was lost
                        at_ms = self.match.current_map.last_event_at_ms or received_ms
                        self.interpreter.flow.loading(at_ms, LoadingMap(loaded), events)
                case Restarted():
                    self.clock = LogClock()
                    self.interpreter.restart()
                    events.append(ServerRestarted(received_ms))
                case _:
                    pass  # nothing of the present map is missing
        return events

    def _interpret(self, lines: Iterable[bytes], out: list[GameEvent], received_ms: int | None = None) -> None:
        read, interpret, clock = self.lines.read, self.interpreter.read, self.clock
        for raw in lines:
            self.lines_read += 1
            log_ms, line = read(raw)
            if log_ms is None or type(line) is Unknown:
                self.lines_unknown += 1
                continue
            if received_ms is not None and not clock.is_anchored:
                clock.anchor(log_ms, received_ms)
            interpret(log_ms + clock.offset_ms, line, out)

    def _fold(self, events: list[GameEvent], now_ms: int | None) -> Reading:
        effects: list[Effect] = []
        match, timeline = self.match, self.timeline
        if not self.is_configured:
            events = [event for event in events if type(event) in PRESENCE_EVENTS]
        for event in events:
            effects += match.apply(event, event.at_ms if now_ms is None else now_ms)
            if type(event) in TOLD:
                timeline.follow(event, match)
        timeline.look(match)
        return Reading(events, effects)

    def _player_named(self, name: str) -> str:
        named = [player_id for player_id, seat in self.match.presence.connected.items() if seat.name == name]
        return named[0] if len(named) == 1 else ""


def _fresh_flow(settings: GameSettings, before: MapFlow) -> MapFlow:
    """The flow of a server on which nothing that was played so far counts."""
    flow = MapFlow.of(settings)
    flow.sides, flow.side_names, flow.is_warmup = before.sides, before.side_names, before.is_warmup
    flow.phase, flow.map_name, flow.awaits_start = MapPhase.WARMUP, before.map_name, True
    return flow
