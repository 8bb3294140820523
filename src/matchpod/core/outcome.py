"""How did a match end? Every match ends once, with a result or without."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from matchpod.core.model import PlayerId


class OutcomeKind(StrEnum):
    """With a result, or without."""

    FINISHED = "finished"
    CANCELED = "canceled"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The one end of a match; the reason is that of a canceled one, the lists those of an incomplete roster."""

    kind: OutcomeKind
    at_ms: int
    reason: str | None = None
    missing_players: tuple[PlayerId, ...] = ()
    connected_players: tuple[PlayerId, ...] = ()

    @property
    def is_finished(self) -> bool:
        """The match has a result."""
        return self.kind is OutcomeKind.FINISHED
