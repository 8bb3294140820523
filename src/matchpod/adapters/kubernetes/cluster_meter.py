"""Measurements of the calls to a cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

NO_ANSWER: Final = "none"
"""The code of a request without an answer."""


class Verb(StrEnum):
    GET = "get"
    LIST = "list"
    WATCH = "watch"
    CREATE = "create"
    DELETE = "delete"


class AllocationOutcome(StrEnum):
    """How a call that allocates a game server ended."""

    ALLOCATED = "allocated"
    NONE_READY = "none_ready"
    FAILED = "failed"


class ClusterMeter:
    """Measures the calls to one cluster; this one measures nothing."""

    def requested(self, verb: Verb, code: str) -> None:
        """A request was answered with an HTTP status, or got no answer (NO_ANSWER)."""

    def allocated(self, outcome: AllocationOutcome, seconds: float) -> None:
        """A call to allocate a game server has ended."""

    def relisted(self) -> None:
        """All game servers are listed, because changes may have been missed."""

    def watch_confirmed(self) -> None:
        """The watch of the game servers was opened, or has shown something."""
