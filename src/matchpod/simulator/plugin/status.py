"""Stages of the plugin, and the output of `get5_status` and `get5_web_available`."""

from __future__ import annotations

from enum import IntEnum

from matchpod.core.model import Side, Team
from matchpod.simulator.plugin.reports import Payload, to_json
from matchpod.simulator.plugin.series import Series

GET5_VERSION = "0.15.0"
"""The version of get5 that MatchZy claims to be."""

NO_ROUND = -1


class PluginStage(IntEnum):
    """Stage of the plugin's match. Numbers and names are get5's; MatchZy never uses its other stages."""

    NONE = 0
    PRE_VETO = 1
    WARMUP = 3
    KNIFE = 4
    WAITING_FOR_KNIFE_DECISION = 5
    LIVE = 7
    POST_GAME = 9

    @property
    def is_started(self) -> bool:
        """True from the knife round or the live start until the map is left."""
        return self > PluginStage.WARMUP


def status_text(
    stage: PluginStage,
    series: Series | None,
    *,
    score: tuple[int, int],
    first_team_side: Side,
    is_paused: bool,
    is_ready: bool,
) -> str:
    """Output of `get5_status`. The score is by the plugin's teams."""
    status: Payload = {
        "plugin_version": GET5_VERSION,
        "gamestate": stage.name.lower(),
        "paused": is_paused,
        "loaded_config_file": None,
        "matchid": None,
        "map_number": None,
        "round_number": sum(score) if stage is PluginStage.LIVE else NO_ROUND,
        "round_time": None,
        "team1": None,
        "team2": None,
        "maps": None,
    }
    if series is not None:
        status |= {
            "loaded_config_file": series.url,
            "matchid": series.match_id,
            "map_number": series.map_number,
            "team1": _team(series, Team.TEAM1, score[0], side=first_team_side, is_ready=is_ready),
            "team2": _team(series, Team.TEAM2, score[1], side=first_team_side, is_ready=is_ready),
            "maps": list(series.maps) if stage >= PluginStage.LIVE else None,
        }
    return to_json(status) + "\n"


def web_text(stage: PluginStage) -> str:
    """Output of `get5_web_available`."""
    return to_json({"gamestate": int(stage), "available": 1, "plugin_version": GET5_VERSION}) + "\n"


def _team(series: Series, team: Team, score: int, *, side: Side, is_ready: bool) -> Payload:
    is_team1 = team is Team.TEAM1
    return {
        "name": (series.match.team1 if is_team1 else series.match.team2).name,
        "series_score": series.wins[0 if is_team1 else 1],
        "current_map_score": score,
        # MatchZy does not count clients, and reports readiness of the whole server instead of the team.
        "connected_clients": -1,
        "ready": is_ready,
        # `ct` or `terrorist`: the game's name in lower case, not get5's `t`.
        "side": series.side_of(team, side).value.lower(),
    }
