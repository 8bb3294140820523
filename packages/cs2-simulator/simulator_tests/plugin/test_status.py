"""Tests of the output of `get5_status`."""

from __future__ import annotations

import json

from cs2_protocol.console_answers import parse_get5_status
from simulator_tests.plugin.plugin_harness import MATCH_URL, PluginHarness, match


def test_status_without_a_match_is_empty(harness: PluginHarness) -> None:
    status = json.loads(harness.rcon("get5_status"))
    assert status == {
        "plugin_version": "0.15.0",
        "gamestate": "none",
        "paused": False,
        "loaded_config_file": None,
        "matchid": None,
        "map_number": None,
        "round_number": -1,
        "round_time": None,
        "team1": None,
        "team2": None,
        "maps": None,
    }


def test_loaded_match_is_in_warmup(harness: PluginHarness) -> None:
    harness.load(match())
    status = parse_get5_status(harness.rcon("get5_status"))
    assert status is not None
    assert (status.state, status.match_id) == ("warmup", "27")
    raw = json.loads(harness.rcon("get5_status"))
    assert (raw["map_number"], raw["round_number"]) == (0, -1)
    assert (raw["team1"]["name"], raw["team1"]["side"]) == ("Team Blue", "ct")
    assert (raw["loaded_config_file"], raw["maps"]) == (MATCH_URL, None)
    assert raw["team2"] == {
        "name": "Team Red",
        "series_score": 0,
        "current_map_score": 0,
        "connected_clients": -1,
        "ready": True,
        "side": "terrorist",
    }
