"""The state machine and API status of a server."""

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


def test_server_passes_through_all_phases() -> None:
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


def test_open_phases_are_pending_allocating_and_running() -> None:
    assert set(OPEN_PHASES) == {ServerPhase.PENDING, ServerPhase.ALLOCATING, ServerPhase.RUNNING}


@pytest.mark.parametrize("phase", [ServerPhase.ENDING, ServerPhase.RELEASED])
def test_match_cannot_end_twice(phase: ServerPhase) -> None:
    with pytest.raises(ValueError, match=f"no transition from server phase {phase} on step concluded"):
        next_phase(phase, ServerStep.CONCLUDED)


def test_only_open_phases_have_a_status() -> None:
    assert {phase: status_of(phase) for phase in OPEN_PHASES} == {
        ServerPhase.ALLOCATING: ServerStatus.ALLOCATING,
        ServerPhase.PENDING: ServerStatus.PENDING,
        ServerPhase.RUNNING: ServerStatus.RUNNING,
    }
    assert status_of(ServerPhase.ENDING) is status_of(ServerPhase.RELEASED) is None


def test_released_is_the_final_phase() -> None:
    assert not [step for phase, step in TRANSITIONS if phase is ServerPhase.RELEASED]
