"""Any match without draws ends in one series_end, and all events agree with each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.model import Side
from matchpod.cs2 import matchzy
from matchpod.simulator.plugin.match_file import MAP_SIDES
from tests.effort import examples

from .stand import Stand, match

ROUNDS = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda score: score[0] != score[1])


def play(stand: Stand, team_size: int, scores: list[tuple[int, int]]) -> None:
    for first, second in scores:
        if not stand.plugin.has_match:
            break
        stand.enter_all(team_size)
        stand.rcon("css_start")
        if stand.course.series is not None and stand.course.series.needs_knife:
            stand.play_knife_round(Side.T)
            stand.wait(11)
        stand.wait(2)
        stand.play_map(first, second)
        stand.wait(30)


@examples(60)
@given(st.data(), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_series_ends_once_and_its_score_is_that_of_its_maps(
    data: st.DataObject, num_maps: int, team_size: int, can_clinch: bool
) -> None:
    sides = data.draw(st.lists(st.sampled_from(MAP_SIDES), min_size=num_maps, max_size=num_maps))
    scores = data.draw(st.lists(ROUNDS, min_size=num_maps, max_size=num_maps))
    maps = tuple(f"de_map{number}" for number in range(num_maps))
    stand = Stand()
    stand.load(match(team_size, maps, map_sides=sides, clinch_series=can_clinch))
    play(stand, team_size, scores)
    reports = stand.world.reports
    results = [report for report in reports if isinstance(report, matchzy.MapResult)]
    [end] = [report for report in reports if isinstance(report, matchzy.SeriesEnd)]
    team1_maps = sum(result.team1_score > result.team2_score for result in results)
    assert (end.team1_maps, end.team2_maps) == (team1_maps, len(results) - team1_maps)
    assert [result.map_number for result in results] == list(range(1, len(results) + 1))
    assert not any(isinstance(report, matchzy.Malformed | matchzy.OtherReport) for report in reports)


@examples(30)
@given(st.integers(1, 5), st.lists(ROUNDS, min_size=5, max_size=5))
def test_events_come_in_the_order_of_the_match(num_maps: int, scores: list[tuple[int, int]]) -> None:
    stand = Stand()
    stand.load(match(1, tuple(f"de_map{number}" for number in range(num_maps))))
    play(stand, 1, scores)
    expected = ["series_start"]
    for (first, second), _ in zip(
        scores, [event for event in stand.world.events if event == "map_result"], strict=False
    ):
        expected += ["going_live", *["round_end"] * (first + second), "map_result"]
    assert stand.world.events == [*expected, "series_end"]


@examples(60)
@given(st.integers(1, 5), st.lists(st.integers(1, 110), max_size=20, unique=True))
def test_nobody_but_listed_players_is_ever_on_the_server(team_size: int, accounts: list[int]) -> None:
    stand = Stand()
    stand.load(match(team_size))
    listed = [*range(1, team_size + 1), *range(101, team_size + 101)]
    present = [player.person.account for account in accounts if (player := stand.enter(account)) is not None]
    assert present == [account for account in accounts if account in listed]
    assert all((player.team == Side.CT) == (player.person.account <= team_size) for player in stand.arena.players)


@examples(40)
@given(st.integers(1, 33), st.integers(0, 10**6))
def test_lost_doubled_and_late_events_are_nothing_but_that(faults: int, seed: int) -> None:
    stands = Stand(), Stand()
    stands[1].variables.set("sim_report_faults", str(faults))
    stands[1].variables.set("sim_seed", str(seed))
    for stand in stands:
        stand.load(match())
        stand.rcon("css_start")
        stand.play_map(13, 9)
        stand.wait(60)
    sent = [body for _, _, body in stands[0].world.posts]
    arrived = [body for _, _, body in stands[1].world.posts]
    assert set(arrived) <= set(sent)
    assert all(arrived.count(body) <= 2 for body in arrived)
