"""Places."""

from __future__ import annotations

from math import dist
from random import Random

from matchpod.simulator.play.fights.arsenal import Kind
from matchpod.simulator.play.fights.terrain import Terrain, reach_of, step_aside, text_of
from tests.unit.simulator.play.fights.battlefield import Battlefield


def place(position: str) -> list[int]:
    return [int(part) for part in position.split(" ")]


def test_two_in_a_fight_stand_as_far_apart_as_is_said() -> None:
    field = Battlefield()
    one, other = field.cts[0], field.ts[0]
    distance = Terrain("de_inferno").face(Random(1), one, other, reach_of(Kind.RIFLE))
    assert abs(dist(place(one.position)[:2], place(other.position)[:2]) - distance) < 2


def test_maps_differ() -> None:
    assert Terrain("de_inferno").area(Random(1)) != Terrain("de_nuke").area(Random(1))


def test_player_is_put_where_the_answer_says() -> None:
    player = Battlefield().cts[0]
    assert text_of(Terrain("de_nuke").put(Random(3), player)) == player.position


def test_step_aside_is_small() -> None:
    assert dist(place(step_aside(Random(1), "100 -200 30")), (100, -200, 30)) < 50


def test_who_aims_at_somebody_leaves_him_where_he_is() -> None:
    field = Battlefield()
    one, other = field.cts[0], field.ts[0]
    other.position = "900 1200 64"
    distance = Terrain("de_inferno").aim_at(Random(1), one, other, reach_of(Kind.RIFLE))
    assert other.position == "900 1200 64"
    assert abs(dist(place(one.position)[:2], (900, 1200)) - distance) < 2


def test_nobody_stands_off_the_map() -> None:
    field, terrain, dice = Battlefield(), Terrain("de_inferno"), Random(1)
    one, other = field.cts[0], field.ts[0]
    seen = []
    for _ in range(400):
        terrain.face(dice, one, other, reach_of(Kind.SNIPER))
        seen += [place(one.position), place(other.position)]
    for axis in (0, 1):
        assert max(point[axis] for point in seen) - min(point[axis] for point in seen) <= 5500
