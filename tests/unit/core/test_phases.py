"""The table of a match: every phase can be reached, and left until the match is over."""

from __future__ import annotations

import pytest

from matchpod.core.phases import TRANSITIONS, Phase, Trigger


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.OVER])
def test_a_match_can_be_decided_or_canceled_wherever_it_stands(phase: Phase) -> None:
    assert TRANSITIONS[phase, Trigger.DECIDED] is Phase.OVER
    assert TRANSITIONS[phase, Trigger.CANCELED] is Phase.OVER


def test_a_match_that_is_over_stays_over() -> None:
    assert not [trigger for phase, trigger in TRANSITIONS if phase is Phase.OVER]


def test_every_phase_and_trigger_is_used() -> None:
    assert set(TRANSITIONS.values()) == set(Phase)
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)
