"""A match end that only one source reports, because log lines before it were lost."""

from __future__ import annotations

from matchpod.core.effects import EndMatch
from matchpod.core.events import MapEnded
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from tests.unit.service.history.sample_log import first_round, players_join
from tests.unit.service.match_log.test_fold import entry
from tests.unit.service.test_configuring import fold_of

GAME_OVER = ["Game Over: competitive  de_nuke score 3:1 after 1 min"]
"""The rounds up to this score are not in the log, so nothing else confirms the end."""


def unconfirmed() -> Fold:
    fold, _ = fold_of((EntryKind.LOG, players_join()), (EntryKind.LOG, first_round()), (EntryKind.LOG, GAME_OVER))
    assert not fold.is_over
    return fold


def test_end_with_a_single_report_is_accepted_if_the_server_sends_nothing_else() -> None:
    fold = unconfirmed()
    assert fold.finish() == [EndMatch()]
    assert (fold.match.current_map.team1_score, fold.match.current_map.team2_score) == (3, 1)


def test_end_with_a_single_report_is_accepted_at_its_deadline() -> None:
    fold = unconfirmed()
    due_ms = fold.due_ms()
    assert due_ms is not None
    reading = fold.apply(entry(EntryKind.DEADLINE, due_ms))
    assert [type(event) for event in reading.events] == [MapEnded]
    assert reading.effects == [EndMatch()]


def test_end_with_a_single_report_is_accepted_after_an_outage() -> None:
    fold = unconfirmed()
    assert fold.last_ms is not None
    fold.apply(entry(EntryKind.RESUMED, fold.last_ms + 3_600_000))
    assert fold.finish() == [EndMatch()]
