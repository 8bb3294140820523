"""When a headshot rate is reported."""

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


def see(rate: HeadshotRate, hits: str, weapon: str = "ak47") -> list[CheatSuspected]:
    """One kill a letter, `h` for a headshot."""
    found = (rate.see(kill(weapon=weapon, is_headshot=hit == "h")) for hit in hits)
    return [report for report in found if report is not None]


def test_chance_is_the_binomial_tail() -> None:
    assert chance_of(0, 5, 70) == 1
    assert chance_of(5, 5, 70) == pytest.approx(0.7**5)
    assert chance_of(2, 3, 70) == float(Fraction(7, 10) ** 3 + 3 * Fraction(7, 10) ** 2 * Fraction(3, 10))


def test_chance_is_right_for_thousands_of_kills() -> None:
    assert chance_of(2100, 3000, 70) == pytest.approx(0.51, abs=0.01)
    assert chance_of(3000, 3000, 70) == 0


def test_fewer_kills_than_the_least_number_never_suffice() -> None:
    assert (
        chance_of(MIN_KILLS - 1, MIN_KILLS - 1, BASE_PERCENT)
        > MAX_CHANCE
        > chance_of(MIN_KILLS, MIN_KILLS, BASE_PERCENT)
    )
    assert see(HeadshotRate(), "h" * (MIN_KILLS - 1)) == []


def test_nothing_but_headshots_is_reported_with_its_numbers_and_weapon() -> None:
    assert see(HeadshotRate(), "h" * MIN_KILLS) == [
        CheatSuspected(
            1000,
            ANN,
            "Aimbot",
            "22 of 22 rifle, SMG and pistol kills were headshots; chance 1 in 2,558 for a player who hits 70 %",
            "ak47",
        )
    ]


def test_rate_of_a_very_good_player_is_not_reported() -> None:
    assert see(HeadshotRate(), "hhhhhhhbbb" * 20) == []


def test_high_rate_that_chance_still_explains_is_not_reported() -> None:
    assert see(HeadshotRate(), "b" * 5 + "h" * 25) == []


@pytest.mark.parametrize(
    "weapon", ["awp", "knife_butterfly", "hegrenade", "inferno", "taser", "xm1014", "negev", "new"]
)
def test_weapons_that_are_not_aimed_at_heads_do_not_count(weapon: str) -> None:
    rate = HeadshotRate()
    assert see(rate, "h" * 100, weapon) == []
    assert rate == HeadshotRate()


def test_report_comes_once_a_map() -> None:
    assert len(see(HeadshotRate(), "h" * 100)) == 1


def test_later_map_reports_again_when_the_evidence_has_grown() -> None:
    rate = HeadshotRate()
    see(rate, "h" * MIN_KILLS)
    rate.new_map()
    assert see(rate, "hhhhhh") == []
    assert [report.reason.split(";")[0] for report in see(rate, "h")] == [
        "29 of 29 rifle, SMG and pistol kills were headshots"
    ]
    assert chance_of(28, 28, 70) * GROWTH > chance_of(22, 22, 70) > chance_of(29, 29, 70) * GROWTH


def test_evidence_adds_up_over_maps() -> None:
    rate = HeadshotRate()
    assert see(rate, "h" * 15) == []
    rate.new_map()
    assert len(see(rate, "h" * 15)) == 1


def test_odds_beyond_a_billion_are_not_spelled_out() -> None:
    (report,) = see(HeadshotRate(kills=3000, headshots=3000), "h")
    assert report.reason.endswith("chance 1 in 1,000,000,000 for a player who hits 70 %")


def test_deathmatch_expects_more_headshots() -> None:
    assert HeadshotRate.of(MatchType.DEATHMATCH).base_percent == DEATHMATCH_BASE_PERCENT
    assert HeadshotRate.of(MatchType.WINGMAN).base_percent == BASE_PERCENT
    assert see(HeadshotRate.of(MatchType.DEATHMATCH), "h" * 34) == []
    assert len(see(HeadshotRate.of(MatchType.DEATHMATCH), "h" * 35)) == 1
