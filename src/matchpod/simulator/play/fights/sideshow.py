"""What else goes on in a round? Leaving the buy zone, grenades, shots that kill nobody, chickens, mistakes."""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.simulator.agenda import Script
from matchpod.simulator.play.fights.combat import Battle, best_weapon
from matchpod.simulator.play.fights.duel import duel, graze, spray
from matchpod.simulator.play.fights.economy import leave_buyzone
from matchpod.simulator.play.fights.grenades import throw
from matchpod.simulator.play.fights.terrain import reach_of
from matchpod.simulator.play.fights.timeline import Timeline
from matchpod.simulator.play.player import Player

_THROWN = 0.75
"""Which share of the grenades is thrown, of those whose owner lives long enough."""
_CHICKENS = 0.6
_PROPS = 0.6
_TEAM_HITS = 0.12
_TEAM_KILLS = 0.006
_FALLS = 0.004
_SKIRMISHES = 0.2
"""Exchanges of fire without a fall, for each player."""

_PROP_NAMES = ("prop_physics_multiplayer", "func_breakable", "prop_dynamic")


def plan_leaving(battle: Battle, timeline: Timeline) -> None:
    """Everybody leaves the buy zone within the first seconds, in any order."""
    roll = battle.dice.random
    players = [(int(200 + 5800 * roll() * roll()), player) for player in battle.arena.players if player.is_alive]
    players.sort(key=lambda pair: pair[0])
    timeline.start(_leave(battle, players))


def plan_sideshow(battle: Battle, timeline: Timeline, *, fight_ms: int) -> None:
    """Plan what may happen beside the fights of a round that takes about so long."""
    roll = battle.dice.random
    for player in [player for player in battle.arena.players if player.is_alive]:
        for grenade in list(player.grenades):
            if roll() < _THROWN:
                timeline.start(throw(battle, player, grenade), 3000 + int(roll() * fight_ms))
        if roll() < _SKIRMISHES:
            timeline.start(_skirmish(battle), 6000 + int(roll() * fight_ms))
    for share, script in (
        (_CHICKENS, _chicken(battle)),
        (_PROPS, _prop(battle)),
        (_TEAM_HITS, _team_hit(battle)),
        (_TEAM_KILLS, _team_kill(battle)),
        (_FALLS, _fall(battle)),
    ):
        if roll() < share:
            timeline.start(script, 2000 + int(roll() * fight_ms))


def _leave(battle: Battle, players: list[tuple[int, Player]]) -> Script[None]:
    passed_ms = 0
    for at_ms, player in players:
        yield at_ms - passed_ms
        passed_ms = at_ms
        if player.is_alive:
            leave_buyzone(battle.arena, player)


def _skirmish(battle: Battle) -> Script[None]:
    cts, ts = battle.arena.alive(Side.CT), battle.arena.alive(Side.T)
    if not cts or not ts:
        return
    battle.look_at_settings()
    roll = battle.dice.random
    pair = [cts[int(roll() * len(cts))], ts[int(roll() * len(ts))]]
    attacker, victim = pair if roll() < 0.5 else reversed(pair)
    battle.terrain.face(battle.dice, attacker, victim, reach_of(best_weapon(attacker).kind))
    yield from spray(battle, attacker, victim, hits=1 + int(roll() * 3))
    yield 120 + int(roll() * 300)
    if attacker.is_alive and victim.is_alive and roll() < 0.4:
        graze(battle, victim, attacker)


def _anyone(battle: Battle) -> Player | None:
    living = [player for player in battle.arena.players if player.is_alive]
    return living[int(battle.dice.random() * len(living))] if living else None


def _two_mates(battle: Battle) -> tuple[Player, Player] | None:
    one = _anyone(battle)
    if one is None:
        return None
    mates = [player for player in battle.arena.players if player.is_alive and player.team == one.team]
    mates.remove(one)
    return (one, mates[int(battle.dice.random() * len(mates))]) if mates else None


def _chicken(battle: Battle) -> Script[None]:
    killer = _anyone(battle)
    if killer is not None:
        battle.kill_thing(killer, "chicken", best_weapon(killer).name)
    yield from ()


def _prop(battle: Battle) -> Script[None]:
    killer = _anyone(battle)
    if killer is not None:
        name = _PROP_NAMES[int(battle.dice.random() * len(_PROP_NAMES))]
        battle.kill_thing(killer, name, best_weapon(killer).name)
    yield from ()


def _team_hit(battle: Battle) -> Script[None]:
    pair = _two_mates(battle)
    if pair is not None:
        battle.look_at_settings()
        yield from spray(battle, *pair, hits=1 + int(battle.dice.random() * 2))


def _team_kill(battle: Battle) -> Script[None]:
    pair = _two_mates(battle)
    if pair is not None and battle.bullets_on_friends and not battle.must_live(pair[1]):
        yield from duel(battle, *pair)


def _fall(battle: Battle) -> Script[None]:
    victim = _anyone(battle)
    if victim is not None and not battle.must_live(victim):
        battle.die_alone(victim)
    yield from ()
