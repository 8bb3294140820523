"""Who drives which match? Rows that are due are claimed, each is driven by a task, and claims are kept while it runs.

Everything is told by the rows: a process that dies leaves claims that run out, and whoever takes them goes on from
what is stored. No error ends these loops; a match that fails again and again ends as failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerPhase
from matchpod.ports import DatabaseAwayError, DatabaseError, FleetError, NothingChangedError
from matchpod.service.conclusion import Ending
from matchpod.service.regions import Region
from matchpod.service.runner.bring_up import bring_up
from matchpod.service.runner.claim import Claim, ClaimLostError
from matchpod.service.runner.ending import conclude, end
from matchpod.service.runner.follow import follow
from matchpod.service.runner.surroundings import Surroundings
from matchpod.storage import servers, slots
from matchpod.storage.servers import LEASE_MS, RENEW_MS, ServerRow

CLAIM_ROWS: Final = 50
"""Rows claimed at once; more are claimed right after."""

POLL_S: Final = 0.5
"""How often due rows are looked for when nobody rings: what other processes left, and deadlines."""

RENEW_S: Final = RENEW_MS / 1000
"""Two renewals may fail before a claim is lost."""

PLACES_S: Final = 5.0
"""How often matches that wait are woken because there are places; whoever gives one back wakes the next at once."""

SWEEP_S: Final = 60.0
"""How often servers without a match are looked for."""

AWAY_S: Final = 1.0
"""Before the next try when something failed."""

CRASH_MS: Final = 2_000
"""Before a match whose step failed unexpectedly is tried again."""

CRASHES: Final = 10
"""After so many failures in a row a match is given up: better a failed match than one that never ends."""

CRASHES_FORGOTTEN_MS: Final = 5 * 60 * 1000
"""Failures this far apart are not in a row: a match that runs for hours may meet a few."""

_LOG = logging.getLogger(__name__)


class _Drive:
    def __init__(self, claim: Claim, task: asyncio.Task[None]) -> None:
        self.claim = claim
        self.task = task

    def stop(self) -> None:
        """The match is somebody else's."""
        self.claim.lose()
        self.task.cancel()


class Supervisor:
    """Drives the matches of one process."""

    def __init__(self, around: Surroundings, *, owner: str) -> None:
        self._around = around
        self._owner = owner
        self._drives: dict[str, _Drive] = {}
        self._crashes: dict[str, tuple[int, int]] = {}
        """How often in a row a match failed, and when last."""
        self._notified: set[str] = set()
        self._unused: set[tuple[str, int]] = set()
        self._woken = asyncio.Event()
        self._is_draining = False
        self._is_away = False

    def __len__(self) -> int:
        return len(self._drives)

    def notify(self, server_id: str) -> None:
        """A match was created, or ended by its caller: its row is due, or was taken from us."""
        self._notified.add(server_id)
        self._woken.set()

    async def run(self) -> None:
        """Drive matches until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._loop("claim", self._claim, partial(self._wait_for_call, POLL_S)))
                group.create_task(self._loop("renew", self._renew, partial(asyncio.sleep, RENEW_S)))
                group.create_task(self._loop("places", self._wake_waiting, partial(asyncio.sleep, PLACES_S)))
                group.create_task(self._loop("sweep", self._sweep, partial(asyncio.sleep, SWEEP_S)))
        finally:
            await self._stop()

    async def drain(self) -> None:
        """Let go of all matches: they go on in their servers, for whoever claims them next."""
        self._is_draining = True
        await self._stop()

    async def _stop(self) -> None:
        drives = list(self._drives.values())
        for drive in drives:
            drive.task.cancel()
        await asyncio.gather(*(drive.task for drive in drives), return_exceptions=True)

    async def _loop(self, name: str, work: Callable[[], Awaitable[None]], pause: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
                self._is_away = False
            except DatabaseAwayError as exc:
                self._note_away(exc)
                await asyncio.sleep(AWAY_S)
            except Exception:  # noqa: BLE001 - the loop must survive
                self._around.measures.crashes.inc(name)
                _LOG.exception("a loop of the supervisor failed", extra={"loop": name})
                await asyncio.sleep(AWAY_S)
            await pause()

    def _note_away(self, exc: DatabaseAwayError) -> None:
        if not self._is_away:  # once: every second and match would bury the rest
            _LOG.warning("database away", extra={"error": str(exc)})
        self._is_away = True

    async def _wait_for_call(self, pause_s: float) -> None:
        """Pause until somebody rings, but not longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._woken.wait()
        self._woken.clear()

    # --- claims ---------------------------------------------------------------------------------------------------

    async def _claim(self) -> None:
        for server_id in tuple(self._notified):
            if server_id in self._drives:
                await self._look_at(server_id)
            self._notified.discard(server_id)
        while not self._is_draining:
            now_ms = self._around.clock.now_ms()
            rows = await servers.claim_due(self._around.db, owner=self._owner, now_ms=now_ms, limit=CLAIM_ROWS)
            for row in rows:
                await self._begin(row)
            if len(rows) < CLAIM_ROWS:
                return

    async def _look_at(self, server_id: str) -> None:
        """Stop driving a match that its caller has ended."""
        row = await servers.get(self._around.db, server_id)
        drive = self._drives.get(server_id)
        if row is not None and drive is not None and row.fence != drive.claim.row.fence:
            drive.stop()

    async def _begin(self, row: ServerRow) -> None:
        before = self._drives.get(row.id)
        if before is not None:
            # The match was taken from its task: ended by its caller, or its claim ran out.
            before.stop()
            await asyncio.gather(before.task, return_exceptions=True)
        claim = Claim(row, self._around.db, self._around.clock)
        task = asyncio.create_task(self._drive(claim), name=f"drive {row.id}")
        drive = self._drives[row.id] = _Drive(claim, task)
        task.add_done_callback(lambda _: self._forget(drive))
        self._around.measures.followed.set(len(self._drives))

    def _forget(self, drive: _Drive) -> None:
        server_id = drive.claim.row.id
        if self._drives.get(server_id) is drive:
            del self._drives[server_id]
        self._around.measures.followed.set(len(self._drives))
        self._woken.set()

    async def _renew(self) -> None:
        drives = dict(self._drives)
        until_ms = self._around.clock.now_ms() + LEASE_MS
        held = await servers.renew(self._around.db, owner=self._owner, until_ms=until_ms)
        for server_id, drive in drives.items():
            if held.get(server_id) == drive.claim.row.fence:
                drive.claim.until_ms = until_ms
            else:
                drive.stop()
        await self._give_back_unused({item for item in held.items() if item[0] not in self._drives})

    async def _give_back_unused(self, unused: set[tuple[str, int]]) -> None:
        """Claims that no task uses, since they could not be given back; what was claimed just now gets its task."""
        for server_id, fence in unused & self._unused:
            with suppress(NothingChangedError):
                await self._around.db.write([servers.unlease(server_id, fence, self._around.clock.now_ms())])
        self._unused = unused

    # --- one match ------------------------------------------------------------------------------------------------

    async def _drive(self, claim: Claim) -> None:
        row = claim.row
        try:
            await self._step(claim)
            self._crashes.pop(row.id, None)
        except ClaimLostError:
            self._crashes.pop(row.id, None)
            await self._yield(claim)
        except asyncio.CancelledError:
            await self._let_go(claim, self._around.clock.now_ms())
            raise
        except DatabaseAwayError as exc:
            self._note_away(exc)
            await self._let_go(claim, self._around.clock.now_ms() + CRASH_MS)
        except Exception:  # noqa: BLE001 - a mistake of ours in one match must not end the others
            await self._survive(claim)

    async def _step(self, claim: Claim) -> None:
        """One look at the row, and what it says is to be done."""
        phase = claim.row.phase
        if phase in (ServerPhase.ALLOCATING, ServerPhase.PENDING):
            is_running = await bring_up(claim, self._around)
            if not is_running:
                return
        region = self._around.regions.get(claim.row.region)
        if claim.row.phase is ServerPhase.RUNNING:
            if region is None:
                await conclude(claim, self._around, Ending(reason=CancelReason.SERVER_LOST))
            else:
                await follow(claim, self._around, region, is_resumed=phase is ServerPhase.RUNNING)
        elif claim.row.phase is ServerPhase.ENDING:
            await end(claim, self._around)

    async def _survive(self, claim: Claim) -> None:
        row = claim.row
        crashes = self._count_crash(row.id)
        self._around.measures.crashes.inc("drive")
        _LOG.exception("a step of a match failed", extra={"server_id": row.id, "phase": row.phase, "crashes": crashes})
        if crashes >= CRASHES and row.phase is not ServerPhase.ENDING:
            try:
                await conclude(claim, self._around, Ending(reason=CancelReason.SERVER_FAILED))
                del self._crashes[row.id]
                return
            except ClaimLostError:
                await self._yield(claim)
                return
            except DatabaseError:
                _LOG.warning("a failed match was not ended", extra={"server_id": row.id}, exc_info=True)
        await self._let_go(claim, self._around.clock.now_ms() + CRASH_MS)

    def _count_crash(self, server_id: str) -> int:
        now_ms = self._around.clock.now_ms()
        before, last_ms = self._crashes.get(server_id, (0, now_ms))
        crashes = 1 if now_ms - last_ms > CRASHES_FORGOTTEN_MS else before + 1
        self._crashes[server_id] = (crashes, now_ms)
        return crashes

    async def _let_go(self, claim: Claim, next_at_ms: int) -> None:
        # Whoever cancels us twice does not wait; then nobody hears what became of it, so nothing may be raised there.
        await asyncio.shield(self._give_back(claim, next_at_ms))

    async def _give_back(self, claim: Claim, next_at_ms: int) -> None:
        try:
            await claim.give_back(next_at_ms)
        except ClaimLostError:
            await self._yield(claim)
        except DatabaseError as exc:
            about = {"server_id": claim.row.id, "error": str(exc)}
            _LOG.warning("a claim was not given back; it runs out", extra=about)

    async def _yield(self, claim: Claim) -> None:
        """Say that we touch the match no more: whoever ended it left us the time to notice."""
        with suppress(DatabaseError):  # then that time passes
            await servers.wake(self._around.db, claim.row.id, self._around.clock.now_ms())

    # --- what nobody claims ---------------------------------------------------------------------------------------

    async def _wake_waiting(self) -> None:
        """Places may be free although nobody gave one back: a region became larger, or whoever was woken is gone."""
        taken = await slots.taken(self._around.db)
        for region in self._around.regions.all():
            free = len(region.fleet.slots) - len(taken.get(region.code, {}))
            now_ms = self._around.clock.now_ms()
            if free > 0 and await servers.is_anybody_waiting(self._around.db, region.code, now_ms):
                await self._around.db.write([servers.wake_waiting(region.code, now_ms, limit=free)])
                self._woken.set()

    async def _sweep(self) -> None:
        """Servers without a match are ended, places without a server are free again."""
        for region in self._around.regions.all():
            try:
                await self._sweep_region(region)
            except FleetError as exc:  # one region's trouble; the next sweep comes soon
                _LOG.warning("a region was not swept", extra={"region": region.code, "error": str(exc)})
        freed = await slots.free_forgotten(self._around.db)
        if freed:
            _LOG.warning("places without a match are free again", extra={"count": freed})

    async def _sweep_region(self, region: Region) -> None:
        # Listed first: a match that is created meanwhile is open by the time the rows are read.
        running = await region.fleet.servers()
        for server_id in set(running) - await servers.open_ids(self._around.db):
            _LOG.warning("server without a match is released", extra={"server_id": server_id})
            with suppress(FleetError):  # the others must go all the same
                await region.fleet.release(server_id, "")
