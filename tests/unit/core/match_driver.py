"""Drive a match in tests with short event methods and a manual clock."""

from __future__ import annotations

from typing import Self

from cs2_protocol.game import Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import Effect
from matchpod.core.match.match import Match
from matchpod.core.match.timers import Timers
from matchpod.core.model import DmSubMode, GameSettings, MatchType, SeriesFormat, TeamRoster

ANN = "76561198000000001"
BEN = "76561198000000002"
CAT = "76561198000000003"
EVE = "76561198000000099"
"""A player who is on no roster."""

MAPS = ("de_inferno", "de_nuke", "de_mirage", "de_ancient", "de_train")
START_MS = 1_700_000_000_000


def duel(series_format: SeriesFormat = SeriesFormat.BO1) -> GameSettings:
    return GameSettings(
        match_type=MatchType.COMPETITIVE,
        maps=MAPS[: series_format.length],
        series_format=series_format,
        team1=TeamRoster("Reds", (ANN,)),
        team2=TeamRoster("Blues", (BEN,)),
    )


def open_match(match_type: MatchType = MatchType.CASUAL) -> GameSettings:
    return GameSettings(match_type=match_type, maps=MAPS[:1])


def deathmatch(*players: str, minutes: float | None = 10) -> GameSettings:
    return GameSettings(
        match_type=MatchType.DEATHMATCH,
        maps=MAPS[:1],
        players=players,
        dm_sub_mode=DmSubMode.FFA,
        dm_round_minutes=minutes,
    )


class MatchDriver:
    """A match and its clock. Methods can be chained; `effects` are those of the last call."""

    def __init__(self, settings: GameSettings, timers: Timers | None = None) -> None:
        self.match = Match.create(settings, START_MS, timers)
        self.now_ms = START_MS
        self.effects: list[Effect] = []

    def wait(self, seconds: float) -> list[Effect]:
        """Advance the clock, then tick once and return the effects."""
        self.now_ms += round(seconds * 1000)
        return self.match.tick(self.now_ms)

    def after(self, seconds: float) -> Self:
        self.effects = self.wait(seconds)
        return self

    def apply(self, *events: ev.GameEvent) -> Self:
        self.effects = [effect for event in events for effect in self.apply_one(event)]
        return self

    def apply_one(self, event: ev.GameEvent) -> list[Effect]:
        return self.match.apply(event, self.now_ms)

    def connect(self, player: str, user_id: int = 1) -> Self:
        return self.apply(ev.PlayerConnected(self.now_ms, player, name_of(player), user_id))

    def enter(self, player: str, user_id: int = 1) -> Self:
        return self.apply(ev.PlayerEntered(self.now_ms, player, name_of(player), user_id))

    def join_side(self, player: str, side: Side | None = Side.CT, team: Team | None = None) -> Self:
        return self.apply(ev.PlayerJoinedSide(self.now_ms, player, name_of(player), side, team))

    def join(self, *players: str) -> Self:
        effects: list[Effect] = []
        for player in players:
            effects += self.connect(player).effects + self.enter(player).effects + self.join_side(player).effects
        self.effects = effects
        return self

    def leave(self, *players: str, is_map_change: bool = False) -> Self:
        at_ms = self.now_ms
        return self.apply(
            *(ev.PlayerDisconnected(at_ms, player, name_of(player), "gone", is_map_change) for player in players)
        )

    def load(self, map_name: str = MAPS[0]) -> Self:
        return self.apply(ev.MapLoading(self.now_ms, map_name))

    def live(self, map_name: str = MAPS[0]) -> Self:
        return self.apply(ev.MapLive(self.now_ms, map_name, self.now_ms, Side.CT))

    def end_map(self, team1: int = 13, team2: int = 5, map_name: str = MAPS[0]) -> Self:
        return self.apply(ev.MapEnded(self.now_ms, map_name, team1, team2))

    def restore(self, rounds_kept: int = 10, team1: int = 6, team2: int = 4) -> Self:
        return self.apply(ev.RoundRestored(self.now_ms, rounds_kept, team1, team2))

    def change_map(self, map_name: str, *players: str) -> Self:
        """Disconnect all players, load the map and let the given players rejoin."""
        return self.leave(*self.match.presence.connected, is_map_change=True).load(map_name).join(*players)


def name_of(player: str) -> str:
    return f"name of {player[-1]}"


def live_duel(series_format: SeriesFormat = SeriesFormat.BO1) -> MatchDriver:
    """A match in which Ann and Ben play their first map."""
    return MatchDriver(duel(series_format)).join(ANN, BEN).live()
