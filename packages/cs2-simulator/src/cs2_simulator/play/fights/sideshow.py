"""Plan the minor events of a round: buy zone exits, grenades, non-lethal shots, chickens and accidents."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.agenda import Script
from cs2_simulator.play.fights.combat import Battle, best_weapon
from cs2_simulator.play.fights.duel import duel, graze, spray
from cs2_simulator.play.fights.economy import log_buyzone_exit
from cs2_simulator.play.fights.grenades import throw
from cs2_simulator.play.fights.script_runner import ScriptRunner
from cs2_simulator.play.fights.terrain import REACH
from cs2_simulator.play.player import Player

_STAYS_IN_BASE_MS = 5_000
"""Milliseconds after which no player leaves the buy zone. A player who would be slower stays in it: one player in
seventy, so this happens in about every seventh round."""
_THROWN = 0.75
"""Share of grenades that are thrown, if their owner lives long enough."""
_CHICKENS = 0.6
_PROPS = 0.6
_TEAM_HITS = 0.12
_TEAM_KILLS = 0.006
_FALLS = 0.004
_SKIRMISHES = 0.2
"""Probability, per player, of an exchange of fire without a kill."""

_PROP_NAMES = ("prop_physics_multiplayer", "func_breakable", "prop_dynamic")


def plan_buyzone_exits(battle: Battle, runner: ScriptRunner) -> None:
    """Schedule players to leave the buy zone within the first seconds, in random order.

    The slowest players stay in it.
    """
    roll = battle.rng.random
    players = [(int(200 + 5800 * roll() * roll()), player) for player in battle.arena.players if player.is_alive]
    players = [(at_ms, player) for at_ms, player in players if at_ms < _STAYS_IN_BASE_MS]
    players.sort(key=lambda pair: pair[0])
    runner.start(_leave_buyzone(battle, players))


def plan_side_events(battle: Battle, runner: ScriptRunner, *, fight_ms: int, after_ms: int = 0) -> None:
    """Schedule the events besides the fights. The fights begin after `after_ms` and take about `fight_ms`."""
    roll = battle.rng.random
    for player in [player for player in battle.arena.players if player.is_alive]:
        for grenade in list(player.grenades):
            if roll() < _THROWN:
                runner.start(throw(battle, player, grenade), after_ms + 3000 + int(roll() * fight_ms))
        if roll() < _SKIRMISHES:
            runner.start(_skirmish(battle), after_ms + 6000 + int(roll() * fight_ms))
    for share, script in (
        (_CHICKENS, _chicken(battle)),
        (_PROPS, _prop(battle)),
        (_TEAM_HITS, _team_hit(battle)),
        (_TEAM_KILLS, _team_kill(battle)),
        (_FALLS, _fall(battle)),
    ):
        if roll() < share:
            runner.start(script, after_ms + 2000 + int(roll() * fight_ms))


def _leave_buyzone(battle: Battle, players: list[tuple[int, Player]]) -> Script[None]:
    passed_ms = 0
    for at_ms, player in players:
        yield at_ms - passed_ms
        passed_ms = at_ms
        if player.is_alive:
            log_buyzone_exit(battle.arena, player)


def _skirmish(battle: Battle) -> Script[None]:
    cts, ts = battle.arena.alive_on(Side.CT), battle.arena.alive_on(Side.T)
    if not cts or not ts:
        return
    battle.read_log_settings()
    roll = battle.rng.random
    pair = [cts[int(roll() * len(cts))], ts[int(roll() * len(ts))]]
    attacker, victim = pair if roll() < 0.5 else reversed(pair)
    battle.terrain.place_both(battle.rng, attacker, victim, REACH[best_weapon(attacker).kind])
    yield from spray(battle, attacker, victim, hits=1 + int(roll() * 3))
    yield 120 + int(roll() * 300)
    if attacker.is_alive and victim.is_alive and roll() < 0.4:
        graze(battle, victim, attacker)


def _choose_living(battle: Battle) -> Player | None:
    living = [player for player in battle.arena.players if player.is_alive]
    return living[int(battle.rng.random() * len(living))] if living else None


def _choose_mates(battle: Battle) -> tuple[Player, Player] | None:
    first = _choose_living(battle)
    if first is None:
        return None
    mates = [player for player in battle.arena.players if player.is_alive and player.team == first.team]
    mates.remove(first)
    return (first, mates[int(battle.rng.random() * len(mates))]) if mates else None


def _chicken(battle: Battle) -> Script[None]:
    killer = _choose_living(battle)
    if killer is not None:
        battle.kill_other(killer, "chicken", best_weapon(killer).name)
    yield from ()


def _prop(battle: Battle) -> Script[None]:
    killer = _choose_living(battle)
    if killer is not None:
        name = _PROP_NAMES[int(battle.rng.random() * len(_PROP_NAMES))]
        battle.kill_other(killer, name, best_weapon(killer).name)
    yield from ()


def _team_hit(battle: Battle) -> Script[None]:
    pair = _choose_mates(battle)
    if pair is not None:
        battle.read_log_settings()
        yield from spray(battle, *pair, hits=1 + int(battle.rng.random() * 2))


def _team_kill(battle: Battle) -> Script[None]:
    pair = _choose_mates(battle)
    if pair is not None and battle.team_bullet_factor and not battle.must_live(pair[1]):
        yield from duel(battle, *pair)


def _fall(battle: Battle) -> Script[None]:
    victim = _choose_living(battle)
    if victim is not None and not battle.must_live(victim):
        battle.commit_suicide(victim)
    yield from ()
