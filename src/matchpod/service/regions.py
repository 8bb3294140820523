"""Which regions are there, and do they take new matches? Settings say which, a flag in the database says whether."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.validation import RegionRules
from matchpod.ports import Database, Fleet
from matchpod.service.availability import unavailable_when_away
from matchpod.storage import region_flags


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A region with the fleet its servers come from; `speed` divides the waits of a match."""

    code: str
    name: str
    location: str
    speed: float = 1.0
    allows_simulator: bool = False
    fleet: Fleet


class RegionView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A region as callers see it."""

    code: str
    name: str
    location: str
    is_active: bool


class Regions:
    """All regions of this service."""

    def __init__(self, regions: Sequence[Region], db: Database) -> None:
        self._regions = {region.code: region for region in regions}
        self._db = db

    def get(self, code: str) -> Region | None:
        """The region of this code."""
        return self._regions.get(code)

    def all(self) -> Sequence[Region]:
        """All of them, in the order of the settings."""
        return tuple(self._regions.values())

    @unavailable_when_away
    async def views(self) -> list[RegionView]:
        """All of them, as callers see them."""
        flags = await region_flags.active_flags(self._db)
        return [
            RegionView(
                code=region.code,
                name=region.name,
                location=region.location,
                is_active=flags.get(region.code, True),
            )
            for region in self.all()
        ]

    async def rules(self, asked: object) -> dict[str, RegionRules]:
        """What the creation of a match must know of each; whether it is switched off, of the one asked for only."""
        is_active = not isinstance(asked, str) or asked not in self._regions
        is_active = is_active or await region_flags.is_active(self._db, str(asked))
        return {
            code: RegionRules(is_active=is_active or code != asked, is_simulated=region.allows_simulator)
            for code, region in self._regions.items()
        }
