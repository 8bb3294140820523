"""Where are matches played, and is there room? `matchpod regions`: listing regions and switching them on and off."""

from __future__ import annotations

from typing import Annotated, assert_never

import msgspec
import typer

from matchpod.app import Ground
from matchpod.cli.opening import fail, run_on_ground
from matchpod.cli.terminal import Columns, print_listing, say
from matchpod.core.text_rules import shown
from matchpod.settings import ProcessFleetSettings, RegionSettings, StaticFleetSettings
from matchpod.storage import region_flags, slots

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Regions: the settings say which there are; here they are switched on and off, also while the service runs.",
)

_CODE = Annotated[str, typer.Argument(metavar="CODE", help="The code of the region, as regions list shows it.")]


class RegionLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A region as operators see it: how many matches it has room for, and how many places are taken."""

    code: str
    name: str
    location: str
    is_active: bool
    capacity: int
    taken: int


@app.command("list")
def list_regions(
    json: Annotated[bool, typer.Option("--json", help="Print an array of objects instead of a table.")] = False,
) -> None:
    """List the regions, in the order of the settings, with their capacity and the places that are taken."""
    columns: Columns[RegionLine] = {
        "code": lambda region: region.code,
        "name": lambda region: region.name,
        "location": lambda region: region.location,
        "active": lambda region: "yes" if region.is_active else "no",
        "capacity": lambda region: str(region.capacity),
        "taken": lambda region: str(region.taken),
    }
    print_listing(run_on_ground(_lines), columns, as_json=json)


@app.command()
def activate(code: _CODE) -> None:
    """Let a region take new matches again."""
    _switch(code, is_active=True)
    say(f"region {code} takes new matches")


@app.command()
def deactivate(code: _CODE) -> None:
    """Let a region take no new matches; those that were created go on. It stays so after a restart."""
    _switch(code, is_active=False)
    say(f"region {code} takes no new matches")


async def _lines(ground: Ground) -> list[RegionLine]:
    flags = await region_flags.active_flags(ground.db)
    taken = await slots.taken(ground.db)
    return [
        RegionLine(
            code=region.code,
            name=region.name,
            location=region.location,
            is_active=flags.get(region.code, True),
            capacity=_capacity(region),
            taken=len(taken.get(region.code, {})),
        )
        for region in ground.settings.regions
    ]


def _capacity(region: RegionSettings) -> int:
    match region.fleet:
        case ProcessFleetSettings(ports=ports):
            return len(ports)
        case StaticFleetSettings(servers=servers):
            return len(servers)
        case _:
            assert_never(region.fleet)


def _switch(code: str, *, is_active: bool) -> None:
    async def switch(ground: Ground) -> list[str]:
        known = [region.code for region in ground.settings.regions]
        if code in known:
            await region_flags.set_active(ground.db, code, is_active)
        return known

    known = run_on_ground(switch)
    if code not in known:
        fail(f"There is no region {shown(code)!r}; known: {', '.join(known)}.", code=2)
