"""Add facts from plugin reports that the log does not contain. The log is the authority.

Reports arrive over their own connection and may be late, repeated, out of order or lost. So each report is applied
once, and only two facts are used: who was MVP, and that a map is over, with its score by team. Scores of single rounds
are ignored, because a late report does not say which attempt at a replayed round it belongs to. Facts about the series
are passed on unchanged, for maps whose end is missing from the log.
"""

from __future__ import annotations

import msgspec

from cs2_protocol.game import Team
from cs2_protocol.matchzy import GoingLive, MapResult, Report, RoundEndReport, SeriesEnd, report_key
from matchpod.core.events import GameEvent, LiveReported, MvpNamed, ResultReported, SeriesReported
from matchpod.cs2.map_end import EndReport
from matchpod.cs2.map_flow import MapFlow

MAX_REPORTS_KEPT = 2000
"""Maximum number of stored report keys. A best of five has fewer than 300 reports."""


class PluginFacts(msgspec.Struct):
    """The keys of the reports applied so far."""

    applied: dict[str, None] = {}

    def read(
        self, report: Report, at_ms: int, flow: MapFlow, *, map_number: int, maps_won: int | None = 0
    ) -> list[GameEvent]:
        """Return the events of a report; none if it was applied before. `map_number` is the number of the current map.

        `maps_won` is the number of maps won before that map. It is None if the match was created with maps already won:
        the plugin does not know about them, so the series winner that it reports may not have won the last map.
        """
        key = report_key(report)
        if key in self.applied:
            return []
        while len(self.applied) >= MAX_REPORTS_KEPT:
            del self.applied[next(iter(self.applied))]
        self.applied[key] = None
        out: list[GameEvent] = []
        match report:
            case RoundEndReport() if report.map_number == map_number:
                out += [
                    MvpNamed(at_ms, report.round_number, player.player_id, player.stats["mvp"])
                    for player in report.players
                    if "mvp" in player.stats
                ]
            case MapResult() if report.map_number == map_number:
                score = (report.team1_score, report.team2_score)
                flow.report_end(EndReport(at_ms=at_ms, by_team=score, winner=report.winner), out)
            case SeriesEnd():
                # If other maps are missing as well, the winner of the series may not have won this map.
                is_last = maps_won is not None and report.team1_maps + report.team2_maps == maps_won + 1
                flow.report_end(EndReport(at_ms=at_ms, winner=report.winner if is_last else None), out)
            case _:
                pass
        return out


def series_events(report: Report, at_ms: int) -> list[GameEvent]:
    """Return the events of a report about the series, whatever the log says. Applying them twice has no effect."""
    match report:
        case GoingLive() | RoundEndReport():
            return [LiveReported(at_ms, report.map_number)]
        case MapResult():
            return [ResultReported(at_ms, report.map_number, report.team1_score, report.team2_score)]
        case SeriesEnd() if report.winner is (Team.TEAM1 if report.team1_maps > report.team2_maps else Team.TEAM2):
            return [SeriesReported(at_ms, report.team1_maps, report.team2_maps)]
        case _:
            return []  # the series was aborted if its winner contradicts its score
