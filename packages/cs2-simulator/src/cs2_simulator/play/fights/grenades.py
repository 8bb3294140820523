"""Play a grenade: the throw, the flight, the detonation, and the players it hurts, burns or blinds.

`sv_throw_…` is logged at the throw, `threw …` at the detonation, which may come after the thrower's death. The affected
players are chosen at random, since movement is not simulated.
"""

from __future__ import annotations

from cs2_protocol.log_lines.player_lines import BlindedBy, GrenadeLanded, GrenadeLaunched
from cs2_protocol.log_lines.world_lines import MolotovSpawned
from cs2_simulator.agenda import Script
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.terrain import format_point, nearby_position
from cs2_simulator.play.fights.wounds import blast, flame
from cs2_simulator.play.player import Player

_LAUNCHED = {
    "hegrenade": ("hegrenade", "44 3.000"),
    "flashbang": ("flashgrenade", "43"),
    "smokegrenade": ("smokegrenade", "45 2"),
    "molotov": ("molotov", "46"),
    "incgrenade": ("molotov", "48"),
    "decoy": ("decoygrenade", "47"),
}
"""By grenade: its name after `sv_throw_`, and the last numbers of the `sv_throw_` line."""

_FLIGHT_MS = {
    "hegrenade": (1500, 1700),
    "flashbang": (1400, 1700),
    "smokegrenade": (2200, 6000),
    "molotov": (500, 1400),
    "incgrenade": (500, 1400),
    "decoy": (15000, 20000),
}
_SMOKE_MS = 18_000
_FIRE_TICK_MS = 203
"""Interval in milliseconds between two hits by fire."""

_ENEMY_NEAR = {"hegrenade": 0.32, "fire": 0.3, "flashbang": 0.26}
_MATE_NEAR = {"hegrenade": 0.03, "fire": 0.03, "flashbang": 0.5}
_SELF_NEAR = {"hegrenade": 0.02, "fire": 0.03, "flashbang": 0.45}
"""Probabilities that a grenade affects an enemy, a team mate or its thrower. In a real log, 13 flashbangs each blinded
1.2 enemies and 1.8 team mates on average, and every second flashbang its thrower."""
_DEAD_BLINDED = 0.12
"""Probability of a `blinded` line for a dead player. In a real log there were 6 such lines for 13 flashbangs."""
_AIMED_FLASH_S = 2.0
"""Minimum time in seconds for which the target of an aimed flashbang is blinded."""


def throw(battle: Battle, thrower: Player, grenade: str, target: Player | None = None) -> Script[None]:
    """Play a grenade from the throw to its end. Nothing happens if the player is dead or does not have this grenade.

    If a flashbang is thrown at a target, it blinds that player.
    """
    if not thrower.is_alive or grenade not in thrower.grenades:
        return
    thrower.grenades.remove(grenade)
    rng = battle.rng
    battle.arena.book.grenade_thrown(thrower, grenade)
    _launch(battle, thrower, grenade)
    soonest, latest = _FLIGHT_MS[grenade]
    yield soonest + int(rng.random() * (latest - soonest))
    if not battle.is_here(thrower):
        return
    battle.read_log_settings()
    landing = format_point(battle.terrain.area(rng))
    if grenade == "flashbang":
        _flash(battle, thrower, landing, target)
        return
    name = "molotov" if grenade == "incgrenade" else grenade
    battle.arena.log.write(GrenadeLanded(thrower.token, name, landing))
    if grenade == "hegrenade":
        _explode(battle, thrower)
    elif name == "molotov":
        yield from _burn(battle, thrower)
    elif grenade == "smokegrenade":
        battle.smoke_until_ms = battle.arena.clock_ms + _SMOKE_MS


def _launch(battle: Battle, thrower: Player, grenade: str) -> None:
    roll = battle.rng.random
    x, y, z = (float(part) for part in thrower.position.split(" "))
    x, y, z = x + roll() - 0.5, y + roll() - 0.5, z + 55 + roll()
    east, north, up = roll() * 1900 - 950, roll() * 1900 - 950, roll() * 400 - 100
    turn = int(roll() * 2401) - 1200
    name, end = _LAUNCHED[grenade]
    log, token = battle.arena.log, thrower.token
    path = f"{x:.3f} {y:.3f} {z:.3f} 0.000 0.000 0.000 {east:.3f} {north:.3f} {up:.3f} 600.000 {turn}.000 0.000 {end}"
    log.write(GrenadeLaunched(token, name, path))
    if name == "molotov":
        log.write(MolotovSpawned(f"{x:.6f} {y:.6f} {z:.6f}", f"{east:.6f} {north:.6f} {up:.6f}"))


def _nearby(battle: Battle, thrower: Player, effect: str) -> list[Player]:
    roll = battle.rng.random
    near = []
    for player in battle.arena.players:
        if not player.is_alive:
            continue
        if player is thrower:
            share = _SELF_NEAR[effect]
        else:
            share = (_ENEMY_NEAR if battle.are_enemies(thrower, player) else _MATE_NEAR)[effect]
        if roll() < share:
            near.append(player)
    return near


def _explode(battle: Battle, thrower: Player) -> None:
    roll = battle.rng.random
    for victim in _nearby(battle, thrower, "hegrenade"):
        is_friend = victim is not thrower and not battle.are_enemies(thrower, victim)
        factor = battle.team_grenade_factor if is_friend else 1.0
        battle.apply_hit(thrower, victim, blast(victim, 98 * (1 - roll() ** 0.6) * factor))


def _burn(battle: Battle, thrower: Player) -> Script[None]:
    roll = battle.rng.random
    burning = [(victim, 2 + int(roll() * 12)) for victim in _nearby(battle, thrower, "fire")]
    yield _FIRE_TICK_MS * (2 + int(roll() * 6))
    tick = 0
    while burning and battle.is_here(thrower):
        for victim, _ in burning:
            if not victim.is_alive:
                continue
            factor = 1.0 if victim is thrower or battle.are_enemies(thrower, victim) else battle.team_burn_factor
            if factor:
                battle.apply_hit(thrower, victim, flame(tick, factor))
                victim.position = nearby_position(battle.rng, victim.position)
        tick += 1
        burning = [(victim, ticks) for victim, ticks in burning if victim.is_alive and ticks > tick]
        yield _FIRE_TICK_MS


def _flash(battle: Battle, thrower: Player, landing: str, target: Player | None) -> None:
    rng, arena = battle.rng, battle.arena
    entity = 40 + int(rng.random() * 560)
    arena.log.write(GrenadeLanded(thrower.token, "flashbang", landing, entity))
    now_ms = arena.clock_ms
    near = _nearby(battle, thrower, "flashbang")
    if target is not None and target.is_alive and target not in near:
        near.append(target)
    for victim in near:
        seconds = max(0.3 + 4.9 * rng.random() ** 1.5, _AIMED_FLASH_S if victim is target else 0)
        if now_ms + seconds * 1000 > victim.blind_until_ms:
            victim.blind_until_ms = now_ms + int(seconds * 1000)
            battle.blinded_by[victim] = thrower
        by = battle.self_token(thrower) if victim is thrower else thrower.token
        arena.log.write(BlindedBy(victim.token, f"{seconds:.2f}", by, entity))
        arena.book.blinded(victim, thrower)
    for dead in arena.playing:
        # A player who joined during the round is not alive, but is not counted as dead either: they have health.
        if not dead.is_alive and not dead.health and rng.random() < _DEAD_BLINDED:
            arena.log.write(BlindedBy(dead.token, f"{0.3 + 4 * rng.random():.2f}", thrower.token, entity))
