"""Decide who connects to a server and what they do there, by roster and scenario.

People connect only if they are expected, and only after no command has configured the server for some time. Who
connects, in which order and to which team depends only on the seed and the roster, not on when commands were sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

from cs2_protocol.steam_id import MAX_ACCOUNT
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import BY_USER, Door
from cs2_simulator.play.flow.game import Game
from cs2_simulator.play.flow.slot import TaskSlot
from cs2_simulator.play.people.chatter import Chatter
from cs2_simulator.play.people.crowd import ADDED_MS, Crowd, Guest, GuestStage, Role, by_rank, random_times
from cs2_simulator.play.people.departures import AllLeave, IdleKick, Leaver, RageQuit, SpectatorVisit, ordinary_story
from cs2_simulator.play.people.impostor import Impostors, disguise
from cs2_simulator.play.people.interruptions import PauseStory, RoundRestore
from cs2_simulator.play.people.persons import make_people, name_in_game, with_one_awper
from cs2_simulator.play.people.stories import Story
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.play.watcher import RoundEnd, Watcher
from cs2_simulator.scenarios import Scenario
from cs2_simulator.sim_settings import accounts_in

PLAYERS_BY_MODE = {"competitive": 10, "scrimcomp2v2": 4, "deathmatch": 8, "casual": 10, "retakes": 7, "custom": 10}
"""Number of players who connect without a roster, by game mode."""

DEFAULT_PLAYERS = 10

ARRIVAL_SHARE = 0.2
"""Minimum share of the time `sim_arrival` in which all players connect. The actual share is random, up to 1."""

LATE_MS = 180_000
LEAVES_BEFORE_MS = 60_000
"""Milliseconds from the departure of the early leaver to the arrival of the late player."""

STRANGER_AFTER_MS = (1_000, 8_000)
"""Milliseconds after the last other guest until the unlisted player connects. This keeps the user ids of other guests
unchanged."""

CHEATER_SKILL = 2.2
CHEATER_HEADSHOTS = 0.88
"""A cheater's share of headshots. It is far above the share of other players: 60 % in a match is outstanding."""

STORIES: dict[Scenario, Callable[[Crowd], Story]] = {
    Scenario.FULL_MATCH: ordinary_story,
    Scenario.LOG_LOSS: ordinary_story,
    Scenario.IDLE_KICK: IdleKick,
    Scenario.SPECTATOR: SpectatorVisit,
    Scenario.ALL_LEAVE: AllLeave,
    Scenario.LEAVER: Leaver,
    Scenario.RAGE_QUIT_REJOIN: RageQuit,
    Scenario.ROUND_RESTORE: RoundRestore,
    Scenario.PAUSES: PauseStory,
    Scenario.SPOOFER: Impostors,
}
"""The story of each scenario. In scenarios without a story, people just play."""


class Expectation(StrEnum):
    NO_ONE = "no_one"
    ROSTER = "roster"
    ANYBODY = "anybody"


class Visitors(Watcher):
    """The visitors of one server. The object watches its arena from the start."""

    def __init__(self, arena: Arena, door: Door, game: Game) -> None:
        self._arena = arena
        self._door = door
        self.crowd = Crowd(arena, door, game)
        self._chatter = Chatter(self.crowd)
        self._story = Story(self.crowd)
        self._expects = Expectation.NO_ONE
        self._are_players_invited = False
        self._countdown = TaskSlot(arena.agenda)
        arena.watchers.append(self)

    def expect(
        self,
        team1: Sequence[tuple[int, str]],
        team2: Sequence[tuple[int, str]],
        spectators: Sequence[tuple[int, str]] = (),
        *,
        coaches: Sequence[int] = (),
    ) -> None:
        """Expect the people of a roster, each with an account and a nickname, which may be empty.

        People who have left this match for good do not return. `coaches` are the accounts of the listed people who do
        not play.
        """
        is_same_match = self._expects is Expectation.ROSTER
        self._expects = Expectation.ROSTER
        coaches = [*coaches, *accounts_in(self._arena.variables.text("sim_coaches"))]
        both = ((account, nick) for account, nick in (*team1, *team2) if account not in coaches)
        nicks = {account: nick for account, nick in both if 0 < account <= MAX_ACCOUNT}
        first = _distinct([account for account, _ in team1 if account in nicks])
        second = _distinct([account for account, _ in team2 if account in nicks and account not in first])
        guests = self.crowd.guests
        gone = [account for account, guest in guests.items() if is_same_match and guest.stage is GuestStage.GONE]
        self.crowd.uninvite([guest for account, guest in guests.items() if account not in nicks])
        for number, team in enumerate(self._make_teams(first, second, nicks), 1):
            for person in team:
                guest = self.crowd.invite(person, number, is_listed=True)
                if person.account in gone:
                    guest.stage = GuestStage.GONE
        for number, listed in enumerate((team1, team2), 1):
            for account, nick in listed:
                if account in coaches:
                    self._invite_one(account, nick, number, is_coach=True)
        for account, nick in spectators:
            self._invite_one(account, nick, None)
        if not is_same_match:
            self.crowd.is_over = False
        for guest in self.crowd.present():
            if guest.player is not None and guest.player.is_playing:
                self._chatter.player_joined(guest.player)
        self._start_countdown()

    def expect_anyone(self) -> None:
        """Expect random people, or the people in `sim_players`.

        If people are already expected, only restart the countdown.
        """
        if self._expects is not Expectation.NO_ONE:
            self.restart_countdown()
            return
        self._expects = Expectation.ANYBODY
        self._are_players_invited = False
        self._start_countdown()

    def expect_one(self, account: int, nick: str, team: int | None) -> None:
        """Expect a person who was just added to the list of team 1 or 2, or of the spectators."""
        is_coach = account in accounts_in(self._arena.variables.text("sim_coaches"))
        guest = self._invite_one(account, nick, team, is_coach=is_coach)
        is_waited_for = self._countdown.is_active or self._arena.is_busy
        if guest.stage is GuestStage.EXPECTED and not is_waited_for and self._comes(guest):
            rng = self._arena.rng("visitors", "added", account)
            self.crowd.schedule_visit(guest, rng.randint(*ADDED_MS))

    def expect_no_more(self, account: int) -> None:
        """Remove a person from the list. The person tries to reconnect a limited number of times."""
        guest = self.crowd.find(account)
        if guest is not None:
            guest.is_listed, guest.is_removed = False, True
            guest.visits = 1

    def forget_roster(self) -> None:
        """Stop expecting people, because the match was unloaded. Connected players stay."""
        self._expects = Expectation.NO_ONE
        self._countdown.cancel()
        self.crowd.uninvite(self.crowd.all_guests())

    def restart_countdown(self) -> None:
        """Restart the countdown until people connect, because the server was just configured.

        Ignored if the countdown has already ended.
        """
        if self._countdown.is_active:
            self._start_countdown()

    # --- events --------------------------------------------------------------------------------------------------

    def map_loaded(self, map_name: str) -> None:
        """Let the guests return, and restart the countdown for guests who have not connected yet."""
        self._chatter.map_loaded(map_name)
        self.crowd.map_loaded()
        if self._expects is not Expectation.NO_ONE:
            self._start_countdown()

    def map_closing(self) -> None:
        """Cancel everything that was scheduled on the old map."""
        self._end_story()
        self._chatter.map_closing()
        self.crowd.map_closing()

    def player_joined(self, player: Player) -> None:
        self._chatter.player_joined(player)

    def player_left(self, player: Player, reason: str) -> None:
        self.crowd.player_left(player, reason)

    def warmup_began(self) -> None:
        self._end_story()
        self._chatter.warmup_began()

    def went_live(self) -> None:
        self.crowd.is_over = False
        self._end_story()
        self._story = STORIES.get(self._arena.scenario, Story)(self.crowd)
        self._story.went_live()
        self._chatter.went_live()

    def freeze_began(self, round_number: int) -> None:
        self._story.freeze_began(round_number)

    def round_started(self, round_number: int) -> None:
        self._story.round_started(round_number)

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        self._chatter.round_ended(round_number, end)

    def restored(self, rounds_played: int) -> None:
        self._chatter.restored(rounds_played)

    def map_ended(self) -> None:
        self._end_story()
        self._chatter.map_ended()
        self.crowd.map_ended()

    # --- arrivals ------------------------------------------------------------------------------------------------

    def _end_story(self) -> None:
        self._story.cancel()
        self._story = Story(self.crowd)

    def _start_countdown(self) -> None:
        delay_ms = int(self._arena.variables.number("sim_roster_delay") * 1000)
        self._countdown.call_in(delay_ms, self._schedule_arrivals)

    def _schedule_arrivals(self) -> None:
        """Schedule the visits at the end of the countdown.

        During a map load, do nothing: its end restarts the countdown.
        """
        scenario = self._arena.scenario
        if self._arena.is_busy or scenario is Scenario.NO_SHOW:
            return
        if self._expects is Expectation.ANYBODY and not self._are_players_invited:
            self._are_players_invited = True
            self._invite_players()
        guests = sorted(self.crowd.guests.values(), key=by_rank)
        self._assign_roles(scenario, guests)
        rng = self._arena.rng("visitors", "trickle")
        arrival_ms = int(self._arena.variables.number("sim_arrival") * 1000)
        waits_ms = random_times(rng, len(guests), 0, rng.randint(int(arrival_ms * ARRIVAL_SHARE), arrival_ms))
        if scenario is Scenario.INCOMPLETE_ROSTER:
            # Omit one or two players, but never all of them, unless the roster has only one player.
            guests = guests[: -min(rng.randint(1, 2), max(1, len(guests) - 1))]
        elif scenario in (Scenario.LATE_JOIN, Scenario.EARLY_LEAVER) and waits_ms:
            waits_ms[-1] += LATE_MS
        for guest, wait_ms in zip(guests, waits_ms, strict=False):
            if guest.stage is GuestStage.EXPECTED and self._comes(guest):
                self.crowd.schedule_visit(guest, wait_ms)
        if scenario is Scenario.EARLY_LEAVER and len(guests) > 1:
            self.crowd.schedule_leave(guests[0], waits_ms[-1] - LEAVES_BEFORE_MS, BY_USER)
        last_ms = max(waits_ms, default=0)
        if scenario is Scenario.STRANGER and not any(guest.role is Role.STRANGER for guest in self.crowd.all_guests()):
            self._send_stranger(last_ms)
        self._send_others(last_ms)

    def _assign_roles(self, scenario: Scenario, guests: Sequence[Guest]) -> None:
        """Choose the players with a role in the scenario: impostors, cheater, or the player with a crashing client."""
        if scenario is Scenario.SPOOFER:
            disguise(self._arena, guests)
        elif scenario is Scenario.LOADING_CRASH and guests and not any(guest.crashes for guest in guests):
            self._arena.rng("visitors", "crash").choice(guests).crashes = True
        elif scenario is Scenario.CHEATER and guests:
            cheater = self._arena.rng("visitors", "cheater").choice(guests)
            if cheater.visits == 0:
                cheater.person = replace(
                    cheater.person, skill=CHEATER_SKILL, headshots=CHEATER_HEADSHOTS, is_cheater=True
                )

    def _invite_players(self) -> None:
        accounts = accounts_in(self._arena.variables.text("sim_players"))
        count = len(accounts) or PLAYERS_BY_MODE.get(self._arena.variables.mode_name, DEFAULT_PLAYERS)
        count = min(count, self._door.max_players)
        people = make_people(self._arena.rng("visitors", "people"), count, accounts=accounts)
        half = (count + 1) // 2
        for number, team in enumerate(self._with_awpers(people, half), 1):
            for person in team:
                self.crowd.invite(person, number, is_listed=False)

    def _make_teams(self, first: list[int], second: list[int], nicks: dict[int, str]) -> list[list[Participant]]:
        accounts = [*first, *second]
        rng = self._arena.rng("visitors", "people")
        people = make_people(rng, len(accounts), accounts=accounts, nicks=nicks)
        return self._with_awpers(people, len(first))

    def _with_awpers(self, people: list[Participant], first_team_size: int) -> list[list[Participant]]:
        rng = self._arena.rng("visitors", "awpers")
        return [with_one_awper(rng, people[:first_team_size]), with_one_awper(rng, people[first_team_size:])]

    def _comes(self, guest: Guest) -> bool:
        """False if the scenario or `sim_absent` prevents a person from connecting."""
        is_absent = guest.person.account in accounts_in(self._arena.variables.text("sim_absent"))
        return not is_absent and self._arena.scenario is not Scenario.NO_SHOW

    def _invite_one(self, account: int, nick: str, team: int | None, *, is_coach: bool = False) -> Guest:
        """Invite a person as a player or coach of a team, or without a team as a spectator."""
        guest = self.crowd.find(account)
        if guest is not None and name_in_game(nick):
            guest.person = replace(guest.person, name=name_in_game(nick))  # used at their next connection
        person = self._make_one(account, nick) if guest is None else guest.person
        if team is None:
            return self.crowd.invite_other(person, Role.SPECTATOR, is_listed=True)
        if is_coach:
            return self.crowd.invite_other(person, Role.COACH, is_listed=True, team=team)
        return self.crowd.invite(person, team, is_listed=True)

    def _make_one(self, account: int, nick: str) -> Participant:
        rng = self._arena.rng("visitors", "one", account)
        names = [guest.person.name for guest in self.crowd.all_guests()]
        (person,) = make_people(rng, 1, accounts=[account], nicks={account: nick}, taken_names=names)
        return replace(person, is_awper=False)

    def _send_others(self, last_ms: int) -> None:
        """Schedule the visits of spectators and coaches, and of people who wait to be added. Casters connect late."""
        casters = accounts_in(self._arena.variables.text("sim_casters"))
        for name, role in (("sim_substitutes", Role.SUBSTITUTE), ("sim_casters", Role.SPECTATOR)):
            for account in accounts_in(self._arena.variables.text(name)):
                if self.crowd.find(account) is None:
                    guest = self._invite_one(account, "", None)
                    guest.role, guest.is_listed = role, False
        for guest in self.crowd.others.values():
            if guest.stage is GuestStage.EXPECTED and guest.role is not Role.STRANGER and self._comes(guest):
                rng = self._arena.rng("visitors", "others", guest.person.account)
                if guest.is_listed and guest.person.account not in casters:
                    wait_ms = rng.randint(0, last_ms)
                else:
                    late_ms = LATE_MS if guest.person.account in casters else 0
                    wait_ms = last_ms + late_ms + rng.randint(*ADDED_MS)
                self.crowd.schedule_visit(guest, wait_ms)

    def _send_stranger(self, last_ms: int) -> None:
        rng = self._arena.rng("visitors", "stranger")
        names = [guest.person.name for guest in self.crowd.guests.values()]
        person = make_people(rng, 1, taken_names=names)[0]
        stranger = self.crowd.invite_other(person, Role.STRANGER, is_listed=False)
        self.crowd.schedule_visit(stranger, last_ms + rng.randint(*STRANGER_AFTER_MS))


def _distinct(accounts: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(accounts))
