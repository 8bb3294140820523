"""What has the plugin said of the series, and what follows from it? It speaks beside the log, and knows less.

The log tells the maps that are read from it. This is for maps whose end was lost on the way: the plugin's word gives
them their number, and their winner where it follows.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core import series
from matchpod.core.events import LiveReported, ResultReported, SeriesReported
from matchpod.core.model import GameSettings, SeriesFormat, Winner
from matchpod.core.played_map import MapStatus, PlayedMap, is_same_map, map_name, unknown_maps, winners_of

Report = LiveReported | ResultReported | SeriesReported


class ReportedSeries(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The plugin's latest words.

    `live_number` is the map it has begun and the log has not told yet. `over_since_ms` is since when the series is
    over, by its word or by the wins that are known: what is still to be told of it gets some time from there. `cut` is
    what was told of a map before lines were lost, after which it seemed to begin anew: or was that the next one?
    """

    series_format: SeriesFormat
    live_number: int | None = None
    results: dict[int, tuple[int, int]] = {}
    score: tuple[int, int] | None = None
    over_since_ms: int | None = None
    cut: PlayedMap | None = None

    def hear(self, report: Report, now_ms: int) -> None:
        """Take in a report; a later one of the same kind and map stands."""
        match report:
            case LiveReported() if report.map_number <= self.series_format.length:
                self.live_number = report.map_number
            case ResultReported() if report.map_number <= self.series_format.length:
                self.results[report.map_number] = (report.team1_score, report.team2_score)
            case SeriesReported() if max(report.team1_maps, report.team2_maps) == self.series_format.wins_needed:
                self.score = (report.team1_maps, report.team2_maps)
                self.over_since_ms = now_ms
            case _:
                pass  # a series of another length, or one that somebody broke off

    def wait_on(self, now_ms: int) -> None:
        """A round begins: the log still has something to tell."""
        if self.over_since_ms is not None:
            self.over_since_ms = now_ms

    def forget_end(self, map_number: int) -> None:
        """A map that may have ended is played again."""
        self.results.pop(map_number, None)
        self.score = self.over_since_ms = None

    def number_of(self, loaded: str, settings: GameSettings, current: PlayedMap) -> int:
        """The number of the map that a server is on. The plugin counts; where its word was lost, the name tells.

        `loaded` is that name where lines were lost as well: without a loss a map that begins anew may have any name.
        """
        number = max(current.number + current.is_finished, self.live_number or 0)
        if number == current.number and is_same_map(loaded, current.name):
            return number
        later = range(number, self.series_format.length + 1)
        return next((one for one in later if is_same_map(loaded, map_name(settings, one))), number)

    def pass_unseen(self, number: int, settings: GameSettings, maps: list[PlayedMap]) -> None:
        """All maps before this number are over, whether or not anything was told of them."""
        while maps[-1].number + maps[-1].is_finished < number:
            if maps[-1].is_finished:
                maps.append(PlayedMap.upcoming(settings, maps[-1].number + 1))
            maps[-1].end_unseen()
        self.fill_in(maps)

    def close(self, settings: GameSettings, maps: list[PlayedMap]) -> bool:
        """No more is told: add what must have been played by the final score; False without one."""
        if self.score is None:
            return False
        self.pass_unseen(maps[-1].number + 1, settings, maps)
        while not self.accounts_for(maps):
            self.pass_unseen(maps[-1].number + 2, settings, maps)
        return True

    def begin_anew(self, settings: GameSettings, maps: list[PlayedMap], *, is_cut: bool) -> None:
        """The last map is about to begin; where that is the second time and lines were lost, keep what was told."""
        is_doubtful = is_cut and maps[-1].status is MapStatus.LIVE
        self.live_number, self.cut = None, maps[-1] if is_doubtful else None
        if is_doubtful:
            maps[-1] = PlayedMap.upcoming(settings, maps[-1].number)

    def place(self, number: int, settings: GameSettings, maps: list[PlayedMap]) -> None:
        """The plugin says which map the last one is: perhaps it did not begin anew, but is a later one."""
        if self.cut is not None and maps[-1].number < number <= self.series_format.length:
            last, maps[-1], self.cut = maps[-1], self.cut, None
            self.pass_unseen(number, settings, maps)
            last.number = number
            maps.append(last)

    def wins_left(self, maps: Sequence[PlayedMap]) -> tuple[int, int] | None:
        """The wins of the final score that are on no map of a known winner; None without a score that can be true."""
        return None if self.score is None else series.wins_left(self.series_format, self.score, winners_of(maps))

    def accounts_for(self, maps: Sequence[PlayedMap]) -> bool:
        """The series is over, and the wins that are left have their place on the maps of an unknown winner."""
        left = self.wins_left(maps) or (0, 0)
        return self.score is not None and sum(left) <= len(unknown_maps(maps))

    def fill_in(self, maps: Sequence[PlayedMap]) -> None:
        """Give unknown maps the winner that follows: from their own result, or from the score when all are over."""
        told = [played for played in unknown_maps(maps) if played.number in self.results]
        winners = winners_of(maps) + [Winner.of(*self.results[played.number]) for played in told]
        if self.score is None or series.wins_left(self.series_format, self.score, winners) is not None:
            for played in told:
                played.learn_score(*self.results[played.number])
        left, unknown = self.wins_left(maps), unknown_maps(maps)
        if left is not None and all(played.is_finished for played in maps):
            for played in unknown:
                played.winner = series.common_winner(left, len(unknown))
