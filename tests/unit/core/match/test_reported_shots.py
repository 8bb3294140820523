"""Tests of the map that a count of shots is about: right, wrong or uncertain map numbers."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.match.played_map import MapStatus, PlayedMap
from matchpod.core.match.reported_shots import ReportedShots
from matchpod.core.model import GameSettings, MatchType, SeriesFormat
from tests.unit.core.stats.event_builder import ANNA, EventBuilder

SETTINGS = GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_nuke",), series_format=SeriesFormat.BO3)
BOB = "76561198000000099"


class Series:
    """Maps of a series whose rounds are in the log, and the reports about their shots."""

    def __init__(self) -> None:
        self.maps = [PlayedMap.upcoming(SETTINGS, 1)]
        self.reported = ReportedShots()

    def play(self, rounds: int, *, is_over: bool = True) -> Series:
        """Play rounds of the next map."""
        if self.maps[-1].is_finished:
            self.maps.append(PlayedMap.upcoming(SETTINGS, len(self.maps) + 1))
        builder = EventBuilder().live()
        for number in range(1, rounds + 1):
            builder.start(number).decide(number)
        if is_over:
            builder.end()
        self.maps[-1].ledger = builder.ledger()
        self.maps[-1].status = MapStatus.FINISHED if is_over else MapStatus.LIVE
        return self

    def report(
        self, named: int, *fired: int, sequence: int | None = None, is_final: bool = False, first: int = 1
    ) -> Series:
        """Report one player's shots of consecutive rounds; 0 is a round without players."""
        counts = {number: {ANNA: (count, 1)} if count else {} for number, count in enumerate(fired, start=first)}
        events = self.reported.read(self.maps, counts, at_ms=0, map_number=named, sequence=sequence, is_final=is_final)
        for event in events:
            self.maps[event.map_number - 1].ledger.apply(event)
        return self

    def shots(self) -> list[list[int]]:
        """The shots of all counted rounds, by map."""
        return [
            [sum(one.fired for one in shots.values()) for _, shots in sorted(played.ledger.shots.items()) if shots]
            for played in self.maps
        ]


def test_last_round_counts_for_its_map_before_and_after_the_next_one_is_live() -> None:
    assert Series().play(2).report(1, 5, 6, sequence=1).shots() == [[5, 6]]
    series = Series().play(2).report(1, 5, sequence=1).play(1, is_over=False).report(2, 0, sequence=3)
    assert series.report(1, 5, 6, sequence=2).shots() == [[5, 6], []], "overtaken only by a report of another map"
    assert series.reported.misplaced == 0


def test_last_round_reported_for_the_next_map_counts_for_the_map_that_was_played() -> None:
    series = Series().play(3).report(1, 5, 6, sequence=1).report(2, 5, 6, 7, sequence=2, is_final=True)
    assert series.shots() == [[5, 6, 7]]
    assert series.reported.final_map == 1
    assert series.reported.misplaced == 0


def test_last_round_reported_for_the_next_map_counts_even_if_the_log_has_no_end_yet() -> None:
    series = Series().play(3, is_over=False).report(1, 5, 6, sequence=1).report(2, 5, 6, 7, sequence=2)
    assert series.shots() == [[5, 6, 7]]


def test_last_round_reported_for_the_next_map_counts_even_if_that_map_is_live() -> None:
    series = Series().play(3).report(1, 5, 6).play(1, is_over=False).report(2, 5, 6, 7)
    assert series.shots() == [[5, 6, 7], []]


@pytest.mark.parametrize(
    "fired", [(5, 9, 7), (5, 6), (5, 6, 7, 8)], ids=["another map", "no last round", "more rounds"]
)
def test_report_for_the_next_map_that_does_not_continue_the_current_one_is_ignored(fired: tuple[int, ...]) -> None:
    series = Series().play(3).report(1, 5, 6, sequence=1).report(2, *fired, sequence=2)
    assert series.shots() == [[5, 6]]
    assert series.reported.misplaced == 1


def test_single_round_for_the_next_map_is_ignored_because_it_may_be_of_either() -> None:
    series = Series().play(3).report(1, 5, 6).report(2, 7, first=3)
    assert series.shots() == [[5, 6]]
    assert series.play(1, is_over=False).report(2, 7, first=3).shots() == [[5, 6], []]
    assert series.reported.misplaced == 2


def test_equal_counts_without_a_shot_prove_nothing() -> None:
    series = Series().play(2)
    for named, last in ((1, {}), (2, {2: {ANNA: (7, 1)}})):
        counts = {1: {ANNA: (0, 0)}, **last}
        for event in series.reported.read(series.maps, counts, at_ms=0, map_number=named):
            series.maps[0].ledger.apply(event)
    assert 2 not in series.maps[0].ledger.shots
    assert series.reported.misplaced == 1


def test_round_that_overtakes_the_log_counts_if_the_previous_map_is_complete() -> None:
    series = Series().play(2).report(1, 5, 6, sequence=1).play(1, is_over=False).report(2, 8, 9, sequence=2)
    assert series.shots() == [[5, 6], [8, 9]]


def test_rounds_that_were_reached_count_although_the_previous_map_lacks_a_round() -> None:
    series = Series().play(2).report(1, 5, sequence=1).play(2, is_over=False).report(2, 8, 9, sequence=3)
    assert series.shots() == [[5], [8, 9]]


def test_counts_of_the_next_map_under_the_old_number_change_nothing() -> None:
    series = Series().play(2).report(1, 5, 6, sequence=1).play(2, is_over=False).report(1, 8, 9, sequence=2)
    assert series.report(1, 0, sequence=3).shots() == [[5, 6], []]
    assert series.reported.misplaced == 1


def test_counts_under_the_old_number_are_ignored_if_they_may_be_of_the_current_map() -> None:
    series = Series().play(2).play(2, is_over=False).report(1, 8, 9, sequence=2)
    assert series.shots() == [[], []]
    assert series.reported.misplaced == 1


def test_last_round_of_a_finished_map_can_be_corrected_until_the_next_map_is_live() -> None:
    series = Series().play(2).report(1, 5, 6).report(1, 7, first=2)
    assert series.shots() == [[5, 7]]
    assert series.play(1, is_over=False).report(1, 9, first=2).shots() == [[5, 7], []]


def test_nothing_counts_before_the_first_map_is_live() -> None:
    series = Series().report(1, 0, sequence=0)
    assert (series.reported.has_counter, series.reported.misplaced) == (True, 0)
    assert series.report(1, 8, sequence=1).shots() == [[]]
    assert series.reported.misplaced == 1


def test_map_after_the_next_one_is_ignored() -> None:
    assert Series().play(2).report(1, 5).report(3, 5, 6).shots() == [[5]]


def test_players_who_are_not_stored_do_not_contradict() -> None:
    series = Series().play(2).report(1, 5, sequence=1)
    counts = {1: {ANNA: (5, 1), BOB: (3, 0)}, 2: {ANNA: (6, 1)}}
    assert [type(one) for one in series.reported.read(series.maps, counts, at_ms=0, map_number=2)] == [ev.ShotsCounted]


# --- waiting for the last round ---------------------------------------------------------------------------------------


def awaits(series: Series) -> bool:
    return series.reported.awaits_last_round(series.maps[-1])


def test_without_a_counter_nothing_is_awaited() -> None:
    assert not awaits(Series().play(2))


def test_last_round_is_awaited_until_it_is_counted() -> None:
    series = Series().play(2, is_over=False).report(1, 5, 0, sequence=1).play(2)
    assert awaits(series)
    assert not awaits(series.report(1, 5, 6, sequence=2)), "without `final`"


def test_nothing_is_awaited_after_the_final_report_even_if_a_count_is_missing() -> None:
    series = Series().play(2).report(1, 5, 0, sequence=1, is_final=True)
    assert not awaits(series)
    assert awaits(series.report(1, 5, 0, sequence=2)), "a backup was restored after the end"


def test_earlier_maps_are_not_awaited() -> None:
    series = Series().play(2).report(1, 5, 0).play(2)
    assert awaits(series)
    assert not awaits(series.report(2, 7, 8))


def test_map_without_rounds_is_not_awaited() -> None:
    series = Series().play(0)
    assert not awaits(series.report(1, 0))
