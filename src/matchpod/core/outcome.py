"""Define the outcome of a match: it is finished, or canceled for a reason. Every match ends once."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a match ended: finished unless it has a cancel reason. Only `incomplete_roster` sets the lists of players."""

    at_ms: int
    reason: CancelReason | None = None
    missing_players: tuple[PlayerId, ...] = ()
    connected_players: tuple[PlayerId, ...] = ()
    absent_players: tuple[PlayerId, ...] = ()
    """Listed players who were not connected at the end, including players who had been connected earlier."""
    is_log_complete: bool | None = None
    """False if parts of the log of a canceled match are missing; None if no map began, or if this is unknown."""
    failure: Failure | None = None
    """The failure, if it is more specific than the cancel reason."""
    forfeited_to: Team | None = None
    """The team that won a finished match because the other team forfeited; None if play decided the match."""

    @property
    def is_finished(self) -> bool:
        """True if the match has a result: it was played to its end, or forfeited."""
        return self.reason is None
