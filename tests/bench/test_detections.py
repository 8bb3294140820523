"""Honest players of simulated matches are not reported, and cheaters are; the measurement counts both correctly."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from matchpod.simulator.scenarios import Scenario
from tests.bench.false_positives import GAMES, Figures, games, main, measure, measure_corpus, play, table
from tests.effort import seeds

CHEATED = ("competitive", "wingman, best of three", "casual", "deathmatch")
"""The games in which a cheater makes enough kills to be found. A match of retakes is too short for that."""


@pytest.mark.law
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("seed", seeds(1))
def test_honest_players_of_a_simulated_match_are_not_reported(name: str, seed: int) -> None:
    settings, scenario = GAMES[name]
    assert play(settings, scenario, seed).reader.match.detections == []


@pytest.mark.law
@pytest.mark.parametrize("name", CHEATED)
@pytest.mark.parametrize("seed", seeds(2))
def test_cheater_of_a_simulated_match_is_found_and_nobody_else(name: str, seed: int) -> None:
    played = play(GAMES[name][0], Scenario.CHEATER, seed)
    cheaters = {player.person.player_id for player in played.machine.arena.players if player.person.is_cheater}
    assert len(cheaters) == 1
    assert {found.player_id for found in played.reader.match.detections} == cheaters


def test_all_games_are_played_equally_often_with_different_seeds() -> None:
    planned = list(games(3 * len(GAMES), 5))
    assert len(set(planned)) == len(planned)
    assert set(Counter(name for name, _ in planned).values()) == {3}
    assert {seed for _, seed in planned} == {5, 6, 7}


def test_figures_are_counted_per_game_and_shown_in_a_table() -> None:
    figures = measure(1)
    assert figures["competitive"].matches == 1
    assert figures["competitive"].player_maps == 10
    assert figures["deathmatch"] == Figures()
    figures["deathmatch"].add(Figures(1_000, 20_000, 2, Counter(RageBot=3)))
    assert "| deathmatch | 1,000 | 20,000 | 2 | 0 | 0 | 3 |" in table(figures)


def test_real_logs_have_no_report(corpus: Path) -> None:
    figures = measure_corpus(corpus)
    assert [one.matches for one in figures.values()] == [3, 3]
    assert [one.accused_matches for one in figures.values()] == [0, 0]


def test_figures_are_printed_and_the_page_is_written_only_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--matches", "1"]) == 0
    assert "| all simulated matches | 1 | 10 |" in capsys.readouterr().out
