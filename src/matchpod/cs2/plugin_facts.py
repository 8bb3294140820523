"""What do a plugin's reports add to the log? The log is the authority; the plugin speaks where the log is silent.

Reports come over their own connection: late, twice, out of order or never. So each fact is taken once, and nothing
that the log can say is taken from a report, but for two things: who was MVP, and that a map is over although its last
lines never came. A claimed end waits for the log to say so itself, and stands alone only after that time.
"""

from __future__ import annotations

import msgspec

from matchpod.core.events import GameEvent, MvpNamed
from matchpod.cs2.interpreter import Interpreter, MapPhase
from matchpod.cs2.matchzy import MapResult, Report, RoundEnd, SeriesEnd, report_key

CLAIM_PATIENCE_MS = 20_000
"""The log arrives in well under a second; a server that resends after a fault of ours gets this long to catch up."""

MAX_REPORTS_KEPT = 2000
"""Keys of reports already taken: a best of five has under 300."""


class EndClaim(msgspec.Struct, frozen=True):
    """The plugin says the map is over; without a score where it only said that the series is."""

    at_ms: int
    score: tuple[int, int] | None


class PluginFacts(msgspec.Struct):
    """What the plugin has said so far."""

    taken: dict[str, None] = {}
    claim: EndClaim | None = None

    def read(self, report: Report, at_ms: int, interpreter: Interpreter, *, map_number: int) -> list[GameEvent]:
        """What a report adds now, given what the log has said; `map_number` is the map being played."""
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
                self._end(EndClaim(at_ms, (report.team1_score, report.team2_score)), interpreter, out)
            case SeriesEnd() if self.claim is None:
                self._end(EndClaim(at_ms, None), interpreter, out)
            case _:
                pass
        return out

    def next_deadline_ms(self) -> int | None:
        """When `settle` must be called at the latest; None while nothing waits."""
        return None if self.claim is None else self.claim.at_ms + CLAIM_PATIENCE_MS

    def settle(self, now_ms: int, interpreter: Interpreter) -> list[GameEvent]:
        """End the map on the plugin's word alone, once the log has had its time."""
        claim = self.claim
        if claim is None or now_ms < claim.at_ms + CLAIM_PATIENCE_MS:
            return []
        self.claim = None
        out: list[GameEvent] = []
        if interpreter.phase is MapPhase.LIVE:
            score = interpreter.scores[-1] if claim.score is None else claim.score
            interpreter.end_map(now_ms, score, out, is_complete=False)
        return out

    def log_ended(self) -> None:
        """The log has said so itself."""
        self.claim = None

    def _end(self, claim: EndClaim, interpreter: Interpreter, out: list[GameEvent]) -> None:
        if interpreter.game_over is not None:
            interpreter.confirm_end(claim.at_ms, out)
        elif interpreter.phase is MapPhase.LIVE:
            self.claim = claim
