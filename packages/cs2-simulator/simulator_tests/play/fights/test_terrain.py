"""Test player positions."""

from __future__ import annotations

from math import dist
from random import Random

from cs2_simulator.play.fights.arsenal import ItemKind
from cs2_simulator.play.fights.terrain import REACH, Terrain, format_point, nearby_position
from simulator_tests.play.fights.battlefield import Battlefield


def coordinates(position: str) -> list[int]:
    return [int(part) for part in position.split(" ")]


def test_placed_players_have_the_returned_distance() -> None:
    field = Battlefield()
    one, other = field.cts[0], field.ts[0]
    distance = Terrain("de_inferno").place_both(Random(1), one, other, REACH[ItemKind.RIFLE])
    assert abs(dist(coordinates(one.position)[:2], coordinates(other.position)[:2]) - distance) < 2


def test_maps_have_different_positions() -> None:
    assert Terrain("de_inferno").area(Random(1)) != Terrain("de_nuke").area(Random(1))


def test_player_is_placed_at_a_random_point_of_the_map() -> None:
    player = Battlefield().cts[0]
    terrain = Terrain("de_nuke")
    terrain.place(Random(3), player)
    assert player.position == format_point(terrain.area(Random(3)))


def test_nearby_position_is_close() -> None:
    assert dist(coordinates(nearby_position(Random(1), "100 -200 30")), (100, -200, 30)) < 50


def test_placing_the_attacker_does_not_move_the_victim() -> None:
    field = Battlefield()
    one, other = field.cts[0], field.ts[0]
    other.position = "900 1200 64"
    distance = Terrain("de_inferno").place_attacker(Random(1), one, other, REACH[ItemKind.RIFLE])
    assert other.position == "900 1200 64"
    assert abs(dist(coordinates(one.position)[:2], (900, 1200)) - distance) < 2


def test_positions_stay_within_the_map() -> None:
    field, terrain, rng = Battlefield(), Terrain("de_inferno"), Random(1)
    one, other = field.cts[0], field.ts[0]
    points = []
    for _ in range(400):
        terrain.place_both(rng, one, other, REACH[ItemKind.SNIPER])
        points += [coordinates(one.position), coordinates(other.position)]
    for axis in (0, 1):
        assert max(point[axis] for point in points) - min(point[axis] for point in points) <= 5500
