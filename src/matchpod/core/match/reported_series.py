"""Complete a series from the plugin's reports when log lines were lost.

The log is the primary source. For maps whose end is missing from the log, the plugin's reports determine the map number
and, if possible, the winner.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.events import LiveReported, ResultReported, SeriesReported
from matchpod.core.match.played_map import MapStatus, PlayedMap, is_same_map, map_name, unknown_maps, winners_of
from matchpod.core.match.series import SeriesRules, common_winner
from matchpod.core.model import GameSettings, Winner

Report = LiveReported | ResultReported | SeriesReported


class ReportedSeries(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The latest reports of the plugin.

    `live_number` is the number of a map that was reported live before the log shows it. `over_since_ms` is when the
    grace period for missing lines and reports began: when the plugin reported the end of the series, or when known wins
    or the end of all maps ended it. If a map seems to go live again after lost lines, `cut` keeps its previous state,
    because a later map may have gone live instead.
    """

    rules: SeriesRules
    live_number: int | None = None
    results: dict[int, tuple[int, int]] = {}
    score: tuple[int, int] | None = None
    over_since_ms: int | None = None
    cut: PlayedMap | None = None

    def apply(self, report: Report, now_ms: int) -> None:
        """Apply a report that fits the series format; it replaces an earlier report of the same kind and map."""
        match report:
            case LiveReported() if report.map_number <= self.rules.map_count:
                self.live_number = report.map_number
            case ResultReported() if report.map_number <= self.rules.map_count:
                self.results[report.map_number] = (report.team1_score, report.team2_score)
            case SeriesReported() if max(score := self._score_of(report)) == self.rules.format.wins_needed:
                self.score = score
                self.over_since_ms = now_ms
            case _:
                pass  # does not fit the series format, or the series was aborted

    def _score_of(self, report: SeriesReported) -> tuple[int, int]:
        return self.rules.given.plus(report.team1_maps, report.team2_maps)  # the plugin does not count `mapsWon`

    def extend_wait(self, now_ms: int) -> None:
        """Restart the grace period: the beginning of a round shows that log lines still arrive."""
        if self.over_since_ms is not None:
            self.over_since_ms = now_ms

    def discard_end(self, map_number: int) -> None:
        """Discard the reported ends of this map and of the series, because the map is played again."""
        self.results.pop(map_number, None)
        self.score = self.over_since_ms = None

    def current_number(self, loaded: str, settings: GameSettings, current: PlayedMap) -> int:
        """Return the number of the map that the server is on, from the plugin's report or the name of the loaded map.

        `loaded` is that name if log lines were lost. Otherwise it is empty: the name of a restarted map does not show
        its number.
        """
        number = max(current.number + current.is_finished, self.live_number or 0)
        if number == current.number and is_same_map(loaded, current.name):
            return number
        later = range(number, self.rules.map_count + 1)
        return next((index for index in later if is_same_map(loaded, map_name(settings, index))), number)

    def end_maps_before(self, number: int, settings: GameSettings, maps: list[PlayedMap]) -> None:
        """End all maps before map `number`, including maps that do not appear in the log at all."""
        while maps[-1].number + maps[-1].is_finished < number:
            if maps[-1].is_finished:
                maps.append(PlayedMap.upcoming(settings, maps[-1].number + 1))
            maps[-1].end_without_result()
        self.infer_results(maps)

    def finalize(self, settings: GameSettings, maps: list[PlayedMap]) -> bool:
        """End the current map, and add ended maps until they account for the final score; False if it is unknown."""
        if self.score is None:
            return False
        self.end_maps_before(maps[-1].number + 1, settings, maps)
        while not self.accounts_for(maps):
            self.end_maps_before(maps[-1].number + 2, settings, maps)
        return True

    def begin_map(self, settings: GameSettings, maps: list[PlayedMap], *, is_cut: bool) -> None:
        """Make the map that goes live the last of `maps`. If lines were lost during a live map, keep it in `cut`."""
        is_doubtful = is_cut and maps[-1].status is MapStatus.LIVE
        self.live_number, self.cut = None, maps[-1] if is_doubtful else None
        if is_doubtful:
            maps[-1] = PlayedMap.upcoming(settings, maps[-1].number)
        elif maps[-1].is_finished:
            maps.append(PlayedMap.upcoming(settings, maps[-1].number + 1))

    def assign_number(self, number: int, settings: GameSettings, maps: list[PlayedMap]) -> None:
        """Apply the reported number of the last map, which after lost lines may be a later map than assumed."""
        if self.cut is not None and maps[-1].number < number <= self.rules.map_count:
            last, maps[-1], self.cut = maps[-1], self.cut, None
            self.end_maps_before(number, settings, maps)
            last.number = number
            maps.append(last)

    def is_decided(self, maps: Sequence[PlayedMap]) -> bool:
        """True if the known winners of the maps decide the series."""
        return self.rules.is_decided(winners_of(maps))

    def may_be_won(self, maps: Sequence[PlayedMap]) -> bool:
        """True if the maps with an unknown winner may have decided the series."""
        return max(self.rules.score(winners_of(maps))) + len(unknown_maps(maps)) >= self.rules.format.wins_needed

    def is_winner_known(self, maps: Sequence[PlayedMap]) -> bool:
        """True if the winner of a match that is over is known, even if the winner of one of its maps is unknown."""
        return not unknown_maps(maps) or self.score is not None or self.is_decided(maps)

    def unassigned_wins(self, maps: Sequence[PlayedMap]) -> tuple[int, int] | None:
        """Return each team's wins in the final score beyond the known wins; None if no score fits them."""
        return None if self.score is None else self.rules.unassigned_wins(self.score, winners_of(maps))

    def accounts_for(self, maps: Sequence[PlayedMap]) -> bool:
        """True if a final score was reported, and the maps with an unknown winner are enough to account for it."""
        wins = self.unassigned_wins(maps) or (0, 0)
        return self.score is not None and sum(wins) <= len(unknown_maps(maps))

    def infer_results(self, maps: Sequence[PlayedMap]) -> None:
        """Set unknown map winners from the reported results, or from the series score once all maps are over."""
        reported = [played for played in unknown_maps(maps) if played.number in self.results]
        winners = winners_of(maps) + [Winner.of(*self.results[played.number]) for played in reported]
        if self.score is None or self.rules.unassigned_wins(self.score, winners) is not None:
            for played in reported:
                played.set_result(*self.results[played.number])
        wins, unknown = self.unassigned_wins(maps), unknown_maps(maps)
        if wins is not None and all(played.is_finished for played in maps):
            for played in unknown:
                played.winner = common_winner(wins, len(unknown))
