"""What does the plugin say about itself? Its stages, and the answers to `get5_status` and `get5_web_available`."""

from __future__ import annotations

from enum import IntEnum

from matchpod.core.model import Side, Team
from matchpod.simulator.plugin.reports import Payload, to_json
from matchpod.simulator.plugin.series import Series

GET5_VERSION = "0.15.0"
"""The version of get5 that MatchZy claims to be."""

NO_ROUND = -1


class Stage(IntEnum):
    """Where the plugin is with its match; numbers and names are get5's, MatchZy never shows the others."""

    NONE = 0
    PRE_VETO = 1
    WARMUP = 3
    KNIFE = 4
    WAITING_FOR_KNIFE_DECISION = 5
    LIVE = 7
    POST_GAME = 9

    @property
    def is_started(self) -> bool:
        """True from the knife round or going live on, until the map is left."""
        return self > Stage.WARMUP


def status_text(
    stage: Stage,
    series: Series | None,
    *,
    score: tuple[int, int],
    first_team_side: Side,
    is_paused: bool,
    is_ready: bool,
) -> str:
    """The answer to `get5_status`; the score is by the plugin's teams."""
    status: Payload = {
        "plugin_version": GET5_VERSION,
        "gamestate": stage.name.lower(),
        "paused": is_paused,
        "loaded_config_file": None,
        "matchid": None,
        "map_number": None,
        "round_number": sum(score) if stage is Stage.LIVE else NO_ROUND,
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
            "maps": list(series.maps) if stage >= Stage.LIVE else None,
        }
    return to_json(status) + "\n"


def web_text(stage: Stage) -> str:
    """The answer to `get5_web_available`."""
    return to_json({"gamestate": int(stage), "available": 1, "plugin_version": GET5_VERSION}) + "\n"


def _team(series: Series, team: Team, score: int, *, side: Side, is_ready: bool) -> Payload:
    is_team1 = team is Team.TEAM1
    return {
        "name": (series.match.team1 if is_team1 else series.match.team2).name,
        "series_score": series.wins[0 if is_team1 else 1],
        "current_map_score": score,
        # MatchZy counts neither these nor whether the team, not the whole server, is ready.
        "connected_clients": -1,
        "ready": is_ready,
        # `ct` or `terrorist`: the side's own word in small letters, not get5's `t`.
        "side": series.side_of(team, side).value.lower(),
    }
