"""What is known about one map of a match? Its status, names, score and the ledger of its numbers.

The score is what events say, never counted here. Only a live map takes numbers: warmup and what follows the end do
not count, except an MVP that a plugin names late. A restored backup opens a finished map again.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from matchpod.core.events import (
    ChatSaid,
    GameEvent,
    MapEnded,
    MapLive,
    MvpNamed,
    Paused,
    PlayerConnected,
    PlayerDisconnected,
    PlayerEntered,
    PlayerJoinedSide,
    PlayerRenamed,
    RoundDecided,
    RoundRestored,
    RoundStarted,
    SidesSwapped,
    Unpaused,
)
from matchpod.core.model import GameSettings, MatchType, PlayerId, Side, Winner, is_human
from matchpod.core.stats.ledger import Ledger

MAX_NAMES = 1024
"""Far more people than a server of 64 seats sees in the hours a map can last; ends growth by made-up ids."""

NamedEvent = PlayerConnected | PlayerEntered | PlayerJoinedSide | PlayerDisconnected | PlayerRenamed | ChatSaid
"""Events that tell by which name a player goes."""


class MapStatus(StrEnum):
    """How far a map has come; the values are those of the API."""

    UPCOMING = "upcoming"
    """It has not counted yet: waiting for players, or not even loaded."""
    LIVE = "live"
    """It counts."""
    FINISHED = "finished"
    """It has a final score, or another map of the series was begun after it."""
    CANCELLED = "cancelled"
    """The match ended before the map did."""


_OPEN = (MapStatus.UPCOMING, MapStatus.LIVE)


class PlayedMap(msgspec.Struct, kw_only=True):
    """One map of a match; `number` is its 1-based place in the series.

    `round_number` is the open round, `latest_round` the one begun last. `is_scored` is False where the score of the
    teams means nothing (deathmatch): the map then has neither score nor winner.
    """

    number: int
    name: str
    ledger: Ledger
    is_scored: bool = True
    status: MapStatus = MapStatus.UPCOMING
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    last_event_at_ms: int | None = None
    team1_score: int = 0
    team2_score: int = 0
    winner: Winner | None = None
    team1_name: str | None = None
    team2_name: str | None = None
    team1_side: Side | None = None
    round_number: int | None = None
    latest_round: int | None = None
    is_paused: bool = False
    names: dict[PlayerId, str] = msgspec.field(default_factory=dict)

    @classmethod
    def upcoming(cls, settings: GameSettings, number: int) -> PlayedMap:
        """The map with that number, before anything happened on it."""
        return cls(
            number=number,
            name=map_name(settings, number),
            ledger=Ledger(
                is_free_for_all=settings.is_free_for_all,
                has_respawns=settings.match_type is MatchType.DEATHMATCH,
            ),
            is_scored=settings.match_type is not MatchType.DEATHMATCH,
            team1_name=settings.team1.name if settings.team1 else None,
            team2_name=settings.team2.name if settings.team2 else None,
        )

    @property
    def is_finished(self) -> bool:
        """The map is over, whether or not its end was seen."""
        return self.status is MapStatus.FINISHED

    @property
    def duration_s(self) -> int | None:
        """Whole seconds from going live to the end; None before the end."""
        if self.started_at_ms is None or self.finished_at_ms is None:
            return None
        return max(0, self.finished_at_ms - self.started_at_ms) // 1000

    def apply(self, event: GameEvent) -> None:
        """Take in what happened; what does not count for this map is ignored."""
        if isinstance(event, NamedEvent) and self.status in _OPEN:
            self.remember_name(event.player_id, event.name)
        if not self._counts(event):
            return
        self.last_event_at_ms = max(event.at_ms, self.last_event_at_ms or event.at_ms)
        self._follow(event)
        self.ledger.apply(event)

    def hear_late(self, event: GameEvent) -> None:
        """Take in what may still be said when the match is over: the plugin's word on the MVP of the last round."""
        if isinstance(event, MvpNamed):
            self.apply(event)

    def fight(self, event: GameEvent) -> None:
        """Take in one of COMBAT_EVENTS: all but a few of a map are, and nothing but the statistics hears of them."""
        if self.status is MapStatus.LIVE:
            self.last_event_at_ms = max(event.at_ms, self.last_event_at_ms or event.at_ms)
            self.ledger.apply(event)

    def remember_name(self, player_id: PlayerId, name: str) -> None:
        """Keep the latest name of a human."""
        if is_human(player_id) and (player_id in self.names or len(self.names) < MAX_NAMES):
            self.names[player_id] = name

    def cancel(self) -> None:
        """The match ended without this map; a live one stops at the last thing the server told of it."""
        if self.status is MapStatus.LIVE:
            self.finished_at_ms = self.last_event_at_ms
        if self.status in _OPEN:
            self.status = MapStatus.CANCELLED
            self.round_number = None
            self.is_paused = False

    def end_unseen(self) -> None:
        """The map is over, but its end was lost: its score is the last that was told, its winner unknown."""
        end = MapEnded(self.last_event_at_ms or 0, self.name, self.team1_score, self.team2_score, is_complete=False)
        self.ledger.apply(end)
        self.status = MapStatus.FINISHED
        self.finished_at_ms = self.last_event_at_ms
        self.round_number = None
        self.is_paused = False

    def learn_score(self, team1: int, team2: int) -> None:
        """Somebody saw the end of a map that is unknown."""
        self._set_score(team1, team2)
        self.winner = Winner.of(team1, team2)

    def time_up(self, minutes: float) -> MapEnded:
        """The end of a map that the server did not tell: when its time was up, or when the server last spoke."""
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
                # The plugin reports over its own connection: its word on the last round may come after the end.
                return isinstance(event, RoundRestored | MvpNamed)
            case MapStatus.CANCELLED:
                return False

    def _follow(self, event: GameEvent) -> None:
        match event:
            case MapLive():
                self._go_live(event)
            case RoundStarted():
                self.round_number = self.latest_round = event.round_number
                self.team1_side = event.team1_side
            case RoundDecided():
                self.round_number = None
                self._set_score(event.team1_score, event.team2_score)
            case SidesSwapped():
                self.team1_side = event.team1_side
            case RoundRestored():
                self._restore(event)
            case Paused() | Unpaused():
                self.is_paused = isinstance(event, Paused)
            case MapEnded():
                self._end(event)
            case _:
                pass

    def _go_live(self, event: MapLive) -> None:
        self.status = MapStatus.LIVE
        self.started_at_ms = event.since_ms
        self.name = event.map_name
        # The caller's names stand; those of the log only fill in where he gave none.
        self.team1_name = self.team1_name or event.team1_name
        self.team2_name = self.team2_name or event.team2_name
        self.team1_side = event.team1_side
        self.round_number = None
        self.latest_round = event.rounds_played or None
        self.is_paused = False
        self._set_score(event.team1_score, event.team2_score)

    def _restore(self, event: RoundRestored) -> None:
        self.status = MapStatus.LIVE
        self.finished_at_ms = None
        self.winner = None
        self.round_number = None
        self.latest_round = event.rounds_kept or None
        self._set_score(event.team1_score, event.team2_score)

    def _end(self, event: MapEnded) -> None:
        self.status = MapStatus.FINISHED
        self.finished_at_ms = event.at_ms
        self.round_number = None
        self.is_paused = False
        self._set_score(event.team1_score, event.team2_score)
        if self.is_scored:
            self.winner = Winner(event.winner) if event.winner else Winner.of(event.team1_score, event.team2_score)

    def _set_score(self, team1: int, team2: int) -> None:
        if self.is_scored:
            self.team1_score, self.team2_score = team1, team2


def winners_of(maps: Sequence[PlayedMap]) -> list[Winner]:
    """The winners of the maps that are over and have a known one, in order."""
    return [played.winner for played in maps if played.is_finished and played.winner is not None]


def unknown_maps(maps: Sequence[PlayedMap]) -> list[PlayedMap]:
    """The maps that are over and whose winner nobody knows."""
    return [played for played in maps if played.is_finished and played.is_scored and played.winner is None]


def is_same_map(one: str, other: str) -> bool:
    """Two names of a map are of the same one: a workshop map is named with and without its path."""
    return one.rpartition("/")[2] == other.rpartition("/")[2]


def map_name(settings: GameSettings, number: int) -> str:
    """What the caller wants played as map `number`; a list that is too short starts over."""
    return settings.maps[(number - 1) % len(settings.maps)]
