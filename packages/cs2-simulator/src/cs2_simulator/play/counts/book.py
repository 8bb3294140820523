"""Count the statistics of a map directly from the simulated events.

The counts follow the published definitions of the statistics, not the code that reads logs, so that tests can compare
both results. Every event is counted when it happens, not from a record of the round. Callers must report events in the
order of the log. Fights in freeze time do not occur.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cs2_protocol.game import Side
from cs2_simulator.play.counts.tally import Tally, add_all
from cs2_simulator.play.player import Player

TRADE_MS = 5000
"""A death counts as traded if the killer dies within this number of milliseconds, inclusive."""

BIGGEST_CLUTCH = 5
ACE_KILLS = 5

PISTOLS = frozenset(
    {"glock", "hkp2000", "usp_silencer", "p250", "elite", "fiveseven", "tec9", "cz75a", "deagle", "revolver"}
)
SNIPERS = frozenset({"awp", "ssg08", "scar20", "g3sg1"})
FIRE = frozenset({"inferno", "molotov", "incgrenade"})
UTILITY = FIRE | {"hegrenade", "flashbang", "smokegrenade", "decoy"}
KNIVES = ("knife", "bayonet")
"""Prefixes of the names of knives. Each knife model has its own name."""

_THROWN = {
    "hegrenade": "he_thrown",
    "flashbang": "flash_thrown",
    "smokegrenade": "smoke_thrown",
    "molotov": "molly_thrown",
    "incgrenade": "molly_thrown",
    "decoy": "decoy_thrown",
}


class _Round:
    """The statistics of one round.

    A player stays in the same team even after changing sides; enemies are players on different sides.
    """

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
        self._by_player: dict[Player, Tally] = {}
        self._team1_side = _side_of_team1(*line_ups)
        # Players of the line-ups who are alive and connected, by team. Players are removed, but never added back.
        self._alive: dict[int, dict[str, Tally]] = {0: {}, 1: {}, 2: {}}
        self._dead: set[str] = set()
        self._deaths_by_enemies: list[tuple[int, Tally, Tally]] = []
        self._clutches: dict[int, tuple[Tally, int]] = {}
        self._has_first_kill = False
        for team, line_up in enumerate(line_ups, start=1):
            for player in line_up:
                self._add_to_line_up(player, team)

    @property
    def tallies(self) -> list[Tally]:
        """One tally per player: first the line-ups, then all other players in the order of their first event."""
        return list(self._tallies.values())

    def tally_of(self, player: Player) -> Tally:
        """Return the tally of a player.

        A player who joined after the start is put into the team that is on their side.
        """
        tally = self._by_player.get(player)
        if tally is None:
            tally = self._find_or_add(player, self._team_of_side(player))
        return tally

    def are_enemies(self, one: Player, other: Player) -> bool:
        """True if the players are on different sides now. In a free-for-all, any two different players are enemies."""
        return self.tally_of(one) is not self.tally_of(other) and (self._is_free_for_all or one.team != other.team)

    def kill(
        self, killer: Player, victim: Player, weapon: str, *, is_headshot: bool, is_blind: bool, at_ms: int
    ) -> None:
        attacker, target = self.tally_of(killer), self.tally_of(victim)
        is_enemy = self.are_enemies(killer, victim)
        if is_enemy:
            _count_kill(attacker, weapon, is_headshot=is_headshot)
            attacker.blind_kills += is_blind
            attacker.carrier_kills += victim.has_bomb
            if not self._has_respawns:
                self._count_round_kill(attacker, target, at_ms)
        elif attacker is not target:
            attacker.team_kills += 1
        if self.die(target) and is_enemy:
            self._deaths_by_enemies.append((at_ms, attacker, target))

    def die(self, target: Tally) -> bool:
        """Count any death; without respawns, only a player's first in a round. Return True for such a first death."""
        if self._has_respawns:
            target.deaths += 1
            return False
        if target.player_id in self._dead:
            return False
        target.first_deaths += not self._dead and not self.is_decided
        self._dead.add(target.player_id)
        target.deaths += 1
        self._remove_alive(target.player_id, target.team)
        return True

    def leave(self, player: Player) -> None:
        tally = self._tallies.get(player.person.player_id)
        if tally is not None and not self._has_respawns:
            self._remove_alive(tally.player_id, tally.team)

    def decide(self, winner: int | None, mvp: Player | None) -> None:
        if self.is_decided:
            return
        self.is_decided = True
        if mvp is not None:
            self.tally_of(mvp).mvps += 1
        if self._has_respawns:
            return
        for alive in self._alive.values():
            for tally in alive.values():
                tally.kast_rounds = 1
        if winner in self._clutches:
            last, enemies = self._clutches[winner]
            clutch = f"clutch1v{enemies}"
            setattr(last, clutch, getattr(last, clutch) + 1)

    def assist(self, helper: Player, victim: Player, *, is_flash: bool) -> None:
        tally = self.tally_of(helper)
        if not self.are_enemies(helper, victim):
            return
        tally.assists += 1
        if is_flash:
            tally.flash_assists += 1
        elif not self._has_respawns:
            tally.kast_rounds = tally.rounds_played

    def _count_round_kill(self, attacker: Tally, target: Tally, at_ms: int) -> None:
        """Count those statistics of a kill that exist only in modes without respawns."""
        attacker.kast_rounds = attacker.rounds_played
        _count_multi_kill(attacker)
        self._count_trade(attacker, target, at_ms)
        if self.is_decided:
            return
        if not self._has_first_kill:
            self._has_first_kill = True
            attacker.first_kills += 1
        mates = self._alive[attacker.team]
        if len(mates) == 1 and attacker.player_id in mates and not self._is_free_for_all:
            attacker.clutch_kills += 1

    def _count_trade(self, trader: Tally, target: Tally, at_ms: int) -> None:
        is_trade = False
        for died_at_ms, killer, dead in self._deaths_by_enemies:
            # If the grenade of a dead player kills their killer, the dead player's own death is not traded.
            is_mate = dead is not trader and dead.team == trader.team and not self._is_free_for_all
            if killer is target and is_mate and at_ms - died_at_ms <= TRADE_MS:
                is_trade = True
                dead.traded_deaths = 1
                dead.kast_rounds = dead.rounds_played
        trader.trade_kills += is_trade

    def _remove_alive(self, player_id: str, team: int) -> None:
        alive = self._alive[team]
        # A player who dies after the round was decided still counts as a survivor, and the death starts no clutch.
        if self.is_decided or alive.pop(player_id, None) is None or self._is_free_for_all or len(alive) != 1:
            return
        enemies = len(self._alive[3 - team])
        if enemies > 0:
            (last,) = alive.values()
            self._clutches[team] = (last, min(enemies, BIGGEST_CLUTCH))

    def _add_to_line_up(self, player: Player, team: int) -> None:
        tally = self._find_or_add(player, 0 if self._is_free_for_all else team)
        tally.rounds_played = 1
        self._alive[tally.team][tally.player_id] = tally

    def _find_or_add(self, player: Player, team: int) -> Tally:
        person = player.person
        player_id = person.player_id
        tally = self._tallies.get(player_id)
        if tally is None:
            tally = self._tallies[player_id] = Tally(player_id=player_id, name=person.name, team=team)
        tally.name = person.name
        self._by_player[player] = tally
        return tally

    def _team_of_side(self, player: Player) -> int:
        side = player.side
        if side is None or self._is_free_for_all:
            return 0
        return 1 if side is self._team1_side else 2


class Book:
    """The statistics of one map."""

    def __init__(self) -> None:
        self._is_open = False
        self._is_free_for_all = False
        self._has_respawns = False
        self._round: _Round | None = None
        """The current round; it stays current until the next one starts."""
        self._no_round = _Round(0, ((), ()), is_free_for_all=False, has_respawns=True)
        """Collects counts outside rounds; nothing reads them."""
        self._earlier: dict[int, list[Tally]] = {}
        """The tallies of the earlier rounds, by number."""
        self._decided: set[int] = set()
        self._totals: dict[str, Tally] = {}
        """The sum of the earlier rounds."""
        self.undone_damage: Counter[str] = Counter()
        """Damage in rounds that a restored backup undid, by player: the game never subtracts it."""

    @property
    def is_open(self) -> bool:
        """True while events count. It is false in warmup, in a knife round, and after the end of the map."""
        return self._is_open

    @property
    def _current(self) -> _Round:
        return self._round or self._no_round

    def open(self, *, is_free_for_all: bool, has_respawns: bool) -> None:
        """Start the statistics of a map that goes live, and discard earlier ones."""
        self._is_open = True
        self._is_free_for_all = is_free_for_all
        self._has_respawns = has_respawns
        self._round = None
        self._no_round = _Round(
            0, ((), ()), is_free_for_all=False, has_respawns=True
        )  # a new round, because the old one caches players of the previous map
        self._earlier, self._decided, self._totals = {}, set(), {}
        self.undone_damage.clear()

    def close(self) -> None:
        """Stop counting. The statistics are kept, including those of a round that was not decided."""
        self._store_round()
        self._is_open = False

    def round_started(self, number: int, team1: Sequence[Player], team2: Sequence[Player]) -> None:
        """Start round `number` with these line-ups. If it was played before, discard its earlier counts."""
        if not self._is_open:
            return
        self._store_round()
        if number in self._earlier:
            del self._earlier[number]
            self._decided.discard(number)
            self._sum_rounds()
        self._round = _Round(
            number, (team1, team2), is_free_for_all=self._is_free_for_all, has_respawns=self._has_respawns
        )

    def hit(self, attacker: Player, victim: Player, weapon: str, health_lost: int) -> None:
        """Count a hit on an enemy; other hits are ignored. `weapon` is the name in `killed` lines."""
        current = self._current
        tally = current.tally_of(attacker)
        if current.are_enemies(attacker, victim):
            tally.damage += health_lost
            if weapon not in UTILITY and not weapon.startswith(KNIVES):
                tally.count_shot()
            if weapon in UTILITY:
                tally.utility_damage += health_lost
                tally.burn_damage += health_lost if weapon in FIRE else 0
                tally.he_damage += health_lost if weapon == "hegrenade" else 0

    def kill(
        self, killer: Player, victim: Player, weapon: str, *, is_headshot: bool, at_ms: int, is_blind: bool = False
    ) -> None:
        """Count a kill of an enemy or a team mate. `is_blind` is true if the killer is blinded by a flashbang."""
        self._current.kill(killer, victim, weapon, is_headshot=is_headshot, is_blind=is_blind, at_ms=at_ms)

    def died(self, victim: Player) -> None:
        """Count a death by fall or suicide, or of a living player who left the server or their side.

        Coaches do not count.
        """
        if not victim.is_coach:
            self._current.die(self._current.tally_of(victim))

    def killed_by_bomb(self, victim: Player) -> None:
        """Count a death by the bomb, unless the round is already decided.

        In 4 of 4 real cases, the game did not count a death by the bomb after the decision.
        """
        if not self._current.is_decided:
            self.died(victim)

    def assist(self, helper: Player, victim: Player, *, is_flash: bool) -> None:
        self._current.assist(helper, victim, is_flash=is_flash)

    def blinded(self, victim: Player, thrower: Player) -> None:
        """Count a living player who was blinded by a flashbang of an enemy. Others are ignored."""
        self._current.tally_of(thrower).enemies_flashed += self._current.are_enemies(thrower, victim)

    def grenade_thrown(self, thrower: Player, grenade: str) -> None:
        tally, counter = self._current.tally_of(thrower), _THROWN[grenade]
        setattr(tally, counter, getattr(tally, counter) + 1)

    def chicken_killed(self, killer: Player) -> None:
        self._current.tally_of(killer).chicken_kills += 1

    def bomb_planted(self, planter: Player) -> None:
        self._current.tally_of(planter).bomb_plants += 1

    def bomb_defused(self, defuser: Player) -> None:
        self._current.tally_of(defuser).bomb_defuses += 1

    def player_left(self, player: Player) -> None:
        """Remove a player who disconnected or left their side from the living players.

        This is not counted as a death.
        """
        self._current.leave(player)

    def round_decided(self, winner: int | None, mvp: Player | None) -> None:
        """End the round; `winner` is team 1, team 2 or None.

        Later events still belong to it until the next round starts.
        """
        self._current.decide(winner, mvp)

    def rewind(self, rounds_played: int) -> None:
        """Go back to a round backup: discard later and undecided rounds, and count again even after the end."""
        self._is_open = True
        for number, tallies in self.rounds():
            if number > rounds_played:
                for tally in tallies:
                    self.undone_damage[tally.player_id] += tally.damage
        if self._round is not None and not self._round.is_decided:
            self._round = None
        self._store_round()
        self._earlier = {number: tallies for number, tallies in self._earlier.items() if number <= rounds_played}
        self._decided.intersection_update(self._earlier)
        self._sum_rounds()

    def tallies(self) -> list[Tally]:
        """Return one tally per player with the totals of the map. The tallies are copies."""
        totals: dict[str, Tally] = {}
        add_all(totals, list(self._totals.values()))
        if self._round is not None:
            add_all(totals, self._round.tallies)
        return list(totals.values())

    def rounds(self) -> list[tuple[int, list[Tally]]]:
        current = [] if self._round is None else [(self._round.number, list(self._round.tallies))]
        return [*self._earlier.items(), *current]

    def rounds_played(self) -> int:
        is_current_decided = self._round is not None and self._round.is_decided
        return len(self._decided) + is_current_decided

    def _store_round(self) -> None:
        current, self._round = self._round, None
        if current is None:
            return
        self._earlier[current.number] = current.tallies
        if current.is_decided:
            self._decided.add(current.number)
        add_all(self._totals, current.tallies)

    def _sum_rounds(self) -> None:
        self._totals = {}
        for tallies in self._earlier.values():
            add_all(self._totals, tallies)


def _side_of_team1(team1: Sequence[Player], team2: Sequence[Player]) -> Side:
    """Return the side of team 1. If no player of the line-ups is on a side, return CT, where team 1 begins."""
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
    """Count the kills of the round in exactly one multi-kill counter."""
    kills = tally.kills
    tally.double_kills = int(kills == 2)
    tally.triple_kills = int(kills == 3)
    tally.quad_kills = int(kills == 4)
    tally.aces = int(kills >= ACE_KILLS)
