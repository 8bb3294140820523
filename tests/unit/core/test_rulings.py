from __future__ import annotations

import pytest

from matchpod.core.model import GameSettings, MatchType
from matchpod.core.rulings import RuledWinner, RulingRequest, has_ruled_teams, ruling_words, rulings_end_ms


def test_match_can_be_ruled_for_thirty_days() -> None:
    assert rulings_end_ms(1_000) == 1_000 + 30 * 86_400_000


@pytest.mark.parametrize("match_type", MatchType)
def test_only_a_deathmatch_has_no_team_that_could_win(match_type: MatchType) -> None:
    settings = GameSettings(match_type=match_type, maps=("de_dust2",))
    assert has_ruled_teams(settings) is (match_type is not MatchType.DEATHMATCH)


def test_ruling_in_words_has_what_was_given() -> None:
    assert ruling_words(RulingRequest(winner=RuledWinner.NONE)) == "void"
    full = RulingRequest(winner=RuledWinner.TEAM2, reason="no-show", by="Eva")
    assert ruling_words(full) == "team2 wins; no-show; decided by Eva"
