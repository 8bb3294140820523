"""Tests of the game mode configs."""

from __future__ import annotations

import pytest

from cs2_simulator.mode_configs import DEFAULT_MODE, MODE_CONFIGS, mode_of
from cs2_simulator.variable_table import VARIABLES


def test_all_values_are_within_the_bounds_of_their_variable() -> None:
    for config in MODE_CONFIGS.values():
        for name, value in config.items():
            kept = VARIABLES[name].normalize(value)
            assert kept == value or float(kept.replace("true", "1").replace("false", "0")) == float(value)


@pytest.mark.parametrize(
    ("mode", "rounds", "freeze", "half"),
    [
        ("competitive", "24", "15", "1"),
        ("scrimcomp2v2", "16", "10", "1"),
        ("casual", "15", "5", "0"),
        ("retakes", "8", "7", "0"),
        ("deathmatch", "0", "0", "0"),
        ("custom", "0", "0", "0"),
    ],
)
def test_modes_have_the_expected_rounds_freeze_times_and_halves(mode: str, rounds: str, freeze: str, half: str) -> None:
    config = MODE_CONFIGS[mode]
    assert (config["mp_maxrounds"], config["mp_freezetime"], config["mp_halftime"]) == (rounds, freeze, half)


def test_deathmatch_has_respawn_and_a_ten_minute_limit() -> None:
    config = MODE_CONFIGS["deathmatch"]
    assert (config["mp_respawn_on_death_ct"], config["mp_respawn_on_death_t"], config["mp_timelimit"]) == (
        "1",
        "1",
        "10",
    )


def test_competitive_values_equal_those_of_a_real_map_load() -> None:
    logged = {
        "cash_team_elimination_hostage_map_t": "3000",
        "cash_team_hostage_interaction": "600",
        "cash_team_rescued_hostage": "600",
        "cash_team_win_by_defusing_bomb": "3500",
        "cash_team_win_by_hostage_rescue": "2900",
        "cash_team_bonus_shorthanded": "1000",
        "mp_friendlyfire": "1",
        "mp_roundtime": "1.92",
        "mp_roundtime_defuse": "1.92",
        "sv_deadtalk": "1",
    }
    assert {name: MODE_CONFIGS["competitive"][name] for name in logged} == logged


def test_unknown_type_and_mode_select_the_default_mode() -> None:
    assert mode_of(9, 9) == DEFAULT_MODE
