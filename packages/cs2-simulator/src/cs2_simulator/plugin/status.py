"""Output of `get5_status`."""

from __future__ import annotations

from cs2_protocol.game import Team
from cs2_simulator.plugin.match_course import MatchCourse
from cs2_simulator.plugin.reports import Payload, to_json
from cs2_simulator.plugin.series import PluginStage, Series

GET5_VERSION = "0.15.0"
"""The version of get5 that MatchZy claims to be."""

NO_ROUND = -1


def status_text(course: MatchCourse) -> str:
    stage, series, score = course.shown_stage, course.series, course.score
    status: Payload = {
        "plugin_version": GET5_VERSION,
        "gamestate": stage.name.lower(),
        "paused": bool(course.paused_by),
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
            "team1": _team(course, series, Team.TEAM1, score[0]),
            "team2": _team(course, series, Team.TEAM2, score[1]),
            "maps": list(series.maps) if stage >= PluginStage.LIVE else None,
        }
    return to_json(status) + "\n"


def _team(course: MatchCourse, series: Series, team: Team, score: int) -> Payload:
    is_team1 = team is Team.TEAM1
    return {
        "name": (series.match.team1 if is_team1 else series.match.team2).name,
        "series_score": series.wins[0 if is_team1 else 1],
        "current_map_score": score,
        # MatchZy does not count clients, and reports readiness of the whole server instead of the team.
        "connected_clients": -1,
        "ready": course.ready.is_everyone_ready,
        # `ct` or `terrorist`: the game's name in lower case, not get5's `t`.
        "side": series.side_of(team, course.game.team1_side).value.lower(),
    }
