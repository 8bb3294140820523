"""List regions with their capacity, activate or deactivate them, and confirm sweeps: `matchpod regions`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, TypeVar

import msgspec
import typer

from matchpod.app import Resources
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import AsJson, Columns, command_group, print_listing, print_note, short_time
from matchpod.core.iso_dates import iso_time
from matchpod.core.requests.text_rules import printable
from matchpod.core.servers.server_loss import LossLimits
from matchpod.ports import Fleet
from matchpod.service.access.audit import COMMAND_LINE, Audit
from matchpod.service.regions.regions import Regions, rest_sentence
from matchpod.service.regions.silence import SilentServers
from matchpod.service.regions.switch import RegionSwitch
from matchpod.service.row_views import view_of
from matchpod.storage import heartbeats, region_flags, resting_slots
from matchpod.storage.resting_slots import RestingSlot
from matchpod.storage.withheld_servers import WithheldServer, withheld_servers

app = command_group(
    "Regions are defined in the settings. Activate or deactivate them here, even while the service runs."
)

_T = TypeVar("_T")
_CODE = Annotated[str, typer.Argument(metavar="CODE", help="The code of the region, as regions list shows it.")]


class RegionLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A region as shown to operators; the numbers are None if its fleet cannot be used, and `fault` says why.

    `notice` says what the service observes of silent servers, as in `GET /api/v1/regions`, and which servers get no
    match for a while.
    """

    code: str
    name: str
    location: str
    is_active: bool
    capacity: int | None
    taken: int | None
    ready: int | None
    withheld: int
    """Servers that have no match in this database and wait for `regions sweep`."""
    fault: str | None
    notice: str | None


@app.command("list")
def list_regions(
    json: AsJson = False,
) -> None:
    """List the regions in the order of the settings, with their capacity and the servers in use and ready.

    Withheld are servers without a match in this database, which `regions sweep` releases.
    """
    columns: Columns[RegionLine] = {
        "code": lambda region: region.code,
        "name": lambda region: region.name,
        "location": lambda region: region.location,
        "active": lambda region: "yes" if region.is_active else "no",
        "capacity": lambda region: _number(region.capacity),
        "taken": lambda region: _number(region.taken),
        "ready": lambda region: _number(region.ready),
        "withheld": lambda region: str(region.withheld),
        "fault": lambda region: region.fault or "",
        "notice": lambda region: region.notice or "",
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


@app.command()
def sweep(
    code: _CODE,
    is_confirmed: Annotated[
        bool, typer.Option("--yes", help="Release these servers; players on them are disconnected.")
    ] = False,
) -> None:
    """Show the servers without a match that the service does not release by itself; --yes releases them.

    If their matches were created with another database, or after the backup that this one was restored from, they are
    still being played: then do not release them.
    """
    columns: Columns[WithheldServer] = {
        "server": lambda server: server.server_id,
        "withheld since": lambda server: short_time(iso_time(server.since_ms)),
        "confirmed": lambda server: "yes" if server.is_confirmed else "no",
    }

    async def act(switch: RegionSwitch) -> list[WithheldServer] | None:
        if is_confirmed:
            return await switch.confirm_sweep(code, actor=COMMAND_LINE)
        return await switch.withheld(code)

    found = _switched(code, act)
    if not found:
        print_note(f"region {code} has no servers that wait to be released")
    elif is_confirmed:
        print_note(f"the service releases {len(found)} servers of region {code} within a minute")
    else:
        print_listing(found, columns, as_json=False)


async def _region_lines(resources: Resources) -> list[RegionLine]:
    # Imported here, so that the other commands start quickly.
    from matchpod.adapters.rcon_client import RconConsoles
    from matchpod.app.composition import compose_regions

    flags = await region_flags.active_flags(resources.db)
    withheld = await withheld_servers(resources.db)
    resting = await resting_slots.resting(resources.db)
    silent, now_ms = SilentServers(LossLimits(resources.settings.silence_s * 1000)), resources.clock.now_ms()
    silent.set_remote(await heartbeats.silences(resources.db, now_ms), now_ms)
    composed = compose_regions(resources.settings, RconConsoles(), installation=resources.installation)
    regions = Regions(composed, resources.db)
    try:
        faults = {region.code: await _fault(region.fleet) for region in regions.all()}
        return [
            view_of(
                RegionLine,
                region,
                is_active=flags.get(region.code, True) and faults[region.code] is None,
                capacity=counted and counted.total,
                taken=counted and counted.allocated,
                ready=counted and counted.ready,
                withheld=len(withheld.get(region.code, ())),
                fault=faults[region.code] or await region.fleet.probe(),
                notice=_notice(silent.notice(region.code), resting.get(region.code, ())),
            )
            for region, counted in await regions.capacities()
        ]
    finally:
        for region in regions.all():
            await region.fleet.close()


def _notice(silence: str | None, resting: Iterable[RestingSlot]) -> str | None:
    return " ".join([*([silence] if silence else []), *map(rest_sentence, resting)]) or None


async def _fault(fleet: Fleet) -> str | None:
    """Return what is wrong with the settings of a fleet, and why it cannot be used at present."""
    wrong = await fleet.check()
    return " ".join((*wrong, *filter(None, (fleet.fault,)))) or None


def _number(count: int | None) -> str:
    return "?" if count is None else str(count)


def _set_active(code: str, *, is_active: bool) -> None:
    async def switch_region(switch: RegionSwitch) -> bool | None:
        return await switch.set_active(code, is_active=is_active, actor=COMMAND_LINE) or None

    _switched(code, switch_region)


def _switched(code: str, act: Callable[[RegionSwitch], Awaitable[_T | None]]) -> _T:
    """Act on a region; exit with the known regions if it is none of them, which `act` says with None."""
    known: list[str] = []

    async def run(resources: Resources) -> _T | None:
        known.extend(region.code for region in resources.settings.regions)
        audit = Audit(db=resources.db, clock=resources.clock)
        return await act(RegionSwitch(db=resources.db, audit=audit, codes=known))

    done = run_with_resources(run, needs_original=True)  # a copy must not act for its original
    if done is None:
        fail(f"Unknown region {printable(code)!r}. Known regions: {', '.join(known)}.", code=2)
    return done
