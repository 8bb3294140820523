"""What the plugin says about itself."""

from __future__ import annotations

import json

from matchpod.core.model import Side
from matchpod.cs2.console_answers import Get5State, parse_get5_status

from .stand import MATCH_URL, Stand, match


def test_without_a_match_everything_is_empty() -> None:
    stand = Stand()
    status = json.loads(stand.rcon("get5_status"))
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
    assert json.loads(stand.rcon("get5_web_available")) == {"gamestate": 0, "available": 1, "plugin_version": "0.15.0"}


def test_loaded_match_is_in_warmup() -> None:
    stand = Stand()
    stand.load(match())
    status = parse_get5_status(stand.rcon("get5_status"))
    assert status is not None
    assert (status.state, status.match_id, status.map_number, status.round_number) == (Get5State.WARMUP, "27", 0, -1)
    assert status.team1 is not None
    assert (status.team1.name, status.team1.side) == ("Team Blue", Side.CT)
    raw = json.loads(stand.rcon("get5_status"))
    assert (raw["loaded_config_file"], raw["maps"]) == (MATCH_URL, None)
    assert raw["team2"] == {
        "name": "Team Red",
        "series_score": 0,
        "current_map_score": 0,
        "connected_clients": -1,
        "ready": True,
        "side": "terrorist",
    }


def test_live_match_shows_rounds_and_scores_by_team() -> None:
    stand = Stand()
    stand.load(match(map_sides=["team1_t"]))
    stand.rcon("css_start")
    stand.play_round(Side.CT)
    stand.play_round(Side.CT)
    stand.play_round(Side.T)
    status = parse_get5_status(stand.rcon("get5_status"))
    assert status is not None
    assert status.team1 is not None
    assert status.team2 is not None
    assert (status.state, status.round_number) == (Get5State.LIVE, 3)
    assert (status.team1.map_score, status.team2.map_score) == (1, 2)
    assert json.loads(stand.rcon("get5_status"))["maps"] == ["de_dust2"]
    assert json.loads(stand.rcon("get5_web_available"))["gamestate"] == 7


def test_after_a_map_the_series_score_is_shown() -> None:
    stand = Stand()
    stand.load(match(maps=("de_dust2", "de_nuke", "de_train")))
    stand.rcon("css_start")
    stand.play_map(4, 0)
    status = parse_get5_status(stand.rcon("get5_status"))
    assert status is not None
    assert status.team1 is not None
    assert (status.state, status.team1.series_score) == (Get5State.POST_GAME, 1)
