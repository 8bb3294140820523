"""Apply the log of a running match until the match ends, and queue its effects (a step of the runner).

This module never waits for the server: `effects.py` uses the server's console, and `liveness.py` probes the server. A
resumed match continues from its snapshot. Effects of entries from before it was resumed are not executed again, except
those that end the match.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from functools import partial
from typing import Final

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.events import GameEvent, MapEnded, MapLive, MapLoading, RoundDecided, ServerRestarted
from matchpod.core.failures import Failure
from matchpod.core.match.actions import ActionRequest, ActionState
from matchpod.core.outcome import Outcome
from matchpod.core.views.progress import public_phase
from matchpod.cs2.match_reader import ReadResult
from matchpod.ports import DatabaseError, Statement
from matchpod.service.history.recorder import Recorder
from matchpod.service.identity.identifiers import server_name
from matchpod.service.match_log.entries import EntryKind, NewEntry, statements_of, stored_entry
from matchpod.service.match_log.live import LocalMatch, LogRewoundError
from matchpod.service.match_log.replay import PAGE_ENTRIES, open_match, page_after
from matchpod.service.regions.regions import Region
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.demo_records import DemoRecords
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.effects import Command, EffectExecutor, MapLoaded
from matchpod.service.runner.lease import Lease, LeaseLostError, readable_error
from matchpod.service.runner.liveness import LivenessProbe
from matchpod.service.runner.release import end_leased_match
from matchpod.service.streams.organization_event_lines import action_changed
from matchpod.storage import match_actions, organization_events, servers, snapshots
from matchpod.storage.match_actions import ActionRow
from matchpod.storage.raw_log import RawEntry

LAST_REPORT_POLL_S: Final = 0.05
"""Interval in seconds at which a shared database is polled for the last reports, which another process may have
stored."""

SNAPSHOT_MS: Final = 5_000
"""Minimum time between two snapshots of a match. It matters in the sandbox, where rounds take only seconds."""

NEVER_MS: Final = 2**63
"""A time that is later than any alarm."""

_log = logging.getLogger(__name__)

_SNAPSHOT_EVENTS = (RoundDecided, MapLive, MapEnded)


async def run(lease: Lease, deps: Deps, region: Region, *, is_resumed: bool) -> None:
    """Drive a match until it has ended. Raise LeaseLostError if the lease is lost."""
    line, runner = ConsoleLine(lease, deps), None
    try:
        async with deps.suspects.resuming(lease.row, region.speed) if is_resumed else nullcontext():
            live = LocalMatch(lease.row.id, *await open_match(deps.db, lease.row, region.speed, turns=deps.turns))
            runner = _Runner(lease, deps, region, live=live, line=line)
            deps.live.add(live)
            await runner.begin(is_resumed=is_resumed)
        try:
            await runner.run()
        except asyncio.CancelledError:
            await asyncio.shield(runner.save_for_next())
            raise
    finally:
        if runner is not None:
            deps.live.remove(live)
            runner.close()
        await line.close()


class _Runner:
    def __init__(self, lease: Lease, deps: Deps, region: Region, *, live: LocalMatch, line: ConsoleLine) -> None:
        self._lease = lease
        self._deps = deps
        self._intervals = deps.intervals
        self._live = live
        self._fold = live.fold
        self._match = live.fold.match
        self._lost = ""
        self._failure: Failure | None = None
        self._snapshot_ms = deps.clock.now_ms()
        self._is_snapshot_due = False
        self._wake_ms = NEVER_MS
        self._executes_effects = True
        self._put_off_s = 0.0
        self._recorder = Recorder(
            lease.row,
            live.fold,
            db=deps.db,
            write=lease.write,
            streams=deps.streams,
            server_name=server_name(region.name, lease.row.id),
            retry_ms=deps.intervals.history_retry_ms,
        )
        self._effects = EffectExecutor(
            lease, deps, region, line=line, match=self._match, on_failed=self._fail, append=self._append_now
        )
        self._demos = DemoRecords(lease.row, self._match, speed=region.speed)
        self._actions_written = 0
        """The number of action changes that are stored in rows."""
        self._action_rows: dict[str, ActionRow] = {}
        """The stored rows of actions, by id."""
        self._liveness = LivenessProbe(
            lease, deps, region, line=line, fold=live.fold, on_lost=self._lose, on_failed=self._fail
        )

    async def begin(self, *, is_resumed: bool) -> None:
        """Apply the entries that are already stored."""
        await self._recorder.begin()
        if is_resumed:
            await self._resume()
        else:
            await self._apply_stored()  # entries that arrived while the server was configured

    async def run(self) -> None:
        """Drive the match until it has ended, with its console commands and its probes in tasks of their own."""
        try:
            async with asyncio.TaskGroup() as group:
                probes = (self._liveness.run(put_off_s=self._put_off_s), self._liveness.wait_for_fleet())
                beside = [group.create_task(work) for work in (self._effects.run(), *probes)]
                try:
                    await self._drive()
                finally:
                    for task in beside:
                        task.cancel()
        except BaseExceptionGroup as failed:
            raise _cause(failed) from failed

    def close(self) -> None:
        """Break reference cycles, so that the match is freed without waiting for the garbage collector."""
        del self._effects, self._liveness

    async def save_for_next(self) -> None:
        """Write a snapshot for the process that drives the match next, so that it has few entries to apply."""
        if self._fold.is_over or self._live.error is not None:
            return  # the match has ended, or the fold may be half changed
        row = self._lease.row
        snapshot = await self._deps.turns.call(self._snapshot)
        with suppress(DatabaseError, LeaseLostError):  # best effort: otherwise more entries are applied
            await self._lease.write(snapshots.save(row.id, row.fence, snapshot))

    async def _resume(self) -> None:
        """Apply stored entries without their effects, which were executed or will be requested again."""
        await self._append(EntryKind.RESUMED)
        self._executes_effects = False
        await self._apply_stored()
        self._executes_effects = True
        if not self._fold.is_over:
            others = self._deps.suspects.resuming_count - 1
            self._put_off_s = min(others * self._intervals.put_off_s, self._intervals.max_put_off_s)
            # With a shared database, the server may send its log to the previous process, so redirect it at once.
            self._effects.resume(put_off_s=0.0 if self._deps.db.is_shared else self._put_off_s)
            _log.info("match resumed", extra=self._about(phase=self._match.phase.value))

    async def _drive(self) -> None:
        clock, saving_ms = self._deps.clock, 0
        while True:
            self._live.woken.clear()
            began_ms = clock.now_ms() - saving_ms
            await self._apply_new()
            self._check_fold()
            await self._fire_deadlines(busy_ms=clock.now_ms() - began_ms)
            await self._observe()
            if self._lost and not self._fold.is_over:
                await self._end_lost()
            if self._match.outcome is not None:
                await self._end(self._match.outcome)
                return
            saved_ms = clock.now_ms()
            await self._save()
            free_ms = clock.now_ms()
            await self._wait()
            # The time of the write counts as a delay of deadlines, unless the wait after it was so long that servers
            # have resent posts that could not be stored during the write.
            saving_ms = free_ms - saved_ms if clock.now_ms() - free_ms < self._intervals.late_ms else 0

    async def _end(self, outcome: Outcome) -> None:
        if outcome.is_finished:
            await self._wait_for_last_report()
        # An action that ends the match is stored as done in the same transaction as the end.
        actions, events = await self._changed_actions()
        earlier = [*actions, *self._demos.statements(self._deps.clock.now_ms(), outcome)]
        end = partial(end_leased_match, self._lease, self._deps, earlier=earlier, earlier_events=events)
        failure = self._failure if outcome.reason is CancelReason.SERVER_FAILED else None
        outcome = msgspec.structs.replace(outcome, at_ms=self._deps.clock.now_ms(), failure=failure)
        result = self._fold.result() if outcome.is_finished else None
        try:
            await end(outcome, result=result, recorder=self._recorder)
        except (DatabaseError, LeaseLostError):
            raise
        except Exception:  # noqa: BLE001 - the history can be repaired later, the end of the match cannot wait
            self._history_failed()
            await end(outcome, result=result)
        for played in self._match.maps:
            if not played.is_complete:
                self._deps.metrics.maps_incomplete.inc(self._lease.row.region)
                about = self._about(map_number=played.number, rounds=" ".join(map(str, played.missing_rounds)))
                _log.warning("parts of the log of a map are missing", extra=about)

    async def _wait_for_last_report(self) -> None:
        """Wait for the plugins' reports about the last round (MVP and shots), which arrive after the last log line."""
        try:
            async with asyncio.timeout(self._intervals.last_report_s):
                while self._fold.awaits_reports:
                    self._live.woken.clear()
                    await self._apply_late()
                    if self._fold.awaits_reports:
                        await self._wait_for_entry()
        except TimeoutError:
            await self._deps.log_writer.flush(self._live.server_id)  # reports may wait for the next commit
            await self._apply_late()

    async def _wait_for_entry(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_REPORT_POLL_S if self._deps.db.is_shared else None):
                await self._live.woken.wait()

    async def _apply_late(self) -> None:
        page = await page_after(self._deps.db, self._live.server_id, self._live.seq)
        await self._deps.turns.run(page, self._apply_late_entry)

    def _apply_late_entry(self, entry: RawEntry) -> bool:
        self._fold_entry(entry)
        return True

    async def _wait(self) -> None:
        """Wait for an alarm. During the wait, the log writer applies entries, and wakes the runner if there is work."""
        now_ms = self._deps.clock.now_ms()
        self._wake_ms = self._next_alarm_ms(now_ms)
        wait_s = None if self._wake_ms == NEVER_MS else max(0, self._wake_ms - now_ms) / 1000
        self._live.idle = self
        try:
            async with asyncio.timeout(wait_s):
                await self._live.woken.wait()
        except TimeoutError:
            pass
        finally:
            self._live.idle = None
        self._check_fold()

    def _check_fold(self) -> None:
        """Raise the error after which the fold must no longer be used, if there was such an error."""
        if self._live.error is not None:
            raise self._live.error

    def has_work(self) -> bool:
        """True if `_drive` has to act because of entries that were applied during the wait."""
        now_ms = self._deps.clock.now_ms()
        return (
            self._fold.is_over
            or bool(self._lost)
            or self._live.is_behind
            or self._must_save(now_ms)
            or self.is_due(now_ms)
            or self._next_alarm_ms(now_ms) < self._wake_ms
        )

    def is_due(self, now_ms: int) -> bool:
        """True if an alarm is due: at the timeout, or before it if the clock was set or the machine suspended."""
        return now_ms >= self._wake_ms

    def _next_alarm_ms(self, now_ms: int) -> int:
        alarms_ms = (self._fold.wake_ms(), self._recorder.due_ms(now_ms))
        return min((due_ms for due_ms in alarms_ms if due_ms is not None), default=NEVER_MS)

    def _must_save(self, now_ms: int) -> bool:
        is_snapshot_due = self._is_snapshot_due and not 0 <= now_ms - self._snapshot_ms < SNAPSHOT_MS
        return is_snapshot_due or self._has_new_actions() or self._has_new_phase() or self._demos.has_new()

    def _has_new_actions(self) -> bool:
        return len(self._match.action_changes) > self._actions_written

    def _has_new_phase(self) -> bool:
        """True if the phase of the match differs from the phase in its row, which lists and other processes read."""
        return public_phase(self._match) is not self._lease.row.match_phase

    # --- reading --------------------------------------------------------------------------------------------------

    async def _apply_new(self) -> None:
        while not self._fold.is_over:
            await self._deps.turns.run(iter(self._live.dequeue, None), self.apply)
            if not self._live.is_behind or not await self._apply_stored(limit=PAGE_ENTRIES):
                return

    async def _apply_stored(self, limit: int | None = None) -> int:
        """Apply stored entries until none are left, `limit` is reached or the match is over. Return their number."""
        count = 0
        while not self._fold.is_over and (limit is None or count < limit):
            page = await self._next_page()
            if not page:
                break
            await self._deps.turns.run(page, self.apply)
            count += len(page)
            if len(page) < PAGE_ENTRIES - 1 and not (self._live.is_behind or self._deps.db.is_shared):
                break
        return count

    async def _next_page(self) -> list[RawEntry]:
        """Read the next stored entries. Raise LogRewoundError if the last applied entry is no longer stored."""
        live = self._live
        first = live.begin_reading()
        page = await page_after(self._deps.db, live.server_id, first - 1)
        if first > live.seq:
            return page
        if not page or page[0].seq != live.seq or not live.is_applied(page[0]):
            raise LogRewoundError(f"entry {live.seq} of {live.server_id} was applied, and is not stored")
        return page[1:]

    def apply(self, entry: RawEntry) -> bool:
        """Apply an entry and queue its effects. False once the match is over."""
        metrics = self._deps.metrics
        lines_before, unknown_before = self._fold.line_counts
        if entry.kind == EntryKind.LOG and self._fold.is_own(entry):
            self._liveness.log_received(entry.received_ms)
        reading = self._fold_entry(entry)
        metrics.fold_s.observe(max(0, self._deps.clock.now_ms() - entry.received_ms) / 1000)
        lines, unknown = self._fold.line_counts
        metrics.lines.inc("all", amount=lines - lines_before)
        metrics.lines.inc("unknown", amount=unknown - unknown_before)
        self._note(reading.events)
        self._enqueue(*reading.effects)
        return not self._fold.is_over

    def _fold_entry(self, entry: RawEntry) -> ReadResult:
        misplaced_before = self._fold.misplaced_shots
        reading = self._deps.turns.apply(self._fold, entry)
        self._live.applied(entry)
        if self._fold.misplaced_shots > misplaced_before:
            _log.warning("shot count ignored: its map is unknown", extra=self._about(seq=entry.seq))
        return reading

    def _note(self, events: Iterable[GameEvent]) -> None:
        for event in events:
            match event:
                case MapLoading():
                    self._enqueue(MapLoaded())
                case ServerRestarted():
                    self._lose("the server was restarted")
                case _ if isinstance(event, _SNAPSHOT_EVENTS):
                    self._is_snapshot_due = True
                case _:
                    pass

    def _enqueue(self, *commands: Command) -> None:
        if self._executes_effects:
            for command in commands:
                self._effects.enqueue(command)

    async def _fire_deadlines(self, *, busy_ms: int) -> None:
        """If a deadline is due, append an entry at which due deadlines fire.

        Append a RESUMED entry instead, which postpones the deadline by at most MAX_WAIT_MS, if the deadline was noticed
        late, if this process was just suspended, or if the last log post could not be stored. The missing post may make
        the deadline obsolete: on a full disk, a report of the match's end may fit, but not the log of the last rounds.
        """
        due_ms, now_ms = self._fold.due_ms(), self._deps.clock.now_ms()
        if self._fold.is_over or due_ms is None or due_ms > now_ms:
            return
        late_ms = max(now_ms - due_ms, busy_ms)
        await self._flush()  # before the decision, because this may take long
        is_late = late_ms > self._intervals.late_ms or self._deps.pulse.was_late()
        is_in_time = not is_late and not self._live.lacks_post
        if is_in_time or not self._fold.may_wait(now_ms):
            await self._append_now(EntryKind.DEADLINE)
            return
        why = "deadline waits for a log post" if self._live.lacks_post else "deadline noticed late"
        _log.warning(why, extra=self._about(late_ms=late_ms))
        await self._append_now(EntryKind.RESUMED)

    async def _observe(self) -> None:
        """Append an OBSERVED entry if the log has had no entry for a while."""
        observe_ms = None if self._fold.is_over or self._live.is_behind else self._fold.observe_ms()
        if observe_ms is not None and observe_ms <= self._deps.clock.now_ms():
            await self._append(EntryKind.OBSERVED)

    async def _append(self, kind: EntryKind) -> None:
        """Append an entry of the service after all waiting posts. Raise LeaseLostError if the lease is lost."""
        await self._flush()
        await self._append_now(kind)

    async def _flush(self) -> None:
        """Store all waiting posts of the match."""
        await self._deps.log_writer.flush(self._live.server_id)

    async def _append_now(self, kind: EntryKind, body: bytes = b"") -> None:
        row = self._lease.row
        self._lease.check()
        new = NewEntry(kind=kind, received_ms=self._deps.clock.now_ms(), body=body)
        _, numbers, _ = await self._lease.write([servers.check_fence(row.id, row.fence), *statements_of(row.id, new)])
        self._live.enqueue(stored_entry(row.id, msgspec.convert(numbers[0][0], int), new))
        if body:  # another task appends entries with a body; the runner may be idle
            self._live.woken.set()

    # --- the server -----------------------------------------------------------------------------------------------

    def _lose(self, why: str) -> None:
        self._lost = why
        self._live.woken.set()

    def _fail(self, failure: Failure) -> None:
        self._failure = failure
        self._lose(failure.value)

    async def _end_lost(self) -> None:
        # Write this before reading, so that posts that are stored during the write are read, too.
        await self._lease.change(error=readable_error(self._lost))
        await self._flush()
        await self._apply_stored()  # may include the last posts of the server
        if self._fold.is_over:
            return
        self._enqueue(*self._fold.finish())  # accept an end that only one source has reported
        if not self._fold.is_over:
            _log.warning("server lost", extra=self._about(why=self._lost))
            reason = CancelReason.SERVER_LOST if self._failure is None else CancelReason.SERVER_FAILED
            self._fold.cancel(reason, self._deps.clock.now_ms())

    def _about(self, **fields: str | int) -> dict[str, str | int]:
        return {"server_id": self._live.server_id, **fields}

    async def _save(self) -> None:
        """Write a snapshot if it is due. Write the history if it is due itself, or if a snapshot is written."""
        now_ms, row = self._deps.clock.now_ms(), self._lease.row
        due_ms = self._recorder.due_ms(now_ms)
        if self._must_save(now_ms) or (due_ms is not None and due_ms <= now_ms):
            await self._deps.log_writer.folded()
        snapshot: list[Statement] = []
        if self._is_snapshot_due and not 0 <= now_ms - self._snapshot_ms < SNAPSHOT_MS:
            snapshot = snapshots.save(row.id, row.fence, self._snapshot())
            self._snapshot_ms, self._is_snapshot_due = now_ms, False
        if self._has_new_actions():
            await self._save_actions()
        if self._demos.has_new():
            await self._lease.write([servers.check_fence(row.id, row.fence), *self._demos.statements(now_ms)])
            self._demos.note()
        try:
            if self._has_new_phase():
                await self._lease.change(match_phase=public_phase(self._match))
            if (snapshot and not self._recorder.is_paused(now_ms)) or (due_ms is not None and due_ms <= now_ms):
                await self._recorder.write(now_ms, snapshot)
                return
        except (DatabaseError, LeaseLostError):
            raise
        except Exception:  # noqa: BLE001 - the match must go on; its history is built again later
            self._history_failed()
        if snapshot:
            await self._lease.write([servers.check_fence(row.id, row.fence), *snapshot])

    async def _save_actions(self) -> None:
        """Write the rows of changed actions, and append an event to the organization's events for each change."""
        row, count = self._lease.row, len(self._match.action_changes)
        statements, events = await self._changed_actions()
        if statements:
            try:
                lines = organization_events.append(row.org_id, events, at_ms=self._deps.clock.now_ms())
                await self._lease.write([*statements, *lines])
            except BaseException:
                self._action_rows = {}  # the rows may or may not have been written, so read them again
                raise
            self._deps.streams.organizations.wake()
        self._actions_written = count

    async def _changed_actions(self) -> tuple[list[Statement], list[bytes]]:
        """Return the statements that write changed actions, and the organization's events about the changes."""
        row, now_ms, changes = self._lease.row, self._deps.clock.now_ms(), list(self._match.action_changes)
        new = changes[self._actions_written :]
        if any(change.action_id not in self._action_rows for change in new):
            found = await match_actions.of_server(self._deps.db, row.id)
            self._action_rows = {known.id: known for known in found}
        rows, statements, events = self._action_rows, [], []
        for change in new:
            known = rows.get(change.action_id)
            if known is None or not change.is_after(known.state, known.detail):
                continue
            rows[known.id] = msgspec.structs.replace(known, state=change.state, detail=change.detail)
            statements.append(match_actions.change(known.id, change.state, change.detail, now_ms))
            # Get the request from the row, because the match does not record requests beyond its limit of actions.
            action = msgspec.json.decode(known.request, type=ActionRequest)
            events.append(action_changed(row, action, change.state, detail=change.detail, at_ms=now_ms))
            if change.state.is_final:
                about = self._about(action_id=action.id, action=action.type.value, detail=change.detail or "")
                _log.info("action done" if change.state is ActionState.DONE else "action failed", extra=about)
        return [servers.check_fence(row.id, row.fence), *statements] if statements else [], events

    def _snapshot(self) -> snapshots.Snapshot:
        return snapshots.Snapshot(self._live.seq, self._fold.dump(), self._live.received_ms)

    def _history_failed(self) -> None:
        self._deps.metrics.crashes.inc("history")
        _log.exception("history of a match could not be built", extra=self._about())
        self._recorder.pause(self._deps.clock.now_ms())


def _cause(failed: BaseExceptionGroup) -> BaseException:
    """Return the first error of the group, which is the cause of the other errors."""
    leaf = failed.exceptions[0]
    return _cause(leaf) if isinstance(leaf, BaseExceptionGroup) else leaf
