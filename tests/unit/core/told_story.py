"""A match that is told as it happens: the story of `match_builder` with its timeline."""

from __future__ import annotations

from typing import TypeVar

from matchpod.core import events as ev
from matchpod.core.effects import Effect
from matchpod.core.model import GameSettings, SeriesFormat, Side, Team
from matchpod.core.timeline import Timeline
from matchpod.core.timeline_items import Item, TimelineItem

from .match_builder import ANN, BEN, Story, duel

I = TypeVar("I", bound=Item)  # noqa: E741 - an item


class ToldStory(Story):
    """Keeps every item by map, as a caller would."""

    def __init__(self, settings: GameSettings) -> None:
        super().__init__(settings)
        self.timeline = Timeline()
        self.maps: dict[int, list[TimelineItem]] = {}

    def tell(self, event: ev.GameEvent) -> list[Effect]:
        effects = super().tell(event)
        self.timeline.follow(event, self.match)
        self._take()
        return effects

    def wait(self, seconds: float) -> list[Effect]:
        effects = super().wait(seconds)
        self.look()
        return effects

    def look(self) -> None:
        self.timeline.look(self.match)
        self._take()

    def of(self, kind: type[I], map_number: int = 1) -> list[I]:
        """The items of a kind on a map."""
        return [item for item in self.maps.get(map_number, []) if isinstance(item, kind)]

    def types(self, map_number: int = 1) -> list[str]:
        """The types of all items of a map, in order."""
        return [str(item.__struct_config__.tag) for item in self.maps.get(map_number, [])]

    def start_round(self, number: int = 1) -> None:
        self.tell(ev.RoundStarted(self.now_ms, number, (ANN,), (BEN,), Side.CT))

    def decide(self, number: int = 1, team1: int = 1, team2: int = 0) -> None:
        reason = ev.RoundEndReason.CTS_WIN
        self.tell(ev.RoundDecided(self.now_ms, number, Team.TEAM1, Side.CT, reason, team1, team2))

    def kill(self, killer: str = ANN, victim: str = BEN) -> None:
        self.tell(ev.Kill(self.now_ms, killer, victim, "ak47", True, is_headshot=True, distance=512.5))

    def chat(self, player: str = ANN, text: str = "hello") -> None:
        self.tell(ev.ChatSaid(self.now_ms, player, f"name of {player[-1]}", False, text))

    def _take(self) -> None:
        for told in self.timeline.take():
            self.maps.setdefault(told.map_number, []).append(told.item)


def told_duel(series_format: SeriesFormat = SeriesFormat.BO1) -> ToldStory:
    """Ann and Ben play their first map."""
    story = ToldStory(duel(series_format))
    story.join(ANN, BEN)
    story.live()
    return story


def seqs(story: ToldStory, map_number: int = 1) -> list[int]:
    return [item.seq for item in story.maps.get(map_number, [])]
