"""Define the interface for measuring calls to a cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

NO_ANSWER: Final = "none"
"""The code to record for a request that got no answer."""


class Verb(StrEnum):
    GET = "get"
    LIST = "list"
    WATCH = "watch"
    CREATE = "create"
    DELETE = "delete"


class AllocationOutcome(StrEnum):
    """The outcome of a call to allocate a game server."""

    ALLOCATED = "allocated"
    NONE_READY = "none_ready"
    FAILED = "failed"


class ClusterMeter:
    """Interface for measuring the calls to a cluster. This base class itself measures nothing."""

    def requested(self, verb: Verb, code: str) -> None:
        """Record a request and the HTTP status of its response, or NO_ANSWER."""

    def allocated(self, outcome: AllocationOutcome, seconds: float) -> None:
        """Record a finished call to allocate a game server."""

    def relisted(self) -> None:
        """Record that all game servers are listed: at the start, every few minutes, or after missed changes."""

    def watch_confirmed(self) -> None:
        """Record that the watch of the game servers works: it was opened, or has yielded an event."""
