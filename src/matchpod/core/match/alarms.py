"""Determine which alarms of a match are set, and when each is due. `match` defines what happens when an alarm fires."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.state import MatchState
from matchpod.core.match.timers import to_ms

SERIES_END_GRACE_MS = 20_000
"""Grace period in ms in which missing log lines and plugin reports may still arrive. It begins when the plugin reports
the end of the series, or when the series is over but a map has an unknown winner. Not shortened in accelerated games,
because network delays stay the same."""


START_FACTOR = 2
"""A match without automatic start is canceled if play does not begin within this many times the time to join, after all
players have entered."""


class Alarm(StrEnum):
    """The kinds of alarms of a match. Their durations are in `timers`."""

    ACTION = "action"
    ALL_LEFT = "all_left"
    ASK_AGAIN = "ask_again"
    IDLE = "idle"
    JOIN = "join"
    MAX_DURATION = "max_duration"
    NOT_READY = "not_ready"
    READY = "ready"
    SERIES_OVER = "series_over"
    TIME_UP = "time_up"


class MatchAlarms(MatchState, kw_only=True):
    """The state of a match, extended by the alarms that follow from it."""

    def _ready_at_ms(self) -> int | None:
        if not self.settings.auto_start or not self._is_before_a_map():
            return None
        complete_ms = self.presence.complete_since_ms()
        if complete_ms is None or not self.settings.match_type.has_series or self.presence.is_everyone_on_a_side():
            return complete_ms
        return complete_ms + to_ms(self.timers.team_choice_s)

    def _is_before_a_map(self) -> bool:
        return self.phase in (MatchPhase.WARMUP, MatchPhase.BETWEEN_MAPS) and not self._are_all_maps_over()

    def _awaits_start(self) -> bool:
        """True if automatic start is off, all players have entered, and the next map waits to be started.

        Without a roster, one connected player is enough.
        """
        presence = self.presence
        if self.settings.auto_start or presence.is_map_over or not self._is_before_a_map():
            return False
        return bool(presence.connected) if self.roster.is_open else presence.complete_since_ms() is not None

    def _not_ready_ms(self) -> int | None:
        """Return the deadline for the players or an action to start play; None if the match does not wait for that.

        It is never earlier than one load time after the last awaited player entered.
        """
        if self.start_awaited_ms is None or not self._awaits_start():
            return None
        end_ms = self.start_awaited_ms + to_ms(START_FACTOR * self.timers.join_s)
        complete_ms = self.presence.complete_since_ms()
        return end_ms if complete_ms is None else max(end_ms, complete_ms + to_ms(self.timers.client_load_s))

    def next_deadline_ms(self) -> int | None:
        """Return the time of the earliest alarm, when `tick` must be called; None if the match is over."""
        return None if self.phase is MatchPhase.OVER else min(self.alarms())[0]

    def alarms(self) -> Iterator[tuple[int, Alarm]]:
        """Yield the due time and the kind of each alarm that is set."""
        timers, minutes = self.timers, self.settings.deathmatch_minutes
        since_ms = self._given_at_ms
        # A deathmatch whose requested length exceeds the maximum duration is still played in full.
        requested_s = timers.join_s + (minutes or 0) * timers.dm_minute_s + timers.dm_end_margin_s
        yield since_ms + to_ms(max(timers.max_duration_s, requested_s)), Alarm.MAX_DURATION
        join_ms = self.join_deadline_ms()
        if join_ms is not None and not (self.presence.awaits_list and self._first_joining_since_ms() is None):
            yield join_ms, Alarm.JOIN
        if self.presence.empty_since_ms is not None:
            yield self._empty_alarm(self.presence.empty_since_ms)
        if self.asked_at_ms is not None:
            asked_ms = max(self.asked_at_ms, self._demo_end_ms())
            yield asked_ms + to_ms(timers.ask_again_s), Alarm.ASK_AGAIN
        ready_at_ms = self._ready_at_ms()
        if ready_at_ms is not None:
            yield ready_at_ms, Alarm.READY
        not_ready_ms = self._not_ready_ms()
        if not_ready_ms is not None:
            yield not_ready_ms, Alarm.NOT_READY
        if self.reported.over_since_ms is not None:
            yield self.reported.over_since_ms + SERIES_END_GRACE_MS, Alarm.SERIES_OVER
        if self.open_actions:
            yield min(self.actions[action_id].until_ms for action_id in self.open_actions), Alarm.ACTION
        if self.phase is MatchPhase.LIVE and self.live_at_ms is not None and minutes is not None:
            lasts_s = minutes * timers.dm_minute_s + timers.dm_end_margin_s
            yield self.live_at_ms + to_ms(lasts_s), Alarm.TIME_UP

    def _joining_since_ms(self) -> int | None:
        """Return the time at which the time to join began; None if it is not running."""
        first_ms = self._first_joining_since_ms()
        return self._returning_since_ms() if first_ms is None else first_ms

    def _returning_since_ms(self) -> int | None:
        """Return since when the match has waited for players who left or are loading; None if it is not waiting."""
        if self.roster_broken_ms is not None or not self._awaits_roster():
            return self.roster_broken_ms
        return self.presence.loading_since_ms()

    def join_deadline_ms(self) -> int | None:
        """Return the end of the time to join; None if it is not running. Lost log lines may postpone the alarm."""
        first_ms = self._first_joining_since_ms()
        return self._return_ms() if first_ms is None else self._join_end_ms(first_ms)

    def _join_end_ms(self, since_ms: int) -> int:
        return since_ms + to_ms(self.timers.join_s) + self.extra_join_ms + self._demo_ms()

    @property
    def _given_at_ms(self) -> int:
        """When the server of the match was allocated; the time of the match's creation if this is not recorded."""
        return self.created_at_ms if self.allocated_at_ms is None else self.allocated_at_ms

    def _first_joining_since_ms(self) -> int | None:
        """Return the start of the first time to join; None once all listed players have connected or a map was live."""
        if not self.presence.ever_connected:
            return self._given_at_ms if self.was_pending else self.created_at_ms
        is_first = self.first_live_at_ms is None and self.presence.missing()
        return self._given_at_ms if is_first else None

    def _return_ms(self) -> int | None:
        """Return the deadline for missing players to return and loading players to enter; None if none is awaited."""
        presence, since_ms = self.presence, self._returning_since_ms()
        if since_ms is None:
            return None
        end_ms, load_ms = self._join_end_ms(since_ms), to_ms(self.timers.client_load_s)
        if self.roster_broken_ms is not None:
            end_ms = presence.loaded_by_ms(self._after_first_change(end_ms), load_ms)
        # After lost lines, the console's list of players is reliable only once the load time has passed.
        return end_ms if presence.doubt_since_ms is None else max(end_ms, presence.doubt_since_ms + load_ms)

    def _awaits_roster(self) -> bool:
        """True if a map waits to start, and every awaited player has connected at least once."""
        return self.phase in (MatchPhase.WARMUP, MatchPhase.BETWEEN_MAPS) and not self.presence.missing()

    def _empty_alarm(self, since_ms: int) -> tuple[int, Alarm]:
        timers, was_live = self.timers, self.first_live_at_ms is not None
        grace_s = timers.empty_grace_s(was_live=was_live, is_live=self.phase is MatchPhase.LIVE)
        until_ms = since_ms + to_ms(grace_s) + self._demo_ms()
        return self._after_map_change(until_ms), Alarm.ALL_LEFT if was_live else Alarm.IDLE

    def _after_first_change(self, due_ms: int) -> int:
        """Return the deadline `due_ms`, extended so that players can return after a map change that happened before it.

        A map change after the deadline does not extend it, because the log may name a map change as the reason when a
        client crashes repeatedly.
        """
        changed_ms = self.presence.map_change_at_ms
        return due_ms if changed_ms is None or changed_ms > due_ms else self._after_map_change(due_ms)

    def _after_map_change(self, due_ms: int) -> int:
        """Return the deadline `due_ms`, extended so that players can return after the latest map change."""
        changed_ms = self.presence.map_change_at_ms
        grace_ms = to_ms(self.timers.map_change_grace_s) + self._demo_ms()
        return due_ms if changed_ms is None else max(due_ms, changed_ms + grace_ms)

    def _demo_ms(self) -> int:
        """Return by how much timeouts are extended from the end of a map until the next map loads; 0 at other times."""
        return to_ms(self.timers.demo_s) if self.presence.is_map_over else 0

    def _demo_end_ms(self) -> int:
        """Return the time at which the demo of the map that has just ended is complete; 0 if no demo is awaited."""
        ended_ms, demo_ms = self.presence.map_change_at_ms, self._demo_ms()
        return 0 if ended_ms is None or not demo_ms else ended_ms + demo_ms
