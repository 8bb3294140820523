"""Limit the number of matches per organization."""

from __future__ import annotations

from typing import Final

import msgspec


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """The number of matches that an organization may have at a time and create per minute; None for no limit."""

    max_live_matches: int | None = None
    """Maximum number of matches that have not ended. They are counted in the database, so the limit holds for all
    processes together."""
    max_creations_per_minute: int | None = None
    """Maximum number of new matches per minute. Each process counts separately."""


UNLIMITED: Final = Quotas()
