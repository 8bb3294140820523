"""Commands that load a map or choose a mode."""

from __future__ import annotations

import pytest

from tests.unit.simulator.console.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("command", ["changelevel", "map", "ds_workshop_changelevel"])
def test_known_map_is_loaded(bench: Bench, command: str) -> None:
    assert bench.say(f"{command} de_Nuke") == ""
    assert bench.notes == ["settle", "load de_nuke"]


@pytest.mark.parametrize("name", ["nuke", "de_", "../de_nuke", "xx_nuke", "3070284539"])
def test_unknown_map_is_named_and_nothing_is_loaded(bench: Bench, name: str) -> None:
    answer = bench.say(f"changelevel {name}")
    assert "No such map" in answer
    assert answer.endswith(f"changelevel failed: {name} not found\n")
    assert bench.notes == []


def test_map_must_be_named(bench: Bench) -> None:
    assert bench.say("map").startswith("map <map>")
    assert bench.notes == []


def test_workshop_map_is_loaded_by_its_number(bench: Bench) -> None:
    assert bench.say("host_workshop_map 3070284539") == ""
    assert bench.notes == ["settle", "load 3070284539"]


@pytest.mark.parametrize("rest", ["", "de_nuke", "1 2"])
def test_workshop_map_needs_a_number(bench: Bench, rest: str) -> None:
    assert bench.say(f"host_workshop_map {rest}").startswith("Usage:")
    assert bench.notes == []


def test_mode_can_be_named_with_the_map(bench: Bench) -> None:
    bench.say("map de_dust2 ignored gamemode=deathmatch")
    assert bench.variables.mode_name == "deathmatch"
    assert bench.notes == ["settle", "load de_dust2"]


def test_unknown_mode_loads_nothing(bench: Bench) -> None:
    assert bench.say("map de_dust2 gamemode=chess").startswith("Unknown game mode 'chess'")
    assert bench.notes == []


def test_alias_chooses_the_mode_of_the_next_map(bench: Bench) -> None:
    assert bench.say("game_alias Wingman") == ""
    assert bench.say("game_type; game_mode") == "game_type = 0\ngame_mode = 2\n"


def test_alias_must_be_known(bench: Bench) -> None:
    assert bench.say("game_alias chess").startswith("Unknown game mode 'chess', known are: casual, ")
    assert bench.say("game_alias").startswith("Usage:")
