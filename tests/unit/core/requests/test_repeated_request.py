"""The settings of a match, written as a request, order the same match."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from matchpod.core.match.start_sides import with_sides
from matchpod.core.model import MatchRequest
from matchpod.core.requests.repeated_request import settings_body
from matchpod.core.requests.validation import DemoRules, RegionRules, read_match_request
from matchpod.cs2.cvars import read_custom_cvars

REGIONS = {
    "recorded": RegionRules(is_simulated=True, demos=DemoRules(is_default=True, tv_delay_s=90)),
    "without": RegionRules(is_simulated=True),
}
PLAYERS = [f"765611980000000{number:02}" for number in range(12)]
TEAMS = {
    "team1": {"name": "Reds & Co", "players": PLAYERS[:5], "coaches": PLAYERS[10:11]},
    "team2": {"name": "Blues", "players": PLAYERS[5:10]},
}
ORDERS: list[dict[str, Any]] = [
    {"matchType": "competitive", "map": "de_nuke"},
    {"matchType": "competitive", "map": "de_nuke", "maps": ["de_mirage"], "seriesFormat": "bo5", "teams": TEAMS},
    {
        "matchType": "wingman",
        "map": "de_nuke",
        "maps": ["de_mirage", "de_inferno"],
        "seriesFormat": "bo3",
        "mapsWon": {"team2": 1},
        "sides": ["knife", "team1_t"],
        "teams": TEAMS,
        "spectators": [PLAYERS[11]],
        "onNoShow": "forfeit",
        "autoStart": False,
        "recordDemo": False,
        "joinSeconds": 600,
        "freezeTime": 0,
        "maxRounds": 16,
        "overtime": {"enabled": False, "maxRounds": 6},
        "customCvars": 'sim_speed 5\nsim_empty ""\nsim_spaced " a b " // spaces',
        "labels": {"event": "finals", "table": "4"},
    },
    {"matchType": "competitive", "map": "de_nuke", "teams": {"team1": {"name": "Reds"}, "team2": {}}},
    {"matchType": "deathmatch", "map": "workshop/3070284539", "players": PLAYERS, "dmSubMode": "team"},
    {"matchType": "deathmatch", "map": "de_dust2", "dmRoundMinutes": 2.5},
    {"matchType": "retakes", "map": "de_dust2", "maxRounds": 8},
]


def read(settings: object, region: str) -> MatchRequest:
    return read_match_request(
        {"region": region, "gameType": "cs2", "gameSettings": settings}, regions=REGIONS, read_cvars=read_custom_cvars
    )


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("settings", ORDERS)
def test_same_match_is_ordered_again(settings: dict[str, Any], region: str) -> None:
    first = read(settings, region)
    stored = with_sides(first.game_settings, "srv_1")
    again = read(msgspec.json.decode(msgspec.json.encode(settings_body(stored, first.labels))), region)
    assert again == msgspec.structs.replace(first, game_settings=stored)


def test_password_is_not_in_it() -> None:
    ordered = read({"matchType": "casual", "map": "de_nuke", "serverPassword": "join-4711"}, "without")
    assert settings_body(ordered.game_settings, {}) == {"matchType": "casual", "map": "de_nuke"}
