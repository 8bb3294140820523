"""Test the planned ends of rounds."""

from __future__ import annotations

from random import Random

import pytest

from cs2_protocol.game import Side
from cs2_simulator.play.fights.round_plan import RoundPlan, RoundStyle, plan_round


def plans(winner: Side, style: RoundStyle, *, cts: int = 5, ts: int = 5, timer_ms: int = 40_000) -> list[RoundPlan]:
    return [plan_round(Random(seed), winner, style, cts=cts, ts=ts, bomb_timer_ms=timer_ms) for seed in range(500)]


@pytest.mark.parametrize(
    ("winner", "style", "notices"),
    [
        (Side.T, RoundStyle.BOMB, {"Terrorists_Win", "Target_Bombed"}),
        (Side.CT, RoundStyle.BOMB, {"CTs_Win", "Bomb_Defused", "Target_Saved"}),
        (Side.T, RoundStyle.HOSTAGE, {"Terrorists_Win", "Hostages_Not_Rescued"}),
        (Side.CT, RoundStyle.HOSTAGE, {"CTs_Win", "All_Hostages_Rescued"}),
        (Side.T, RoundStyle.KNIFE, {"Terrorists_Win"}),
        (Side.CT, RoundStyle.KNIFE, {"CTs_Win"}),
        (Side.T, RoundStyle.RETAKE, {"Terrorists_Win", "Target_Bombed"}),
        (Side.CT, RoundStyle.RETAKE, {"Bomb_Defused"}),
    ],
)
def test_every_possible_round_end_is_planned(winner: Side, style: RoundStyle, notices: set[str]) -> None:
    assert {plan.notice for plan in plans(winner, style)} == notices


@pytest.mark.parametrize("count", [1, 2, 5, 10])
@pytest.mark.parametrize("winner", list(Side))
def test_winner_keeps_at_least_one_player(winner: Side, count: int) -> None:
    for plan in plans(winner, RoundStyle.BOMB, cts=count, ts=count):
        assert (plan.ct_left if winner is Side.CT else plan.t_left) >= 1


def test_no_defuse_is_planned_with_a_short_bomb_timer() -> None:
    for style in (RoundStyle.BOMB, RoundStyle.RETAKE):
        assert "Bomb_Defused" not in {plan.notice for plan in plans(Side.CT, style, timer_ms=10_000)}


def test_every_retake_has_a_plant() -> None:
    assert all(plan.plant_after is not None for winner in Side for plan in plans(winner, RoundStyle.RETAKE))


def test_about_seven_of_ten_players_die() -> None:
    both = [*plans(Side.CT, RoundStyle.BOMB), *plans(Side.T, RoundStyle.BOMB)]
    mean = sum(10 - plan.ct_left - plan.t_left for plan in both) / len(both)
    assert 6.7 < mean < 7.7
