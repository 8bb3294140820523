"""Extend the match driver with the timeline of the match."""

from __future__ import annotations

from typing import Self, TypeVar

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import Effect
from matchpod.core.model import GameSettings, SeriesFormat
from matchpod.core.views.timeline import Timeline
from matchpod.core.views.timeline_items import TimelineItem, TimelineItemBase
from tests.unit.core.match_driver import ANN, BEN, MatchDriver, duel, name_of

I = TypeVar("I", bound=TimelineItemBase)  # noqa: E741 - an item type


class TimelineDriver(MatchDriver):
    def __init__(self, settings: GameSettings) -> None:
        super().__init__(settings)
        self.timeline = Timeline()
        self.maps: dict[int, list[TimelineItem]] = {}

    def apply_one(self, event: ev.GameEvent) -> list[Effect]:
        effects = super().apply_one(event)
        self.timeline.apply(event, self.match)
        self._collect()
        return effects

    def wait(self, seconds: float) -> list[Effect]:
        effects = super().wait(seconds)
        self.add_map_ends()
        return effects

    def add_map_ends(self) -> Self:
        self.timeline.add_map_ends(self.match)
        self._collect()
        return self

    def of(self, kind: type[I], map_number: int = 1) -> list[I]:
        return [item for item in self.maps.get(map_number, []) if isinstance(item, kind)]

    def types(self, map_number: int = 1) -> list[str]:
        return [str(item.__struct_config__.tag) for item in self.maps.get(map_number, [])]

    def start_round(self, number: int = 1) -> Self:
        return self.apply(ev.RoundStarted(self.now_ms, number, (ANN,), (BEN,), Side.CT))

    def decide(self, number: int = 1, team1: int = 1, team2: int = 0) -> Self:
        reason = RoundEndReason.CTS_WIN
        return self.apply(ev.RoundDecided(self.now_ms, number, Team.TEAM1, Side.CT, reason, team1, team2))

    def kill(self, killer: str = ANN, victim: str = BEN) -> Self:
        return self.apply(ev.Kill(self.now_ms, killer, victim, "ak47", True, is_headshot=True, distance=512.5))

    def chat(self, player: str = ANN, text: str = "hello") -> Self:
        return self.apply(ev.ChatMessage(self.now_ms, player, name_of(player), False, text))

    def _collect(self) -> None:
        for pending in self.timeline.drain():
            self.maps.setdefault(pending.map_number, []).append(pending.item)


def timeline_duel(series_format: SeriesFormat = SeriesFormat.BO1) -> TimelineDriver:
    """A match in which Ann and Ben play their first map."""
    return TimelineDriver(duel(series_format)).join(ANN, BEN).live()


def seqs(driver: TimelineDriver, map_number: int = 1) -> list[int]:
    return [item.seq for item in driver.maps.get(map_number, [])]
