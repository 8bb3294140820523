"""Test the log lines of a map load."""

from __future__ import annotations

from typing import Final

import pytest

from cs2_simulator.agenda import Agenda
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.flow.map_load import SLOW_LOAD_MS, is_hostage_map, load_ms, map_to_load, run_load
from cs2_simulator.scenarios import Scenario
from cs2_simulator.variables import Variables
from simulator_tests.play.flow.played_server import RecordingLog

COMPETITIVE: Final = {"game_type": "0", "game_mode": "1"}


def load(settings: dict[str, str]) -> tuple[list[str], Variables]:
    variables = Variables()
    for name, value in (COMPETITIVE | settings).items():
        variables.set(name, value)
    return [line.text() for line in run_load(variables, "de_nuke")], variables


def test_map_load_logs_the_map_then_the_variables_and_last_started() -> None:
    lines, _ = load({})
    assert lines[:2] == ['Loading map "de_nuke"', "server cvars start"]
    assert lines[-1] == 'Started:  ""'
    listed = lines[2 : lines.index("server cvars end")]
    assert len(listed) > 100
    assert all(line.startswith('"') and '" = "' in line for line in listed)


def test_map_load_lists_the_values_from_before_the_mode_config_is_applied() -> None:
    lines, variables = load({"mp_maxrounds": "8"})
    assert '"mp_maxrounds" = "8"' in lines
    assert variables.whole("mp_maxrounds") == 24


def test_mode_config_resets_a_variable_to_its_default_before_setting_it() -> None:
    lines, _ = load({"mp_maxrounds": "8"})
    changes = [line for line in lines if line.startswith('server_cvar: "mp_maxrounds"')]
    assert changes == [
        f'server_cvar: "mp_maxrounds" "{Variables().text("mp_maxrounds")}"',
        'server_cvar: "mp_maxrounds" "24"',
    ]


@pytest.mark.parametrize(
    ("requested", "scenario", "loaded"),
    [
        ("de_nuke", Scenario.FULL_MATCH, "de_nuke"),
        ("de_nuke", Scenario.WRONG_MAP, "de_dust2"),
        ("de_dust2", Scenario.WRONG_MAP, "de_mirage"),
        ("125444404", Scenario.FULL_MATCH, "workshop/125444404/cs_office"),
        ("99", Scenario.FULL_MATCH, "workshop/99/de_workshop"),
    ],
)
def test_loaded_map_depends_on_request_and_scenario(requested: str, scenario: Scenario, loaded: str) -> None:
    assert map_to_load(requested, scenario) == loaded


def test_load_time_is_a_setting_except_in_the_slow_scenario() -> None:
    agenda, variables = Agenda(0), Variables()
    arena = Arena(agenda, RecordingLog(agenda), variables)
    variables.set("sim_map_load", "2.5")
    assert load_ms(arena) == 2500
    variables.set("sim_scenario", "slow_map_load")
    assert load_ms(arena) == SLOW_LOAD_MS


def test_hostage_maps_are_recognized_by_name() -> None:
    assert is_hostage_map("cs_office")
    assert is_hostage_map("workshop/125444404/cs_office")
    assert not is_hostage_map("de_nuke")
