"""What do a plugin's reports add to the log? The log is the authority; the plugin speaks where the log is silent.

Reports come over their own connection: late, twice, out of order or never. So each fact is taken once, and nothing
that the log can say is taken from a report, but for two things: who was MVP, and that a map is over, with its score by
team. Scores of single rounds are not used: nobody can tell which attempt at a replayed round a late report is about.
What the plugin says of the series is passed on as it is: it is for maps whose end the log has lost.
"""

from __future__ import annotations

import msgspec

from matchpod.core.events import GameEvent, LiveReported, MvpNamed, ResultReported, SeriesReported
from matchpod.core.model import Team
from matchpod.cs2.map_flow import EndClaim, MapFlow
from matchpod.cs2.matchzy import GoingLive, MapResult, Report, RoundEnd, SeriesEnd, report_key

MAX_REPORTS_KEPT = 2000
"""Keys of reports already taken: a best of five has under 300."""


class PluginFacts(msgspec.Struct):
    """The reports taken so far."""

    taken: dict[str, None] = {}

    def read(self, report: Report, at_ms: int, flow: MapFlow, *, map_number: int, maps_won: int = 0) -> list[GameEvent]:
        """What a report adds now, given what the log has said: the map being played, and how many before were won."""
        key = report_key(report)
        if key in self.taken:
            return []
        while len(self.taken) >= MAX_REPORTS_KEPT:
            del self.taken[next(iter(self.taken))]
        self.taken[key] = None
        out: list[GameEvent] = []
        match report:
            case RoundEnd() if report.map_number == map_number:
                out += [
                    MvpNamed(at_ms, report.round_number, player.player_id, player.mvps)
                    for player in report.players
                    if player.mvps is not None
                ]
            case MapResult() if report.map_number == map_number:
                score = (report.team1_score, report.team2_score)
                flow.claim_end(EndClaim(at_ms=at_ms, by_team=score, winner=report.winner), out)
            case SeriesEnd():
                # Where other maps are missing as well, the winner of the series need not be the winner of this one.
                is_last = report.team1_maps + report.team2_maps == maps_won + 1
                flow.claim_end(EndClaim(at_ms=at_ms, winner=report.winner if is_last else None), out)
            case _:
                pass
        return out


def series_words(report: Report, at_ms: int) -> list[GameEvent]:
    """What a report says of the series, whatever the log has said; to hear it twice does no harm."""
    match report:
        case GoingLive() | RoundEnd():
            return [LiveReported(at_ms, report.map_number)]
        case MapResult():
            return [ResultReported(at_ms, report.map_number, report.team1_score, report.team2_score)]
        case SeriesEnd() if report.winner is (Team.TEAM1 if report.team1_maps > report.team2_maps else Team.TEAM2):
            return [SeriesReported(at_ms, report.team1_maps, report.team2_maps)]
        case _:
            return []  # a series that ended with another winner than its score was broken off
