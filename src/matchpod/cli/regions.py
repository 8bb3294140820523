"""List regions with their capacity, and activate or deactivate them: `matchpod regions`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from matchpod.app import Resources
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import AsJson, Columns, command_group, print_listing, print_note
from matchpod.core.text_rules import printable
from matchpod.service.audit import COMMAND_LINE, Audit
from matchpod.service.region_switch import RegionSwitch
from matchpod.service.regions import Regions
from matchpod.service.row_views import view_of
from matchpod.storage import region_flags

app = command_group(
    "Regions are defined in the settings. Activate or deactivate them here, even while the service runs."
)

_CODE = Annotated[str, typer.Argument(metavar="CODE", help="The code of the region, as regions list shows it.")]


class RegionLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A region as shown to operators; the numbers are None if its fleet cannot be used, and `fault` says why."""

    code: str
    name: str
    location: str
    is_active: bool
    capacity: int | None
    taken: int | None
    ready: int | None
    fault: str | None


@app.command("list")
def list_regions(
    json: AsJson = False,
) -> None:
    """List the regions in the order of the settings, with their capacity and the servers in use and ready."""
    columns: Columns[RegionLine] = {
        "code": lambda region: region.code,
        "name": lambda region: region.name,
        "location": lambda region: region.location,
        "active": lambda region: "yes" if region.is_active else "no",
        "capacity": lambda region: _number(region.capacity),
        "taken": lambda region: _number(region.taken),
        "ready": lambda region: _number(region.ready),
        "fault": lambda region: region.fault or "",
    }
    print_listing(run_with_resources(_region_lines), columns, as_json=json)


@app.command()
def activate(code: _CODE) -> None:
    """Accept new matches in a region again."""
    _set_active(code, is_active=True)
    print_note(f"region {code} accepts new matches")


@app.command()
def deactivate(code: _CODE) -> None:
    """Reject new matches in a region, even after a restart. Existing matches continue."""
    _set_active(code, is_active=False)
    print_note(f"region {code} rejects new matches")


async def _region_lines(resources: Resources) -> list[RegionLine]:
    # Imported here, so that the other commands start quickly.
    from matchpod.adapters.rcon_client import RconConsoles
    from matchpod.app.composition import compose_regions

    flags = await region_flags.active_flags(resources.db)
    regions = Regions(compose_regions(resources.settings, RconConsoles()), resources.db)
    try:
        return [
            view_of(
                RegionLine,
                region,
                is_active=flags.get(region.code, True),
                capacity=counted and counted.total,
                taken=counted and counted.allocated,
                ready=counted and counted.ready,
                fault=" ".join(await region.fleet.check()) or None,
            )
            for region, counted in await regions.capacities()
        ]
    finally:
        for region in regions.all():
            await region.fleet.close()


def _number(count: int | None) -> str:
    return "?" if count is None else str(count)


def _set_active(code: str, *, is_active: bool) -> None:
    async def store(resources: Resources) -> list[str] | None:
        """Return the known regions if this is none of them."""
        known = [region.code for region in resources.settings.regions]
        audit = Audit(db=resources.db, clock=resources.clock)
        switch = RegionSwitch(db=resources.db, audit=audit, codes=known)
        return None if await switch.set_active(code, is_active=is_active, actor=COMMAND_LINE) else known

    known = run_with_resources(store)
    if known is not None:
        fail(f"Unknown region {printable(code)!r}. Known regions: {', '.join(known)}.", code=2)
