"""List, check, activate and deactivate regions, and confirm the release of servers: `matchpod regions`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Annotated, Final, TypeVar

import msgspec
import typer

from matchpod.adapters.log_output import escape_unprintable
from matchpod.app import Resources
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import (
    AsJson,
    Columns,
    command_group,
    print_listing,
    print_note,
    replace_unencodable,
    short_time,
)
from matchpod.core.errors import NotFoundError, RateLimitError
from matchpod.core.iso_dates import iso_time
from matchpod.core.requests.text_rules import printable
from matchpod.core.servers.check_report import CheckState, ServerReport
from matchpod.core.servers.server_loss import LossLimits
from matchpod.ports import Fleet
from matchpod.service.access.audit import COMMAND_LINE, Audit
from matchpod.service.region_checks.requests import CheckProgress, RegionChecks, RegionCheckView
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

CHECK_POLL_S: Final = 0.3
"""Interval in seconds at which the command polls the state of a check. The check itself runs in the service."""

NOTHING_CHECKED: Final = 3
"""Exit code of `regions check` if no server could be checked."""

_T = TypeVar("_T")
_CODE = Annotated[str, typer.Argument(metavar="CODE", help="The code of the region, as regions list shows it.")]


class RegionLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A region as operators see it. If its fleet cannot be used, the numbers are None and `fault` has the reason.

    `notice` reports silent servers, as in `GET /api/v1/regions`, and servers that temporarily get no matches.
    """

    code: str
    name: str
    location: str
    is_active: bool
    capacity: int | None
    taken: int | None
    ready: int | None
    withheld: int
    """Number of servers without a match in this database. Only `regions sweep` releases them."""
    fault: str | None
    notice: str | None


@app.command("list")
def list_regions(
    json: AsJson = False,
) -> None:
    """List the regions in the order of the settings, with their capacity and the servers in use and ready.

    Withheld servers have no match in this database; `regions sweep` releases them.
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
    """Show the servers without a match that the service does not release by itself. With --yes, release them.

    Do not release servers whose matches were created with another database, or after the backup that this database was
    restored from: these matches are still being played.
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


@app.command()
def check(
    code: _CODE,
    *,
    may_allocate: Annotated[
        bool, typer.Option("--allocate", help="Allocate a waiting pod of the region, and delete it afterwards.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the whole check as one JSON object.")] = False,
) -> None:
    """Let the service check the game servers of a region: console, plugins, login, log, clock.

    Servers with a match are not checked, and waiting matches have priority. Exit codes: 0 if no server has a fault, 1
    if a server has a fault, 2 for an unknown region, 3 if no server could be checked or no service runs.
    """

    async def run(resources: Resources) -> RegionCheckView:
        codes = [region.code for region in resources.settings.regions]
        audit = Audit(db=resources.db, clock=resources.clock)
        checks = RegionChecks(db=resources.db, clock=resources.clock, audit=audit, codes=codes)
        return await _await_check(checks, code, may_allocate=may_allocate)

    try:
        found = run_with_resources(run, needs_original=True)
    except NotFoundError as exc:
        fail(str(exc), code=2)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    elif found.state is CheckProgress.DONE:
        for server in found.servers:
            _print_report(server)
    raise typer.Exit(_check_code(found))


async def _await_check(checks: RegionChecks, code: str, *, may_allocate: bool) -> RegionCheckView:
    """Request a check and wait until it is over. Print each server on standard error when its check begins."""
    shown: set[str] = set()
    try:
        found = await checks.request(code, actor=COMMAND_LINE, may_allocate=may_allocate)
    except RateLimitError:
        found = await _request_again(checks, code, may_allocate=may_allocate)
    check_id = found.id
    while found.state in (CheckProgress.REQUESTED, CheckProgress.RUNNING) and found.id == check_id:
        for server in found.servers:
            if server.state is CheckState.CHECKING and server.server not in shown:
                shown.add(server.server)
                print_note(f"checking {printable(server.server)}")
        await asyncio.sleep(CHECK_POLL_S)
        found = await checks.read(code) or found
    return found


def _check_code(found: RegionCheckView) -> int:
    """Print how the check ended. Return the exit code of the command."""
    if found.note is not None:
        print_note(printable(found.note))
    if found.state is not CheckProgress.DONE:
        print_note("no process of the service runs the check; is the service running with this database?")
        return NOTHING_CHECKED
    if found.healthy is None:
        print_note("no server was checked")
        return NOTHING_CHECKED
    count = sum(server.state in (CheckState.OK, CheckState.FAULT) for server in found.servers)
    faulty = sum(server.state is CheckState.FAULT for server in found.servers)
    print_note(f"{count} {'server' if count == 1 else 'servers'} checked, {faulty} with a fault")
    return 0 if found.healthy else 1


async def _request_again(checks: RegionChecks, code: str, *, may_allocate: bool) -> RegionCheckView:
    """Request a check again, until it is no longer rejected because the previous check is too recent."""
    print_note("the previous check was seconds ago; waiting")
    while True:
        await asyncio.sleep(CHECK_POLL_S)
        with suppress(RateLimitError):
            return await checks.request(code, actor=COMMAND_LINE, may_allocate=may_allocate)


def _print_report(server: ServerReport) -> None:
    """Print the findings of a check about one server."""
    head = server.state.value.replace("_", " ")
    lines = [f"{server.server}: {head}" + (f" ({server.note})" if server.note else "")]
    for finding in server.findings:
        lines.append(f"  {finding.verdict.value:8} {finding.item.label:12} {finding.text}")
        if finding.advice is not None:
            lines.append(f"  {'':8} {'':12} -> {finding.advice}")
    replace_unencodable()
    for line in lines:
        typer.echo(escape_unprintable(line))


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
    """Return the faults in the settings of a fleet, and why it is unavailable; None if there is neither."""
    wrong = await fleet.check()
    return " ".join((*wrong, *filter(None, (fleet.fault,)))) or None


def _number(count: int | None) -> str:
    return "?" if count is None else str(count)


def _set_active(code: str, *, is_active: bool) -> None:
    async def switch_region(switch: RegionSwitch) -> bool | None:
        return await switch.set_active(code, is_active=is_active, actor=COMMAND_LINE) or None

    _switched(code, switch_region)


def _switched(code: str, act: Callable[[RegionSwitch], Awaitable[_T | None]]) -> _T:
    """Run `act` on a region and return its result. If it returns None, the region is unknown: exit with an error."""
    known: list[str] = []

    async def run(resources: Resources) -> _T | None:
        known.extend(region.code for region in resources.settings.regions)
        audit = Audit(db=resources.db, clock=resources.clock)
        return await act(RegionSwitch(db=resources.db, audit=audit, codes=known))

    done = run_with_resources(run, needs_original=True)  # a copy must not act for its original
    if done is None:
        fail(f"Unknown region {printable(code)!r}. Known regions: {', '.join(known)}.", code=2)
    return done
