"""Test that any match without draws ends with one series_end, and that its events are consistent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol import matchzy
from cs2_protocol.game import Side
from cs2_simulator.plugin.match_file import MAP_SIDES
from protocol_tests.effort import examples
from simulator_tests.plugin.plugin_harness import PluginHarness, match

ROUNDS = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda score: score[0] != score[1])


def play(harness: PluginHarness, team_size: int, scores: list[tuple[int, int]]) -> None:
    for first, second in scores:
        if not harness.plugin.has_match:
            break
        harness.enter_all(team_size)
        harness.rcon("css_start")
        if harness.course.series is not None and harness.course.series.needs_knife:
            harness.play_knife_round(Side.T)
            harness.wait(11)
        harness.wait(2)
        harness.play_map(first, second)
        harness.wait(30)


@examples(30)
@given(st.data(), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_series_ends_once_with_the_score_of_its_maps(
    data: st.DataObject, num_maps: int, team_size: int, can_clinch: bool
) -> None:
    sides = data.draw(st.lists(st.sampled_from(MAP_SIDES), min_size=num_maps, max_size=num_maps))
    scores = data.draw(st.lists(ROUNDS, min_size=num_maps, max_size=num_maps))
    maps = tuple(f"de_map{number}" for number in range(num_maps))
    harness = PluginHarness()
    harness.load(match(team_size, maps, map_sides=sides, clinch_series=can_clinch))
    play(harness, team_size, scores)
    reports = harness.outside.reports
    results = [report for report in reports if isinstance(report, matchzy.MapResult)]
    [end] = [report for report in reports if isinstance(report, matchzy.SeriesEnd)]
    team1_maps = sum(result.team1_score > result.team2_score for result in results)
    assert (end.team1_maps, end.team2_maps) == (team1_maps, len(results) - team1_maps)
    assert [result.map_number for result in results] == list(range(1, len(results) + 1))
    assert not any(isinstance(report, matchzy.Malformed | matchzy.OtherReport) for report in reports)


@examples(15)
@given(st.integers(1, 5), st.lists(ROUNDS, min_size=5, max_size=5))
def test_events_are_in_the_order_of_the_match(num_maps: int, scores: list[tuple[int, int]]) -> None:
    harness = PluginHarness()
    harness.load(match(1, tuple(f"de_map{number}" for number in range(num_maps))))
    play(harness, 1, scores)
    expected = ["series_start"]
    for (first, second), _ in zip(
        scores, [event for event in harness.outside.events if event == "map_result"], strict=False
    ):
        expected += ["going_live", *["round_end"] * (first + second), "map_result"]
    assert harness.outside.events == [*expected, "series_end"]
