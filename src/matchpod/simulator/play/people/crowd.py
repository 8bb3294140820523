"""Where is everybody who has to do with this server? Guests on their way, on the server, away for a while, gone.

The crowd carries out what others decide: it lets a guest come step by step, sends him off, brings all back after a map
change, and knows who returns after a kick. Each step waits by a stream of chance of the guest's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from operator import attrgetter
from random import Random
from typing import Protocol

from matchpod.core.model import Side
from matchpod.simulator.agenda import Planned, Script
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import BY_USER, KICKED, LOOP_DEACTIVATE, Door
from matchpod.simulator.play.player import Person, Player

VALIDATION_MS = (700, 1_800)
LOADING_MS = (6_000, 15_000)
CHOICE_MS = (1_000, 4_000)
"""How long Steam, the map and the choice of a team take; in a real log 1-2, 5-24 and 1-2 seconds."""

CHOSEN_TEAM_MODES = ("competitive", "scrimcomp2v2")
"""Where people choose a team; everywhere else the game puts them on a side as soon as they have loaded."""

RETURN_MS = (2_000, 15_000)
"""When people are back after a map change."""

LISTED_RETURN_MS = 5_000
"""A player of the match who was kicked comes right back."""

STRANGER_RETURN_MS = (8_000, 12_000)
STRANGER_VISITS = 8
"""So often a stranger tries before he gives up."""

STRANGER_PATIENCE_MS = 45_000
"""A stranger who finds no free place looks on so long, then goes."""

FULL_SERVER_RETRY_MS = 10_000

FAREWELL_MS = (10_000, 60_000)
"""When people go after the end: 9 to 61 seconds after `Game Over` in a real log."""


class PlayedGame(Protocol):
    """What the crowd and its stories need of the game."""

    @property
    def team1_side(self) -> Side:
        """Where the first team stands now."""

    @property
    def is_paused(self) -> bool:
        """True while play is held up."""

    def pause(self, by: str) -> None:
        """Hold play up."""

    def unpause(self, by: str) -> None:
        """Let play go on."""

    def backups(self) -> list[str]:
        """The files of the rounds played, newest first."""

    def restore(self, file: str) -> bool:
        """Go back to one of them."""


class Stage(StrEnum):
    """Where a guest is."""

    EXPECTED = "expected"
    """Nothing is planned for him yet."""
    COMING = "coming"
    HERE = "here"
    """Connected, whether he plays yet or not."""
    AWAY = "away"
    """Not here, and will be back."""
    GONE = "gone"
    """Never to come again."""


@dataclass(slots=True, eq=False)
class Guest:
    """Somebody who comes to this server, over all his visits."""

    person: Person
    team: int
    """1 or 2; a stranger is of none, 0."""
    rank: float
    """His place in the order in which people come."""
    is_listed: bool = False
    """The plugin's match names him."""
    stage: Stage = Stage.EXPECTED
    player: Player | None = None
    visits: int = 0
    is_ready: bool = False
    """He has said so, or is about to, since the map was loaded."""
    visit: Planned | None = None
    exit: Planned | None = None

    def call_off(self) -> None:
        """Drop what is planned for him."""
        for planned in (self.visit, self.exit):
            if planned is not None:
                planned.cancel()


by_rank = attrgetter("rank")

LAST_RANK = 1.0
"""Behind everybody who was drawn a rank."""


def spread(dice: Random, count: int, first_ms: int, last_ms: int) -> list[int]:
    """So many moments between the first and the last, in order."""
    return sorted(dice.randint(first_ms, last_ms) for _ in range(count))


class Crowd:
    """Everybody who has to do with one server."""

    def __init__(self, arena: Arena, door: Door, game: PlayedGame) -> None:
        self.arena = arena
        self.door = door
        self.game = game
        self.guests: dict[int, Guest] = {}
        """By account, in the order they were invited."""
        self.stranger: Guest | None = None
        self.is_over = False
        """The map is played to its end: nobody comes any more, unless they stay for the next."""
        self.stays_after_map = False
        self._over_map = ""

    def present(self) -> list[Guest]:
        """Everyone who is on the server."""
        return [guest for guest in self.everyone() if guest.player is not None]

    def everyone(self) -> list[Guest]:
        """All guests, the stranger last."""
        return [*self.guests.values(), *([] if self.stranger is None else [self.stranger])]

    def guest_of(self, player: Player) -> Guest | None:
        """Which guest this player is."""
        stranger = self.stranger
        if stranger is not None and stranger.person.account == player.person.account:
            return stranger
        return self.guests.get(player.person.account)

    def invite(self, person: Person, team: int, *, is_listed: bool) -> Guest:
        """Somebody is expected. Whoever is known already stays who he is, and comes again if he had gone."""
        guest = self.guests.get(person.account)
        if guest is None:
            rank = self.arena.dice("visitors", "rank", person.account).random()
            guest = self.guests[person.account] = Guest(person, team, rank)
        if guest.exit is not None:
            guest.exit.cancel()
        if guest.stage is Stage.GONE:
            guest.stage = Stage.EXPECTED
        guest.team = team
        guest.is_listed = is_listed
        return guest

    def come(self, guest: Guest, wait_ms: int) -> None:
        """Let him come after a while."""
        guest.call_off()
        guest.stage = Stage.COMING
        guest.visit = self.arena.agenda.start(self._visit(guest, wait_ms))

    def leave(self, guest: Guest, wait_ms: int, reason: str, stage: Stage = Stage.GONE) -> None:
        """Let him go after a while, if he is here then: for good, or `AWAY` for now."""
        if guest.exit is not None:
            guest.exit.cancel()
        guest.exit = self.arena.agenda.call_in(wait_ms, partial(self._go, guest, reason, stage))

    def uninvite(self, guests: Sequence[Guest]) -> None:
        """Forget those who are not here; the others stay, as nobody in particular."""
        for guest in guests:
            guest.is_listed = False
            if guest.player is None:
                guest.call_off()
                self.guests.pop(guest.person.account, None)

    def left(self, player: Player, reason: str) -> None:
        """A player is gone from the server: will he be back?"""
        guest = self.guest_of(player)
        if guest is None or guest.player not in (None, player):
            return
        guest.player = None
        guest.call_off()
        if guest is self.stranger:
            self._stranger_left(guest)
        elif guest.stage in (Stage.COMING, Stage.HERE) and reason != LOOP_DEACTIVATE:
            if reason == KICKED and guest.is_listed:
                self.come(guest, LISTED_RETURN_MS)
            else:
                guest.stage = Stage.GONE

    def scatter(self) -> None:
        """The map is left: whoever was here will be back, whoever was not yet is expected anew."""
        for guest in self.everyone():
            guest.call_off()
            guest.player = None
            guest.is_ready = False
            if guest.stage is not Stage.GONE:
                guest.stage = Stage.AWAY if guest.visits else Stage.EXPECTED

    def gather(self) -> None:
        """A map was loaded: everybody comes back, in the order of the first time, so under the numbers of then.

        A server left to itself loads the map that is over once more: nobody comes back for that. Another map is one
        that somebody wants to see played, by those too who had gone home.
        """
        is_done = self.is_over and not self.stays_after_map and self.arena.map_name == self._over_map
        self.is_over = False
        away = sorted((guest for guest in self.everyone() if guest.stage is Stage.AWAY), key=by_rank)
        if is_done:
            for guest in away:
                guest.stage = Stage.GONE
            return
        dice = self.arena.dice("visitors", "return", self.arena.map_name)
        for guest, wait_ms in zip(away, spread(dice, len(away), *RETURN_MS), strict=True):
            self.come(guest, wait_ms)

    def say_farewell(self) -> None:
        """The map is over: everybody goes in his own time, unless it turns out until then that they stay."""
        self.is_over = True
        self._over_map = self.arena.map_name
        for guest in self.present():
            dice = self.arena.dice("visitors", "farewell", guest.person.account)
            reason = dice.choice((BY_USER, BY_USER, LOOP_DEACTIVATE))  # 6 to 4 in a real log
            act = partial(self._go_home, guest, reason)
            guest.exit = self.arena.agenda.call_in(dice.randint(*FAREWELL_MS), act)

    def _visit(self, guest: Guest, wait_ms: int) -> Script[None]:
        yield wait_ms
        player = None
        while player is None:
            if self.is_over and not self.stays_after_map:
                guest.stage = Stage.AWAY
                return
            guest.visits += 1
            player = self.door.connect(guest.person)
            if player is None:
                guest.visits -= 1
                yield FULL_SERVER_RETRY_MS
        if player not in self.arena.players:
            return  # kicked in the same tick: `left` has seen to what follows
        guest.player, guest.stage = player, Stage.HERE
        pace = self.arena.dice("visitors", "pace", guest.person.account)
        yield pace.randint(*VALIDATION_MS)
        self.door.validate(player)
        yield pace.randint(*LOADING_MS)
        self.door.enter(player)
        yield pace.randint(*CHOICE_MS) if self.arena.variables.mode_name in CHOSEN_TEAM_MODES else 0
        side = self._free_side() if guest is self.stranger else self._side_of(guest.team)
        if side is not None:
            self.door.join(player, side)
        else:
            self.leave(guest, STRANGER_PATIENCE_MS, BY_USER, Stage.AWAY)

    def _side_of(self, team: int) -> Side:
        side = self.game.team1_side
        return side if team == 1 else side.other

    def _free_side(self) -> Side | None:
        """Where somebody is missing for good: places of those who will yet come are not free."""
        team = next((guest.team for guest in self.guests.values() if guest.stage is Stage.GONE), None)
        return None if team is None else self._side_of(team)

    def _go(self, guest: Guest, reason: str, stage: Stage) -> None:
        if guest.player is not None:
            guest.stage = stage
            self.door.leave(guest.player, reason)

    def _go_home(self, guest: Guest, reason: str) -> None:
        if not self.stays_after_map:
            self._go(guest, reason, Stage.AWAY)

    def _stranger_left(self, stranger: Guest) -> None:
        if self.is_over or stranger.visits >= STRANGER_VISITS:
            stranger.stage = Stage.GONE
        elif stranger.stage is not Stage.GONE:
            dice = self.arena.dice("visitors", "stranger", stranger.visits)
            self.come(stranger, dice.randint(*STRANGER_RETURN_MS))
