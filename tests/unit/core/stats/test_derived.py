"""Ratios computed from counters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.stats import derived

COUNT = st.integers(min_value=0, max_value=10_000)


def test_ratios_have_two_decimals() -> None:
    assert derived.hs_percent(2, 3) == 66.67
    assert derived.kd_ratio(7, 3) == 2.33
    assert derived.adr(1000, 15) == 66.67
    assert derived.kast_percent(11, 15) == 73.33
    assert derived.accuracy(1, 3) == 33.33
    assert derived.kpm(25, 600) == 2.5


def test_impact_follows_the_formula() -> None:
    # 2.13 * 20/25 + 0.42 * 5/25 - 0.41 = 1.704 + 0.084 - 0.41
    assert derived.impact(20, 5, 25) == 1.38


def test_accuracy_is_none_without_counted_shots() -> None:
    assert derived.accuracy(None, 10) is derived.accuracy(1, None) is None


def test_zero_denominators_give_zero_and_kills_without_deaths_are_the_ratio() -> None:
    assert derived.kd_ratio(4, 0) == 4.0
    zeros = [derived.hs_percent(0, 0), derived.kd_ratio(0, 0), derived.adr(0, 0), derived.kast_percent(0, 0)]
    assert [*zeros, derived.impact(0, 0, 0), derived.accuracy(0, 0), derived.kpm(0, 0)] == [0.0] * 7


@given(part=COUNT, rest=COUNT)
def test_percentages_stay_between_0_and_100(part: int, rest: int) -> None:
    assert 0 <= derived.hs_percent(part, part + rest) <= 100
    assert 0 <= derived.kast_percent(part, part + rest) <= 100
