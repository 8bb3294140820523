"""Who leaves in the middle of a match? All of them at once and for good, or one in anger who comes back."""

from __future__ import annotations

from matchpod.simulator.agenda import Script
from matchpod.simulator.play.door import BY_USER, EXITING
from matchpod.simulator.play.people.crowd import Crowd, Guest, Stage, by_rank
from matchpod.simulator.play.people.stories import Story

MIDDLE_OF_ROUND_MS = (8_000, 15_000)
"""After the freeze time: rounds last a minute, hardly ever less than this."""

ALL_LEAVE_ROUNDS = (3, 6)
ALL_LEAVE_DEATHMATCH_MS = (60_000, 120_000)
ALL_LEAVE_WITHIN_MS = 3_000

RAGE_QUIT_ROUND = 4
RAGE_QUIT_DEATHMATCH_MS = (60_000, 120_000)
ROUNDS_AWAY = 2
DEATHMATCH_AWAY_MS = 60_000
TYPING_MS = 2_000
RECONNECT_MS = 1_500

RAGE = ("im done with this team", "unplayable", "nice team. bye", "cant play like this", "lagging so hard, brb")


class Departure(Story):
    """Something happens once, in the middle of a certain round, or after a while in a deathmatch."""

    def __init__(self, crowd: Crowd, round_number: int, deathmatch_ms: tuple[int, int]) -> None:
        super().__init__(crowd)
        self._round = self.within_match(round_number)
        self._deathmatch_ms = deathmatch_ms
        self._has_begun = False

    def depart(self) -> None:
        """Let it happen."""
        raise NotImplementedError

    def went_live(self) -> None:
        """Where there are no rounds, time counts from here."""
        if self.is_deathmatch:
            self._begin(self._deathmatch_ms)

    def round_started(self, round_number: int) -> None:
        """Its round has come, or is past when people came late."""
        if round_number >= self._round and not self.is_deathmatch:
            self._begin(MIDDLE_OF_ROUND_MS)

    def _begin(self, between_ms: tuple[int, int]) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.later(self.dice("begin").randint(*between_ms), self.depart)


class AllLeave(Departure):
    """Everyone leaves within moments, and nobody comes back."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd, 0, ALL_LEAVE_DEATHMATCH_MS)
        self._round = self.within_match(self.dice("round").randint(*ALL_LEAVE_ROUNDS))

    def depart(self) -> None:
        """Send all of them off."""
        for guest in self._crowd.everyone():
            dice = self.dice("leave", guest.person.account)
            if guest.player is None:
                guest.call_off()
                guest.stage = Stage.GONE
            else:
                self._crowd.leave(guest, dice.randint(0, ALL_LEAVE_WITHIN_MS), dice.choice((BY_USER, EXITING)))


class RageQuit(Departure):
    """One says something, leaves, and is back two rounds later."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd, RAGE_QUIT_ROUND, RAGE_QUIT_DEATHMATCH_MS)
        self._quitter: Guest | None = None
        self._quit_round = 0
        self._round_number = 0

    def round_started(self, round_number: int) -> None:
        """Note in which round he quits."""
        self._round_number = round_number
        super().round_started(round_number)

    def freeze_began(self, round_number: int) -> None:
        """He has missed enough."""
        if self._quitter is not None and self._quit_round and round_number >= self._quit_round + ROUNDS_AWAY:
            self._come_back(self._quitter)

    def depart(self) -> None:
        """Choose who quits, and let him."""
        players = sorted((guest for guest in self._crowd.present() if guest is not self._crowd.stranger), key=by_rank)
        if players:
            self._quitter = self.dice("who").choice(players)
            self._quit_round = self._round_number
            self.run(self._quit(self._quitter, self.dice("words").choice(RAGE)))

    def _quit(self, guest: Guest, words: str) -> Script[None]:
        if guest.player is not None:
            self._crowd.door.say(guest.player, words)
        yield TYPING_MS
        self._crowd.leave(guest, 0, BY_USER, Stage.AWAY)
        if self.is_deathmatch:
            yield DEATHMATCH_AWAY_MS
            self._come_back(guest)

    def _come_back(self, guest: Guest) -> None:
        self._quitter = None
        if guest.stage is Stage.AWAY:
            self._crowd.come(guest, RECONNECT_MS)
