"""Hold the state of a match, with properties such as its current map, its score and its winner.

The rules that change the state are in `match`, the alarms that trigger them in `alarms`.
"""

from __future__ import annotations

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.anticheat.detection import Detection
from matchpod.core.anticheat.detectors import Detectors
from matchpod.core.match.actions import ActionChange, ActionRecord
from matchpod.core.match.game_times import GameTimes
from matchpod.core.match.knife_round import KnifeRound
from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.played_map import PlayedMap, unknown_maps, winners_of
from matchpod.core.match.presence import Presence
from matchpod.core.match.reported_series import ReportedSeries
from matchpod.core.match.roster import Roster
from matchpod.core.match.timers import Timers
from matchpod.core.model import GameSettings, Winner
from matchpod.core.outcome import Outcome


class MatchState(msgspec.Struct, kw_only=True):
    """The complete state of a match, as snapshots contain it.

    `maps` ends with the current map: the first map is in it from the start, a later map once it goes live.
    `asked_at_ms` is when the last StartPlay or LoadMap was requested; None once the server has carried it out.
    `roster_broken_ms` is when a listed player was first absent although all had joined, while no map is live; None once
    all have entered or play is requested. `is_start_ordered` is True if a person ordered the next map to begin without
    the missing players. `start_awaited_ms` is when the match began to wait for its players, who are all there, to start
    the next map; None once that map is live. `disturbed_ms` is when players may last have been unable to
    join or to be logged as joined, because lines were lost or the server was silent or replaced. `extra_join_ms` is the
    time that actions added to the current time to join. `action_changes` has every state of every action, in order;
    `open_actions` has the actions that are neither done nor failed.
    """

    settings: GameSettings
    created_at_ms: int
    presence: Presence
    maps: list[PlayedMap]
    watch: Detectors
    reported: ReportedSeries
    timers: Timers = Timers()
    phase: MatchPhase = MatchPhase.WARMUP
    allocated_at_ms: int | None = None
    was_pending: bool = False
    first_live_at_ms: int | None = None
    live_at_ms: int | None = None
    asked_at_ms: int | None = None
    roster_broken_ms: int | None = None
    is_start_ordered: bool = False
    start_awaited_ms: int | None = None
    disturbed_ms: int | None = None
    detections: list[Detection] = msgspec.field(default_factory=list)
    outcome: Outcome | None = None
    times: GameTimes = msgspec.field(default_factory=GameTimes)
    knife: KnifeRound = msgspec.field(default_factory=KnifeRound)
    extra_join_ms: int = 0
    actions: dict[str, ActionRecord] = msgspec.field(default_factory=dict)
    open_actions: list[str] = msgspec.field(default_factory=list)
    action_changes: list[ActionChange] = msgspec.field(default_factory=list)

    @property
    def current_map(self) -> PlayedMap:
        """The current or most recent map."""
        return self.maps[-1]

    @property
    def roster(self) -> Roster:
        """The people of the match and their current roles."""
        return self.presence.roster

    @property
    def is_plugin_list_outdated(self) -> bool:
        """True if the roster differs from the one that was sent to the match plugin at creation."""
        return self.settings.uses_plugin and self.roster.roles != Roster.of(self.settings).roles

    @property
    def map_number(self) -> int:
        """The number of the current map; between maps, that of the next map; after the match, that of the last map."""
        has_next = self.current_map.is_finished and self.phase is not MatchPhase.OVER
        return self.current_map.number + has_next

    @property
    def series_score(self) -> tuple[int, int]:
        """The number of maps won by each team, including maps that count as won before the series.

        If a finished match has a map with an unknown winner, this is the score that the plugin reported, if any.
        """
        uses_report = self.outcome is not None and self.outcome.is_finished and bool(unknown_maps(self.maps))
        return (self.reported.score if uses_report else None) or self.reported.rules.score(winners_of(self.maps))

    @property
    def winner(self) -> Winner | None:
        """The winner of the match; None while undecided, if it was canceled, and in a deathmatch."""
        if self.outcome is not None and self.outcome.forfeited_to is not None:
            return Winner(self.outcome.forfeited_to)
        is_over = self.outcome is not None and self.outcome.is_finished and self.current_map.is_scored
        return Winner.of(*self.series_score) if is_over and self.reported.is_winner_known(self.maps) else None

    @property
    def is_log_complete(self) -> bool | None:
        """False if log lines that count are known to be missing; None if no map has begun."""
        begun = [played for played in self.maps if played.started_at_ms is not None]
        return all(played.is_complete for played in begun) if begun else None

    def team_of(self, player_id: PlayerId) -> Team | None:
        """Return a player's team from the roster, or else from the game; None in free-for-all and if unknown."""
        team = self.roster.team_of(player_id) or self.presence.teams.get(player_id)
        return None if self.settings.is_free_for_all else team

    def _are_all_maps_over(self) -> bool:
        return self.map_number > self.settings.map_count
