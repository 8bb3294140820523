"""The configs of the modes."""

from __future__ import annotations

import pytest

from matchpod.simulator.mode_configs import ALIASES, DEFAULT_MODE, MODE_CONFIGS, mode_of
from matchpod.simulator.variable_table import VARIABLES


def test_every_config_names_the_same_variables() -> None:
    names = [frozenset(config) for config in MODE_CONFIGS.values()]
    assert len(set(names)) == 1


def test_every_value_is_one_the_game_would_keep() -> None:
    for config in MODE_CONFIGS.values():
        for name, value in config.items():
            read = VARIABLES[name].read(value)
            assert read == value or float(read.replace("true", "1").replace("false", "0")) == float(value)


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
def test_modes_have_their_known_lengths(mode: str, rounds: str, freeze: str, half: str) -> None:
    config = MODE_CONFIGS[mode]
    assert (config["mp_maxrounds"], config["mp_freezetime"], config["mp_halftime"]) == (rounds, freeze, half)


def test_deathmatch_lets_everybody_respawn_for_ten_minutes() -> None:
    config = MODE_CONFIGS["deathmatch"]
    assert (config["mp_respawn_on_death_ct"], config["mp_respawn_on_death_t"], config["mp_timelimit"]) == (
        "1",
        "1",
        "10",
    )


def test_competitive_is_what_a_real_map_load_logged() -> None:
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


def test_every_alias_leads_to_a_config() -> None:
    assert {mode_of(*pair) for pair in ALIASES.values()} == set(MODE_CONFIGS)


def test_unknown_pair_is_the_default_mode() -> None:
    assert mode_of(9, 9) == DEFAULT_MODE
