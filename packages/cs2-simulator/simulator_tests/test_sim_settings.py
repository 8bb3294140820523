"""Tests of the validation of the simulator's own variables."""

from __future__ import annotations

import pytest

from cs2_simulator.sim_settings import sim_fault


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sim_speed", "0.5"),
        ("sim_speed", "1000"),
        ("sim_roster_delay", "0"),
        ("sim_map_load", "1.5"),
        ("sim_report_faults", "100"),
        ("sim_lockstep", "1"),
        ("sim_rcon_drop", "false"),
        ("sim_seed", "anything at all"),
        ("sim_quiet", "1"),
        ("sim_arrival", "240"),
        ("sim_client_load", "50"),
        ("sim_lost_posts", ""),
        ("sim_lost_posts", "restore, end,"),
        ("sim_demo_faults", "cut_upload, no_recording"),
        ("sim_demo_mb", "0"),
        ("sim_demo_rate", "0.5"),
        ("sim_players", ""),
        ("sim_players", "76561197960265729, 5,4294967295,"),
        ("mp_maxrounds", "nonsense"),
    ],
)
def test_valid_value_is_accepted(name: str, value: str) -> None:
    assert sim_fault(name, value) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("sim_speed", "0", "above 0, at most 1000"),
        ("sim_speed", "fast", "must be a number"),
        ("sim_speed", "nan", "must be a number"),
        ("sim_speed", "inf", "at most 1000"),
        ("sim_roster_delay", "-1", "between 0 and 86400"),
        ("sim_map_load", "90000", "between 0 and 86400"),
        ("sim_report_faults", "101", "between 0 and 100"),
        ("sim_rcon_drop", "maybe", "0, 1, false, true"),
        ("sim_quiet", "2", "0, 1, false, true"),
        ("sim_client_load", "-1", "between 0 and 86400"),
        ("sim_lost_posts", "restore,all", "restore, disconnect, end"),
        ("sim_demo_faults", "all", "no_recording, no_upload, cut_upload"),
        ("sim_demo_mb", "-1", "between 0 and 10000"),
        ("sim_demo_rate", "0", "above 0, at most 10000"),
        ("sim_scenario", "Full_Match", "full_match, no_show"),
        ("sim_players", "0", "SteamID64s or account numbers"),
        ("sim_players", "5;6", "SteamID64s or account numbers"),
        ("sim_players", "4294967296", "SteamID64s or account numbers"),
    ],
)
def test_invalid_value_is_rejected_with_an_explanation(name: str, value: str, expected: str) -> None:
    fault = sim_fault(name, value)
    assert fault is not None
    assert fault.startswith(f"{name} must be")
    assert expected in fault
