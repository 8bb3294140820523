"""Acquire due matches, drive each match in a task, and hold its lease while the task runs.

All state is in the rows. If a process dies, other processes end its leases and continue from the stored state. No error
ends the supervisor's loops. A match whose steps fail repeatedly is ended as failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase
from matchpod.core.servers.replica_shares import ReplicaLoad, share_of
from matchpod.ports import DatabaseError, DatabaseUnavailableError, NothingChangedError
from matchpod.service.match_log.fold_turns import EntryFailedError
from matchpod.service.match_log.live import LogRewoundError
from matchpod.service.match_log.suspects import DeadlyMatchError
from matchpod.service.regions.regions import Region
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.heartbeat import Heartbeat
from matchpod.service.runner.lease import Lease, LeaseLostError
from matchpod.service.runner.release import end_leased_match, release
from matchpod.service.runner.run import run
from matchpod.service.runner.start import start
from matchpod.service.runner.sweep import Sweeper
from matchpod.service.telemetry.log_context import begin_work
from matchpod.storage import heartbeats, match_actions, resting_slots, servers, waiting_matches
from matchpod.storage.announcements import CHANNEL, DUE, announce_due, entries_in
from matchpod.storage.servers import LEASE_MS, SOLE_LEASE_MS, ServerRow

CLAIM_ROWS: Final = 50
"""Maximum number of rows that are acquired per query. If that many were due, the next query follows at once."""

SWEEP_S: Final = 60.0
"""Interval in seconds at which the fleets are searched for servers without a match."""

PATIENCE_MS: Final = 1_500
"""Time for which a due match is left to processes that drive fewer matches. It equals three polls."""

RETRY_S: Final = 1.0
"""Additional delay in seconds of a loop after a failure. Heartbeats have none, because they must not be late."""

UNUSED_MS: Final = 10_000
"""Time after which a lease without a task is released. It is not 0, because the task of a new lease begins a little
later."""

CRASHES: Final = 10
"""Number of consecutive failures of a match's steps after which the match is ended, so that no match is retried
forever."""

MAX_INTERRUPTED: Final = 10_000
"""Maximum number of interrupted matches that are remembered. It is larger than the number of matches of a process."""

CRASHES_FORGOTTEN_MS: Final = 5 * 60 * 1000
"""Maximum time between failures that count as consecutive. A match that runs for hours may have a few separate
failures."""

_log = logging.getLogger(__name__)


class _Drive:
    def __init__(self, lease: Lease, task: asyncio.Task[None]) -> None:
        self.lease = lease
        self.task = task

    def stop(self) -> None:
        """Stop driving the match, because it has ended, or because another process holds the lease."""
        self.lease.lose()
        self.task.cancel()


class Supervisor:
    """Drives the matches of this process."""

    def __init__(self, deps: Deps, *, owner: str) -> None:
        self._deps = deps
        self._intervals = deps.intervals
        self._owner = owner
        self._heartbeat = Heartbeat(
            deps.db, deps.clock, owner, silent=deps.regions.silent, max_matches=deps.max_matches
        )
        self._drives: dict[str, _Drive] = {}
        self._crashes: dict[str, tuple[int, int]] = {}
        """Per match, the number of consecutive failures and the time of the last failure."""
        self._interrupted: dict[str, int] = {}
        """The fencing tokens of matches that this process drove until an error, or until it lost their lease."""
        self._sweeper = Sweeper(deps)
        self._notified: set[str] = set()
        self._unused: dict[tuple[str, int], int] = {}
        """The leases without a task, and since when this is known."""
        self._woken = asyncio.Event()
        self._fleet_changed = asyncio.Event()
        self._faulty: set[str] = set()
        self._healed: set[str] = set()
        self._is_draining = False
        self._is_drained = False
        self._beat_s = 0.0
        """When the last heartbeat was sent."""
        self._is_unavailable = False

    def __len__(self) -> int:
        return len(self._drives)

    def notify(self, server_id: str) -> None:
        """Check a match now, because it was created or canceled."""
        self._notified.add(server_id)
        self._woken.set()

    async def run(self) -> None:
        """Acquire and drive matches until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._deps.pulse.run())
                group.create_task(self._loop("claim", self._acquire_due, self._wait_for_notification))
                group.create_task(self._loop("watch", self._watch, self._wait_to_watch))
                pause = partial(asyncio.sleep, self._intervals.actions_s)
                group.create_task(self._loop("actions", self._find_actions, pause))
                if self._deps.db.is_shared:
                    group.create_task(self._loop("renew", self._renew, partial(asyncio.sleep, self._intervals.renew_s)))
                    group.create_task(self._deps.db.listen(CHANNEL, self._on_announced))
                if self._deps.db.is_postgres:
                    group.create_task(self._loop("beat", self._beat, self._wait_to_beat, retry_s=0))
                    pause = partial(asyncio.sleep, self._intervals.dead_s)
                    group.create_task(self._loop("dead", self._end_dead_leases, pause))
                else:
                    pause = partial(asyncio.sleep, self._intervals.beat_s)
                    group.create_task(self._loop("silences", self._heartbeat.store_silences, pause))
                group.create_task(self._loop("slots", self._wake_waiting, self._wait_for_free_slots))
                group.create_task(self._loop("sweep", self._sweeper.sweep, partial(asyncio.sleep, SWEEP_S)))
                for region in self._deps.regions.all():
                    group.create_task(region.fleet.follow(partial(self._note_change, region)))
        finally:
            await self._stop()

    async def drain(self) -> None:
        """Release all leases, so that other processes acquire the matches. The games continue on their servers.

        A snapshot of each match is written first, so this may take many seconds. Heartbeats continue during this time.
        """
        self._is_draining = True
        with suppress(DatabaseError, TimeoutError):  # best effort: matches are then acquired later
            async with asyncio.timeout(RETRY_S):
                await self._heartbeat.announce_stop()
        try:
            await self._stop()
        finally:
            self._is_drained = True
        with suppress(DatabaseError):
            await self._heartbeat.end()

    async def _stop(self) -> None:
        tasks = [drive.task for drive in self._drives.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)  # if this wait is cancelled, it ends at once; the tasks continue

    async def _loop(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        pause: Callable[[], Awaitable[None]],
        *,
        retry_s: float = RETRY_S,
    ) -> None:
        while True:
            try:
                await work()
                self._is_unavailable = False
            except DatabaseUnavailableError as exc:
                self._log_unavailable(exc)
                await asyncio.sleep(retry_s)
            except Exception:  # noqa: BLE001 - the loop must survive
                self._deps.metrics.crashes.inc(name)
                _log.exception("supervisor loop failed", extra={"loop": name})
                await asyncio.sleep(retry_s)
            await pause()

    def _log_unavailable(self, exc: DatabaseUnavailableError) -> None:
        if not self._is_unavailable:  # log this once, not every second for every match
            _log.warning("database unavailable", extra={"error": str(exc)})
        self._is_unavailable = True

    async def _wait_for_notification(self) -> None:
        """Wait for a notification, but at most `poll_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._intervals.poll_s):
                await self._woken.wait()
        self._woken.clear()

    # --- leases ---------------------------------------------------------------------------------------------------

    async def _acquire_due(self) -> None:
        notified, self._notified = (
            self._notified,
            set(),
        )  # cleared before the rows are read, so that later changes notify again
        for server_id in notified & self._drives.keys():
            await self._check(server_id)
        is_created_here = not notified <= self._drives.keys()
        while not self._is_draining and self._heartbeat.is_confirmed():
            shares = await self._shares(is_created_here=is_created_here)
            if sum([await self._claim(limit, is_ending) for is_ending, limit in shares.items()]) < CLAIM_ROWS:
                return

    async def _claim(self, limit: int, is_ending: bool | None) -> int:
        """Acquire at most `limit` due matches. Return the number of acquired matches."""
        if limit <= 0:
            return 0
        found = await servers.claim_due(
            self._deps.db,
            owner=self._owner,
            now_ms=self._deps.clock.now_ms(),
            limit=min(limit, CLAIM_ROWS),
            lease_ms=LEASE_MS if self._deps.db.is_shared else SOLE_LEASE_MS,
            is_ending=is_ending,
        )
        for row in found:
            self._begin(row)
        return len(found)

    async def _shares(self, *, is_created_here: bool) -> dict[bool | None, int]:
        """Return how many ended (True) and open (False) matches this process may acquire; None is the limit for both.

        Of the open matches, it acquires only a share, so that all processes drive equally many. Matches that no other
        process has acquired for PATIENCE_MS are acquired beyond this share.
        """
        room = CLAIM_ROWS if self._deps.max_matches is None else self._deps.max_matches - len(self._drives)
        if not self._deps.db.is_postgres:
            return {None: CLAIM_ROWS} if room >= CLAIM_ROWS else {True: CLAIM_ROWS, False: room}
        now_ms = self._deps.clock.now_ms()
        due = await servers.count_due(self._deps.db, now_ms=now_ms, late_ms=now_ms - PATIENCE_MS)
        if not due.others:
            return {True: due.ending}
        loads = await heartbeats.loads(self._deps.db)
        own = loads.pop(self._owner, ReplicaLoad(len(self._drives)))
        share = share_of(due.others, own.matches, list(loads.values()))
        if is_created_here and min(share, room) < due.others:
            await announce_due(self._deps.db)
        return {True: due.ending, False: min(max(share, due.late), room)}

    async def _check(self, server_id: str) -> None:
        """Stop driving a match if its fencing token has changed, because the match was canceled."""
        row = await servers.get(self._deps.db, server_id)
        drive = self._drives.get(server_id)
        if row is not None and drive is not None and row.fence != drive.lease.row.fence:
            drive.stop()

    def _begin(self, row: ServerRow) -> None:
        before = self._drives.get(row.id)
        if before is not None:
            # The earlier task has lost the lease, because the match was canceled or the lease expired.
            before.stop()
        # The fencing token shows whether another process has acquired the match since then.
        elif row.phase is ServerPhase.RUNNING and self._interrupted.get(row.id) != row.fence - 1:
            self._deps.metrics.takeovers.inc(row.region)
        self._interrupted.pop(row.id, None)
        lease = Lease(row, self._deps.db, self._deps.clock, self._heartbeat)
        after = None if before is None else before.task
        task = asyncio.create_task(self._drive(lease, after), name=f"drive {row.id}")
        drive = self._drives[row.id] = _Drive(lease, task)
        task.add_done_callback(lambda _: self._forget(drive))
        self._deps.metrics.followed.set(len(self._drives))

    def _forget(self, drive: _Drive) -> None:
        server_id = drive.lease.row.id
        if self._drives.get(server_id) is drive:
            del self._drives[server_id]
        self._deps.metrics.followed.set(len(self._drives))
        self._woken.set()

    async def _beat(self) -> None:
        """Send a heartbeat."""
        self._beat_s = asyncio.get_running_loop().time()
        if not self._is_drained and await self._heartbeat.beat(self._watch):
            self._woken.set()

    async def _wait_to_beat(self) -> None:
        """Wait until the next heartbeat is due: at once if storing the last heartbeat took longer than the interval."""
        await asyncio.sleep(self._beat_s + self._intervals.beat_s - asyncio.get_running_loop().time())

    async def _end_dead_leases(self) -> None:
        if await self._heartbeat.end_dead_leases():
            self._woken.set()

    async def _renew(self) -> None:
        drives = dict(self._drives)
        until_ms = self._deps.clock.now_ms() + LEASE_MS
        held = await servers.renew(self._deps.db, owner=self._owner, until_ms=until_ms)
        for drive in self._stop_lost(drives, held):
            drive.lease.until_ms = until_ms

    async def _watch(self) -> None:
        """Stop driving matches that other processes have ended or acquired, and find entries that they stored."""
        drives, matches = dict(self._drives), self._deps.live
        applied = {server_id: live.seq for server_id in drives if (live := matches.get(server_id)) is not None}
        held = await servers.held(self._deps.db, self._owner)
        now_ms = self._deps.clock.now_ms()
        for drive in self._stop_lost(drives, {server_id: fence for server_id, (fence, _) in held.items()}):
            live = matches.get(drive.lease.row.id)
            if live is not None and self._deps.db.is_shared:
                live.compare(held[live.server_id][1], now_ms, applied_seq=applied.get(live.server_id, 0))
        await self._release_unused([(server_id, fence) for server_id, (fence, _) in held.items()], now_ms)

    async def _find_actions(self) -> None:
        """Find action requests that another process (a replica or a command) has stored."""
        for server_id, seq in await match_actions.waiting(self._deps.db):
            live = self._deps.live.get(server_id)
            if live is not None:
                live.expect(seq)

    async def _wait_to_watch(self) -> None:
        await asyncio.sleep(self._intervals.watch_s if self._deps.db.is_shared else self._intervals.check_s)

    def _stop_lost(self, drives: Mapping[str, _Drive], held: Mapping[str, int]) -> list[_Drive]:
        """Stop driving matches whose lease this process no longer holds. Return the remaining matches."""
        kept = []
        for server_id, drive in drives.items():
            if held.get(server_id) == drive.lease.row.fence:
                kept.append(drive)
            else:
                drive.stop()
        return kept

    def _on_announced(self, announcement: str) -> None:
        if announcement == DUE:
            self._woken.set()
        for server_id, seq in entries_in(announcement):
            live = self._deps.live.get(server_id)
            if live is not None:
                live.announce(seq)

    async def _release_unused(self, held: Iterable[tuple[str, int]], now_ms: int) -> None:
        """Release leases without a task. The response of the database when they were acquired may have been lost."""
        unused = {item: self._unused.get(item, now_ms) for item in held if item[0] not in self._drives}
        for (server_id, fence), since_ms in unused.items():
            if now_ms - since_ms >= UNUSED_MS:
                with suppress(NothingChangedError):
                    await self._deps.db.write([servers.release_lease(server_id, fence, now_ms)])
        self._unused = unused

    # --- one match ------------------------------------------------------------------------------------------------

    async def _drive(self, lease: Lease, after: asyncio.Task[None] | None) -> None:
        """Drive a match, after its earlier task (`after`) has stopped."""
        row = lease.row
        context = self._deps.spans.context_of(row)
        begin_work(traceparent=None if context is None else context.header)
        try:
            if after is not None and (await asyncio.wait({after}, timeout=self._intervals.stop_s))[1]:
                _log.error("task of a match does not stop", extra={"server_id": row.id, "phase": row.phase})
            await self._step(lease)
            self._crashes.pop(row.id, None)
        except LeaseLostError:
            self._crashes.pop(row.id, None)
            self._note_interruption(row)
            # If the match was not lost to another process, the lease may have been renewed, so release it.
            await self._release(lease, self._deps.clock.now_ms())
        except asyncio.CancelledError:
            await self._release(lease, self._deps.clock.now_ms())
            raise
        except DatabaseUnavailableError as exc:
            self._log_unavailable(exc)
            await self._release(lease, self._deps.clock.now_ms() + self._intervals.crash_ms)
            self._note_interruption(row)
        except LogRewoundError as exc:
            _log.warning("database lost log entries, match reloaded", extra={"server_id": row.id, "error": str(exc)})
            await self._release(lease, self._deps.clock.now_ms())
            self._note_interruption(row)
        except EntryFailedError as exc:
            await self._lose_entry(lease, exc)
            self._note_interruption(row)
        except DeadlyMatchError:
            await self._survive(lease, must_end=True)
        except Exception:  # noqa: BLE001 - a bug in one match must not affect the others
            await self._survive(lease)
            self._note_interruption(row)

    def _note_interruption(self, row: ServerRow) -> None:
        if len(self._interrupted) >= MAX_INTERRUPTED:
            self._interrupted.clear()  # nothing else removes matches that other processes have acquired
        self._interrupted[row.id] = row.fence

    async def _step(self, lease: Lease) -> None:
        """Run the step for the phase of the match."""
        phase = lease.row.phase
        if phase in (ServerPhase.ALLOCATING, ServerPhase.PENDING):
            is_running = await start(lease, self._deps)
            if not is_running:
                return
        region = self._deps.regions.get(lease.row.region)
        if lease.row.phase is ServerPhase.RUNNING:
            if region is None:
                await self._fail(lease, CancelReason.SERVER_LOST, Failure.REGION_REMOVED)
            else:
                await run(lease, self._deps, region, is_resumed=phase is ServerPhase.RUNNING)
        elif lease.row.phase is ServerPhase.ENDING:
            await release(lease, self._deps)

    async def _fail(self, lease: Lease, reason: CancelReason, failure: Failure) -> None:
        outcome = Outcome(at_ms=self._deps.clock.now_ms(), reason=reason, failure=failure)
        await end_leased_match(lease, self._deps, outcome)

    async def _lose_entry(self, lease: Lease, failed: EntryFailedError) -> None:
        """Set aside an entry that could not be applied, so that the match continues without the entry."""
        if not failed.costs_entry:
            await self._survive(lease)
            return
        about = {"server_id": failed.entry.server_id, "seq": failed.entry.seq}
        self._deps.metrics.crashes.inc("entry")
        _log.error("entry could not be applied", extra=about, exc_info=failed.error)
        try:
            lease.check()
            await self._deps.suspects.set_aside(failed.entry)
        except (LeaseLostError, DatabaseError) as exc:  # the next process that drives the match retries
            _log.warning("entry not set aside", extra={**about, "error": str(exc)})
        await self._release(lease, self._deps.clock.now_ms() + self._intervals.crash_ms)

    async def _survive(self, lease: Lease, *, must_end: bool = False) -> None:
        row = lease.row
        crashes = self._count_crash(row.id)
        self._deps.metrics.crashes.inc("drive")
        _log.exception("match step failed", extra={"server_id": row.id, "phase": row.phase, "crashes": crashes})
        if (must_end or crashes >= CRASHES) and row.phase is not ServerPhase.ENDING:
            try:
                await self._fail(lease, CancelReason.SERVER_FAILED, Failure.SERVICE_ERROR)
                self._crashes.pop(row.id, None)
                return
            except LeaseLostError:
                await self._confirm_handover(lease)
                return
            except DatabaseError:
                _log.warning("failed match could not be ended", extra={"server_id": row.id}, exc_info=True)
        await self._release(lease, self._deps.clock.now_ms() + self._intervals.crash_ms)

    def _count_crash(self, server_id: str) -> int:
        now_ms = self._deps.clock.now_ms()
        before, last_ms = self._crashes.get(server_id, (0, now_ms))
        crashes = 1 if now_ms - last_ms > CRASHES_FORGOTTEN_MS else before + 1
        self._crashes[server_id] = (crashes, now_ms)
        return crashes

    async def _release(self, lease: Lease, next_at_ms: int) -> None:
        # A second cancellation ends this await. `_try_release` must not raise errors, because they would then be lost.
        await asyncio.shield(self._try_release(lease, next_at_ms))

    async def _try_release(self, lease: Lease, next_at_ms: int) -> None:
        try:
            await lease.release(next_at_ms)
        except LeaseLostError:
            await self._confirm_handover(lease)
        except DatabaseError as exc:
            about = {"server_id": lease.row.id, "error": str(exc)}
            _log.warning("lease not released, it will expire", extra=about)

    async def _confirm_handover(self, lease: Lease) -> None:
        """Make the match due now. It was due later, so that this process had time to stop driving it."""
        with suppress(DatabaseError):  # best effort: otherwise the match is due later
            await servers.wake(self._deps.db, lease.row.id, self._deps.clock.now_ms())

    # --- free slots -------------------------------------------------------------------------------------------------

    def _note_change(self, region: Region) -> None:
        """Handle a change that a fleet reports: a server became ready, or a fault of the fleet began or ended."""
        if region.fleet.fault is not None:
            self._faulty.add(region.code)
        elif region.code in self._faulty:
            self._faulty.discard(region.code)
            self._healed.add(region.code)
            self._deps.machine_faults.clear(region.code)  # the fleet's fault had caused the failures
        self._fleet_changed.set()

    async def _wake_waiting(self) -> None:
        """Wake pending matches if servers have become free.

        Servers may become free without the release of a slot: a fleet grows, the pause of a faulty server ends, or a
        process dies.
        """
        self._fleet_changed.clear()
        await resting_slots.end_rests(self._deps.db, self._deps.clock.now_ms())
        for code in tuple(self._healed):
            await self._deps.db.write([servers.wake_region(code, self._deps.clock.now_ms())])
            self._healed.discard(code)
            self._woken.set()
        for code in tuple(self._deps.machine_faults.cleared):
            await self._deps.db.write([waiting_matches.wake_with_server(code, self._deps.clock.now_ms())])
            self._deps.machine_faults.cleared.discard(code)
            self._woken.set()
        for region, capacity in await self._deps.regions.capacities():
            now_ms = self._deps.clock.now_ms()
            is_unusable = region.fleet.fault is not None or self._deps.machine_faults.is_paused(region.code, now_ms)
            if capacity is None or is_unusable:
                continue
            if capacity.ready > 0 and await waiting_matches.has_pending_match(self._deps.db, region.code):
                await self._deps.db.write([waiting_matches.wake(region.code, now_ms, limit=capacity.ready)])
                self._woken.set()

    async def _wait_for_free_slots(self) -> None:
        """Wait until a fleet reports a change, but at most `free_slots_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._intervals.free_slots_s):
                await self._fleet_changed.wait()
