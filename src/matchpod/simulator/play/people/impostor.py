"""Who imitates the server in its own log? Some of the players, by their names, and by what they write all the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.people.crowd import Crowd, Guest
from matchpod.simulator.play.people.spoof_texts import SPOOF_CHAT, SPOOF_NAMES, SPOOF_RENAMES
from matchpod.simulator.play.people.stories import Story
from matchpod.simulator.play.player import Player

IMPOSTORS = 3

RENAME_ROUND = 3
SPOOFS_A_ROUND = 2
SPOOF_MS = (2_000, 30_000)

DEATHMATCH_SPOOF_MS = 10_000
"""One text each so often, where there are no rounds."""


def disguise(arena: Arena, guests: Sequence[Guest]) -> None:
    """Give some of those who come names that look like lines of the log."""
    dice = arena.dice("visitors", "impostors")
    chosen = dice.sample(range(len(guests)), min(IMPOSTORS, len(guests)))
    for number, name in zip(chosen, dice.sample(SPOOF_NAMES, len(chosen)), strict=True):
        guest = guests[number]
        if guest.visits == 0:
            guest.person = replace(guest.person, name=name)


class Impostors(Story):
    """Everybody writes lines of the log into the chat in turn, and one takes another such name."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._texts = self.dice("texts").sample(SPOOF_CHAT, len(SPOOF_CHAT))
        self._next = 0

    def went_live(self) -> None:
        """Where there are no rounds, all of it is planned now."""
        if self.is_deathmatch:
            self._plan_texts(len(self._texts), (DEATHMATCH_SPOOF_MS, DEATHMATCH_SPOOF_MS * len(self._texts)))

    def round_started(self, round_number: int) -> None:
        """Some of it in every round."""
        if self.is_deathmatch:
            return
        self._plan_texts(SPOOFS_A_ROUND, SPOOF_MS)
        impostors = self._impostors()
        if round_number == RENAME_ROUND and impostors:
            dice = self.dice("rename")
            player = dice.choice(impostors)
            self.later(dice.randint(*SPOOF_MS), partial(self._crowd.door.rename, player, dice.choice(SPOOF_RENAMES)))

    def _impostors(self) -> list[Player]:
        """Those with such a name; all who play where nobody has one, as when the story was begun too late."""
        players = self._crowd.arena.playing
        return [player for player in players if player.person.name in SPOOF_NAMES] or players

    def _plan_texts(self, count: int, between_ms: tuple[int, int]) -> None:
        impostors = self._impostors()
        for _ in range(count if impostors else 0):
            dice = self.dice("text", self._next)
            text = self._texts[self._next % len(self._texts)]
            self._next += 1
            self.say_in(dice.randint(*between_ms), dice.choice(impostors), text)
