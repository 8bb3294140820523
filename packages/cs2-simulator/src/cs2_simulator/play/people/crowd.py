"""Track the guests of a server: expected, connecting, connected, away or gone.

The crowd connects guests step by step, and disconnects them when other modules request it. It reconnects all guests
after a map change, and decides which guests return after a kick. Each guest has a random stream for the delays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from operator import attrgetter
from random import Random

from cs2_protocol.game import Side
from cs2_simulator.agenda import ScheduledTask, Script
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import BY_USER, KICKED, LOOP_DEACTIVATE, TIMED_OUT, Door
from cs2_simulator.play.flow.game import Game
from cs2_simulator.play.player import SPECTATOR, Participant, Player
from cs2_simulator.sim_settings import accounts_in

VALIDATION_MS = (700, 1_800)
LOADING_MS = (6_000, 15_000)
CHOICE_MS = (1_000, 4_000)
"""Milliseconds for three steps: Steam validation, map load, choice of a team. In a real log they took 1-2, 5-24 and 1-2
seconds."""

CHOSEN_TEAM_MODES = ("competitive", "scrimcomp2v2")
"""Modes in which players choose a team. In all other modes, the game puts players on a side when they have loaded."""

RETURN_MS = (2_000, 15_000)
"""Milliseconds from a map load to the return of a guest."""

CRASH_MS = (12_000, 30_000)
"""Milliseconds from the validation of a crashing client until the server times it out: some seconds of loading, then
silence."""

RESTART_MS = (10_000, 40_000)
"""Milliseconds until a player whose client crashed has restarted it and connects again."""

LISTED_RETURN_MS = 5_000
"""Milliseconds after which a listed player who was kicked returns."""

STRANGER_RETURN_MS = (8_000, 12_000)
STRANGER_VISITS = 8
"""Number of visits after which an unlisted player, or a player removed from the list, stops trying."""

WAITING_RETURN_MS = (20_000, 30_000)
"""Milliseconds after which a person who was kicked, because they are not listed, connects again."""

ADDED_MS = (5_000, 15_000)
"""Milliseconds after which a person who was just added to the list connects."""

STRANGER_PATIENCE_MS = 45_000
"""Milliseconds after which an unlisted player leaves if no slot in a team is free."""

FULL_SERVER_RETRY_MS = 10_000

LEAVE_MS = (10_000, 60_000)
"""Milliseconds from the end of a map until a player leaves. In a real log it was 9 to 61 seconds after `Game Over`."""


class Role(StrEnum):
    PLAYER = "player"
    STRANGER = "stranger"
    """An unlisted player, who uses the slot of a player who is gone for good."""
    SUBSTITUTE = "substitute"
    """Waits to be added to the list, then joins the smaller side unless the plugin requires a team."""
    SPECTATOR = "spectator"
    COACH = "coach"


class GuestStage(StrEnum):
    EXPECTED = "expected"
    """Not connected yet, without a scheduled visit."""
    COMING = "coming"
    HERE = "here"
    """Connected, but not necessarily playing yet."""
    AWAY = "away"
    """Not connected, but expected to return."""
    GONE = "gone"
    """Has left for good."""


@dataclass(slots=True, eq=False)
class Guest:
    """A person who visits this server. The object exists across all their visits."""

    person: Participant
    team: int
    """1 or 2 for players and coaches; 0 for others."""
    rank: float
    """Sort key for the order in which guests connect."""
    role: Role = Role.PLAYER
    is_listed: bool = False
    """True if the match of the plugin lists this person."""
    stage: GuestStage = GuestStage.EXPECTED
    player: Player | None = None
    visits: int = 0
    is_removed: bool = False
    """True if the person was removed from the list but may still try to reconnect."""
    crashes: bool = False
    """True if the guest's client crashes whenever it loads a map."""
    is_ready: bool = False
    """True if the guest has written `.ready` since the map load, or will soon."""
    visit: ScheduledTask | None = None
    exit: ScheduledTask | None = None

    def cancel_plans(self) -> None:
        for planned in (self.visit, self.exit):
            if planned is not None:
                planned.cancel()


by_rank = attrgetter("rank")

LAST_RANK = 1.0
"""A rank behind all ranks that were drawn at random."""


def random_times(rng: Random, count: int, first_ms: int, last_ms: int) -> list[int]:
    return sorted(rng.randint(first_ms, last_ms) for _ in range(count))


class Crowd:
    def __init__(self, arena: Arena, door: Door, game: Game) -> None:
        self.arena = arena
        self.door = door
        self.game = game
        self.guests: dict[int, Guest] = {}
        """Guests of the two teams by account, in the order of their invitation."""
        self.others: dict[int, Guest] = {}
        """Everyone else: a stranger, spectators, coaches, and substitutes who wait to be let in."""
        self.is_over = False
        """True after the end of the map: guests no longer come, unless they stay for the next map."""
        self.stays_after_map = False
        """True if another map of the series follows, so that people do not leave after the current map."""
        self._finished_map = ""
        self._names = ("", "")
        """The names of the two teams, in the order of the map on which people first saw them."""

    def present(self) -> list[Guest]:
        return [guest for guest in self.all_guests() if guest.player is not None]

    def players(self) -> list[Guest]:
        """Return the connected players of the two teams, in the order in which they connected."""
        return sorted((guest for guest in self.guests.values() if guest.player is not None), key=by_rank)

    def all_guests(self) -> list[Guest]:
        return [*self.guests.values(), *self.others.values()]

    def find(self, account: int) -> Guest | None:
        return self.others.get(account) or self.guests.get(account)

    def guest_of(self, player: Player) -> Guest | None:
        return self.find(player.person.account)

    def invite(self, person: Participant, team: int, *, is_listed: bool) -> Guest:
        """Add a player, or update a known guest. A guest who had left for good is expected again."""
        guest = self.others.pop(person.account, None) or self.guests.get(person.account)
        if guest is None:
            rank = self.arena.rng("visitors", "rank", person.account).random()
            guest = Guest(person, team, rank)
        self.guests[person.account] = guest
        guest.role = Role.PLAYER
        return self._expect(guest, team, is_listed=is_listed)

    def invite_other(self, person: Participant, role: Role, *, is_listed: bool, team: int = 0) -> Guest:
        """Add a guest who does not play, or update a known guest. `team` is only set for coaches."""
        guest = self.guests.pop(person.account, None) or self.others.get(person.account)
        guest = self.others[person.account] = guest or Guest(person, team, LAST_RANK)
        guest.role = role
        return self._expect(guest, team, is_listed=is_listed)

    def _expect(self, guest: Guest, team: int, *, is_listed: bool) -> Guest:
        if guest.exit is not None:
            guest.exit.cancel()
        if guest.stage is GuestStage.GONE:
            guest.stage = GuestStage.EXPECTED
        guest.team = team
        guest.is_listed = is_listed
        guest.is_removed = False
        return guest

    def schedule_visit(self, guest: Guest, wait_ms: int) -> None:
        guest.cancel_plans()
        guest.stage = GuestStage.COMING
        guest.visit = self.arena.agenda.start(self._visit(guest, wait_ms))

    def schedule_leave(self, guest: Guest, wait_ms: int, reason: str, stage: GuestStage = GuestStage.GONE) -> None:
        """Disconnect a guest after a delay, if still connected then. The guest is then gone for good or `AWAY`."""
        if guest.exit is not None:
            guest.exit.cancel()
        guest.exit = self.arena.agenda.call_in(wait_ms, partial(self._disconnect, guest, reason, stage))

    def uninvite(self, guests: Sequence[Guest]) -> None:
        """Mark `guests` as no longer listed, and remove those who are not connected. Connected guests stay."""
        for guest in guests:
            guest.is_listed = False
            if guest.player is None:
                guest.cancel_plans()
                self.guests.pop(guest.person.account, None)
                self.others.pop(guest.person.account, None)

    def player_left(self, player: Player, reason: str) -> None:
        guest = self.guest_of(player)
        if guest is None or guest.player not in (None, player):
            return
        guest.player = None
        guest.cancel_plans()
        if guest.role is Role.STRANGER:
            self._stranger_left(guest)
        elif guest.crashes and reason == TIMED_OUT:
            rng = self.arena.rng("visitors", "restart", guest.person.account, guest.visits)
            self.schedule_visit(guest, rng.randint(*RESTART_MS))
        elif guest.stage in (GuestStage.COMING, GuestStage.HERE) and reason != LOOP_DEACTIVATE:
            if reason == KICKED and guest.is_listed:
                self.schedule_visit(guest, LISTED_RETURN_MS)
            elif reason == KICKED and self._insists(guest):
                rng = self.arena.rng("visitors", "insists", guest.person.account, guest.visits)
                wait_ms = rng.randint(*(STRANGER_RETURN_MS if guest.is_removed else WAITING_RETURN_MS))
                self.schedule_visit(guest, wait_ms)
            else:
                guest.stage = GuestStage.GONE

    def side_of(self, team: int) -> Side:
        """Return the current side of team 1 or team 2.

        Teams are recognized by their names, as the names may be swapped on another map.
        """
        text = self.arena.variables.text
        names = (text("mp_teamname_1"), text("mp_teamname_2"))
        if not self._names[0] or not self._names[1]:
            self._names = names
        is_first = (team == 1) is not (names == self._names[::-1] != self._names)
        side = self.game.team1_side
        return side if is_first else side.other

    def map_closing(self) -> None:
        """Cancel all scheduled steps. Guests who have connected before will return; all others are expected again."""
        for guest in self.all_guests():
            guest.cancel_plans()
            guest.player = None
            guest.is_ready = False
            if guest.stage is not GuestStage.GONE:
                guest.stage = GuestStage.AWAY if guest.visits else GuestStage.EXPECTED

    def map_loaded(self) -> None:
        """Let the guests return in the order of their first visit, so that they get the same user ids.

        If the server reloads the finished map by itself, no guest returns. On another map, guests who left after the
        end of the previous map return too. People who are now in `sim_absent` do not return.
        """
        is_done = self.is_over and not self.stays_after_map and self.arena.map_name == self._finished_map
        self.is_over = False
        away = sorted((guest for guest in self.all_guests() if guest.stage is GuestStage.AWAY), key=by_rank)
        if is_done:
            for guest in away:
                guest.stage = GuestStage.GONE
            return
        rng = self.arena.rng("visitors", "return", self.arena.map_name)
        absent = accounts_in(self.arena.variables.text("sim_absent"))
        away = [guest for guest in away if guest.person.account not in absent]
        for guest, wait_ms in zip(away, random_times(rng, len(away), *RETURN_MS), strict=True):
            self.schedule_visit(guest, wait_ms)

    def map_ended(self) -> None:
        """Let the guests leave one by one, unless they stay for the next map.

        Whether they stay is checked just before a guest leaves.
        """
        self.is_over = True
        self._finished_map = self.arena.map_name
        for guest in self.present():
            rng = self.arena.rng("visitors", "farewell", guest.person.account)
            reason = rng.choice((BY_USER, BY_USER, LOOP_DEACTIVATE))  # 6 to 4 in a real log
            act = partial(self._leave_after_map, guest, reason)
            guest.exit = self.arena.agenda.call_in(rng.randint(*LEAVE_MS), act)

    def _visit(self, guest: Guest, wait_ms: int) -> Script[None]:
        yield wait_ms
        player = None
        while player is None:
            if self.is_over and not self.stays_after_map:
                guest.stage = GuestStage.AWAY
                return
            guest.visits += 1
            player = self.door.connect(guest.person)
            if player is None:
                guest.visits -= 1
                yield FULL_SERVER_RETRY_MS
        if player not in self.arena.players:
            return  # kicked in the same tick: `player_left` has scheduled the next steps
        guest.player, guest.stage = player, GuestStage.HERE
        rng = self.arena.rng("visitors", "pace", guest.person.account)
        yield rng.randint(*VALIDATION_MS)
        self.door.validate(player)
        if guest.crashes:
            crash_rng = self.arena.rng("visitors", "crash", guest.person.account, guest.visits)
            self.schedule_leave(guest, crash_rng.randint(*CRASH_MS), TIMED_OUT)
            return
        yield self._loading_ms(guest, rng)
        self.door.enter(player)
        yield rng.randint(*CHOICE_MS) if self.arena.variables.mode_name in CHOSEN_TEAM_MODES else 0
        team = self._chosen_team(guest)
        if team is not None:
            self.door.join(player, team)
        else:
            self.schedule_leave(guest, STRANGER_PATIENCE_MS, BY_USER, GuestStage.AWAY)

    def _loading_ms(self, guest: Guest, rng: Random) -> int:
        """Return the milliseconds that a guest's client takes to load.

        If `sim_client_load` is set, it is the time of the player who connects last.
        """
        loading_ms, slow_ms = rng.randint(*LOADING_MS), int(self.arena.variables.number("sim_client_load") * 1000)
        is_slow = slow_ms and guest is max(self.guests.values(), key=by_rank, default=None)
        return slow_ms if is_slow else loading_ms

    def _insists(self, guest: Guest) -> bool:
        """True if a kicked guest who is not listed tries to connect again."""
        if guest.is_removed:
            return guest.visits < STRANGER_VISITS
        return guest.role is not Role.PLAYER and not (self.is_over and not self.stays_after_map)

    def _chosen_team(self, guest: Guest) -> str | None:
        match guest.role:
            case Role.PLAYER | Role.COACH:
                return self.side_of(guest.team)
            case Role.SPECTATOR:
                return SPECTATOR
            case Role.SUBSTITUTE:
                return min(Side, key=lambda side: len(self.arena.players_on(side)))
            case Role.STRANGER:
                return self._free_side()

    def _free_side(self) -> Side | None:
        """Return a side with a free slot; None if there is none.

        The slot of a guest is free only if the guest is gone for good, not if they may still connect.
        """
        team = next((guest.team for guest in self.guests.values() if guest.stage is GuestStage.GONE), None)
        return None if team is None else self.side_of(team)

    def _disconnect(self, guest: Guest, reason: str, stage: GuestStage) -> None:
        if guest.player is not None:
            guest.stage = stage
            self.door.leave(guest.player, reason)

    def _leave_after_map(self, guest: Guest, reason: str) -> None:
        if not self.stays_after_map:
            self._disconnect(guest, reason, GuestStage.AWAY)

    def _stranger_left(self, stranger: Guest) -> None:
        if self.is_over or stranger.visits >= STRANGER_VISITS:
            stranger.stage = GuestStage.GONE
        elif stranger.stage is not GuestStage.GONE:
            rng = self.arena.rng("visitors", "stranger", stranger.visits)
            self.schedule_visit(stranger, rng.randint(*STRANGER_RETURN_MS))
