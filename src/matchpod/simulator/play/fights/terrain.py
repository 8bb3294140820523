"""Where do people stand? Places of a map as whole numbers, and two players set opposite each other for a fight.

Nobody walks: a place is made up when a line needs one, so that both players of a fight are as far apart as their
weapons want them to be.
"""

from __future__ import annotations

from math import cos, sin, tau
from random import Random
from zlib import crc32

from matchpod.simulator.play.fights.arsenal import Kind
from matchpod.simulator.play.player import Player

_AREAS = (
    (1410, 440, 128), (60, 760, 80), (2100, 180, 160), (-520, 900, 26), (1980, 2740, 130),
    (880, 2380, 138), (430, 1720, 120), (-1270, 640, -30), (2440, 1990, 134), (740, 560, 96),
)  # fmt: skip

_REACH = {
    Kind.PISTOL: (180, 1100),
    Kind.SMG: (120, 800),
    Kind.SHOTGUN: (60, 350),
    Kind.RIFLE: (250, 1700),
    Kind.SNIPER: (600, 2600),
    Kind.MACHINE_GUN: (250, 1300),
    Kind.TASER: (40, 170),
    Kind.KNIFE: (30, 60),
    Kind.THROWN: (200, 1400),
}
"""The nearest and farthest usual distance of a fight with such a weapon, in game units."""

_MIDDLE = (600, 1300)
_HALF_SIZE = 2400
"""Where the areas are, and how far from there a map ends."""

Point = tuple[int, int, int]


class Terrain:
    """The places of one map; another name, other places."""

    __slots__ = ("_east", "_north")

    def __init__(self, map_name: str) -> None:
        number = crc32(map_name.encode())
        self._east = number % 1601 - 800
        self._north = number // 1601 % 1601 - 800

    def area(self, dice: Random) -> Point:
        """A place somewhere on the map."""
        roll = dice.random
        x, y, z = _AREAS[int(roll() * len(_AREAS))]
        return x + self._east + int(roll() * 401) - 200, y + self._north + int(roll() * 401) - 200, z

    def face(self, dice: Random, attacker: Player, victim: Player, reach: tuple[int, int]) -> float:
        """Set two players opposite each other; answers how far apart they are."""
        roll = dice.random
        near, far = reach
        x, y, z = self.area(dice)
        # Most fights are nearer than the middle of what a weapon can do.
        distance = near + (far - near) * roll() * roll() * 1.3
        east, north = self._opposite(x, y, distance, roll() * tau)
        attacker.position = f"{x} {y} {z}"
        victim.position = f"{east} {north} {z + int(roll() * 40)}"
        return distance

    def aim_at(self, dice: Random, attacker: Player, victim: Player, reach: tuple[int, int]) -> float:
        """Set a player opposite one who stands where he is; answers how far apart they are."""
        roll = dice.random
        near, far = reach
        distance = near + (far - near) * roll() * roll() * 1.3
        x, y, z = victim.position.split(" ")
        east, north = self._opposite(int(x), int(y), distance, roll() * tau)
        attacker.position = f"{east} {north} {z}"
        return distance

    def _opposite(self, x: int, y: int, distance: float, turn: float) -> tuple[int, int]:
        """A point so far away, on the other side of the map's middle where the first choice leaves the map."""
        east, north = round(distance * cos(turn)), round(distance * sin(turn))
        from_east, from_north = x - self._east - _MIDDLE[0], y - self._north - _MIDDLE[1]
        if abs(from_east + east) > _HALF_SIZE:
            east = -east
        if abs(from_north + north) > _HALF_SIZE:
            north = -north
        return x + east, y + north

    def put(self, dice: Random, player: Player) -> Point:
        """Set a player down somewhere."""
        point = self.area(dice)
        player.position = text_of(point)
        return point


def reach_of(kind: Kind) -> tuple[int, int]:
    """The usual nearest and farthest distance of a fight."""
    return _REACH[kind]


def text_of(point: Point) -> str:
    """A place as the log prints it."""
    return f"{point[0]} {point[1]} {point[2]}"


def step_aside(dice: Random, position: str) -> str:
    """A place a few steps from another."""
    x, y, z = position.split(" ")
    roll = dice.random
    return f"{int(x) + int(roll() * 61) - 30} {int(y) + int(roll() * 61) - 30} {z}"
