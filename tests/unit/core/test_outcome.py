"""Outcomes of a match."""

from __future__ import annotations

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome


def test_outcome_with_a_cancel_reason_is_not_finished() -> None:
    assert Outcome(at_ms=1).is_finished
    assert not Outcome(at_ms=1, reason=CancelReason.SERVER_LOST).is_finished
