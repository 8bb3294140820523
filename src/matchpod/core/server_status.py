"""Where does a server stand? Its phases, what moves it from one to the next, and what callers are told.

Every change of a server's phase looks its pair of phase and step up in TRANSITIONS; an unknown pair is refused.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ServerStatus(StrEnum):
    """What callers are told."""

    ALLOCATING = "allocating"
    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    STOPPED = "stopped"


class ServerPhase(StrEnum):
    """Where a server stands."""

    ALLOCATING = "allocating"
    """A server is being found, started and configured."""
    PENDING = "pending"
    """The region is full; the match waits for a place."""
    RUNNING = "running"
    """Everything was proven to be right; players may connect."""
    ENDING = "ending"
    """The match has its outcome; the server is still to be released."""
    RELEASED = "released"
    """Nothing is left to do; final."""


class ServerStep(StrEnum):
    """What can move a server to another phase."""

    REGION_FULL = "region_full"
    """There is no free place in its region."""
    PLACE_FOUND = "place_found"
    """A place became free."""
    PROVEN = "proven"
    """Console, map, settings and log are as they should be."""
    CONCLUDED = "concluded"
    """The match ended, with a result or without."""
    RELEASED = "released"
    """The fleet confirmed that the server is gone."""


TRANSITIONS: Final[dict[tuple[ServerPhase, ServerStep], ServerPhase]] = {
    (ServerPhase.ALLOCATING, ServerStep.REGION_FULL): ServerPhase.PENDING,
    (ServerPhase.PENDING, ServerStep.PLACE_FOUND): ServerPhase.ALLOCATING,
    (ServerPhase.ALLOCATING, ServerStep.PROVEN): ServerPhase.RUNNING,
    (ServerPhase.ALLOCATING, ServerStep.CONCLUDED): ServerPhase.ENDING,
    (ServerPhase.PENDING, ServerStep.CONCLUDED): ServerPhase.ENDING,
    (ServerPhase.RUNNING, ServerStep.CONCLUDED): ServerPhase.ENDING,
    (ServerPhase.ENDING, ServerStep.RELEASED): ServerPhase.RELEASED,
}

OPEN_PHASES: Final = tuple(phase for phase, step in TRANSITIONS if step is ServerStep.CONCLUDED)
"""The phases in which a match can still end."""

_LIVE_STATUSES = {
    ServerPhase.ALLOCATING: ServerStatus.ALLOCATING,
    ServerPhase.PENDING: ServerStatus.PENDING,
    ServerPhase.RUNNING: ServerStatus.RUNNING,
}


def next_phase(phase: ServerPhase, step: ServerStep) -> ServerPhase:
    """The phase after a step; ValueError for a step that this phase does not know."""
    after = TRANSITIONS.get((phase, step))
    if after is None:
        raise ValueError(f"a server that is {phase} cannot be {step}")
    return after


def status_of(phase: ServerPhase) -> ServerStatus | None:
    """What callers are told of a server that has not ended; None once it has: its outcome says how."""
    return _LIVE_STATUSES.get(phase)
