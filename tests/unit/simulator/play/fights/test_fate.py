"""Who wins."""

from __future__ import annotations

from random import Random

import pytest

from matchpod.core.model import Side
from matchpod.simulator.play.fights.fate import choose_winner
from matchpod.simulator.play.player import Person
from matchpod.simulator.scenarios import Scenario
from tests.unit.simulator.play.fights.battlefield import Battlefield


def arena_of(scenario: Scenario = Scenario.FULL_MATCH, **settings: str) -> Battlefield:
    return Battlefield(settings={"sim_scenario": scenario.value, **settings}).spawn_all()


def play_rounds(field: Battlefield, rounds: int, seed: int, score: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Play so many rounds, halves changing sides now and then."""
    for number in range(rounds):
        side = Side.CT if number % 3 else Side.T
        winner = choose_winner(
            field.arena, Random(f"{seed}/{number}"), round_number=number + 1, team1_side=side, score=score
        )
        score = (score[0] + 1, score[1]) if winner is side else (score[0], score[1] + 1)
    return score


@pytest.mark.parametrize("scenario", [Scenario.TIE, Scenario.OVERTIME])
@pytest.mark.parametrize("rounds", [2, 4, 16, 24, 30])
def test_regulation_ends_level(scenario: Scenario, rounds: int) -> None:
    field = arena_of(scenario, mp_maxrounds=str(rounds))
    for seed in range(25):
        assert play_rounds(field, rounds, seed) == (rounds // 2, rounds // 2)


@pytest.mark.parametrize("scenario", [Scenario.TIE, Scenario.OVERTIME])
def test_odd_regulation_is_level_before_its_last_round(scenario: Scenario) -> None:
    field = arena_of(scenario, mp_maxrounds="15")
    for seed in range(25):
        assert play_rounds(field, 14, seed) == (7, 7)
        assert sum(play_rounds(field, 15, seed)) == 15


def test_second_overtime_never_ends_level() -> None:
    field = arena_of(Scenario.OVERTIME, mp_overtime_maxrounds="6")
    firsts = set()
    for seed in range(150):
        firsts.add(play_rounds(field, 6, seed, (12, 12)))
        one, two = play_rounds(field, 6, seed, (15, 15))
        assert one != two
    assert (15, 15) in firsts
    assert len(firsts) > 2


def test_overtime_without_length_is_free() -> None:
    field = arena_of(Scenario.OVERTIME, mp_overtime_maxrounds="0")
    assert sum(play_rounds(field, 6, 1, (12, 12))) == 30


def test_one_team_wins_nearly_everything() -> None:
    one, two = play_rounds(arena_of(Scenario.ONE_SIDED), 500, 1)
    assert 0.88 < one / 500 < 0.96
    assert two > 0


def test_equal_teams_are_nearly_even() -> None:
    field = arena_of()
    wins = sum(
        choose_winner(field.arena, Random(seed), round_number=1, team1_side=Side.CT, score=(0, 0)) is Side.CT
        for seed in range(1000)
    )
    assert 440 < wins < 600


def test_skill_weapons_and_numbers_decide() -> None:
    def share(field: Battlefield) -> float:
        return (
            sum(
                choose_winner(field.arena, Random(seed), round_number=1, team1_side=Side.CT, score=(0, 0)) is Side.CT
                for seed in range(400)
            )
            / 400
        )

    even = share(arena_of())
    rich, many, good = arena_of(), arena_of(), arena_of()
    for player in rich.cts:
        player.primary, player.armor = "m4a1", 100
    for number in range(30, 33):
        many.add(number, Side.CT)
    for player in good.cts:
        player.person = Person(player.person.name, player.person.account, skill=1.5)
    assert share(rich) > even + 0.05
    assert share(many) > even + 0.15
    assert share(good) > even + 0.15
