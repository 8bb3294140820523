"""Represent the regions. They are defined in the settings, and a flag in the database switches each on or off."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from matchpod.core.iso_dates import iso_time
from matchpod.core.requests.validation import DemoRules, RegionRules
from matchpod.ports import Capacity, Database, Fleet, FleetError
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.regions.silence import SilentServers
from matchpod.service.row_views import view_of
from matchpod.storage import demos, region_flags, resting_slots, slots, withheld_servers
from matchpod.storage.resting_slots import RestingSlot


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A region and its fleet. `speed` is the speed of game time, by which all timeouts of a match are divided.

    `pending_ms` is the time that a match waits for a server of the region; None for the default of the service. `demos`
    is None if the service cannot store demos.
    """

    code: str
    name: str
    location: str
    speed: float = 1.0
    allows_simulator: bool = False
    pending_ms: int | None = None
    demos: DemoRules | None = None
    fleet: Fleet

    @property
    def is_sandbox(self) -> bool:
        """True if its servers are simulated or play faster than real time."""
        return self.allows_simulator or self.speed != 1.0


UNAVAILABLE = "Its game servers cannot be used at present. New matches wait for them."
"""The text for callers while a fleet has a fault. They do not see the fault itself, because it may contain host
names."""


class RegionCondition(StrEnum):
    """Whether a new match in a region gets a server at once."""

    ON = "on"
    FULL = "full"
    UNAVAILABLE = "not available"
    """The region's game servers cannot be used at present, so new matches wait."""
    OFF = "switched off"
    """An operator has switched the region off, so new matches are rejected."""


class RegionView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A region, as returned by the API."""

    code: Annotated[str, Meta(description="The `region` of a new match.")]
    name: Annotated[str, Meta(description="The display name of the region.")]
    location: Annotated[str, Meta(description="The location of its servers.")]
    is_active: Annotated[
        bool,
        Meta(
            description="Whether new matches get servers there. It is false if an operator has switched the region off"
            " (new matches are rejected), and while its servers cannot be used (new matches wait as `pending`)."
        ),
    ]
    ready: Annotated[int | None, Meta(description="Servers that are free for a match; null if unknown.")]
    allocated: Annotated[int | None, Meta(description="Servers in use by matches; null if unknown.")]
    capacity: Annotated[
        int | None, Meta(description="All servers, which bounds the number of matches at once; null if unknown.")
    ]
    draining: Annotated[
        int | UnsetType,
        Meta(
            description="How many of the servers in use are kept only until the demos of their match are uploaded; "
            "left out if the service stores no demos."
        ),
    ] = UNSET
    notice: Annotated[
        str | None,
        Meta(
            description="Why new matches wait, or what is observed of servers that give no sign of life, as text for"
            " people; otherwise null."
        ),
    ]
    simulated: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether this is a sandbox, whose games are simulated or faster than real time; left out if "
            "not."
        ),
    ] = UNSET

    @property
    def condition(self) -> RegionCondition:
        """Whether a new match in this region gets a server at once."""
        if not self.is_active:
            is_at_fault = self.notice is not None and self.notice.startswith(UNAVAILABLE)
            return RegionCondition.UNAVAILABLE if is_at_fault else RegionCondition.OFF
        return RegionCondition.FULL if self.ready == 0 else RegionCondition.ON


class RegionState(msgspec.Struct, frozen=True, kw_only=True):
    """A region as the console shows it, with the reasons why matches may get no server."""

    view: RegionView
    is_sandbox: bool
    """True if its servers are simulated or play faster than real time."""
    is_switched_on: bool
    fault: str | None
    """Why the region's fleet cannot be used at present; None if it can. Only for operators, because it may contain host
    names."""
    withheld: int = 0
    """Number of running servers that belong to no match in this database, and that are released only if an operator
    confirms."""
    resting: tuple[str, ...] = ()
    """A sentence for each server that gets no matches for a while, for example after a console fault."""
    has_pods: bool = False
    """True if the region's servers are pods, so that a check has to allocate a pod."""


class Regions:
    """All regions of this service."""

    def __init__(self, regions: Sequence[Region], db: Database, silent: SilentServers | None = None) -> None:
        self._regions = {region.code: region for region in regions}
        self._db = db
        self.silent = silent or SilentServers()

    def get(self, code: str) -> Region | None:
        return self._regions.get(code)

    def is_sandbox(self, code: str) -> bool:
        """True if a region with this code exists and is a sandbox."""
        region = self._regions.get(code)
        return region is not None and region.is_sandbox

    def all(self) -> Sequence[Region]:
        """Return all regions, in the order of the settings."""
        return tuple(self._regions.values())

    @unavailable_on_outage
    async def views(self) -> list[RegionView]:
        flags = await region_flags.active_flags(self._db)
        has_demos = any(region.demos is not None for region in self.all())
        draining = await demos.count_draining(self._db) if has_demos else {}
        return [
            view_of(
                RegionView,
                region,
                simulated=region.is_sandbox or UNSET,
                is_active=flags.get(region.code, True) and region.fleet.fault is None,
                ready=counted and counted.ready,
                allocated=counted and counted.allocated,
                capacity=counted and counted.total,
                draining=UNSET if region.demos is None else draining.get(region.code, 0),
                notice=self._notice(region, is_on=flags.get(region.code, True)),
            )
            for region, counted in await self.capacities()
        ]

    @unavailable_on_outage
    async def states(self) -> list[RegionState]:
        """Return all regions with their capacity, and with the reasons why matches may get no server."""
        flags = await region_flags.active_flags(self._db)
        withheld = await withheld_servers.withheld_servers(self._db)
        resting = await resting_slots.resting(self._db)
        found = zip(self.all(), await self.views(), strict=True)
        return [
            RegionState(
                view=view,
                is_sandbox=region.is_sandbox,
                is_switched_on=flags.get(region.code, True),
                fault=region.fleet.fault,
                withheld=len(withheld.get(region.code, ())),
                resting=tuple(map(rest_sentence, resting.get(region.code, ()))),
                has_pods=region.fleet.slots is None,
            )
            for region, view in found
        ]

    def faults(self) -> list[tuple[Region, str]]:
        """Return, for operators, the regions whose fleets cannot be used at present, and why."""
        found = ((region, region.fleet.fault) for region in self.all())
        return [(region, fault) for region, fault in found if fault is not None]

    async def capacities(self) -> list[tuple[Region, Capacity | None]]:
        """Count the servers of each region; None for a region whose fleet is unavailable."""
        taken, resting, regions = await slots.taken(self._db), await resting_slots.resting(self._db), self.all()
        counted = await asyncio.gather(
            *(_capacity(region.fleet, taken.get(region.code, {}), resting.get(region.code, ())) for region in regions)
        )
        return list(zip(regions, counted, strict=True))

    async def rules(self, requested: object) -> dict[str, RegionRules]:
        """Return the rules of regions for validating a request.

        Only for the requested region, the database is read to find out whether it is switched on. The other regions are
        returned as active.

        A fault of a fleet is ignored, because it is temporary: a match waits until its fleet can be used again.
        """
        is_active = not isinstance(requested, str) or requested not in self._regions
        is_active = is_active or await region_flags.is_active(self._db, str(requested))
        return {
            code: RegionRules(
                is_active=is_active or code != requested, is_simulated=region.allows_simulator, demos=region.demos
            )
            for code, region in self._regions.items()
        }

    def _notice(self, region: Region, *, is_on: bool) -> str | None:
        unavailable = UNAVAILABLE if is_on and region.fleet.fault is not None else None
        return " ".join(filter(None, (unavailable, self.silent.notice(region.code)))) or None


async def _capacity(fleet: Fleet, taken: Collection[str], resting: Iterable[RestingSlot]) -> Capacity | None:
    if fleet.slots is not None:
        total = len(fleet.slots)
        # Matches may still use servers that are no longer in the settings.
        unusable = {*taken, *(server.slot for server in resting)}.intersection(fleet.slots)
        return Capacity(ready=max(0, total - len(unusable)), allocated=len(taken), total=total)
    try:
        return await fleet.capacity()
    except FleetError:
        return None


def rest_sentence(resting: RestingSlot) -> str:
    """Return a sentence for operators about a server that gets no matches for a while: until when, and why."""
    return (
        f"The server {resting.slot} gets no other match until {iso_time(resting.until_ms)}: it sent invalid data or too"
        f" much data over its console in {resting.server_id}."
    )
