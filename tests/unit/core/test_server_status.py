"""The phases of a server, as a table."""

from __future__ import annotations

import pytest

from matchpod.core.server_status import (
    OPEN_PHASES,
    TRANSITIONS,
    ServerPhase,
    ServerStatus,
    ServerStep,
    next_phase,
    status_of,
)


def test_a_server_is_found_proven_concluded_and_released() -> None:
    phase = ServerPhase.ALLOCATING
    seen = [phase]
    for step in (
        ServerStep.REGION_FULL,
        ServerStep.PLACE_FOUND,
        ServerStep.PROVEN,
        ServerStep.CONCLUDED,
        ServerStep.RELEASED,
    ):
        phase = next_phase(phase, step)
        seen.append(phase)
    assert seen == ["allocating", "pending", "allocating", "running", "ending", "released"]


def test_a_match_can_end_in_every_phase_but_those_after_its_end() -> None:
    assert set(OPEN_PHASES) == {ServerPhase.PENDING, ServerPhase.ALLOCATING, ServerPhase.RUNNING}


@pytest.mark.parametrize("phase", [ServerPhase.ENDING, ServerPhase.RELEASED])
def test_nothing_ends_twice(phase: ServerPhase) -> None:
    with pytest.raises(ValueError, match=f"a server that is {phase} cannot be concluded"):
        next_phase(phase, ServerStep.CONCLUDED)


def test_callers_are_told_the_status_of_an_open_server_and_the_outcome_afterwards() -> None:
    assert {phase: status_of(phase) for phase in OPEN_PHASES} == {
        ServerPhase.ALLOCATING: ServerStatus.ALLOCATING,
        ServerPhase.PENDING: ServerStatus.PENDING,
        ServerPhase.RUNNING: ServerStatus.RUNNING,
    }
    assert status_of(ServerPhase.ENDING) is status_of(ServerPhase.RELEASED) is None


def test_nothing_comes_after_the_release() -> None:
    assert not [step for phase, step in TRANSITIONS if phase is ServerPhase.RELEASED]
