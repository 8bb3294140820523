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
    start = (ServerStep.REGION_FULL, ServerStep.PLACE_FOUND, ServerStep.PROVEN)
    seen = [ServerPhase.ALLOCATING]
    for step in (*start, ServerStep.CONCLUDED, ServerStep.RELEASED):
        seen.append(next_phase(seen[-1], step))
    assert seen == ["allocating", "pending", "allocating", "running", "ending", "released"]


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
