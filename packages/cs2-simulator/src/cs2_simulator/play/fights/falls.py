"""Play fights one after another, until a planned number of players per side is left. The time is limited.

Better players win more often, and the player who made the last kill is the most likely next victim. If there is little
time left, fights follow without pauses, so the planned number of players is always reached.
"""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.agenda import Script
from cs2_simulator.play.fights.arsenal import WEAPONS
from cs2_simulator.play.fights.combat import Battle, best_weapon
from cs2_simulator.play.fights.duel import duel, spray
from cs2_simulator.play.fights.economy import equip, log_pick_up
from cs2_simulator.play.fights.grenades import throw
from cs2_simulator.play.fights.terrain import REACH
from cs2_simulator.play.player import Player

_FIGHT_MS = 1500
"""Usual maximum duration of a fight in milliseconds. If less time per fight is left, there are no pauses."""

_NO_KILL_MS = 100
"""Pause in milliseconds after a fight without a kill. Without it, fights could repeat in the same tick forever when the
time is up."""

_TRADE = 0.35
_SHARED = 0.5
"""Probability that a team mate of the killer hurts the victim first (an assist). A real log has 45 assists per 100
kills."""
_FLASHED = 0.12
"""Probability, if no team mate hurts the victim first, that a team mate with a flashbang blinds them. A real log has 2
flash assists in 15 rounds."""
_SHARED_PAUSE_MS = (50, 1000)
_SHORT_PAUSE = 0.4
_PICK_UP = 0.4
_CHEATER_WEIGHT = 3.0
_BURST = 0.45
"""Probability that a cheater kills several players in a row."""
_BURST_PAUSE_MS = 150
_MAX_BURST = 4


class Fights:
    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self._arena = battle.arena
        self._rng = battle.rng
        self._last_killer: Player | None = None

    def until_left(self, *, cts: int, ts: int, until_ms: int) -> Script[None]:
        """Fight until at most `cts` CTs and `ts` Terrorists are left, if possible by the time `until_ms`."""
        arena, rng = self._arena, self._rng
        goals = {Side.CT: cts, Side.T: ts}
        while True:
            excess = self._excess(goals)
            deaths = excess[Side.CT] + excess[Side.T]
            if not deaths or not arena.alive_on(Side.CT) or not arena.alive_on(Side.T):
                return
            spare_ms = until_ms - arena.clock_ms - deaths * _FIGHT_MS
            yield self._pause_ms(spare_ms, deaths)
            side = self._next_losing_side(self._excess(goals), goals)
            if side is None:
                return
            is_quick, deaths_before = spare_ms <= 0, self._battle.deaths
            yield from self._fight(side, self._excess(goals)[side], is_quick=is_quick)
            if self._battle.deaths == deaths_before:
                yield _NO_KILL_MS
            if rng.random() < _PICK_UP:
                pick_up_gun(self._battle)

    def _excess(self, goals: dict[Side, int]) -> dict[Side, int]:
        return {side: max(0, len(self._arena.alive_on(side)) - goal) for side, goal in goals.items()}

    def _pause_ms(self, spare_ms: int, deaths: int) -> int:
        chance, length = self._rng.random(), self._rng.random()
        if spare_ms <= 0:
            return 0
        pause_ms = 200 + 2500 * length if chance < _SHORT_PAUSE else 1.8 * length * spare_ms / deaths
        return min(int(pause_ms), spare_ms)

    def _next_losing_side(self, excess: dict[Side, int], goals: dict[Side, int]) -> Side | None:
        """Return the side of the next victim. If one side is to be eliminated, its last player is the last victim."""
        cts, ts = excess[Side.CT], excess[Side.T]
        if not cts or not ts:
            return Side.CT if cts else Side.T if ts else None
        for side in (Side.CT, Side.T):
            if goals[side] == 0 and excess[side] == 1:
                return side.other
        return Side.CT if self._rng.random() * (cts + ts) < cts else Side.T

    def _fight(self, side: Side, excess: int, *, is_quick: bool) -> Script[None]:
        arena, rng = self._arena, self._rng
        victims, killers = arena.alive_on(side), arena.alive_on(side.other)
        if not victims or not killers:
            return
        last = self._last_killer
        if last is not None and last in victims and rng.random() < _TRADE:
            victim = last
        else:
            (victim,) = rng.choices(victims, [1 / max(player.person.skill, 0.1) for player in victims])
        (killer,) = rng.choices(killers, [_strength(player) for player in killers])
        self._last_killer = killer
        is_cheater = killer.person.is_cheater
        killers.remove(killer)
        is_shared = not is_quick and bool(killers) and rng.random() < _SHARED
        if is_shared:
            yield from self._wound_first(killers[int(rng.random() * len(killers))], victim)
        elif not is_quick and rng.random() < _FLASHED:
            yield from self._flash_first(killers, victim)
        is_located = is_shared or victim is last
        yield from duel(self._battle, killer, victim, is_quick=is_quick or is_cheater, is_located=is_located)
        if is_cheater and excess > 1 and rng.random() < _BURST:
            yield from self._burst(killer, side, min(excess, _MAX_BURST) - 1)

    def _wound_first(self, helper: Player, victim: Player) -> Script[None]:
        """Let a helper wound the victim before the killer attacks."""
        battle, roll = self._battle, self._rng.random
        battle.read_log_settings()
        battle.terrain.place_both(self._rng, helper, victim, REACH[best_weapon(helper).kind])
        yield from spray(battle, helper, victim, hits=2 + int(roll() * 2.5))
        soonest, latest = _SHARED_PAUSE_MS
        yield soonest + int(roll() * (latest - soonest))

    def _flash_first(self, helpers: list[Player], victim: Player) -> Script[None]:
        """Let a helper with a flashbang blind the victim before the killer attacks."""
        for helper in helpers:
            if "flashbang" in helper.grenades:
                yield from throw(self._battle, helper, "flashbang", victim)
                yield 100 + int(self._rng.random() * 500)
                return

    def _burst(self, killer: Player, side: Side, more: int) -> Script[None]:
        """Kill several players in a row, faster than a human can aim."""
        for _ in range(more):
            yield _BURST_PAUSE_MS
            victims = self._arena.alive_on(side)
            if not killer.is_alive or not victims:
                return
            yield from duel(self._battle, killer, victims[0], is_quick=True)


def pick_up_gun(battle: Battle) -> None:
    """Let a random living player pick up the most expensive dropped gun, if it costs more than their primary weapon."""
    guns = battle.dropped_guns
    living = [player for player in battle.arena.players if player.is_alive]
    if not guns or not living:
        return
    player = living[int(battle.rng.random() * len(living))]
    gun = max(guns, key=lambda name: WEAPONS[name].price)
    own_price = WEAPONS[player.primary].price if player.primary else 0
    if WEAPONS[gun].price > own_price:
        guns.remove(gun)
        if player.primary:
            guns.append(player.primary)
        equip(player, gun)
        log_pick_up(battle.arena, player, gun)


def _strength(player: Player) -> float:
    weight = max(player.person.skill, 0.1) * (1.6 if player.primary else 1.0)
    return weight * _CHEATER_WEIGHT if player.person.is_cheater else weight
