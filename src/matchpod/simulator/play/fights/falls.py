"""Who falls next, and by whom? Fights one after another until so many of each side are left, within a given time.

The better shoot the worse more often than the other way round, and whoever just killed is the likeliest to be next.
When time gets short nobody waits between fights: a story is always told to its end.
"""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.simulator.agenda import Script
from matchpod.simulator.play.fights.arsenal import WEAPONS
from matchpod.simulator.play.fights.combat import Battle, best_weapon
from matchpod.simulator.play.fights.duel import duel, spray
from matchpod.simulator.play.fights.economy import equip
from matchpod.simulator.play.fights.terrain import reach_of
from matchpod.simulator.play.player import Player

_FALL_MS = 1500
"""What a fight takes at most, as a rule; with less than this left for each, nobody waits any longer."""

_NO_LUCK_MS = 100
"""After a fight in which nobody fell: without time left the next one would follow in the same tick, for ever."""

_TRADE = 0.35
_SHARED = 0.5
"""How often a team mate has hurt the victim before. A real log has assists for 45 of 100 kills."""
_SHARED_PAUSE_MS = (50, 1000)
_SHORT_PAUSE = 0.4
_PICK_UP = 0.4
_CHEATER_WEIGHT = 3.0
_BURST = 0.45
"""How often a cheater does not stop at one."""
_BURST_PAUSE_MS = 150
_MAX_BURST = 4


class Fights:
    """The fights of one round."""

    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self._arena = battle.arena
        self._dice = battle.dice
        self._last_killer: Player | None = None

    def until_left(self, *, cts: int, ts: int, until_ms: int) -> Script[None]:
        """Fight until no more than these are left of each side, at the latest by then."""
        arena, dice = self._arena, self._dice
        goals = {Side.CT: cts, Side.T: ts}
        while True:
            over = self._over(goals)
            falls = over[Side.CT] + over[Side.T]
            if not falls or not arena.alive(Side.CT) or not arena.alive(Side.T):
                return
            spare_ms = until_ms - arena.clock_ms - falls * _FALL_MS
            yield self._pause_ms(spare_ms, falls)
            side = self._next_to_fall(self._over(goals), goals)
            if side is None:
                return
            is_quick, fallen = spare_ms <= 0, self._battle.falls
            yield from self._fall(side, self._over(goals)[side], is_quick=is_quick)
            if self._battle.falls == fallen:
                yield _NO_LUCK_MS
            if dice.random() < _PICK_UP:
                pick_up_gun(self._battle)

    def _over(self, goals: dict[Side, int]) -> dict[Side, int]:
        return {side: max(0, len(self._arena.alive(side)) - goal) for side, goal in goals.items()}

    def _pause_ms(self, spare_ms: int, falls: int) -> int:
        chance, length = self._dice.random(), self._dice.random()
        if spare_ms <= 0:
            return 0
        wish_ms = 200 + 2500 * length if chance < _SHORT_PAUSE else 1.8 * length * spare_ms / falls
        return min(int(wish_ms), spare_ms)

    def _next_to_fall(self, over: dict[Side, int], goals: dict[Side, int]) -> Side | None:
        """The side that loses its next man; one that is to be wiped out loses its last one last."""
        cts, ts = over[Side.CT], over[Side.T]
        if not cts or not ts:
            return Side.CT if cts else Side.T if ts else None
        for side in (Side.CT, Side.T):
            if goals[side] == 0 and over[side] == 1:
                return side.other
        return Side.CT if self._dice.random() * (cts + ts) < cts else Side.T

    def _fall(self, side: Side, over: int, *, is_quick: bool) -> Script[None]:
        arena, dice = self._arena, self._dice
        victims, killers = arena.alive(side), arena.alive(side.other)
        if not victims or not killers:
            return
        last = self._last_killer
        if last is not None and last in victims and dice.random() < _TRADE:
            victim = last
        else:
            (victim,) = dice.choices(victims, [1 / max(player.person.skill, 0.1) for player in victims])
        (killer,) = dice.choices(killers, [_strength(player) for player in killers])
        self._last_killer = killer
        is_cheater = killer.person.is_cheater
        is_shared = not is_quick and len(killers) > 1 and dice.random() < _SHARED
        if is_shared:
            killers.remove(killer)
            yield from self._wear_down(killers[int(dice.random() * len(killers))], victim)
        is_seen = is_shared or victim is last
        yield from duel(self._battle, killer, victim, is_quick=is_quick or is_cheater, is_seen=is_seen)
        if is_cheater and over > 1 and dice.random() < _BURST:
            yield from self._burst(killer, side, min(over, _MAX_BURST) - 1)

    def _wear_down(self, helper: Player, victim: Player) -> Script[None]:
        """Somebody hits the victim and leaves the rest to another."""
        battle, roll = self._battle, self._dice.random
        battle.look_at_settings()
        battle.terrain.face(self._dice, helper, victim, reach_of(best_weapon(helper).kind))
        yield from spray(battle, helper, victim, hits=2 + int(roll() * 2.5))
        soonest, latest = _SHARED_PAUSE_MS
        yield soonest + int(roll() * (latest - soonest))

    def _burst(self, killer: Player, side: Side, more: int) -> Script[None]:
        """One after another, faster than a hand can aim."""
        for _ in range(more):
            yield _BURST_PAUSE_MS
            victims = self._arena.alive(side)
            if not killer.is_alive or not victims:
                return
            yield from duel(self._battle, killer, victims[0], is_quick=True)


def pick_up_gun(battle: Battle) -> None:
    """Somebody alive takes the best gun that lies about, if it is better than his."""
    guns = battle.dropped_guns
    takers = [player for player in battle.arena.players if player.is_alive]
    if not guns or not takers:
        return
    taker = takers[int(battle.dice.random() * len(takers))]
    gun = max(guns, key=lambda name: WEAPONS[name].price)
    own = WEAPONS[taker.primary].price if taker.primary else 0
    if WEAPONS[gun].price > own:
        guns.remove(gun)
        if taker.primary:
            guns.append(taker.primary)
        equip(taker, gun)
        battle.pick_up(taker, gun)


def _strength(player: Player) -> float:
    weight = max(player.person.skill, 0.1) * (1.6 if player.primary else 1.0)
    return weight * _CHEATER_WEIGHT if player.person.is_cheater else weight
