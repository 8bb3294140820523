"""Ends of a match."""

from __future__ import annotations

from matchpod.core.outcome import Outcome, OutcomeKind


def test_only_a_finished_match_has_a_result() -> None:
    assert Outcome(kind=OutcomeKind.FINISHED, at_ms=1).is_finished
    assert not Outcome(kind=OutcomeKind.CANCELED, at_ms=1, reason="server_lost").is_finished
