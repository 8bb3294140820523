"""The score, end and winner of a series."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.match import series
from matchpod.core.match.series import SeriesRules
from matchpod.core.model import SeriesFormat, Winner

ONE, TWO, TIE = Winner.TEAM1, Winner.TEAM2, Winner.TIE
BO1, BO3, BO5 = SeriesFormat.BO1, SeriesFormat.BO3, SeriesFormat.BO5


def test_series_is_decided_by_enough_wins_or_after_all_maps() -> None:
    for series_format, winners, expected in [
        (BO1, [ONE], ONE),
        (BO1, [TIE], TIE),
        (BO3, [TWO, TWO], TWO),
        (BO3, [ONE, TWO, ONE], ONE),
        (BO3, [ONE, TIE, TIE], ONE),
        (BO3, [ONE, TIE, TWO], TIE),
        (BO5, [TWO, ONE, TWO, TWO], TWO),
        (BO5, [TIE] * 5, TIE),
    ]:
        assert SeriesRules(series_format).is_decided(winners)
        assert Winner.of(*series.maps_won(winners)) is expected


@pytest.mark.parametrize(
    ("series_format", "winners"),
    [(BO1, []), (BO3, [ONE]), (BO3, [ONE, TWO]), (BO3, [ONE, TIE]), (BO5, [ONE, ONE]), (BO5, [ONE, ONE, TWO, TWO])],
)
def test_unfinished_series_without_enough_wins_is_undecided(series_format: SeriesFormat, winners: list[Winner]) -> None:
    assert not SeriesRules(series_format).is_decided(winners)


@given(st.sampled_from(SeriesFormat), st.lists(st.sampled_from(Winner), min_size=5, max_size=5))
def test_series_ends_within_its_length_and_its_winner_leads(series_format: SeriesFormat, results: list[Winner]) -> None:
    played: list[Winner] = []
    while not SeriesRules(series_format).is_decided(played):
        played.append(results[len(played)])
    assert len(played) <= series_format.length
    team1, team2 = series.maps_won(played)
    assert max(team1, team2) <= series_format.wins_needed
    assert len(played) == series_format.length or Winner.of(team1, team2) is not Winner.TIE
