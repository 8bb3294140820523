"""Reports of implausible headshot rates."""

from __future__ import annotations

from fractions import Fraction

import pytest

from matchpod.core.anticheat.headshot_rate import (
    BASE_PERCENT,
    DEATHMATCH_BASE_PERCENT,
    GROWTH,
    MAX_CHANCE,
    MIN_KILLS,
    HeadshotRate,
    chance_of,
)
from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType

ANN = "76561198000000001"
BEN = "76561198000000002"


def kill(*, weapon: str = "ak47", is_headshot: bool = True) -> Kill:
    return Kill(1000, ANN, BEN, weapon, True, is_headshot=is_headshot)


def observe(rate: HeadshotRate, hits: str, weapon: str = "ak47") -> list[CheatSuspected]:
    """Observe one kill per letter, `h` for a headshot."""
    found = (rate.observe(kill(weapon=weapon, is_headshot=hit == "h")) for hit in hits)
    return [report for report in found if report is not None]


def test_chance_is_the_binomial_tail() -> None:
    assert chance_of(0, 5, 70) == 1
    assert chance_of(5, 5, 70) == pytest.approx(0.7**5)
    assert chance_of(2, 3, 70) == float(Fraction(7, 10) ** 3 + 3 * Fraction(7, 10) ** 2 * Fraction(3, 10))


def test_chance_is_accurate_for_thousands_of_kills() -> None:
    assert chance_of(2100, 3000, 70) == pytest.approx(0.51, abs=0.01)
    assert chance_of(3000, 3000, 70) == 0


def test_fewer_than_the_minimum_kills_are_never_reported() -> None:
    assert (
        chance_of(MIN_KILLS - 1, MIN_KILLS - 1, BASE_PERCENT)
        > MAX_CHANCE
        > chance_of(MIN_KILLS, MIN_KILLS, BASE_PERCENT)
    )
    assert observe(HeadshotRate(), "h" * (MIN_KILLS - 1)) == []


def test_player_with_only_headshots_is_reported_with_numbers_and_weapon() -> None:
    assert observe(HeadshotRate(), "h" * MIN_KILLS) == [
        CheatSuspected(
            1000,
            ANN,
            "Aimbot",
            "22 of 22 rifle, SMG and pistol kills were headshots; chance 1 in 2,558 for a player with a headshot rate of 70 %",
            "ak47",
        )
    ]


def test_rate_of_a_very_good_player_and_one_that_chance_can_explain_are_not_reported() -> None:
    assert observe(HeadshotRate(), "hhhhhhhbbb" * 20) == []
    assert observe(HeadshotRate(), "b" * 5 + "h" * 25) == []


def test_weapons_without_aimed_headshots_do_not_count() -> None:
    for weapon in ["awp", "knife_butterfly", "hegrenade", "inferno", "taser", "xm1014", "negev", "new"]:
        rate = HeadshotRate()
        assert observe(rate, "h" * 100, weapon) == []
        assert rate == HeadshotRate()


def test_later_map_has_a_report_if_the_evidence_has_grown() -> None:
    rate = HeadshotRate()
    observe(rate, "h" * MIN_KILLS)
    rate.new_map()
    assert observe(rate, "hhhhhh") == []
    assert [report.reason.split(";")[0] for report in observe(rate, "h")] == [
        "29 of 29 rifle, SMG and pistol kills were headshots"
    ]
    assert chance_of(28, 28, 70) * GROWTH > chance_of(22, 22, 70) > chance_of(29, 29, 70) * GROWTH


def test_reported_odds_are_limited_to_a_billion() -> None:
    (report,) = observe(HeadshotRate(kills=3000, headshots=3000), "h")
    assert report.reason.endswith("chance 1 in 1,000,000,000 for a player with a headshot rate of 70 %")


def test_deathmatch_expects_more_headshots() -> None:
    assert HeadshotRate.of(MatchType.DEATHMATCH).base_percent == DEATHMATCH_BASE_PERCENT
    assert HeadshotRate.of(MatchType.WINGMAN).base_percent == BASE_PERCENT
    assert observe(HeadshotRate.of(MatchType.DEATHMATCH), "h" * 34) == []
    assert len(observe(HeadshotRate.of(MatchType.DEATHMATCH), "h" * 35)) == 1
