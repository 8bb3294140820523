"""Run the requested checks of regions, one per region at a time, in a process that drives matches.

While a check uses a server, it holds the server's slot as a match would. As soon as a match waits for a server of the
region, the check stops and releases its server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Final

import msgspec

from matchpod.core.model import MatchType
from matchpod.core.servers.check_report import (
    MAX_TEXT,
    CheckFinding,
    CheckItem,
    CheckState,
    CheckVerdict,
    ServerReport,
    compare_builds,
    server_report,
)
from matchpod.cs2.match_commands import game_mode_of
from matchpod.ports import DatabaseError, FleetError, GameServer, ServerOrder
from matchpod.service.identity.identifiers import TOKEN_RANDOM_BYTES, new_token
from matchpod.service.region_checks.requests import CheckReport
from matchpod.service.region_checks.server_check import CheckDeps, GiveWayError, HoldLostError, ServerCheck
from matchpod.service.regions.regions import Region, Regions
from matchpod.storage import region_checks, slots, waiting_matches
from matchpod.storage.region_checks import CheckRow

POLL_S: Final = 1.0
"""Poll interval in seconds for checks that another process, such as a replica or a command, has requested."""

RENEW_S: Final = 4.0
"""Interval in seconds at which a running check renews its row. Several renewals may fail before the row is stale."""

MAP: Final = "de_dust2"
"""The map with which servers are started for a check. Every installation of the game has this map."""

WAITING: Final = "Matches wait for a server of this region, and they have priority over the check."
NEEDS_ALLOCATE: Final = (
    "A check of this region allocates one of its waiting pods and deletes it afterwards. Use --allocate to allow that."
)
NONE_FREE: Final = "No server is free."

FAILED: Final = "The check failed because of an error in Matchpod. The log of the service has the details."

LAST_FREE: Final = "This is the last free server, and matches of this region do not wait for one."

_Provider = Callable[[], AbstractAsyncContextManager[GameServer | None]]
"""A function that returns a context with the server to check; None if no server is free."""

_log = logging.getLogger(__name__)


class CheckRuns:
    """Runs the requested checks of all regions."""

    def __init__(self, deps: CheckDeps, regions: Regions) -> None:
        self._deps = deps
        self._regions = regions
        self._requested = asyncio.Event()

    def wake(self) -> None:
        """Make the loop poll for requested checks now."""
        self._requested.set()

    async def run(self) -> None:
        """Run requested checks until cancelled, several regions concurrently. Errors are logged, never raised."""
        async with asyncio.TaskGroup() as tasks:
            busy: set[str] = set()
            while True:
                self._requested.clear()
                try:
                    begun = await self._begin(busy)
                except DatabaseError as exc:
                    _log.debug("region checks not read", extra={"error": str(exc)})
                    begun = []
                except Exception:  # noqa: BLE001 - the loop must survive
                    _log.exception("region checks not read")
                    begun = []
                for row in begun:
                    tasks.create_task(self._run(row, busy))
                try:
                    async with asyncio.timeout(POLL_S):
                        await self._requested.wait()
                except TimeoutError:
                    continue

    async def _begin(self, busy: set[str]) -> list[CheckRow]:
        """Begin the checks that were requested recently. Callers no longer wait for older requests."""
        db, now_ms, begun = self._deps.db, self._deps.clock.now_ms(), list[CheckRow]()
        for row in await region_checks.all_newest(db):
            is_wanted = row.state == region_checks.REQUESTED and not row.is_stale(now_ms)
            if is_wanted and self._regions.get(row.region) and row.region not in busy:
                found = await region_checks.begin(db, row.region, now_ms)
                begun += [] if found is None else [found]
        return begun

    async def _run(self, row: CheckRow, busy: set[str]) -> None:
        region = self._regions.get(row.region)
        if region is None:
            return
        busy.add(row.region)
        try:
            await RegionCheck(self._deps, region, row).run()
        except DatabaseError as exc:
            _log.warning("region check failed", extra={"region": row.region, "error": str(exc)})
        except Exception:  # noqa: BLE001 - the loop must survive
            _log.exception("region check failed", extra={"region": row.region})
        finally:
            busy.discard(row.region)


class RegionCheck:
    """Runs a single check of a region."""

    def __init__(self, deps: CheckDeps, region: Region, row: CheckRow) -> None:
        self._deps = msgspec.structs.replace(deps, urls=deps.urls.of(region.code))
        self._region = region
        self._row = row
        self._reports: dict[str, ServerReport] = {}
        self._note: str | None = None

    async def run(self) -> None:
        """Check the servers of the region. The report is stored after each step."""
        checking = asyncio.create_task(self._check())
        try:
            while not (await asyncio.wait({checking}, timeout=RENEW_S))[0]:
                if not await self._renew():
                    break  # this process was frozen for so long that another check has begun
            if not checking.done():
                return
            try:
                await checking
            except Exception:
                self._note = FAILED
                await self._renew(report=self._encoded(), is_done=True)
                raise
            self._reports = {report.server: report for report in compare_builds(tuple(self._reports.values()))}
        finally:
            checking.cancel()
            # The check now restores its server. Renew the row, because this may take long.
            while not (await asyncio.wait({checking}, timeout=RENEW_S))[0]:
                with suppress(DatabaseError):
                    await self._renew()
            await self._deps.db.write([region_checks.forget_posts(self._row.id)])
        await self._renew(report=self._encoded(), is_done=True)
        found = {state.value: 0 for state in CheckState}
        for report in self._reports.values():
            found[report.state] += 1
        _log.info("region checked", extra={"region": self._region.code, **found})

    async def _check(self) -> None:
        fleet = self._region.fleet
        if fleet.fault is not None:
            self._note = fleet.fault
        elif fleet.slots is None:
            await self._check_pod()
        elif fleet.keeps_servers:
            for slot in fleet.slots:
                server = fleet.waiting_server(slot)
                if server is not None:
                    await self._check_slot(slot, partial(nullcontext, server))
        else:
            await self._check_started()

    # --- which servers --------------------------------------------------------------------------------------------

    async def _check_pod(self) -> None:
        if not self._row.may_allocate:
            self._note = NEEDS_ALLOCATE
        elif await waiting_matches.has_pending_match(self._deps.db, self._region.code):
            self._note = WAITING
        else:
            await self._check_server("a waiting pod", partial(self._allocated, ""), self._go_on)

    async def _check_started(self) -> None:
        """Start a server in the first free slot and check it. The same command would start the other slots' servers."""
        taken = (await slots.taken(self._deps.db)).get(self._region.code, {})
        for slot in self._region.fleet.slots or ():
            if slot in taken:
                self._reports[slot] = _in_use(slot, taken[slot])
        free = [slot for slot in self._region.fleet.slots or () if slot not in taken]
        if not free:
            self._note = NONE_FREE
            return
        await self._check_slot(free[0], partial(self._allocated, free[0]))
        others = len(free) - 1
        if others and self._note is None:
            self._note = f"One server was started; {others} more would be started by the same command."

    async def _check_slot(self, slot: str, server: _Provider) -> None:
        """Hold and check the server of a slot, unless a match uses it or waits for a server of the region."""
        db = self._deps.db
        if await self._must_stay_free(slot):
            await self._store(ServerReport(server=slot, state=CheckState.NOT_CHECKED, note=LAST_FREE))
            return
        if not await region_checks.hold_slot(db, self._row, slot):
            taken = (await slots.taken(db)).get(self._region.code, {})
            waiting = ServerReport(server=slot, state=CheckState.NOT_CHECKED, note=WAITING)
            await self._store(_in_use(slot, taken[slot]) if slot in taken else waiting)
            return
        try:
            await self._check_server(slot, server, self._go_on_holding)
        finally:
            wake = waiting_matches.wake(self._region.code, self._deps.clock.now_ms(), limit=1)
            await db.write([slots.free(self._row.id), wake])

    async def _must_stay_free(self, slot: str) -> bool:
        """True if this is the only free server of a region whose matches do not wait.

        If the check held that server, a new match would fail immediately.
        """
        own_ms = self._region.pending_ms
        if self._deps.pending_ms if own_ms is None else own_ms:
            return False
        taken = (await slots.taken(self._deps.db)).get(self._region.code, {})
        return [free for free in self._region.fleet.slots or () if free not in taken] == [slot]

    async def _check_server(
        self,
        name: str,
        server: _Provider,
        go_on: Callable[[], Awaitable[None]],
    ) -> None:
        await self._store(ServerReport(server=name, state=CheckState.CHECKING))
        try:
            async with server() as found:
                if found is None:
                    await self._store(ServerReport(server=name, state=CheckState.NOT_CHECKED, note=NONE_FREE))
                    return
                shown = name if found.slot is None else found.slot.partition("/")[0]
                self._reports.pop(name)
                check = ServerCheck(
                    self._deps,
                    self._row.id,
                    shown,
                    found,
                    is_real_time=self._region.speed == 1.0,
                    go_on=go_on,
                    report=self._store,
                )
                await self._store(await check.run())
        except GiveWayError:
            await self._store(ServerReport(server=name, state=CheckState.NOT_CHECKED, note=WAITING))
        except FleetError as exc:
            advice = _START_ADVICE if self._region.fleet.slots is not None else _POD_ADVICE
            await self._store(server_report(name, [_not_started(str(exc), advice)]))

    # --- servers and holds ----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _allocated(self, slot: str) -> AsyncIterator[GameServer | None]:
        """Allocate a server for the check, and release it afterwards."""
        game_type, game_mode = game_mode_of(MatchType.COMPETITIVE)
        order = ServerOrder(
            server_id=self._row.id,
            slot=slot,
            map_name=MAP,
            game_type=game_type,
            game_mode=game_mode,
            rcon_password=new_token(self._deps.random_bytes(TOKEN_RANDOM_BYTES)),
        )
        allocating = asyncio.create_task(self._region.fleet.allocate(order))
        try:
            while not (await asyncio.wait({allocating}, timeout=POLL_S))[0]:
                if slot:  # without a slot, a cluster may have allocated a pod, which must be checked or deleted
                    await self._go_on()
            yield await allocating
        finally:
            allocating.cancel()
            await asyncio.gather(allocating, return_exceptions=True)
            await self._region.fleet.release(self._row.id, slot)

    async def _go_on(self) -> None:
        """Raise GiveWayError if a match waits for a server of the region."""
        if await waiting_matches.has_pending_match(self._deps.db, self._region.code):
            raise GiveWayError

    async def _go_on_holding(self) -> None:
        if not await region_checks.holds_slot(self._deps.db, self._row.id):
            raise HoldLostError  # this process was frozen; a match may use the server by now
        await self._go_on()

    # --- the report -----------------------------------------------------------------------------------------------

    async def _store(self, report: ServerReport) -> None:
        self._reports[report.server] = report
        await self._renew(report=self._encoded())

    async def _renew(self, *, report: bytes | None = None, is_done: bool = False) -> bool:
        now_ms = self._deps.clock.now_ms()
        return await region_checks.renew(self._deps.db, self._row.id, now_ms, report=report, is_done=is_done)

    def _encoded(self) -> bytes:
        servers = tuple(self._reports.values())
        return msgspec.json.encode(CheckReport(servers=servers, note=self._note, log_url=self._deps.urls.base))


def _in_use(slot: str, server_id: str) -> ServerReport:
    return ServerReport(server=slot, state=CheckState.IN_USE, note=f"{server_id} uses it.")


_START_ADVICE: Final = "Start the command of the fleet manually, as the same user, and look at its output."
_POD_ADVICE: Final = "Look at the log and the events of the pod, and at the secret of the fleet."


def _not_started(error: str, advice: str) -> CheckFinding:
    return CheckFinding(
        item=CheckItem.START,
        verdict=CheckVerdict.FAULT,
        text=f"{error[:1].upper()}{error[1:MAX_TEXT]}.",
        advice=advice,
    )
