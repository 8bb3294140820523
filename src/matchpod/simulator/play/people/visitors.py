"""Who comes to this server, and what do they do to it? The people of a match, by its roster and its scenario.

Nobody comes before somebody is expected, and then only when the server has been left alone for a while. Who comes, in
which order, to which team is a matter of the seed and the roster alone, never of when commands were sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

from matchpod.cs2.steam_id import MAX_ACCOUNT, account_of
from matchpod.simulator.agenda import Planned
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import Door
from matchpod.simulator.play.people.chatter import Chatter
from matchpod.simulator.play.people.crowd import LAST_RANK, Crowd, Guest, PlayedGame, Stage, by_rank, spread
from matchpod.simulator.play.people.departures import AllLeave, RageQuit
from matchpod.simulator.play.people.impostor import Impostors, disguise
from matchpod.simulator.play.people.interruptions import Pauses, RoundRestore
from matchpod.simulator.play.people.persons import make_people, with_one_awper
from matchpod.simulator.play.people.stories import Story
from matchpod.simulator.play.player import Person, Player
from matchpod.simulator.play.watcher import RoundEnd, Watcher
from matchpod.simulator.scenarios import Scenario

STRANGERS_BY_MODE = {"competitive": 10, "scrimcomp2v2": 4, "deathmatch": 8, "casual": 10, "retakes": 7, "custom": 10}
"""How many come where nobody is named."""

USUAL_STRANGERS = 10

TRICKLE_MS = (5_000, 25_000)
"""How long it takes until the last of them has connected."""

LATE_MS = 180_000

STRANGER_AFTER_MS = (1_000, 8_000)
"""After the last of the others: whenever he is sent away, nobody else's number depends on it."""

CHEATER_SKILL = 2.2
CHEATER_HEADSHOTS = 0.88
"""Far above what anybody does for a whole match: 60 % are outstanding."""

STORIES: dict[Scenario, Callable[[Crowd], Story]] = {
    Scenario.ALL_LEAVE: AllLeave,
    Scenario.RAGE_QUIT_REJOIN: RageQuit,
    Scenario.ROUND_RESTORE: RoundRestore,
    Scenario.PAUSES: Pauses,
    Scenario.SPOOFER: Impostors,
}
"""What people do in a live match; in all other scenarios they just play."""

_SEPARATORS = re.compile(r"[,;\s]+")
_ACCOUNT = re.compile(r"[1-9][0-9]{0,9}")


class Expectation(StrEnum):
    """Whom the server waits for."""

    NOBODY = "nobody"
    ROSTER = "roster"
    ANYBODY = "anybody"


class Visitors(Watcher):
    """The people of one server; they watch its arena from the start."""

    def __init__(self, arena: Arena, door: Door, game: PlayedGame) -> None:
        self._arena = arena
        self._door = door
        self._crowd = Crowd(arena, door, game)
        self._chatter = Chatter(self._crowd)
        self._story: Story | None = None
        self._expects = Expectation.NOBODY
        self._is_anybody_named = False
        self._countdown: Planned | None = None
        arena.watchers.append(self)

    @property
    def stays_after_map(self) -> bool:
        """True while another map of the series is to come: people do not leave after this one."""
        return self._crowd.stays_after_map

    @stays_after_map.setter
    def stays_after_map(self, stays: bool) -> None:
        self._crowd.stays_after_map = stays

    def expect(self, team1: Sequence[tuple[int, str]], team2: Sequence[tuple[int, str]]) -> None:
        """These people will come: account and nick, or no nick. The same match told again brings nobody back."""
        is_same_match = self._expects is Expectation.ROSTER
        self._expects = Expectation.ROSTER
        nicks = {account: nick for account, nick in (*team1, *team2) if 0 < account <= MAX_ACCOUNT}
        first = _distinct([account for account, _ in team1 if account in nicks])
        second = _distinct([account for account, _ in team2 if account in nicks and account not in first])
        guests = self._crowd.guests
        gone = [account for account, guest in guests.items() if is_same_match and guest.stage is Stage.GONE]
        self._crowd.uninvite([guest for account, guest in guests.items() if account not in nicks])
        for number, team in enumerate(self._make_teams(first, second, nicks), 1):
            for person in team:
                guest = self._crowd.invite(person, number, is_listed=True)
                if person.account in gone:
                    guest.stage = Stage.GONE
        if not is_same_match:
            self._crowd.is_over = False
        for guest in self._crowd.present():
            if guest.player is not None and guest.player.is_playing:
                self._chatter.player_joined(guest.player)
        self._count_down()

    def expect_anybody(self) -> None:
        """Whoever likes to will come; where people are expected already it only begins the wait anew."""
        if self._expects is not Expectation.NOBODY:
            self.settle()
            return
        self._expects = Expectation.ANYBODY
        self._is_anybody_named = False
        self._count_down()

    def forget(self) -> None:
        """The match was ended: nobody new comes; whoever is here stays."""
        self._expects = Expectation.NOBODY
        if self._countdown is not None:
            self._countdown.cancel()
        self._crowd.uninvite(list(self._crowd.guests.values()))
        stranger = self._crowd.stranger
        if stranger is not None and stranger.player is None:
            stranger.call_off()
            self._crowd.stranger = None

    def settle(self) -> None:
        """Somebody just configured the server: the wait for people begins anew if it is not over."""
        if self._countdown is not None and not self._countdown.is_over:
            self._count_down()

    # --- what happens --------------------------------------------------------------------------------------------

    def map_loaded(self, map_name: str) -> None:
        """Everybody comes back; whoever was still expected is waited for anew."""
        self._chatter.map_loaded(map_name)
        self._crowd.gather()
        if self._expects is not Expectation.NOBODY:
            self._count_down()

    def map_closing(self) -> None:
        """Everybody was disconnected."""
        self._close_story()
        self._chatter.map_closing()
        self._crowd.scatter()

    def player_joined(self, player: Player) -> None:
        """Somebody took a team."""
        self._chatter.player_joined(player)

    def player_left(self, player: Player, reason: str) -> None:
        """Somebody is gone."""
        self._crowd.left(player, reason)

    def warmup_began(self) -> None:
        """Nothing counts yet, or any more."""
        self._close_story()
        self._chatter.warmup_began()

    def went_live(self) -> None:
        """The story of the scenario begins."""
        self._crowd.is_over = False
        self._close_story()
        make_story = STORIES.get(self._arena.scenario)
        if make_story is not None:
            self._story = make_story(self._crowd)
            self._story.went_live()
        self._chatter.went_live()

    def freeze_began(self, round_number: int) -> None:
        """The freeze time of a round began."""
        if self._story is not None:
            self._story.freeze_began(round_number)

    def round_started(self, round_number: int) -> None:
        """Freeze time is over."""
        if self._story is not None:
            self._story.round_started(round_number)

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        """A round was decided."""
        self._chatter.round_ended(round_number, end)

    def map_ended(self) -> None:
        """People say good-bye."""
        self._close_story()
        self._chatter.map_ended()
        self._crowd.say_farewell()

    # --- who comes -----------------------------------------------------------------------------------------------

    def _close_story(self) -> None:
        if self._story is not None:
            self._story.close()
            self._story = None

    def _count_down(self) -> None:
        if self._countdown is not None:
            self._countdown.cancel()
        delay_ms = int(self._arena.variables.number("sim_roster_delay") * 1000)
        self._countdown = self._arena.agenda.call_in(delay_ms, self._let_come)

    def _let_come(self) -> None:
        """The wait is over. While a map is loading nobody can come: its end begins the wait anew."""
        scenario = self._arena.scenario
        if self._arena.is_busy or scenario is Scenario.NO_SHOW:
            return
        if self._expects is Expectation.ANYBODY and not self._is_anybody_named:
            self._is_anybody_named = True
            self._name_anybody()
        guests = sorted(self._crowd.guests.values(), key=by_rank)
        self._cast(scenario, guests)
        dice = self._arena.dice("visitors", "trickle")
        waits_ms = spread(dice, len(guests), 0, dice.randint(*TRICKLE_MS))
        if scenario is Scenario.INCOMPLETE_ROSTER:
            # A lone player is missing himself; of two one is.
            guests = guests[: -min(dice.randint(1, 2), max(1, len(guests) - 1))]
        elif scenario is Scenario.LATE_JOIN and waits_ms:
            waits_ms[-1] += LATE_MS
        for guest, wait_ms in zip(guests, waits_ms, strict=False):
            if guest.stage is Stage.EXPECTED:
                self._crowd.come(guest, wait_ms)
        if scenario is Scenario.STRANGER and self._crowd.stranger is None:
            self._send_stranger(max(waits_ms, default=0))

    def _cast(self, scenario: Scenario, guests: Sequence[Guest]) -> None:
        """Give out the parts that people play by what they are."""
        if scenario is Scenario.SPOOFER:
            disguise(self._arena, guests)
        elif scenario is Scenario.CHEATER and guests:
            cheater = self._arena.dice("visitors", "cheater").choice(guests)
            if cheater.visits == 0:
                cheater.person = replace(
                    cheater.person, skill=CHEATER_SKILL, headshots=CHEATER_HEADSHOTS, is_cheater=True
                )

    def _name_anybody(self) -> None:
        accounts = _accounts_in(self._arena.variables.text("sim_players"))
        count = len(accounts) or STRANGERS_BY_MODE.get(self._arena.variables.mode_name, USUAL_STRANGERS)
        count = min(count, self._door.seats)
        people = make_people(self._arena.dice("visitors", "people"), count, accounts=accounts)
        half = (count + 1) // 2
        for number, team in enumerate(self._with_awpers(people, half), 1):
            for person in team:
                self._crowd.invite(person, number, is_listed=False)

    def _make_teams(self, first: list[int], second: list[int], nicks: dict[int, str]) -> list[list[Person]]:
        accounts = [*first, *second]
        dice = self._arena.dice("visitors", "people")
        people = make_people(dice, len(accounts), accounts=accounts, nicks=nicks)
        return self._with_awpers(people, len(first))

    def _with_awpers(self, people: list[Person], first_team_size: int) -> list[list[Person]]:
        dice = self._arena.dice("visitors", "awpers")
        return [with_one_awper(dice, people[:first_team_size]), with_one_awper(dice, people[first_team_size:])]

    def _send_stranger(self, last_ms: int) -> None:
        dice = self._arena.dice("visitors", "stranger")
        names = [guest.person.name for guest in self._crowd.guests.values()]
        person = make_people(dice, 1, taken_names=names)[0]
        stranger = self._crowd.stranger = Guest(person, 0, LAST_RANK)
        self._crowd.come(stranger, last_ms + dice.randint(*STRANGER_AFTER_MS))


def _accounts_in(text: str) -> list[int]:
    """The accounts of a list of SteamID64s and account numbers; whatever is neither is passed over."""
    accounts = []
    for word in _SEPARATORS.split(text):
        account = account_of(word)
        if account is None and _ACCOUNT.fullmatch(word) and int(word) <= MAX_ACCOUNT:
            account = int(word)
        if account is not None:
            accounts.append(account)
    return _distinct(accounts)


def _distinct(accounts: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(accounts))
