"""Series with lost log lines: maps keep the right number, and winners are never guessed."""

from __future__ import annotations

from typing import Self

import msgspec
import pytest

from cs2_protocol.game import RoundEndReason, Side
from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, EndMatch, LoadMap, StartPlay
from matchpod.core.match.alarms import SERIES_END_GRACE_MS
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.played_map import MapStatus
from matchpod.core.match.series import SeriesRules, common_winner
from matchpod.core.model import MatchType, SeriesFormat, Winner
from matchpod.core.views.result import build_result
from matchpod.core.views.result_shapes import Score, SeriesResult
from matchpod.core.views.timeline import Timeline
from matchpod.core.views.timeline_items import MapEndItem, MapLiveItem
from tests.unit.core.match_driver import ANN, BEN, MAPS, START_MS, MatchDriver, live_duel, open_match

BO3, BO5 = SeriesFormat.BO3, SeriesFormat.BO5
ONE, TWO, TIE = Winner.TEAM1, Winner.TEAM2, Winner.TIE
GRACE_S = SERIES_END_GRACE_MS / 1000
UNKNOWN_END = ev.MapEnded(START_MS, MAPS[0], 4, 3, is_complete=False, is_winner_known=False)


class LossyDriver(MatchDriver):
    """A match of Ann and Ben in which some log lines are lost."""

    @classmethod
    def of(cls, series_format: SeriesFormat = BO3) -> LossyDriver:
        return cls(live_duel(series_format).match.settings).join(ANN, BEN).live().score(3, 5)

    def score(self, team1: int, team2: int) -> Self:
        decided = ev.RoundDecided(self.now_ms, team1 + team2, None, None, RoundEndReason.UNKNOWN, team1, team2)
        return self.apply(decided)

    def report_live(self, number: int) -> Self:
        return self.apply(ev.LiveReported(self.now_ms, number))

    def report_result(self, number: int, team1: int, team2: int) -> Self:
        return self.apply(ev.ResultReported(self.now_ms, number, team1, team2))

    def report_series(self, team1: int, team2: int) -> Self:
        return self.apply(ev.SeriesReported(self.now_ms, team1, team2))

    def winners(self) -> list[Winner | None]:
        return [played.winner for played in self.match.maps]

    def numbers(self) -> list[tuple[int, str]]:
        return [(played.number, played.name) for played in self.match.maps]


def test_later_map_reported_by_the_plugin_ends_the_previous_one_without_a_winner() -> None:
    driver = LossyDriver.of()
    assert driver.report_live(2).effects == []
    driver.live(MAPS[1])
    first = driver.match.maps[0]
    assert (first.status, first.winner, first.team1_score, first.team2_score) == (MapStatus.FINISHED, None, 3, 5)
    assert not first.ledger.is_complete
    assert driver.numbers() == [(1, MAPS[0]), (2, MAPS[1])]
    assert (driver.match.phase, driver.match.series_score) == (MatchPhase.LIVE, (0, 0))


def test_restart_with_another_map_name_is_the_same_map_if_no_lines_were_lost() -> None:
    driver = LossyDriver.of().change_map(MAPS[1], ANN, BEN).live(MAPS[1])
    assert driver.numbers() == [(1, MAPS[0])]
    assert driver.match.current_map.played_name == MAPS[1]


def test_complete_roster_starts_the_next_map_if_the_end_of_the_last_one_was_not_logged() -> None:
    driver = LossyDriver.of().load(MAPS[1])
    driver.apply(ev.WarmupBegan(driver.now_ms))
    assert driver.join(ANN, BEN).effects == [StartPlay(2)]
    assert driver.winners() == [None]


def test_later_map_with_the_same_name_is_identified_by_the_live_report() -> None:
    driver = LossyDriver.of().load(MAPS[0]).live(MAPS[0])
    assert driver.numbers() == [(1, MAPS[0])]
    driver.score(1, 0).report_live(2)
    assert driver.numbers() == [(1, MAPS[0]), (2, MAPS[0])]
    assert [(one.team1_score, one.team2_score) for one in driver.match.maps] == [(3, 5), (1, 0)]
    assert [one.status for one in driver.match.maps] == [MapStatus.FINISHED, MapStatus.LIVE]


def test_later_map_with_the_same_name_is_identified_by_its_result() -> None:
    driver = LossyDriver.of().load(MAPS[0]).live(MAPS[0]).end_map(13, 5).report_result(2, 13, 5)
    assert driver.winners() == [None, ONE]


def test_reports_that_do_not_fit_the_series_format_are_ignored() -> None:
    driver = LossyDriver.of()
    driver.report_live(4).report_result(4, 13, 0).report_series(3, 0).report_series(1, 0).live(MAPS[0])
    assert driver.numbers() == [(1, MAPS[0])]
    assert driver.match.reported.score is None


def test_reported_result_completes_a_map_without_a_logged_end() -> None:
    driver = LossyDriver.of().report_live(2).live(MAPS[1]).report_result(1, 5, 13)
    assert (driver.winners(), driver.match.series_score) == ([TWO, None], (0, 1))
    assert driver.match.maps[0].team2_score == 13
    assert driver.end_map(5, 13).effects == [EndMatch()]


def test_result_reported_before_the_next_map_is_kept() -> None:
    driver = LossyDriver.of().report_result(1, 5, 13).report_live(2).live(MAPS[1])
    assert driver.winners() == [TWO, None]


def test_reported_result_is_discarded_after_a_restore() -> None:
    driver = LossyDriver.of().report_result(1, 5, 13).restore(4, 2, 2).report_live(2).live(MAPS[1])
    assert driver.winners() == [None, None]


@pytest.mark.parametrize(
    ("second", "final", "first"),
    [((13, 5), (2, 0), ONE), ((5, 13), (0, 2), TWO)],
)
def test_winner_of_a_map_without_a_logged_end_is_inferred_from_the_series_score(
    second: tuple[int, int], final: tuple[int, int], first: Winner
) -> None:
    driver = LossyDriver.of().report_live(2).live(MAPS[1])
    assert driver.end_map(*second).effects == []  # only the plugin knows whether another map follows
    assert (driver.match.phase, driver.match.map_number) == (MatchPhase.BETWEEN_MAPS, 3)
    assert driver.report_series(*final).effects == [EndMatch()]
    assert (driver.match.winner, driver.match.series_score) == (first, final)
    assert driver.winners() == [first, first]


def test_tie_without_a_logged_end_is_inferred_from_the_series_score() -> None:
    driver = LossyDriver.of().end_map(13, 5).live(MAPS[1]).load(MAPS[2]).live(MAPS[2])
    assert driver.end_map(13, 5).effects == []
    assert driver.report_series(2, 0).effects == [EndMatch()]
    assert driver.winners() == [ONE, TIE, ONE]


def test_series_reported_over_before_the_last_map_end_ends_with_that_map() -> None:
    driver = LossyDriver.of().report_live(2).live(MAPS[1])
    assert driver.report_series(2, 0).effects == []
    assert driver.end_map(13, 5).effects == [EndMatch()]
    assert driver.winners() == [ONE, ONE]


def test_won_series_with_an_unlogged_map_end_waits_for_the_reported_score() -> None:
    driver = LossyDriver.of()
    for number in (2, 3):
        driver.report_live(number).live(MAPS[number - 1])
        assert driver.end_map(13, 5).effects == []
    assert driver.match.next_deadline_ms() == driver.now_ms + SERIES_END_GRACE_MS
    assert driver.report_series(2, 1).effects == [EndMatch()]
    assert (driver.match.winner, driver.match.series_score) == (ONE, (2, 1))
    assert driver.winners() == [TWO, ONE, ONE]


def test_won_series_ends_after_the_grace_period_without_a_report() -> None:
    driver = LossyDriver.of()
    for number in (2, 3):
        driver.report_live(number).live(MAPS[number - 1]).end_map(13, 5)
    assert driver.wait(GRACE_S) == [EndMatch()]
    assert (driver.match.winner, driver.match.series_score) == (ONE, (2, 0))
    assert driver.winners() == [None, ONE, ONE]


def test_match_whose_winner_is_not_known_ends_after_the_grace_period_without_one() -> None:
    driver = live_duel()
    assert driver.apply(UNKNOWN_END).effects == []
    assert driver.wait(GRACE_S) == [EndMatch()]
    assert (driver.match.winner, driver.match.series_score) == (None, (0, 0))


def test_report_gives_the_winner_of_a_match_that_the_log_does_not() -> None:
    driver = live_duel().apply(UNKNOWN_END)
    driver.apply(ev.ResultReported(driver.now_ms, 1, 5, 13))
    assert driver.wait(GRACE_S) == [EndMatch()]
    assert driver.match.winner is TWO


def test_casual_match_whose_winner_is_not_known_ends_too() -> None:
    driver = MatchDriver(open_match()).join(ANN).live().apply(UNKNOWN_END)
    assert driver.wait(GRACE_S) == [EndMatch()]
    assert driver.match.winner is None


def test_series_with_a_reported_score_is_finished_when_all_players_left() -> None:
    driver = LossyDriver.of().report_series(2, 0).leave(ANN, BEN)
    driver.match.reported.over_since_ms = None  # with accelerated time, the all-left timeout comes before this one
    assert driver.wait(30) == [EndMatch()]
    assert driver.match.winner is ONE


def test_series_without_a_reported_end_is_canceled_when_all_players_left() -> None:
    driver = LossyDriver.of().report_live(2).live(MAPS[1]).end_map(13, 5).leave(ANN, BEN)
    assert driver.wait(121) == [CancelMatch(CancelReason.ALL_PLAYERS_LEFT)]
    assert driver.match.winner is None


def test_maps_missing_from_the_log_keep_their_position() -> None:
    driver = LossyDriver.of(BO5).report_live(4).live(MAPS[3])
    assert driver.numbers() == [(1, MAPS[0]), (2, MAPS[1]), (3, MAPS[2]), (4, MAPS[3])]
    assert [one.started_at_ms is None for one in driver.match.maps] == [False, True, True, False]
    assert driver.winners() == [None, None, None, None]


def test_series_reported_over_during_an_earlier_map_ends_after_the_grace_period() -> None:
    driver = LossyDriver.of().end_map(13, 5).live(MAPS[1])
    assert driver.report_series(2, 1).effects == []
    assert driver.wait(GRACE_S - 1) == []
    assert driver.wait(1) == [EndMatch()]
    assert (driver.match.winner, driver.match.series_score) == (ONE, (2, 1))
    assert driver.winners() == [ONE, None, None]  # one win each, in unknown order
    result = build_result(driver.match)
    assert isinstance(result, SeriesResult)
    assert (result.winner, result.team1.series_score, result.team2.series_score) == (ONE, 2, 1)
    assert [(entry.map_number, entry.winner) for entry in result.maps] == [(1, ONE), (2, None), (3, None)]


def test_new_round_extends_the_grace_period() -> None:
    driver = LossyDriver.of().report_series(2, 0).after(GRACE_S - 1)
    driver.apply(ev.RoundStarted(driver.now_ms, 9, (ANN,), (BEN,), Side.CT))
    assert driver.wait(GRACE_S - 1) == []
    assert driver.wait(1) == [EndMatch()]


def test_no_map_is_added_after_the_last_one() -> None:
    driver = LossyDriver.of().report_live(3).live(MAPS[2])
    assert driver.end_map(13, 5).effects == []
    driver.live(MAPS[0])
    assert (len(driver.match.maps), driver.match.phase) == (3, MatchPhase.BETWEEN_MAPS)
    assert driver.join(ANN, BEN).effects == []


def test_series_without_lost_lines_requests_its_next_map() -> None:
    driver = LossyDriver.of().report_result(1, 13, 5)
    assert driver.end_map(13, 5).effects == [LoadMap(2, MAPS[1])]
    driver.report_live(2).live(MAPS[1]).report_series(2, 0)
    assert driver.end_map(13, 5).effects == [EndMatch()]
    assert driver.winners() == [ONE, ONE]


def test_unassigned_wins_exclude_maps_with_a_known_winner() -> None:
    assert SeriesRules(BO3).unassigned_wins((2, 1), [ONE]) == (1, 1)
    assert SeriesRules(BO3).unassigned_wins((2, 0), [TIE, ONE]) == (1, 0)
    assert SeriesRules(BO3).unassigned_wins((0, 2), [ONE]) is None
    assert SeriesRules(BO3).unassigned_wins((2, 0), [TIE, TIE]) is None


def test_maps_have_a_common_winner_only_if_all_have_the_same_result() -> None:
    assert common_winner((2, 0), 2) is ONE
    assert common_winner((0, 1), 1) is TWO
    assert common_winner((0, 0), 1) is TIE
    assert common_winner((1, 1), 2) is None
    assert common_winner((1, 0), 2) is None
    assert common_winner((1, 1), 1) is None
    assert common_winner((0, 0), 0) is None


def test_timeline_of_a_map_without_a_logged_end_ends_without_a_winner_before_the_next() -> None:
    driver, timeline = LossyDriver.of(), Timeline()
    timeline.add_map_ends(driver.match)
    driver.load(MAPS[1])
    live = ev.MapLive(driver.now_ms, MAPS[1], driver.now_ms, Side.CT)
    driver.apply(live)
    timeline.apply(live, driver.match)
    drained = [(one.map_number, one.item) for one in timeline.drain()]
    number, end = drained[0]
    assert isinstance(end, MapEndItem)
    assert (number, end.status, end.winner, end.score) == (1, MapStatus.FINISHED, None, Score(3, 5))
    assert [number for number, _ in drained[1:]] == [2] * (len(drained) - 1)
    assert isinstance(drained[-1][1], MapLiveItem)


def test_series_without_a_roster_goes_on_after_a_map_without_a_known_winner() -> None:
    settings = msgspec.structs.replace(open_match(MatchType.COMPETITIVE), maps=MAPS[:3], series_format=BO3)
    driver = MatchDriver(settings).join(ANN).live()
    assert driver.apply(UNKNOWN_END).effects == [LoadMap(2, MAPS[1])]


def test_series_waits_for_the_plugin_only_if_it_may_be_won() -> None:
    driver = live_duel(BO3)
    assert driver.apply(UNKNOWN_END).effects == [LoadMap(2, MAPS[1])], "one map decides nothing"
    driver.live(MAPS[1])
    assert driver.end_map(13, 5, MAPS[1]).effects == [], "the first may have been won by the same team"


def test_detection_after_the_last_map_is_of_that_map() -> None:
    driver = live_duel().apply(UNKNOWN_END).load(MAPS[1])
    driver.apply(ev.CheatSuspected(driver.now_ms, ANN, "aimbot", "why"))
    assert [found.map_number for found in driver.match.detections] == [1]
