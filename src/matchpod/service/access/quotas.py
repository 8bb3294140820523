"""The limits of each organization."""

from __future__ import annotations

from typing import Final

import msgspec


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """How many matches one organization may have at once, and create per minute; None for no limit."""

    max_live_matches: int | None = None
    """Matches that have not ended; counted in the database, so exact with any number of processes."""
    max_creations_per_minute: int | None = None
    """New matches; each process counts separately."""


UNLIMITED: Final = Quotas()
