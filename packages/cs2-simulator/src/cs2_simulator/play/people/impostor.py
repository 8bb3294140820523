"""Define a story in which players imitate the server's log lines with their names and chat messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cs2_simulator.play.arena import Arena
from cs2_simulator.play.people.crowd import Crowd, Guest
from cs2_simulator.play.people.spoof_texts import SPOOF_CHAT, SPOOF_NAMES, SPOOF_RENAMES
from cs2_simulator.play.people.stories import Story
from cs2_simulator.play.player import Player

IMPOSTORS = 3

RENAME_ROUND = 3
SPOOFS_PER_ROUND = 2
SPOOF_MS = (2_000, 30_000)

DEATHMATCH_SPOOF_MS = 10_000
"""Average milliseconds between messages that imitate log lines, in a deathmatch, which has no rounds."""


def disguise(arena: Arena, guests: Sequence[Guest]) -> None:
    """Give names that look like log lines to some guests who have not connected yet."""
    rng = arena.rng("visitors", "impostors")
    chosen = rng.sample(range(len(guests)), min(IMPOSTORS, len(guests)))
    for number, name in zip(chosen, rng.sample(SPOOF_NAMES, len(chosen)), strict=True):
        guest = guests[number]
        if guest.visits == 0:
            guest.person = replace(guest.person, name=name)


class Impostors(Story):
    """Impostors write log lines into the chat. One of them changes their name to another log line."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._texts = self.rng("texts").sample(SPOOF_CHAT, len(SPOOF_CHAT))
        self._next = 0

    def went_live(self) -> None:
        """Schedule all messages of a deathmatch, which has no rounds."""
        if self.is_deathmatch:
            self._plan_texts(len(self._texts), (DEATHMATCH_SPOOF_MS, DEATHMATCH_SPOOF_MS * len(self._texts)))

    def round_started(self, round_number: int) -> None:
        """Schedule some messages in every round, and the rename in one round."""
        if self.is_deathmatch:
            return
        self._plan_texts(SPOOFS_PER_ROUND, SPOOF_MS)
        impostors = self._impostors()
        if round_number == RENAME_ROUND and impostors:
            rng = self.rng("rename")
            player = rng.choice(impostors)
            self.call_in(rng.randint(*SPOOF_MS), partial(self._crowd.door.rename, player, rng.choice(SPOOF_RENAMES)))

    def _impostors(self) -> list[Player]:
        """Return the players whose names imitate log lines.

        If there are none, such as when the scenario was set after they connected, return all players.
        """
        players = self._crowd.arena.playing
        return [player for player in players if player.person.name in SPOOF_NAMES] or players

    def _plan_texts(self, count: int, between_ms: tuple[int, int]) -> None:
        impostors = self._impostors()
        for _ in range(count if impostors else 0):
            rng = self.rng("text", self._next)
            text = self._texts[self._next % len(self._texts)]
            self._next += 1
            self.say_in(rng.randint(*between_ms), rng.choice(impostors), text)
