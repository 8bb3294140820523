"""Define the state machine of a server, and the status that callers see.

Every phase change is looked up in TRANSITIONS by phase and step; an unknown pair raises ValueError.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ServerStatus(StrEnum):
    """The server status in the API."""

    ALLOCATING = "allocating"
    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    STOPPED = "stopped"


class ServerPhase(StrEnum):
    """The internal phase of a server."""

    ALLOCATING = "allocating"
    """A server is being allocated, started and configured."""
    PENDING = "pending"
    """The match waits: its region is full, or the machine or cluster cannot provide servers at the moment."""
    RUNNING = "running"
    """The server passed all readiness checks; players may connect."""
    ENDING = "ending"
    """The match has its outcome; the server is not released yet."""
    RELEASED = "released"
    """The server is released. No other phase follows."""


class ServerStep(StrEnum):
    """The triggers of a server's phase changes."""

    REGION_FULL = "region_full"
    """The region has no free slot, or its machine or cluster cannot provide servers at the moment."""
    PLACE_FOUND = "place_found"
    """A slot is free, and the machine may start a server."""
    PROVEN = "proven"
    """Console, map, settings and log were verified."""
    CONCLUDED = "concluded"
    """The match ended, with or without a result."""
    RELEASED = "released"
    """The fleet confirmed the release of the server."""


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
"""The phases in which the match has no outcome yet."""

_OPEN_STATUSES = {
    ServerPhase.ALLOCATING: ServerStatus.ALLOCATING,
    ServerPhase.PENDING: ServerStatus.PENDING,
    ServerPhase.RUNNING: ServerStatus.RUNNING,
}


def next_phase(phase: ServerPhase, step: ServerStep) -> ServerPhase:
    """Return the phase after a step. Raise ValueError if the step is not allowed in this phase."""
    target = TRANSITIONS.get((phase, step))
    if target is None:
        raise ValueError(f"no transition from server phase {phase} on step {step}")
    return target


def status_of(phase: ServerPhase) -> ServerStatus | None:
    """Return the status of a server in an open phase; None after the end, when the outcome determines the status."""
    return _OPEN_STATUSES.get(phase)
