"""What really happened on this map? The simulator's own count, told of every act as it is decided.

It follows the published meaning of the numbers, not the code that reads logs, so that the two can be held against each
other. Everything is counted at once: no event is kept to be judged later. Whoever tells the book keeps the order of
the log, and tells it nothing of freeze time.
"""

from __future__ import annotations

from collections.abc import Sequence

from matchpod.core.model import Side
from matchpod.simulator.play.counts.tally import Tally, add_all
from matchpod.simulator.play.player import Player

TRADE_MS = 5000
"""A death is traded when its killer dies within this time; the last millisecond counts."""

BIGGEST_CLUTCH = 5
ACE_KILLS = 5

PISTOLS = frozenset(
    {"glock", "hkp2000", "usp_silencer", "p250", "elite", "fiveseven", "tec9", "cz75a", "deagle", "revolver"}
)
SNIPERS = frozenset({"awp", "ssg08", "scar20", "g3sg1"})
FIRE = frozenset({"inferno", "molotov", "incgrenade"})
UTILITY = FIRE | {"hegrenade", "flashbang", "smokegrenade", "decoy"}
KNIVES = ("knife", "bayonet")
"""How the names of knives begin; each skin has one of its own."""

_THROWN = {
    "hegrenade": "he_thrown",
    "flashbang": "flash_thrown",
    "smokegrenade": "smoke_thrown",
    "molotov": "molly_thrown",
    "incgrenade": "molly_thrown",
    "decoy": "decoy_thrown",
}


class _Round:
    """One round as it goes on. Teams are those of its line-ups, whoever changes sides later; enemies are by side."""

    def __init__(
        self,
        number: int,
        line_ups: tuple[Sequence[Player], Sequence[Player]],
        *,
        is_free_for_all: bool,
        has_respawns: bool,
    ) -> None:
        self.number = number
        self.is_decided = False
        self._is_free_for_all = is_free_for_all
        self._has_respawns = has_respawns
        self._tallies: dict[str, Tally] = {}
        self._by_stay: dict[Player, Tally] = {}
        self._team1_side = _side_of_team1(*line_ups)
        # Who of the line-ups is alive and present, by team; nobody ever comes back into it.
        self._standing: dict[int, dict[str, Tally]] = {0: {}, 1: {}, 2: {}}
        self._dead: set[str] = set()
        self._deaths_by_enemies: list[tuple[int, Tally, Tally]] = []
        self._last_ones: dict[int, tuple[Tally, int]] = {}
        self._has_first_kill = False
        for team, line_up in enumerate(line_ups, start=1):
            for player in line_up:
                self._line_up(player, team)

    @property
    def tallies(self) -> list[Tally]:
        """One for each player who stood in a line-up or did anything, in that order."""
        return list(self._tallies.values())

    def of(self, player: Player) -> Tally:
        """The tally of somebody; one who came after the start has the team of the side he is on."""
        tally = self._by_stay.get(player)
        if tally is None:
            tally = self._meet(player, self._team_of_side(player))
        return tally

    def are_enemies(self, one: Player, other: Player) -> bool:
        """True for players who stand on two sides now; in a free-for-all, for any two."""
        return self.of(one) is not self.of(other) and (self._is_free_for_all or one.team != other.team)

    def kill(
        self, killer: Player, victim: Player, weapon: str, *, is_headshot: bool, is_blind: bool, at_ms: int
    ) -> None:
        attacker, target = self.of(killer), self.of(victim)
        is_enemy = self.are_enemies(killer, victim)
        if is_enemy:
            _count_kill(attacker, weapon, is_headshot=is_headshot)
            attacker.blind_kills += is_blind
            attacker.carrier_kills += victim.has_bomb
            if not self._has_respawns:
                self._weigh_kill(attacker, target, at_ms)
        elif attacker is not target:
            attacker.team_kills += 1
        if self.fall(target) and is_enemy:
            self._deaths_by_enemies.append((at_ms, attacker, target))

    def fall(self, target: Tally) -> bool:
        """Count a death by whatever cause; False when it says nothing about the round, or was counted before."""
        if self._has_respawns:
            target.deaths += 1
            return False
        if target.player_id in self._dead:
            return False
        target.first_deaths += not self._dead and not self.is_decided
        self._dead.add(target.player_id)
        target.deaths += 1
        self._drop_out(target.player_id, target.team)
        return True

    def leave(self, player: Player) -> None:
        tally = self._tallies.get(player.person.player_id)
        if tally is not None and not self._has_respawns:
            self._drop_out(tally.player_id, tally.team)

    def decide(self, winner: int | None, mvp: Player | None) -> None:
        if self.is_decided:
            return
        self.is_decided = True
        if mvp is not None:
            self.of(mvp).mvps += 1
        if self._has_respawns:
            return
        for standing in self._standing.values():
            for tally in standing.values():
                tally.rounds_survived = tally.kast_rounds = 1
        if winner in self._last_ones:
            last, enemies = self._last_ones[winner]
            clutch = f"clutch1v{enemies}"
            setattr(last, clutch, getattr(last, clutch) + 1)

    def assist(self, helper: Player, victim: Player, *, is_flash: bool) -> None:
        tally = self.of(helper)
        if not self.are_enemies(helper, victim):
            return
        tally.assists += 1
        if is_flash:
            tally.flash_assists += 1
        elif not self._has_respawns:
            tally.kast_rounds = tally.rounds_played

    def _weigh_kill(self, attacker: Tally, target: Tally, at_ms: int) -> None:
        """What a kill means in a round from which nobody comes back."""
        attacker.kast_rounds = attacker.rounds_played
        _count_multi_kill(attacker)
        self._avenge(attacker, target, at_ms)
        if self.is_decided:
            return
        if not self._has_first_kill:
            self._has_first_kill = True
            attacker.first_kills += 1
        mates = self._standing[attacker.team]
        if len(mates) == 1 and attacker.player_id in mates and not self._is_free_for_all:
            attacker.clutch_kills += 1

    def _avenge(self, avenger: Tally, target: Tally, at_ms: int) -> None:
        is_trade = False
        for died_at_ms, killer, dead in self._deaths_by_enemies:
            # A grenade may kill for somebody who is dead: that is no team mate's revenge.
            is_mate = dead is not avenger and dead.team == avenger.team and not self._is_free_for_all
            if killer is target and is_mate and at_ms - died_at_ms <= TRADE_MS:
                is_trade = True
                dead.traded_deaths = 1
                dead.kast_rounds = dead.rounds_played
        avenger.trade_kills += is_trade

    def _drop_out(self, player_id: str, team: int) -> None:
        standing = self._standing[team]
        # After the decision nobody stops having survived, and nobody comes into a clutch.
        if self.is_decided or standing.pop(player_id, None) is None or self._is_free_for_all or len(standing) != 1:
            return
        enemies = len(self._standing[3 - team])
        if enemies > 0:
            (last,) = standing.values()
            self._last_ones[team] = (last, min(enemies, BIGGEST_CLUTCH))

    def _line_up(self, player: Player, team: int) -> None:
        tally = self._meet(player, 0 if self._is_free_for_all else team)
        tally.rounds_played = 1
        self._standing[tally.team][tally.player_id] = tally

    def _meet(self, player: Player, team: int) -> Tally:
        person = player.person
        player_id = person.player_id
        tally = self._tallies.get(player_id)
        if tally is None:
            tally = self._tallies[player_id] = Tally(player_id, person.name, team)
        tally.name = person.name
        self._by_stay[player] = tally
        return tally

    def _team_of_side(self, player: Player) -> int:
        side = player.side
        if side is None or self._is_free_for_all:
            return 0
        return 1 if side is self._team1_side else 2


class Book:
    """The counts of one map."""

    def __init__(self) -> None:
        self._is_open = False
        self._is_free_for_all = False
        self._has_respawns = False
        self._round: _Round | None = None
        """The round whose acts are being told; it stays the same until the next one starts."""
        self._told: dict[int, list[Tally]] = {}
        """The rounds before it, by number."""
        self._decided: set[int] = set()
        self._totals: dict[str, Tally] = {}
        """The sum of the rounds before it."""

    @property
    def is_open(self) -> bool:
        """False: everything told is ignored (warmup, knife round, after the end)."""
        return self._is_open

    def open(self, *, is_free_for_all: bool, has_respawns: bool) -> None:
        """A map goes live: forget all before."""
        self._is_open = True
        self._is_free_for_all = is_free_for_all
        self._has_respawns = has_respawns
        self._round = None
        self._told, self._decided, self._totals = {}, set(), {}

    def close(self) -> None:
        """The map is over; its counts stay, those of a round without a decision too."""
        self._put_away()
        self._is_open = False

    def round_started(self, number: int, team1: Sequence[Player], team2: Sequence[Player]) -> None:
        """Freeze time is over, with these line-ups. A round of the same number that was told before never was."""
        if not self._is_open:
            return
        self._put_away()
        if number in self._told:
            del self._told[number]
            self._decided.discard(number)
            self._add_up()
        self._round = _Round(
            number, (team1, team2), is_free_for_all=self._is_free_for_all, has_respawns=self._has_respawns
        )

    def hit(self, attacker: Player, victim: Player, weapon: str, health_lost: int) -> None:
        """A hit, of whomever: only enemies count. The weapon is named as `killed` would."""
        playing = self._round
        if playing is None:
            return
        tally = playing.of(attacker)
        if playing.are_enemies(attacker, victim):
            tally.damage += health_lost
            if weapon in UTILITY:
                tally.utility_damage += health_lost
                tally.burn_damage += health_lost if weapon in FIRE else 0
                tally.he_damage += health_lost if weapon == "hegrenade" else 0

    def kill(
        self,
        killer: Player,
        victim: Player,
        weapon: str,
        *,
        is_headshot: bool,
        at_ms: int,
        is_blind: bool = False,
    ) -> None:
        """Somebody killed somebody, an enemy or not; `is_blind` says that a flashbang still blinds the killer."""
        if self._round is not None:
            self._round.kill(killer, victim, weapon, is_headshot=is_headshot, is_blind=is_blind, at_ms=at_ms)

    def died(self, victim: Player, at_ms: int) -> None:
        """Somebody died by the bomb, a fall or his own hand."""
        if self._round is not None:
            self._round.fall(self._round.of(victim))

    def assist(self, helper: Player, victim: Player, *, is_flash: bool) -> None:
        """Somebody helped to kill."""
        if self._round is not None:
            self._round.assist(helper, victim, is_flash=is_flash)

    def blinded(self, victim: Player, thrower: Player) -> None:
        """A flashbang blinded somebody alive."""
        playing = self._round
        if playing is not None:
            tally = playing.of(thrower)
            tally.enemies_flashed += playing.are_enemies(thrower, victim)

    def threw(self, thrower: Player, grenade: str) -> None:
        """A grenade left a hand."""
        if self._round is not None:
            tally, counter = self._round.of(thrower), _THROWN[grenade]
            setattr(tally, counter, getattr(tally, counter) + 1)

    def chicken(self, killer: Player) -> None:
        """A chicken was killed."""
        if self._round is not None:
            self._round.of(killer).chicken_kills += 1

    def planted(self, planter: Player) -> None:
        """The bomb was planted."""
        if self._round is not None:
            self._round.of(planter).bomb_plants += 1

    def defused(self, defuser: Player) -> None:
        """The bomb was defused."""
        if self._round is not None:
            self._round.of(defuser).bomb_defuses += 1

    def left(self, player: Player, at_ms: int) -> None:
        """Somebody disconnected or went to the spectators: no death, but he is no longer there."""
        if self._round is not None:
            self._round.leave(player)

    def decided(self, side_team: int | None, mvp: Player | None) -> None:
        """The round was decided for team 1 or 2, or drawn. What is told after it still belongs to the round."""
        if self._round is not None:
            self._round.decide(side_team, mvp)

    def rewind(self, rounds_played: int) -> None:
        """A backup was loaded: rounds above are forgotten, and one without a decision; the map counts, ended or not."""
        self._is_open = True
        if self._round is not None and not self._round.is_decided:
            self._round = None
        self._put_away()
        self._told = {number: tallies for number, tallies in self._told.items() if number <= rounds_played}
        self._decided.intersection_update(self._told)
        self._add_up()

    def tallies(self) -> list[Tally]:
        """One for each player who took part, over the whole map; the caller may keep them."""
        totals: dict[str, Tally] = {}
        add_all(totals, list(self._totals.values()))
        if self._round is not None:
            add_all(totals, self._round.tallies)
        return list(totals.values())

    def rounds_played(self) -> int:
        """How many rounds were decided."""
        is_extra = self._round is not None and self._round.is_decided
        return len(self._decided) + is_extra

    def _put_away(self) -> None:
        """Add the present round to those before it; one of the same number is replaced."""
        playing, self._round = self._round, None
        if playing is None:
            return
        self._told[playing.number] = playing.tallies
        if playing.is_decided:
            self._decided.add(playing.number)
        add_all(self._totals, playing.tallies)

    def _add_up(self) -> None:
        self._totals = {}
        for tallies in self._told.values():
            add_all(self._totals, tallies)


def _side_of_team1(team1: Sequence[Player], team2: Sequence[Player]) -> Side:
    """Where team 1 stands; where nobody shows it, at its beginning: CT."""
    for player in team1:
        if player.side is not None:
            return player.side
    for player in team2:
        if player.side is not None:
            return player.side.other
    return Side.CT


def _count_kill(tally: Tally, weapon: str, *, is_headshot: bool) -> None:
    tally.kills += 1
    tally.headshots += is_headshot
    tally.weapon_kills[weapon] = tally.weapon_kills.get(weapon, 0) + 1
    if weapon in PISTOLS:
        tally.pistol_kills += 1
    elif weapon in SNIPERS:
        tally.sniper_kills += 1
    elif weapon.startswith(KNIVES):
        tally.knife_kills += 1


def _count_multi_kill(tally: Tally) -> None:
    """A round is in one class only, that of its last kill so far."""
    kills = tally.kills
    tally.double_kills = int(kills == 2)
    tally.triple_kills = int(kills == 3)
    tally.quad_kills = int(kills == 4)
    tally.aces = int(kills >= ACE_KILLS)
