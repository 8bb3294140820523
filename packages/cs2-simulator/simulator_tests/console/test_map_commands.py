"""Tests of the commands that change the map or the mode."""

from __future__ import annotations

import pytest

from simulator_tests.console.console_harness import ConsoleHarness


@pytest.mark.parametrize(
    ("command", "loaded"),
    [
        ("changelevel de_Nuke", "de_nuke"),
        ("map de_Nuke", "de_nuke"),
        ("ds_workshop_changelevel de_Nuke", "de_nuke"),
        ("host_workshop_map 3070284539", "3070284539"),
        ("map de_dust2 ignored gamemode=deathmatch", "de_dust2"),
    ],
)
def test_map_is_loaded_and_its_mode_is_set(harness: ConsoleHarness, command: str, loaded: str) -> None:
    assert harness.execute(command) == ""
    assert harness.calls == ["restart countdown", f"load {loaded}"]
    assert harness.variables.mode_name == ("deathmatch" if "gamemode" in command else "competitive")


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        *((f"changelevel {name}", f"changelevel failed: {name} not found\n") for name in ("nuke", "de_", "../de_nuke")),
        *((f"changelevel {name}", f"changelevel failed: {name} not found\n") for name in ("xx_nuke", "3070284539")),
        ("map", "map <map>"),
        *((f"host_workshop_map {rest}", "Usage:") for rest in ("", "de_nuke", "1 2")),
        ("map de_dust2 gamemode=chess", "Unknown game mode 'chess'"),
    ],
)
def test_invalid_map_or_mode_is_reported_and_not_loaded(harness: ConsoleHarness, command: str, answer: str) -> None:
    assert answer in harness.execute(command)
    assert harness.calls == []


def test_alias_sets_game_type_and_game_mode(harness: ConsoleHarness) -> None:
    assert harness.execute("game_alias Wingman") == ""
    assert harness.execute("game_type; game_mode") == "game_type = 0\ngame_mode = 2\n"


def test_unknown_alias_is_rejected(harness: ConsoleHarness) -> None:
    assert harness.execute("game_alias chess").startswith("Unknown game mode 'chess'. Known modes: casual, ")
    assert harness.execute("game_alias").startswith("Usage:")
