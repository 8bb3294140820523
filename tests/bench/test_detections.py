"""Honest players of simulated matches are not reported, and cheaters are; the measurement counts both correctly."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.bench.false_positives import (
    ACCUSED,
    FOUND,
    GAMES,
    HONEST_TITLES,
    MATCHES,
    PLAYER_MAPS,
    WRONG,
    games,
    measure,
    measure_cheaters,
    play,
    table,
)
from tests.effort import seeds


@pytest.mark.law
@pytest.mark.soak
@pytest.mark.parametrize("name", GAMES)
def test_honest_players_of_simulated_matches_are_not_reported(name: str) -> None:
    settings, scenario = GAMES[name]
    tried = seeds(1)
    reported = [seed for seed in tried if play(settings, scenario, seed).reader.match.detections]
    assert len(reported) <= len(tried) // 5, reported


@pytest.mark.law
@pytest.mark.parametrize("name", ["competitive", "wingman, best of three", "casual", "deathmatch"])
def test_cheaters_of_simulated_matches_are_found(name: str) -> None:
    figures = measure_cheaters(name, seeds(1))
    assert figures[FOUND] >= 0.8 * figures[MATCHES]
    assert figures[WRONG] <= figures[MATCHES] // 5


@pytest.mark.soak
def test_cheater_of_a_short_match_is_found_if_there_are_enough_kills() -> None:
    wingman, retakes = (measure_cheaters(name, range(1, 5)) for name in ("wingman, best of three", "retakes"))
    assert wingman[FOUND] >= 3
    assert retakes[FOUND] >= 1
    assert wingman[WRONG] == retakes[WRONG] == 0


def test_all_games_are_played_equally_often_with_different_seeds() -> None:
    planned = list(games(3 * len(GAMES), 5))
    assert len(set(planned)) == len(planned)
    assert set(Counter(name for name, _ in planned).values()) == {3}
    assert {seed for _, seed in planned} == {5, 6, 7}


def test_figures_are_counted_per_game_and_shown_in_a_table() -> None:
    figures = measure(1)
    assert figures["competitive"][MATCHES] == 1
    assert figures["competitive"][PLAYER_MAPS] == 10
    assert figures["deathmatch"] == Counter()
    figures["deathmatch"] += Counter({MATCHES: 1_000, PLAYER_MAPS: 20_000, ACCUSED: 2, "`RageBot`": 3})
    assert "| deathmatch | 1,000 | 20,000 | 2 | 0 | 0 | 3 |" in table(HONEST_TITLES, figures)
