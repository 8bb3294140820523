"""Stories in which players leave during a match: all of them for good, or one who comes back."""

from __future__ import annotations

from matchpod.simulator.agenda import Script
from matchpod.simulator.play.door import BY_USER, EXITING
from matchpod.simulator.play.people.crowd import Crowd, Guest, GuestStage, by_rank
from matchpod.simulator.play.people.stories import Story

MIDDLE_OF_ROUND_MS = (8_000, 15_000)
"""Time after the start of a round: rounds last about a minute, and hardly ever less than this."""

ALL_LEAVE_ROUNDS = (3, 6)
ALL_LEAVE_DEATHMATCH_MS = (60_000, 120_000)
ALL_LEAVE_WITHIN_MS = 3_000

RAGE_QUIT_ROUND = 4
RAGE_QUIT_DEATHMATCH_MS = (60_000, 120_000)
ROUNDS_AWAY = 2
DEATHMATCH_AWAY_MS = 60_000
TYPING_MS = 2_000
RECONNECT_MS = 1_500

RAGE_TEXTS = ("im done with this team", "unplayable", "nice team. bye", "cant play like this", "lagging so hard, brb")


class Departure(Story):
    """A departure that happens once, in the middle of a given round, or after some time in a deathmatch."""

    def __init__(self, crowd: Crowd, round_number: int, deathmatch_ms: tuple[int, int]) -> None:
        super().__init__(crowd)
        self._round = self.within_match(round_number)
        self._deathmatch_ms = deathmatch_ms
        self._has_begun = False

    def depart(self) -> None:
        """Let the players leave."""
        raise NotImplementedError

    def went_live(self) -> None:
        """Schedule the departure in a deathmatch, which has no rounds."""
        if self.is_deathmatch:
            self._begin(self._deathmatch_ms)

    def round_started(self, round_number: int) -> None:
        """Schedule the departure in its round, or in the first round after it."""
        if round_number >= self._round and not self.is_deathmatch:
            self._begin(MIDDLE_OF_ROUND_MS)

    def _begin(self, between_ms: tuple[int, int]) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.call_in(self.rng("begin").randint(*between_ms), self.depart)


class AllLeave(Departure):
    """All players leave within a few seconds and do not come back."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd, 0, ALL_LEAVE_DEATHMATCH_MS)
        self._round = self.within_match(self.rng("round").randint(*ALL_LEAVE_ROUNDS))

    def depart(self) -> None:
        """Schedule the departure of all guests."""
        for guest in self._crowd.all_guests():
            rng = self.rng("leave", guest.person.account)
            if guest.player is None:
                guest.cancel_plans()
                guest.stage = GuestStage.GONE
            else:
                self._crowd.schedule_leave(guest, rng.randint(0, ALL_LEAVE_WITHIN_MS), rng.choice((BY_USER, EXITING)))


class RageQuit(Departure):
    """One player writes a message, leaves, and is back two rounds later."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd, RAGE_QUIT_ROUND, RAGE_QUIT_DEATHMATCH_MS)
        self._quitter: Guest | None = None
        self._quit_round = 0
        self._round_number = 0

    def round_started(self, round_number: int) -> None:
        """Record the current round."""
        self._round_number = round_number
        super().round_started(round_number)

    def freeze_began(self, round_number: int) -> None:
        """Bring the player back after ROUNDS_AWAY rounds."""
        if self._quitter is not None and self._quit_round and round_number >= self._quit_round + ROUNDS_AWAY:
            self._return(self._quitter)

    def depart(self) -> None:
        """Choose a player and let them quit."""
        players = sorted((guest for guest in self._crowd.present() if guest is not self._crowd.stranger), key=by_rank)
        if players:
            self._quitter = self.rng("who").choice(players)
            self._quit_round = self._round_number
            self.run(self._quit(self._quitter, self.rng("words").choice(RAGE_TEXTS)))

    def _quit(self, guest: Guest, text: str) -> Script[None]:
        if guest.player is not None:
            self._crowd.door.say(guest.player, text)
        yield TYPING_MS
        self._crowd.schedule_leave(guest, 0, BY_USER, GuestStage.AWAY)
        if self.is_deathmatch:
            yield DEATHMATCH_AWAY_MS
            self._return(guest)

    def _return(self, guest: Guest) -> None:
        self._quitter = None
        if guest.stage is GuestStage.AWAY:
            self._crowd.schedule_visit(guest, RECONNECT_MS)
