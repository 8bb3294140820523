"""Test hostage rescues."""

from __future__ import annotations

from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.hostages import Hostages
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


def test_rescue_is_logged_as_in_a_real_log(field: Battlefield) -> None:
    hostages = Hostages(Battle(field.arena, FixedRng(0.0)))
    field.run(hostages.rescue(field.arena.clock_ms + 60_000))
    lines = [text.split('<CT>" ')[1].partition("] ")[2] or text.split('<CT>" ')[1] for text in field.log.texts]
    assert lines == [
        'triggered "Touched_A_Hostage"',
        "picked up a hostage",
        "money change 800+300 = $1100 (tracked)",
        "dropped off a hostage",
        'triggered "Rescued_A_Hostage"',
        "money change 1100+1000 = $2100 (tracked)",
    ]
    assert hostages.rescuer is field.cts[0]


def test_another_player_rescues_if_the_first_left() -> None:
    field = Battlefield(cts=2).spawn_all()
    hostages = Hostages(Battle(field.arena, FixedRng(0.0)))
    script = hostages.rescue(field.arena.clock_ms + 60_000)
    next(script)
    first, second = field.cts
    assert hostages.carrier is first
    field.leave(first)
    list(script)
    assert hostages.rescuer is second
