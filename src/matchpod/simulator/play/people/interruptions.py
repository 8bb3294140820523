"""What holds a match up? Timeouts, a technical pause, and rounds that are played again from a backup."""

from __future__ import annotations

import re
from random import Random

from matchpod.core.model import Side
from matchpod.simulator.agenda import Script
from matchpod.simulator.play.people.crowd import Crowd
from matchpod.simulator.play.people.stories import Story

TIMEOUT_ROUNDS = {2: Side.T, 5: Side.CT}
"""In whose freeze time which side takes a timeout."""

TIMEOUT_NAMES = {Side.T: "TimeOutTs", Side.CT: "TimeOutCTs"}

TECHNICAL_ROUND = 3
TECHNICAL_MS = (20_000, 60_000)

PAUSED_BY, UNPAUSED_BY = "mp_pause_match", "mp_unpause_match"

REACTION_MS = 500
SHORT_MS = 1_000

EARLY_RESTORE = (6, 3)
"""In the freeze time of round 6 the match goes back to where 3 rounds had been played."""

ROUNDS_PAST_HALF = 2
RESTORE_TALK_MS = 2_000
RESTORE_PAUSE_MS = 10_000
"""A restored match waits, on many servers, until somebody lets it go on."""

CALLS = ("restore pls, he crashed", "admin can we restore that", "that round should not count, restore")

_ROUND_OF_FILE = re.compile(r"round(\d+)\D*$")


class Interruption(Story):
    """What interruptions share: somebody speaks for a side, and play goes on at last."""

    def say_for(self, side: Side, dice: Random, text: str) -> None:
        """Let one of a side say something, if there is anybody."""
        players = self._crowd.arena.on(side)
        if players:
            self._crowd.door.say(dice.choice(players), text)

    def go_on(self, dice: Random) -> Script[None]:
        """Both sides ask for it, as the plugin wants it; where nobody hears them the game is told itself."""
        game = self._crowd.game
        if not game.is_paused:
            return
        for side in Side:
            self.say_for(side, dice, ".unpause")
            yield SHORT_MS
        if game.is_paused:
            game.unpause(UNPAUSED_BY)


class Pauses(Interruption):
    """Each side takes a timeout, and once there is trouble with a machine."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._rounds_done: list[int] = []

    def freeze_began(self, round_number: int) -> None:
        """Timeouts and pauses begin in freeze times."""
        if self.is_deathmatch or round_number in self._rounds_done:
            return
        self._rounds_done.append(round_number)
        side = TIMEOUT_ROUNDS.get(round_number)
        if side is not None:
            self.run(self._take_timeout(side, self.dice(round_number)))
        elif round_number == TECHNICAL_ROUND:
            self.run(self._pause_technically(self.dice(round_number)))

    def _take_timeout(self, side: Side, dice: Random) -> Script[None]:
        """The game itself ends a timeout."""
        yield REACTION_MS
        self.say_for(side, dice, dice.choice(("timeout", "lets take a timeout", "tac")))
        self._crowd.game.pause(TIMEOUT_NAMES[side])

    def _pause_technically(self, dice: Random) -> Script[None]:
        game = self._crowd.game
        yield REACTION_MS
        self.say_for(dice.choice(tuple(Side)), dice, ".tech")
        if not game.is_paused:
            game.pause(PAUSED_BY)
        yield dice.randint(*TECHNICAL_MS)
        yield from self.go_on(dice)


class RoundRestore(Interruption):
    """The match goes back twice: early on, and from the second half into the first."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        half = self.max_rounds // 2
        self._restores = [EARLY_RESTORE]
        if half > 1:
            self._restores.append((half + ROUNDS_PAST_HALF, half - 1))

    def freeze_began(self, round_number: int) -> None:
        """A restore is called for between two rounds."""
        due = next((restore for restore in self._restores if restore[0] == round_number), None)
        if due is not None and not self.is_deathmatch:
            self._restores.remove(due)
            self.run(self._restore(due[1], self.dice(*due)))

    def _restore(self, rounds_played: int, dice: Random) -> Script[None]:
        game = self._crowd.game
        yield REACTION_MS
        self.say_for(dice.choice(tuple(Side)), dice, dice.choice(CALLS))
        yield RESTORE_TALK_MS
        file = next((file for file in game.backups() if _rounds_in(file) == rounds_played), None)
        if file is not None and game.restore(file):
            yield RESTORE_PAUSE_MS
            yield from self.go_on(dice)


def _rounds_in(file: str) -> int | None:
    """How many rounds had been played when a backup was written: its name ends in them."""
    found = _ROUND_OF_FILE.search(file)
    return None if found is None else int(found[1])
