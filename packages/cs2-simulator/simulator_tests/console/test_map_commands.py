"""Tests of the commands that change the map or the mode."""

from __future__ import annotations

import pytest

from simulator_tests.console.console_harness import ConsoleHarness


@pytest.fixture
def harness() -> ConsoleHarness:
    return ConsoleHarness()


@pytest.mark.parametrize("command", ["changelevel", "map", "ds_workshop_changelevel"])
def test_known_map_is_loaded(harness: ConsoleHarness, command: str) -> None:
    assert harness.execute(f"{command} de_Nuke") == ""
    assert harness.calls == ["restart countdown", "load de_nuke"]


@pytest.mark.parametrize("name", ["nuke", "de_", "../de_nuke", "xx_nuke", "3070284539"])
def test_unknown_map_is_reported_and_not_loaded(harness: ConsoleHarness, name: str) -> None:
    answer = harness.execute(f"changelevel {name}")
    assert "No such map" in answer
    assert answer.endswith(f"changelevel failed: {name} not found\n")
    assert harness.calls == []


def test_map_command_without_a_name_prints_the_usage(harness: ConsoleHarness) -> None:
    assert harness.execute("map").startswith("map <map>")
    assert harness.calls == []


def test_workshop_map_is_loaded_by_id(harness: ConsoleHarness) -> None:
    assert harness.execute("host_workshop_map 3070284539") == ""
    assert harness.calls == ["restart countdown", "load 3070284539"]


@pytest.mark.parametrize("rest", ["", "de_nuke", "1 2"])
def test_workshop_map_needs_an_id(harness: ConsoleHarness, rest: str) -> None:
    assert harness.execute(f"host_workshop_map {rest}").startswith("Usage:")
    assert harness.calls == []


def test_map_command_can_set_the_mode(harness: ConsoleHarness) -> None:
    harness.execute("map de_dust2 ignored gamemode=deathmatch")
    assert harness.variables.mode_name == "deathmatch"
    assert harness.calls == ["restart countdown", "load de_dust2"]


def test_map_is_not_loaded_with_an_unknown_mode(harness: ConsoleHarness) -> None:
    assert harness.execute("map de_dust2 gamemode=chess").startswith("Unknown game mode 'chess'")
    assert harness.calls == []


def test_alias_sets_game_type_and_game_mode(harness: ConsoleHarness) -> None:
    assert harness.execute("game_alias Wingman") == ""
    assert harness.execute("game_type; game_mode") == "game_type = 0\ngame_mode = 2\n"


def test_unknown_alias_is_rejected(harness: ConsoleHarness) -> None:
    assert harness.execute("game_alias chess").startswith("Unknown game mode 'chess'. Known modes: casual, ")
    assert harness.execute("game_alias").startswith("Usage:")
