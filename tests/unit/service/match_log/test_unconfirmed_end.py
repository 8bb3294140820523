"""A match end that only one source reports, because log lines before it were lost."""

from __future__ import annotations

from matchpod.core.effects import EndMatch
from matchpod.service.match_log.entries import EntryKind
from tests.unit.service.history.sample_log import first_round, players_join
from tests.unit.service.test_configuring import fold_of


def test_end_with_a_single_report_is_accepted_if_the_server_sends_nothing_else() -> None:
    # The rounds up to this score are not in the log, so nothing else confirms the end.
    game_over = ["Game Over: competitive  de_nuke score 3:1 after 1 min"]
    fold, _ = fold_of((EntryKind.LOG, players_join()), (EntryKind.LOG, first_round()), (EntryKind.LOG, game_over))
    assert not fold.is_over
    assert fold.finish() == [EndMatch()]
    assert (fold.match.current_map.team1_score, fold.match.current_map.team2_score) == (3, 1)
