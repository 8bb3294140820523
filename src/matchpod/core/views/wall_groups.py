"""Sort the matches on the wall into groups. Each match is in exactly one group, so the counters add up.

Matches that need attention are not a group: they stay in their groups, and are highlighted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from matchpod.core.effects import BY_HAND, CancelReason
from matchpod.core.views.progress import PublicPhase, WaitingFor


class WallGroup(StrEnum):
    """The groups, in their order on the wall."""

    IN_PLAY = "in_play"
    WAITING = "waiting"
    """Waiting for players to join."""
    STARTING = "starting"
    """A server is being started."""
    QUEUED = "queued"
    """Waiting for a free server."""
    FAILED = "failed"
    """Ended without a result, but not canceled on request."""
    CANCELED = "canceled"
    """Canceled recently by a person or a program of the organization, or by an operator."""
    FINISHED = "finished"
    """Ended recently with a result."""


_ORDER: Final = {group: number for number, group in enumerate(WallGroup)}


def group_of_open(phase: PublicPhase, waiting_for: WaitingFor | None) -> WallGroup:
    """Return the group of a match that has not ended."""
    if phase is PublicPhase.ALLOCATING:
        return WallGroup.QUEUED if waiting_for is WaitingFor.FREE_SERVER else WallGroup.STARTING
    return WallGroup.WAITING if phase is PublicPhase.WAITING_FOR_PLAYERS else WallGroup.IN_PLAY


def group_of_ended(reason: CancelReason | None) -> WallGroup:
    """Return the group of a match that has ended; the reason is None if it has a result."""
    if reason is None:
        return WallGroup.FINISHED
    return WallGroup.CANCELED if reason in BY_HAND else WallGroup.FAILED


def place_of(group: WallGroup) -> int:
    """Return the position of a group on the wall, from 0."""
    return _ORDER[group]
