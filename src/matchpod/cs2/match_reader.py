"""Turn log posts, plugin reports and log files into the events and effects of one match.

A reader is plain data: it can be stored at any point, loaded and continued. The same bytes give the same match, however
they are split into posts, and in whatever order posts arrive within a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from cs2_protocol.game import PlayerId, is_human
from cs2_protocol.log_batches import Gap, LogCursor, LogNotice, LogPost, MapLoad, NewLines, Restarted, Unfinished
from cs2_protocol.log_clock import LogClock
from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_lines import LoadingMap, Unknown
from cs2_protocol.matchzy import read_report
from cs2_protocol.post_order import HeldPosts
from matchpod.core.effects import CancelReason, Effect
from matchpod.core.events import (
    PRESENCE_EVENTS,
    CheatSuspected,
    GameEvent,
    LineupShrunk,
    LogGap,
    PlayersSeen,
    ServerRestarted,
)
from matchpod.core.match.actions import ActionAnswer, ActionRequest, ActionType, Obstacle
from matchpod.core.match.detail_limits import max_items
from matchpod.core.match.match import Match
from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.played_map import is_same_map
from matchpod.core.match.reported_shots import ReportedShots
from matchpod.core.match.timers import Timers, to_ms
from matchpod.core.model import GameSettings, MapsWon
from matchpod.core.views.timeline import TIMELINE_EVENTS, Timeline
from matchpod.cs2.anticheat_reports import PluginDetection
from matchpod.cs2.interpreter import Interpreter
from matchpod.cs2.map_flow import MapFlow, MapPhase
from matchpod.cs2.plugin_facts import PluginFacts, series_events
from matchpod.cs2.shots_report import ShotsReport

BREAK_S = 25
"""Approximate time in seconds that the teams need to change sides, including the end of the previous round."""

MAX_WAITING_REPORTS = 100
"""Maximum number of reports that wait for held log posts, for at most 1.5 s. Further reports do not wait."""

LAST_MINUTE_MS = 60_000
"""Time in ms before the time limit of a deathmatch; from then on, the map may end."""

_BREAK = Obstacle(text="The plugin restores no round while the teams change sides.", retry_after_s=BREAK_S)


class ReadResult(msgspec.Struct):
    """The events that were found in an input, and the resulting effects."""

    events: list[GameEvent] = []
    effects: list[Effect] = []


class WaitingReport(msgspec.Struct, frozen=True):
    """A report of the match plugin. It waits for held log posts that were received before it."""

    body: bytes
    received_ms: int


class MatchReader(msgspec.Struct, kw_only=True):
    """Reads everything that the server of one match sends."""

    match: Match
    interpreter: Interpreter
    timeline: Timeline
    """The timeline has no default: a stored state without it must be rebuilt, because its numbering would restart."""
    cursor: LogCursor = msgspec.field(default_factory=LogCursor)
    held: HeldPosts = msgspec.field(default_factory=HeldPosts)
    waiting_reports: list[WaitingReport] = []
    clock: LogClock = msgspec.field(default_factory=LogClock)
    lines: LineReader = msgspec.field(default_factory=LineReader)
    plugin: PluginFacts = msgspec.field(default_factory=PluginFacts)
    is_configured: bool = True
    """False during the server's setup, when only presence events count."""
    lines_read: int = 0
    lines_unknown: int = 0
    shots: ReportedShots = msgspec.field(default_factory=ReportedShots)
    skipped_ms: int = 0
    """Total time in ms that timeouts do not count, such as outages; negative if our clock was set back."""

    @classmethod
    def create(cls, settings: GameSettings, created_at_ms: int, timers: Timers | None = None) -> MatchReader:
        """Return a reader for a server that has not sent anything yet."""
        match = Match.create(settings, created_at_ms, timers)
        return cls(match=match, interpreter=Interpreter.of(settings), timeline=Timeline(max_items=max_items(settings)))

    def read_post(self, post: LogPost) -> ReadResult:
        """Apply the new lines of a log post, or hold the post if earlier posts are missing."""
        if not self.held.posts and not self.cursor.is_ahead(post):
            return self._read_next(post, post.received_ms)
        self.held.posts.append(post)
        return self.read_held(post.received_ms)

    def read_held(self, now_ms: int | None) -> ReadResult:
        """Apply those held posts that need not wait any longer, or all held posts if `now_ms` is None."""
        whole = ReadResult([], [])
        while (post := self.held.pop(self.cursor, now_ms)) is not None:
            read_ms = post.received_ms if now_ms is None else now_ms
            for reading in (self._read_next(post, read_ms), *self._read_waiting_reports(read_ms)):
                whole.events += reading.events
                whole.effects += reading.effects
        return whole

    def _read_waiting_reports(self, now_ms: int) -> Iterator[ReadResult]:
        """Apply the waiting reports that were received before all posts that are still held."""
        while self.waiting_reports:
            since_ms = self.held.since_ms
            if since_ms is not None and since_ms <= self.waiting_reports[0].received_ms:
                return
            yield self._apply_report(self.waiting_reports.pop(0).body, now_ms)

    def read_file(self, lines: Iterable[bytes]) -> ReadResult:
        """Apply the lines of a log file. Its timestamps are the only clock."""
        events: list[GameEvent] = []
        self._interpret(lines, events)
        return self._fold(events, None)

    def read_report(self, body: bytes, received_ms: int) -> ReadResult:
        """Apply a report of the match plugin, after the log posts that were received before it.

        Otherwise the events of these posts, such as a restored round, would seem to be newer than the report.
        """
        if self.held.posts and len(self.waiting_reports) < MAX_WAITING_REPORTS:
            self.waiting_reports.append(WaitingReport(body, received_ms))
            return ReadResult([], [])
        return self._apply_report(body, received_ms)

    def _apply_report(self, body: bytes, received_ms: int) -> ReadResult:
        report = read_report(body)
        current = self.match.current_map
        # Event times are on the server's clock, and the clock of a simulated server may run faster than ours.
        at_ms = current.last_event_at_ms or self._event_ms(received_ms)
        flow, given = self.interpreter.flow, self.match.settings.maps_won
        # The plugin does not know `mapsWon`, so the series winner that it reports may not have won the last map.
        maps_won = sum(self.match.series_score) if given == MapsWon() else None
        events = self.plugin.read(report, at_ms, flow, map_number=current.number, maps_won=maps_won)
        events += series_events(report, at_ms)
        self.interpreter.flow.stamp_end_report(self.match_ms(received_ms))
        return self._fold(events, received_ms)

    def read_detection(self, found: PluginDetection, received_ms: int) -> ReadResult:
        """Apply a detection of an anti-cheat plugin."""
        at_ms = self._event_ms(received_ms)
        suspected = CheatSuspected(at_ms, found.player_id, found.kind, found.reason, found.weapon, found.name)
        return self._fold([suspected], received_ms)

    def read_shots(self, report: ShotsReport, received_ms: int) -> ReadResult:
        """Apply a plugin's report of the shots that it counted."""
        counts = {
            counted.round_number: shots for counted in report.rounds if (shots := counted.by_player()) is not None
        }
        events = self.shots.read(
            self.match.maps,
            counts,
            at_ms=received_ms,
            map_number=report.map_number,
            sequence=report.sequence,
            is_final=report.final,
        )
        return self._fold([*events], received_ms)

    def read_presence(self, names: dict[PlayerId, str], received_ms: int) -> ReadResult:
        """Apply the console's list of connected players, which is polled after log lines were lost."""
        load_ms = to_ms(self.match.timers.client_load_s)
        at_ms = self._event_ms(received_ms)
        reading = self._fold([PlayersSeen(at_ms, names, load_ms)], received_ms)
        sides, connected = self.interpreter.flow.sides, self.match.presence.connected
        gone = [player for player in sides.player_sides if is_human(player) and player not in connected]
        for player_id in gone:
            sides.set_side(player_id, None)  # the line about their disconnect was lost
        reading.events += self._fold([LineupShrunk(at_ms, player_id) for player_id in gone], received_ms).events
        return reading

    def obstacle(self, action_type: ActionType) -> Obstacle | None:
        """Return why no action of this type is possible now; None if such an action may be possible."""
        found = self.match.obstacle(action_type)
        return found or (_BREAK if action_type is ActionType.RESTORE and self._is_break() else None)

    def obstacle_to(self, action: ActionRequest) -> Obstacle | None:
        """Return why this action is not possible now; None if it is possible."""
        return self.obstacle(action.type) or self.match.obstacle_to(action)

    def _is_break(self) -> bool:
        played, flow = self.match.current_map, self.interpreter.flow
        is_between_rounds = played.round_number is None and not flow.is_freeze_time
        return is_between_rounds and flow.end_rules.is_break_after((played.team1_score, played.team2_score))

    def request_action(self, action: ActionRequest, received_ms: int) -> ReadResult:
        """Apply an action that a person requested."""
        effects = self.match.request_action(action, self.match_ms(received_ms))
        return self._after_action(effects, received_ms)

    def answer_action(self, answer: ActionAnswer, received_ms: int) -> ReadResult:
        """Apply the server's answer to an action."""
        effects = self.match.answer_action(answer, self.match_ms(received_ms))
        return self._after_action(effects, received_ms)

    def _after_action(self, effects: list[Effect], received_ms: int) -> ReadResult:
        self._add_late_items(received_ms)
        return ReadResult([], effects)

    def _add_late_items(self, now_ms: int) -> None:
        """Add items for changes without an event: actions, which may also change the roster, and ends of maps."""
        if len(self.match.action_changes) > self.timeline.actions:
            self.interpreter.flow.sides.follow(self.match.roster)
            self.timeline.people.clear()
            self.timeline.add_actions(self.match, self._event_ms(now_ms))
        self.timeline.add_map_ends(self.match)

    def lose_entry(self, body: bytes, received_ms: int) -> ReadResult:
        """Skip an input that cannot be applied, and record a log gap instead. Held posts and reports are discarded too.

        Held posts are discarded because the error may come from a held post that was read together with this input.
        """
        lost = len(body) + sum(len(post.body) for post in self.held.posts)
        self.held.posts.clear()
        self.waiting_reports.clear()
        if not lost:
            return ReadResult([], [])
        at_ms = self._event_ms(received_ms)
        gap = LogGap(at_ms, lost, self.interpreter.flow.is_freeze_time)
        self.interpreter.on_lost_lines(at_ms, lost)
        return self._fold([gap], received_ms)

    def mark_resumed(self, received_ms: int) -> None:
        """Record that log lines and commands may have been lost, and that our clock may have been set meanwhile."""
        self.match.resume(self.match_ms(received_ms))
        self.clock.is_ours_in_doubt = True

    def mark_setup(self, *, is_done: bool) -> None:
        """Record the start or end of server setup. Play during setup does not count, because it has other settings."""
        if is_done and not self.is_configured:
            self.interpreter.flow = _flow_after_setup(self.match.settings, self.interpreter.flow)
        self.is_configured = is_done

    def tick(self, now_ms: int) -> ReadResult:
        """Read posts that were held long enough; else accept an overdue map end, and fire the earliest alarm if due."""
        held_until_ms = self.held.until_ms
        if held_until_ms is not None and held_until_ms <= now_ms:
            return self.read_held(now_ms)
        result = self.accept_unconfirmed_end(now_ms)
        result.effects += self.match.tick(self.match_ms(now_ms))
        self._add_late_items(now_ms)
        return result

    def accept_unconfirmed_end(self, now_ms: int) -> ReadResult:
        """Accept an end of the map that only one source reported, if the deadline for a second source has passed."""
        events: list[GameEvent] = []
        self.interpreter.flow.accept_unconfirmed_end(self.match_ms(now_ms), events)
        return self._fold(events, now_ms)

    def end_series(self, now_ms: int) -> ReadResult:
        """End the series if its result can be determined, after the server has stopped sending."""
        effects = self.match.end_series(self.match_ms(now_ms))
        self._add_late_items(now_ms)
        return ReadResult([], effects)

    def cancel(self, reason: CancelReason, now_ms: int) -> None:
        """End the match without a result, for a reason that is not in its log."""
        self.match.cancel(reason, self.match_ms(now_ms))
        self._add_late_items(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return the next time when `tick` must be called; None if there is none.

        A timeout that was due after held posts were received is not returned until these posts have been read.
        """
        deadlines = [self.match.next_deadline_ms(), self.interpreter.flow.next_deadline_ms()]
        due_ms = min((at_ms + self.skipped_ms for at_ms in deadlines if at_ms is not None), default=None)
        held_since_ms = self.held.since_ms
        is_first = due_ms is not None and (held_since_ms is None or due_ms <= held_since_ms)
        return due_ms if is_first else self.held.until_ms

    @property
    def may_map_end(self) -> bool:
        """False only if a map is live and cannot end in the current round."""
        played, settings = self.match.current_map, self.match.settings
        if self.match.phase is not MatchPhase.LIVE or played.is_round_unknown or played.has_final_score:
            return True
        if played.is_scored:
            return self.may_round_end_map
        minutes, began_ms, now_ms = settings.deathmatch_minutes, played.started_at_ms, played.last_event_at_ms
        if minutes is None or began_ms is None or now_ms is None:
            return True
        return now_ms >= began_ms + to_ms(minutes * 60) - LAST_MINUTE_MS

    @property
    def may_round_end_map(self) -> bool:
        """True if a map is live, other than in a deathmatch, and may end with the current round."""
        match, played = self.match, self.match.current_map
        is_scored = match.phase is MatchPhase.LIVE and played.is_scored
        return is_scored and self.interpreter.flow.end_rules.may_end((played.team1_score, played.team2_score))

    def match_ms(self, now_ms: int) -> int:
        """Convert a time on our clock to the clock of the match's timeouts."""
        return now_ms - self.skipped_ms

    def _read_next(self, post: LogPost, now_ms: int) -> ReadResult:
        new = self.cursor.read(post)
        events = self._apply_notices(new, self._event_ms(now_ms))
        self._follow_clock(post)
        self._interpret(new.lines, events, received_ms=post.received_ms)
        self.interpreter.flow.stamp_end_report(self.match_ms(now_ms))
        return self._fold(events, now_ms)

    def _follow_clock(self, post: LogPost) -> None:
        clock, times = self.clock, self.match.times
        if post.sent_ms is None:
            return
        if clock.is_real_time:
            clock.anchor(post.sent_ms, post.received_ms)
            return
        if not clock.is_anchored:  # after a restart of the server, game time continues where it was
            clock.anchor(post.sent_ms, max(post.received_ms, times.until_ms))
        times.add_post(post.sent_ms + clock.offset_ms, post.received_ms)

    def _event_ms(self, received_ms: int) -> int:
        """Return the current game time as the time of an event that is not in the log."""
        return received_ms if self.clock.is_real_time else self.match.times.until_ms or received_ms

    def _apply_notices(self, new: NewLines, at_ms: int) -> list[GameEvent]:
        events: list[GameEvent] = []
        loaded: str | None = None
        for notice in self._with_unseen_gap(new):
            match notice:
                case MapLoad(game_map=name):
                    loaded = name
                case Gap(missing_bytes=lost) | Unfinished(dropped_bytes=lost):
                    events.append(LogGap(at_ms, lost, self.interpreter.flow.is_freeze_time))
                    if loaded and isinstance(notice, Gap):  # the line about the map load is among the lost lines
                        load_ms = self.match.current_map.last_event_at_ms or at_ms
                        self.interpreter.flow.on_map_loading(load_ms, LoadingMap(loaded), events)
                    self.interpreter.on_lost_lines(at_ms, lost)
                case Restarted():
                    self.clock = LogClock(is_real_time=self.clock.is_real_time)
                    self.interpreter.restart()
                    events.append(ServerRestarted(at_ms))
                case _:
                    pass  # no lines of the current map are missing
        return events

    def _with_unseen_gap(self, new: NewLines) -> tuple[LogNotice, ...]:
        """Return the notices. Add a gap if our log address was registered again, because earlier lines are lost."""
        match new.notices:
            case (MapLoad(game_map=name) as load,) if new.lines and b"Loading map " not in new.lines[0]:
                is_here = name is None or is_same_map(name, self.interpreter.flow.map_name)
                return (Gap(0),) if is_here else (load, Gap(0))
            case notices:
                return notices

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

    def _fold(self, events: list[GameEvent], now_ms: int | None) -> ReadResult:
        effects: list[Effect] = []
        match, timeline = self.match, self.timeline
        if not self.is_configured:
            events = [event for event in events if type(event) in PRESENCE_EVENTS]
        match_ms = None if now_ms is None else self.match_ms(now_ms)
        for event in events:
            effects += match.apply(event, event.at_ms if match_ms is None else match_ms)
            if match.action_changes and len(match.action_changes) > timeline.actions:
                timeline.add_actions(match, event.at_ms)
            if type(event) in TIMELINE_EVENTS:
                timeline.apply(event, match)
        timeline.add_map_ends(match)
        return ReadResult(events, effects)


def _flow_after_setup(settings: GameSettings, before: MapFlow) -> MapFlow:
    """Return a flow that keeps sides and map, but discards play during setup."""
    flow = MapFlow.of(settings)
    flow.sides, flow.side_names, flow.is_warmup = before.sides, before.side_names, before.is_warmup
    flow.phase, flow.map_name, flow.awaits_start = MapPhase.WARMUP, before.map_name, True
    return flow
