"""Invent player positions: points on a map with whole numbers, and two players opposite each other for a fight.

Movement is not simulated. A position is invented when a log line needs it, so that the two players of a fight are at a
distance that is usual for the weapon.
"""

from __future__ import annotations

from math import cos, sin, tau
from random import Random
from zlib import crc32

from cs2_simulator.play.fights.arsenal import ItemKind
from cs2_simulator.play.player import Player

_AREAS = (
    (1410, 440, 128), (60, 760, 80), (2100, 180, 160), (-520, 900, 26), (1980, 2740, 130),
    (880, 2380, 138), (430, 1720, 120), (-1270, 640, -30), (2440, 1990, 134), (740, 560, 96),
)  # fmt: skip

REACH = {
    ItemKind.PISTOL: (180, 1100),
    ItemKind.SMG: (120, 800),
    ItemKind.SHOTGUN: (60, 350),
    ItemKind.RIFLE: (250, 1700),
    ItemKind.SNIPER: (600, 2600),
    ItemKind.MACHINE_GUN: (250, 1300),
    ItemKind.TASER: (40, 170),
    ItemKind.KNIFE: (30, 60),
    ItemKind.THROWN: (200, 1400),
}
"""Minimum and maximum usual distance of a fight, in game units, by kind of weapon."""

_CENTER = (600, 1300)
_HALF_SIZE = 2400
"""Center of a map (x, y) before its shift (see `Terrain`), and distance from there to each edge, in game units."""

Point = tuple[int, int, int]


class Terrain:
    """Invents the positions on one map. They are shifted by a hash of the map's name, so that maps differ."""

    __slots__ = ("_east", "_north")

    def __init__(self, map_name: str) -> None:
        number = crc32(map_name.encode())
        self._east = number % 1601 - 800
        self._north = number // 1601 % 1601 - 800

    def area(self, rng: Random) -> Point:
        roll = rng.random
        x, y, z = _AREAS[int(roll() * len(_AREAS))]
        return x + self._east + int(roll() * 401) - 200, y + self._north + int(roll() * 401) - 200, z

    def place_both(self, rng: Random, attacker: Player, victim: Player, reach: tuple[int, int]) -> float:
        """Place two players opposite each other; return their distance."""
        roll = rng.random
        near, far = reach
        x, y, z = self.area(rng)
        # Most fights take place at less than the middle of the weapon's range of distances.
        distance = near + (far - near) * roll() * roll() * 1.3
        east, north = self._opposite(x, y, distance, roll() * tau)
        attacker.position = f"{x} {y} {z}"
        victim.position = f"{east} {north} {z + int(roll() * 40)}"
        return distance

    def place_attacker(self, rng: Random, attacker: Player, victim: Player, reach: tuple[int, int]) -> float:
        """Place an attacker opposite a victim who stays in place; return the distance between them."""
        roll = rng.random
        near, far = reach
        distance = near + (far - near) * roll() * roll() * 1.3
        x, y, z = victim.position.split(" ")
        east, north = self._opposite(int(x), int(y), distance, roll() * tau)
        attacker.position = f"{east} {north} {z}"
        return distance

    def _opposite(self, x: int, y: int, distance: float, turn: float) -> tuple[int, int]:
        """Return a point at this distance. If it would be outside the map, the direction is mirrored."""
        east, north = round(distance * cos(turn)), round(distance * sin(turn))
        from_east, from_north = x - self._east - _CENTER[0], y - self._north - _CENTER[1]
        if abs(from_east + east) > _HALF_SIZE:
            east = -east
        if abs(from_north + north) > _HALF_SIZE:
            north = -north
        return x + east, y + north

    def place(self, rng: Random, player: Player) -> None:
        player.position = format_point(self.area(rng))


def format_point(point: Point) -> str:
    return f"{point[0]} {point[1]} {point[2]}"


def nearby_position(rng: Random, position: str) -> str:
    x, y, z = position.split(" ")
    roll = rng.random
    return f"{int(x) + int(roll() * 61) - 30} {int(y) + int(roll() * 61) - 30} {z}"
