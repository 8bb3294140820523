"""The transition table of a match."""

from __future__ import annotations

from matchpod.core.match.phases import TRANSITIONS, MatchPhase, Trigger


def test_match_can_be_decided_or_canceled_in_every_open_phase() -> None:
    for phase in [phase for phase in MatchPhase if phase is not MatchPhase.OVER]:
        assert TRANSITIONS[phase, Trigger.DECIDED] is MatchPhase.OVER
        assert TRANSITIONS[phase, Trigger.CANCELED] is MatchPhase.OVER


def test_match_that_is_over_stays_over() -> None:
    assert not [trigger for phase, trigger in TRANSITIONS if phase is MatchPhase.OVER]


def test_every_phase_and_trigger_is_used() -> None:
    assert set(TRANSITIONS.values()) == set(MatchPhase)
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)
