"""Define stories in which players leave the server or their side during a match, for good or for a while."""

from __future__ import annotations

from cs2_simulator.agenda import Script
from cs2_simulator.play.door import BY_USER, EXITING, KICKED_IDLE
from cs2_simulator.play.people.crowd import Crowd, Guest, GuestStage, by_rank
from cs2_simulator.play.people.stories import Story
from cs2_simulator.play.player import SPECTATOR

MIDDLE_OF_ROUND_MS = (8_000, 15_000)
"""Milliseconds after the start of a round. Nearly all rounds are longer; on average they take about a minute."""

ALL_LEAVE_WITHIN_MS = 3_000

ROUNDS_AWAY = 2
DEATHMATCH_AWAY_MS = 60_000
TYPING_MS = 2_000
RECONNECT_MS = 1_500

IDLE_PLAYERS = 2
IDLE_RETURN_MS = (2_000, 40_000)
"""Milliseconds from the start of a round until a player who was kicked for idling connects again, during the round."""

SPECTATING_MS = (20_000, 110_000)

IDLE_SHARE, SPECTATOR_SHARE = 0.12, 0.12
"""Share of ordinary matches in which players are kicked for idling, and share in which a player spectates for a
while."""

RAGE_TEXTS = ("im done with this team", "unplayable", "nice team. bye", "cant play like this", "lagging so hard, brb")


class Departure(Story):
    """A departure that happens once, in the middle of a random round in the range `rounds`.

    In a deathmatch, it happens after a random time.
    """

    rounds: tuple[int, int]
    deathmatch_ms = (60_000, 120_000)

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._round = self.within_match(self.rng("round").randint(*self.rounds))
        self._has_begun = False

    def depart(self) -> None:
        raise NotImplementedError

    def went_live(self) -> None:
        """Schedule the departure in a deathmatch, which has no rounds."""
        if self.is_deathmatch:
            self._begin(self.deathmatch_ms)

    def round_started(self, round_number: int) -> None:
        """Schedule the departure in its round, or if that round was skipped, in the first round after it."""
        if round_number >= self._round and not self.is_deathmatch:
            self._begin(MIDDLE_OF_ROUND_MS)

    def _begin(self, between_ms: tuple[int, int]) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.call_in(self.rng("begin").randint(*between_ms), self.depart)


class AllLeave(Departure):
    """All players leave within a few seconds and do not return."""

    rounds = (3, 6)

    def depart(self) -> None:
        for guest in self._crowd.all_guests():
            rng = self.rng("leave", guest.person.account)
            if guest.player is None:
                guest.cancel_plans()
                guest.stage = GuestStage.GONE
            else:
                self._crowd.schedule_leave(guest, rng.randint(0, ALL_LEAVE_WITHIN_MS), rng.choice((BY_USER, EXITING)))


class Leaver(Departure):
    """One player leaves and does not return."""

    rounds = (2, 2)

    def depart(self) -> None:
        players = self._crowd.players()
        if players:
            self._crowd.schedule_leave(self.rng("who").choice(players), 0, BY_USER)


class RageQuit(Departure):
    """One player writes a message, leaves, and returns two rounds later."""

    rounds = (4, 4)

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._quitter: Guest | None = None
        self._quit_round = 0
        self._round_number = 0

    def round_started(self, round_number: int) -> None:
        self._round_number = round_number
        super().round_started(round_number)

    def freeze_began(self, round_number: int) -> None:
        """Bring the player back after ROUNDS_AWAY rounds."""
        if self._quitter is not None and self._quit_round and round_number >= self._quit_round + ROUNDS_AWAY:
            self._return(self._quitter)

    def depart(self) -> None:
        players = self._crowd.players()
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


class IdleKick(Departure):
    """Idle players are kicked one by one in the middle of a round, and return one or two rounds later.

    In every second match, the first player is kicked in the last round of the first half, and so misses halftime. A
    side always keeps at least one player.
    """

    rounds = (2, 5)

    def __init__(self, crowd: Crowd, kicks: int = IDLE_PLAYERS) -> None:
        super().__init__(crowd)
        rng = self.rng("round")
        self._kicks = kicks
        half = self.max_rounds // 2
        self._round = half if half > 1 and rng.random() < 0.5 else self.within_match(rng.randint(*self.rounds))
        self._away: dict[Guest, int] = {}
        """The players who were kicked, with the rounds they still miss."""

    def round_started(self, round_number: int) -> None:
        """In the middle of a round, let kicked players return, or kick the next player."""
        for guest in tuple(self._away):
            self._away[guest] -= 1
            if self._away[guest] <= 0:
                del self._away[guest]
                self._return(guest, round_number)
        if self._kicks and not self._away:
            self._has_begun = False
            super().round_started(round_number)

    def depart(self) -> None:
        guests = [guest for guest in self._crowd.players() if self._is_spare(guest)]
        if not guests or not self._kicks:
            return
        self._kicks -= 1
        guest = self.rng("who", self._kicks).choice(guests)
        self._away[guest] = self.rng("rounds", self._kicks).randint(1, 2)
        self._crowd.schedule_leave(guest, 0, KICKED_IDLE, GuestStage.AWAY)
        if self.is_deathmatch:
            self.call_in(DEATHMATCH_AWAY_MS, lambda: self._return(guest, 0))

    def _is_spare(self, guest: Guest) -> bool:
        player = guest.player
        if player is None or player.side is None or not player.is_alive:
            return False
        return len(self._crowd.arena.players_on(player.side)) > 1

    def _return(self, guest: Guest, round_number: int) -> None:
        if guest.stage is GuestStage.AWAY:
            self._crowd.schedule_visit(guest, self.rng("return", round_number).randint(*IDLE_RETURN_MS))


class SpectatorVisit(Departure):
    """One player moves to the spectators, and back to their side after a while.

    The plugin prevents this in its matches.
    """

    rounds = (2, 4)
    deathmatch_ms = (40_000, 80_000)

    def depart(self) -> None:
        guests = [guest for guest in self._crowd.present() if guest.team and not guest.is_listed]
        if guests:
            guest = self.rng("who").choice(sorted(guests, key=by_rank))
            self.run(self._spectate(guest, self.rng("time").randint(*SPECTATING_MS)))

    def _spectate(self, guest: Guest, time_ms: int) -> Script[None]:
        yield 0
        if guest.player is not None:
            self._crowd.door.join(guest.player, SPECTATOR)
        yield time_ms
        if guest.player is not None and guest.player.team == SPECTATOR:
            self._crowd.door.join(guest.player, self._crowd.side_of(guest.team))


def ordinary_story(crowd: Crowd) -> Story:
    """Return the story of an ordinary match: in some matches players are kicked for idling, or a player spectates."""
    story = Story(crowd)
    chance = story.rng("incident").random()
    if chance < IDLE_SHARE:
        return IdleKick(crowd, 1)
    return SpectatorVisit(crowd) if chance < IDLE_SHARE + SPECTATOR_SHARE else story
