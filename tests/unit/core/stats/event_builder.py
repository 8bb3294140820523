"""Build lists of events for tests; each call adds one event, a second after the previous one."""

from __future__ import annotations

from typing import Any

from cs2_protocol.game import PlayerId, RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.events import GameCount
from matchpod.core.stats.ledger import Ledger
from matchpod.core.stats.player_line import PlayerLine
from matchpod.core.stats.round_record import RoundRecord

ANNA, BEN, CARL = "1001", "1002", "1003"
XENA, YURI, ZOE = "2001", "2002", "2003"
TEAM1 = (ANNA, BEN, CARL)
TEAM2 = (XENA, YURI, ZOE)


class EventBuilder:
    """A list of events in order; `at(ms)` sets the time of the next one."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.now_ms = 0

    def at(self, ms: int) -> EventBuilder:
        self.now_ms = ms
        return self

    def add(self, kind: Any, *fields: object, **more: object) -> EventBuilder:
        self.events.append(kind(self.now_ms, *fields, **more))
        self.now_ms += 1000
        return self

    def live(self, rounds_played: int = 0) -> EventBuilder:
        return self.add(ev.MapLive, "de_inferno", 0, Side.CT, rounds_played=rounds_played)

    def start(
        self, number: int, team1: tuple[PlayerId, ...] = TEAM1, team2: tuple[PlayerId, ...] = TEAM2
    ) -> EventBuilder:
        return self.add(ev.RoundStarted, number, team1, team2, Side.CT)

    def decide(self, number: int, winner: Team | None = Team.TEAM1) -> EventBuilder:
        return self.add(ev.RoundDecided, number, winner, None, RoundEndReason.UNKNOWN, 0, 0)

    def restore(self, kept: int) -> EventBuilder:
        return self.add(ev.RoundRestored, kept, 0, 0)

    def end(self, *, is_complete: bool = True) -> EventBuilder:
        return self.add(ev.MapEnded, "de_inferno", 0, 0, is_complete)

    def hit(self, attacker: PlayerId, victim: PlayerId, damage: int, health: int, weapon: str = "ak47") -> EventBuilder:
        return self.add(ev.Damage, attacker, victim, weapon, "chest", damage, health, are_enemies(attacker, victim))

    def kill(self, killer: PlayerId, victim: PlayerId, weapon: str = "ak47", *, headshot: bool = False) -> EventBuilder:
        return self.add(ev.Kill, killer, victim, weapon, are_enemies(killer, victim), headshot)

    def die(self, player_id: PlayerId, cause: str = "world") -> EventBuilder:
        return self.add(ev.Death, player_id, cause)

    def leave(self, player_id: PlayerId) -> EventBuilder:
        return self.add(ev.PlayerGone, player_id)

    def assist(self, player_id: PlayerId, victim: PlayerId, *, flash: bool = False) -> EventBuilder:
        return self.add(ev.Assist, player_id, victim, flash, are_enemies(player_id, victim))

    def blind(self, thrower: PlayerId, victim: PlayerId, seconds: float = 1.0) -> EventBuilder:
        return self.add(ev.Blinded, victim, thrower, seconds, are_enemies(thrower, victim))

    def game_counts(self, round_number: int, *players: GameCount) -> EventBuilder:
        return self.add(ev.GameCounted, round_number, players)

    def mvp(self, round_number: int, player_id: PlayerId, mvps: int) -> EventBuilder:
        return self.add(ev.MvpNamed, round_number, player_id, mvps)

    def shots(self, round_number: int, player_id: PlayerId, fired: int, hit: int) -> EventBuilder:
        return self.add(ev.ShotsCounted, 1, round_number, {player_id: (fired, hit)})

    def ledger(self, *, is_free_for_all: bool = False) -> Ledger:
        return fold(self.events, is_free_for_all=is_free_for_all)


def live() -> EventBuilder:
    """A live map whose first round has started."""
    return EventBuilder().live().start(1)


def fold(events: list[ev.Event], *, is_free_for_all: bool = False) -> Ledger:
    ledger = Ledger(is_free_for_all)
    for event in events:
        ledger.apply(event)
    return ledger


def line_of(ledger: Ledger, player_id: PlayerId) -> PlayerLine:
    return next(line for line in ledger.lines() if line.player_id == player_id)


def round_started(team1: tuple[PlayerId, ...] = TEAM1, team2: tuple[PlayerId, ...] = TEAM2) -> ev.RoundStarted:
    return ev.RoundStarted(0, 1, team1, team2, Side.CT)


def started_record(number: int = 1, team1: tuple[PlayerId, ...] = TEAM1) -> RoundRecord:
    record = RoundRecord(number)
    record.start(round_started(team1))
    return record


def round_decided(winner: Team | None, at_ms: int = 0) -> ev.RoundDecided:
    return ev.RoundDecided(at_ms, 1, winner, None, RoundEndReason.UNKNOWN, 0, 0)


def are_enemies(first: PlayerId, second: PlayerId) -> bool:
    return (first in TEAM1) != (second in TEAM1)


def game_count(player_id: PlayerId, **columns: float) -> GameCount:
    """A row of the game's own statistics; columns not given are 0."""
    counted: dict[str, Any] = dict.fromkeys(GameCount.__struct_fields__, 0)
    return GameCount(**(counted | columns | {"player_id": player_id}))
