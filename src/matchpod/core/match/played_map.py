"""Track one map of a match: its status, player names, score and statistics ledger.

The score is copied from events, never counted here. Only a live map updates its statistics: events in warmup and after
the end do not count, except late plugin reports of MVPs and shots. A restored backup reopens a finished map.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from cs2_protocol.game import PlayerId, Side, is_human
from matchpod.core.events import (
    GameCounted,
    GameEvent,
    LogGap,
    MapEnded,
    MapLive,
    MvpNamed,
    NamedEvent,
    Paused,
    RoundDecided,
    RoundRestored,
    RoundStarted,
    SidesSwapped,
    Unpaused,
)
from matchpod.core.match.detail_limits import max_kills
from matchpod.core.model import GameSettings, MatchType, Winner
from matchpod.core.stats.ledger import MAX_ROUND_NUMBER, Ledger, RoundPhase

MAX_NAMES = 1024
"""Maximum number of player names stored per map. Far fewer players join a server with 64 slots, but a log can contain
forged ids."""


class MapStatus(StrEnum):
    """The status of a map, with the values that the API uses."""

    UPCOMING = "upcoming"
    """Not live yet: waiting for players, or not loaded."""
    LIVE = "live"
    """Live: events count toward score and statistics."""
    FINISHED = "finished"
    """Over, with its final score, or with its last known score if the log lines about its end were lost."""
    CANCELLED = "cancelled"
    """The match was canceled before the map ended."""


_OPEN = (MapStatus.UPCOMING, MapStatus.LIVE)


class PlayedMap(msgspec.Struct, kw_only=True):
    """One map of a match; `number` is its 1-based position in the series.

    `round_number` is the round in progress (None between rounds), `latest_round` the round that started last. Both are
    None while unknown because of lost log lines. `is_scored` is False in a deathmatch, where the team score has no
    meaning: the map then has neither score nor winner.
    """

    number: int
    name: str
    """The requested name; if no map was requested, the name on the server."""
    ledger: Ledger
    is_scored: bool = True
    status: MapStatus = MapStatus.UPCOMING
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    last_event_at_ms: int | None = None
    team1_score: int = 0
    team2_score: int = 0
    winner: Winner | None = None
    played_name: str | None = None
    """The map's name on the server, which for workshop maps differs from the requested name; None until it is known."""
    team1_name: str | None = None
    """The name of team1 on the server when the map was last started."""
    team2_name: str | None = None
    team1_side: Side | None = None
    start_side: Side | None = None
    """The side on which team1 began the first round; None if the log does not show it, and in deathmatch."""
    round_number: int | None = None
    latest_round: int | None = None
    is_round_unknown: bool = False
    has_pause: bool = False
    """True if play is paused until a person ends the pause, or will be from the next freeze time on."""
    has_timeout: bool = False
    """True if a team has a tactical timeout, or will have it in the next freeze time. A timeout ends by itself."""
    has_final_score: bool = False
    """True if the last decided round ended the map by the rules of the match, and only the report of the end is
    missing."""
    names: dict[PlayerId, str] = msgspec.field(default_factory=dict)

    @classmethod
    def upcoming(cls, settings: GameSettings, number: int) -> PlayedMap:
        """Return map `number` of the series as a map that has not been played yet."""
        is_deathmatch = settings.match_type is MatchType.DEATHMATCH
        return cls(
            number=number,
            name=map_name(settings, number),
            ledger=Ledger(settings.is_free_for_all, has_respawns=is_deathmatch, max_kills=max_kills(settings)),
            is_scored=not is_deathmatch,
        )

    @property
    def is_finished(self) -> bool:
        """True if the map is over, even if the log lines about its end were lost."""
        return self.status is MapStatus.FINISHED

    @property
    def is_paused(self) -> bool:
        """True if play is paused in any way, or will be from the next freeze time on."""
        return self.has_pause or self.has_timeout

    @property
    def team_names(self) -> tuple[str | None, str | None]:
        """The names of team1 and team2 on the server; None where unknown."""
        return self.team1_name, self.team2_name

    @property
    def duration_s(self) -> int | None:
        """Duration in whole seconds from going live to the end; None before the end."""
        if self.started_at_ms is None or self.finished_at_ms is None:
            return None
        return max(0, self.finished_at_ms - self.started_at_ms) // 1000

    @property
    def is_complete(self) -> bool:
        """False if log lines that count for this map are known to be missing."""
        is_unseen = self.is_finished and self.ledger.phase is RoundPhase.BEFORE
        return self.ledger.is_complete and not is_unseen and not self.missing_rounds

    @property
    def missing_rounds(self) -> tuple[int, ...]:
        """The numbers of the rounds for which log lines are missing, as far as known; empty in a deathmatch.

        This includes rounds whose recorded winners do not add up to the score.
        """
        if not self.is_scored:
            return ()
        ledger, decided = self.ledger, self.team1_score + self.team2_score
        seen = {record.number for record in ledger.records()}
        lost = {number for number in range(1, min(decided, MAX_ROUND_NUMBER) + 1) if number not in seen}
        last = max({decided, *seen}) if self.is_finished else MAX_ROUND_NUMBER
        lost.update(ledger.rounds_against((self.team1_score, self.team2_score)))
        lost.update(number for number in (*ledger.missing_rounds, *ledger.torn_rounds) if number <= last)
        return tuple(sorted(lost))

    def apply(self, event: GameEvent) -> None:
        """Apply an event if it counts for this map. Until the map is over, player names are stored from all events."""
        if isinstance(event, NamedEvent) and self.status in _OPEN:
            self.remember_name(event.player_id, event.name)
        if not self._counts(event):
            return
        self.last_event_at_ms = max(event.at_ms, self.last_event_at_ms or event.at_ms)
        self._update(event)
        self.ledger.apply(event)

    def apply_after_end(self, event: GameEvent) -> None:
        """Apply an event after the end of the match. Only the plugin's report of the last round's MVP still counts."""
        if isinstance(event, MvpNamed):
            self.apply(event)

    def apply_combat(self, event: GameEvent) -> bool:
        """Apply one of COMBAT_EVENTS. Return True if the server has logged far more kills than the map's limit.

        This is a fast path: most events are combat events, and they affect only statistics.
        """
        if self.status is not MapStatus.LIVE:
            return False
        self.last_event_at_ms = max(event.at_ms, self.last_event_at_ms or event.at_ms)
        self.ledger.apply(event)
        return self.ledger.is_flooded

    def remember_name(self, player_id: PlayerId, name: str) -> None:
        """Store the latest name of a human player."""
        if is_human(player_id) and (player_id in self.names or len(self.names) < MAX_NAMES):
            self.names[player_id] = name

    def cancel(self) -> None:
        """Cancel the map if it is not over; a live map ends at the time of its last event."""
        if self.status in _OPEN:
            self._close(MapStatus.CANCELLED, self.last_event_at_ms)

    def end_without_result(self) -> None:
        """End a map whose end is missing from the log. It keeps its last known score, and its winner is unknown."""
        end = MapEnded(self.last_event_at_ms or 0, self.name, self.team1_score, self.team2_score, is_complete=False)
        self.ledger.apply(end)
        self._close(MapStatus.FINISHED, self.last_event_at_ms)

    def cut(self) -> None:
        """End a live map early, as after a forfeit. It keeps its score and has no winner."""
        at_ms, name = self.last_event_at_ms or 0, self.played_name or self.name
        self.apply(MapEnded(at_ms, name, self.team1_score, self.team2_score, is_winner_known=False))

    def set_result(self, team1: int, team2: int) -> None:
        """Set the final score and the winner of a map for which the log lines about the end were lost."""
        self._set_score(team1, team2)
        self.winner = Winner.of(team1, team2)

    def unreported_end(self) -> MapEnded:
        """Return an end event for a map that has reached its final score, but whose end was not reported."""
        at_ms = self.last_event_at_ms or 0
        return MapEnded(at_ms, self.played_name or self.name, self.team1_score, self.team2_score, is_complete=False)

    def time_limit_end(self, minutes: float) -> MapEnded:
        """Return an end event for a timed map, dated to the time limit or to the last event, whichever is earlier."""
        started_ms = self.started_at_ms or 0
        at_ms = min(self.last_event_at_ms or started_ms, started_ms + round(minutes * 60_000))
        return MapEnded(at_ms, self.name, self.team1_score, self.team2_score)

    def _counts(self, event: GameEvent) -> bool:
        match self.status:
            case MapStatus.UPCOMING:
                return isinstance(event, MapLive)
            case MapStatus.LIVE:
                return True
            case MapStatus.FINISHED:
                # Plugin reports use their own connection, so the last report may arrive after the map's end in the log.
                return isinstance(event, RoundRestored | MvpNamed)
            case MapStatus.CANCELLED:
                return False

    def _update(self, event: GameEvent) -> None:
        match event:
            case MapLive():
                self._go_live(event)
            case RoundStarted():
                self._start_round(event)
            case GameCounted() if self.is_round_unknown:
                self.is_round_unknown, self.latest_round = False, (event.round_number - 1) or None
            case RoundDecided():
                self.is_round_unknown = False
                self.round_number, self.latest_round = None, event.round_number
                self.has_final_score = event.is_last
                self._set_score(event.team1_score, event.team2_score)
            case LogGap():  # rounds may have ended in the lost lines; the next score shows how many
                self.is_round_unknown = self.is_scored
                self.round_number = self.latest_round = self.team1_side = None
            case SidesSwapped():
                self.team1_side = event.team1_side
                # A change of sides in round 1 means that lines were lost, and that the assumed sides were wrong.
                self.start_side = event.team1_side if self.round_number == 1 else self.start_side
            case RoundRestored():
                self._restore(event)
            case Paused() | Unpaused():
                self._apply_pause(event)
            case MapEnded():
                self._end(event)
            case _:
                pass

    def _go_live(self, event: MapLive) -> None:
        self.status = MapStatus.LIVE
        self.started_at_ms = event.since_ms
        self._set_played_name(event.map_name)
        self._set_team_names(event.team1_name, event.team2_name)
        self.team1_side, self.start_side = event.team1_side, None
        self.round_number = None
        self.latest_round = event.rounds_played or None
        self.has_pause = self.has_timeout = self.is_round_unknown = self.has_final_score = False
        self._set_score(event.team1_score, event.team2_score)

    def _apply_pause(self, event: Paused | Unpaused) -> None:
        is_on = isinstance(event, Paused)
        if event.is_timeout:
            self.has_timeout = is_on
            return
        self.has_pause = is_on
        if not (is_on or event.by):  # play has resumed
            self.has_timeout = False

    def _set_team_names(self, team1_name: str | None, team2_name: str | None) -> None:
        """Set both names if at least one is given. Names from different events are never combined."""
        if team1_name or team2_name:
            self.team1_name, self.team2_name = team1_name, team2_name

    def _start_round(self, event: RoundStarted) -> None:
        self.has_final_score = False  # play continues
        if not self.is_round_unknown:
            self.round_number = self.latest_round = event.round_number
        self.team1_side = event.team1_side if event.is_certain else None
        if event.round_number == 1 and self.is_scored:
            self.start_side = self.team1_side

    def _set_played_name(self, name: str) -> None:
        self.played_name = name or self.played_name
        self.name = self.name or name

    def _restore(self, event: RoundRestored) -> None:
        self.status = MapStatus.LIVE
        self.finished_at_ms = None
        self.winner = None
        self.is_round_unknown = self.has_final_score = False
        self.round_number = None
        self.latest_round = event.rounds_kept or None
        self._set_score(event.team1_score, event.team2_score)

    def _end(self, event: MapEnded) -> None:
        self._set_played_name(event.map_name)
        if not (self.team1_name and self.team2_name):
            self._set_team_names(event.team1_name, event.team2_name)
        self._close(MapStatus.FINISHED, event.at_ms)
        self._set_score(event.team1_score, event.team2_score)
        if self.is_scored and event.is_winner_known:
            self.winner = Winner(event.winner) if event.winner else Winner.of(event.team1_score, event.team2_score)

    def _close(self, status: MapStatus, at_ms: int | None) -> None:
        self.status = status
        self.finished_at_ms = at_ms
        self.round_number = None
        self.has_pause = self.has_timeout = False

    def _set_score(self, team1: int, team2: int) -> None:
        if self.is_scored:
            self.team1_score, self.team2_score = team1, team2


def winners_of(maps: Sequence[PlayedMap]) -> list[Winner]:
    """Return the known winners of the finished maps, in order."""
    return [played.winner for played in maps if played.is_finished and played.winner is not None]


def unknown_maps(maps: Sequence[PlayedMap]) -> list[PlayedMap]:
    """Return the finished maps whose winner is unknown."""
    return [played for played in maps if played.is_finished and played.is_scored and played.winner is None]


def is_same_map(first: str, second: str) -> bool:
    """True if both names refer to the same map. The name of a workshop map may include its path."""
    return first.rpartition("/")[2] == second.rpartition("/")[2]


def map_name(settings: GameSettings, number: int) -> str:
    """Return the requested name of map `number`. If fewer maps are listed than played, the list is repeated."""
    return settings.maps[(number - 1) % len(settings.maps)]
