"""Tests of the scores that win a map."""

from __future__ import annotations

import pytest

from matchpod.core.model import GameSettings, MatchType
from matchpod.cs2.map_end import is_won, regulation_rounds


@pytest.mark.parametrize("score", [(13, 0), (11, 13), (16, 12), (14, 16), (19, 17)])
def test_score_wins_a_map_of_24_rounds(score: tuple[int, int]) -> None:
    assert is_won(score, 24)
    assert is_won(score[::-1], 24)
    assert not is_won(score, None)


@pytest.mark.parametrize("score", [(0, 0), (12, 0), (12, 12), (13, 12), (15, 15), (16, 15)])
def test_score_does_not_win_a_map_of_24_rounds(score: tuple[int, int]) -> None:
    assert not is_won(score, 24)


@pytest.mark.parametrize(
    ("match_type", "max_rounds", "rounds"),
    [
        (MatchType.COMPETITIVE, None, 24),
        (MatchType.WINGMAN, None, 16),
        (MatchType.COMPETITIVE, 4, 4),
        (MatchType.CASUAL, 4, None),
        (MatchType.DEATHMATCH, None, None),
    ],
)
def test_regulation_rounds_are_requested_or_those_of_the_mode(
    match_type: MatchType, max_rounds: int | None, rounds: int | None
) -> None:
    assert regulation_rounds(GameSettings(match_type=match_type, maps=("de_nuke",), max_rounds=max_rounds)) == rounds
