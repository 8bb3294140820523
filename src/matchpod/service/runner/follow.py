"""How is a running match followed to its end? Stored entries are read in order, time passes, effects are ordered.

Nothing here waits for the server: its console belongs to `hands`, its health to `watch`. Whatever happened before
this process took the match over is read again, from the snapshot on; of that only what ends the match is acted upon.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from matchpod.core.effects import CancelMatch, CancelReason, Effect, EndMatch
from matchpod.core.events import GameEvent, MapEnded, MapLive, MapLoading, RoundDecided, ServerRestarted
from matchpod.core.result import build_result
from matchpod.cs2.console_commands import uses_plugin_match
from matchpod.ports import Statement
from matchpod.service.conclusion import Ending
from matchpod.service.entries import store
from matchpod.service.folding import LATE_MS, LOG, RESUMED
from matchpod.service.history.naming import server_name
from matchpod.service.history.recorder import Recorder
from matchpod.service.live import LiveMatch
from matchpod.service.match_log.replay import open_match
from matchpod.service.regions import Region
from matchpod.service.runner.claim import Claim
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.ending import conclude
from matchpod.service.runner.hands import Hands, MapLoaded, Order
from matchpod.service.runner.surroundings import Surroundings
from matchpod.service.runner.watch import Watch
from matchpod.storage import raw_log, snapshots
from matchpod.storage.raw_log import RawEntry

READ_ENTRIES: Final = 100
"""Entries read from the database at a time."""

POLL_S: Final = 1.0
"""How often a shared database is asked for entries that another process stored."""

LAST_WORDS_S: Final = 1.0
"""How long the plugin's word on the last round is waited for; it comes within a tick of the log, or not at all."""

MAX_DELAYS: Final = 3
"""An alarm waits for that so often in a row, half a minute: where everything is always late it fires all the same."""

SNAPSHOT_MS: Final = 5_000
"""The least time between two snapshots: in a fast world a round takes seconds."""

_LOG = logging.getLogger(__name__)

_WORTH_KEEPING = (RoundDecided, MapLive, MapEnded)


async def follow(claim: Claim, around: Surroundings, region: Region, *, is_resumed: bool) -> None:
    """Follow a match until it has its outcome; ClaimLostError when it is somebody else's by now."""
    live = LiveMatch(claim.row.id, *await open_match(around.db, claim.row, region.speed))
    around.live.add(live)
    line = ConsoleLine(claim, around)
    try:
        await _Follower(claim, around, region, live=live, line=line).run(is_resumed=is_resumed)
    finally:
        around.live.remove(live)
        await line.close()


class _Follower:
    def __init__(
        self, claim: Claim, around: Surroundings, region: Region, *, live: LiveMatch, line: ConsoleLine
    ) -> None:
        self._claim = claim
        self._around = around
        self._live = live
        self._fold = live.fold
        self._match = live.fold.reader.match
        self._lost = ""
        self._lost_as = CancelReason.SERVER_LOST
        self._ending: Ending | None = None
        self._snapshot_ms = around.clock.now_ms()
        self._is_snapshot_due = False
        self._is_acting = True
        self._delays = 0
        self._recorder = Recorder(
            claim.row,
            live.fold.reader,
            db=around.db,
            write=claim.write,
            streams=around.streams,
            server_name=server_name(region.name, claim.row.id),
        )
        self._hands = Hands(claim, around, region, line=line, match=self._match, on_failed=self._fail)
        self._watch = Watch(claim, around, region, line=line, match=self._match, on_lost=self._lose)

    async def run(self, *, is_resumed: bool) -> None:
        await self._recorder.begin()
        if is_resumed:
            await self._resume()
        else:
            await self._read_stored()  # what its server said while it was set up
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(self._hands.run()), group.create_task(self._watch.run())]
                try:
                    await self._follow()
                finally:
                    for task in beside:
                        task.cancel()
        except BaseExceptionGroup as failed:
            raise _cause(failed) from failed

    async def _resume(self) -> None:
        """Read what was stored so far; what was ordered then was done, or is asked for again."""
        await self._note_deafness()
        self._is_acting = False
        await self._read_stored()
        self._is_acting = True
        if self._ending is None:
            self._hands.take_over()
            _LOG.info("match picked up again", extra=self._about(phase=self._match.phase.value))

    async def _follow(self) -> None:
        clock, keeping_ms = self._around.clock, 0
        while True:
            self._live.woken.clear()
            began_ms = clock.now_ms() - keeping_ms
            await self._read_new()
            await self._pass_time(busy_ms=clock.now_ms() - began_ms)
            if self._lost and self._ending is None:
                await self._end_lost()
            if self._ending is not None:
                await self._hear_last_words()
                await conclude(self._claim, self._around, self._ending, self._recorder)
                return
            kept_ms = clock.now_ms()
            await self._keep()
            free_ms = clock.now_ms()
            await self._wait()
            # Whoever could not reach us while we wrote has done so since, where there was time for it.
            keeping_ms = free_ms - kept_ms if clock.now_ms() - free_ms < LATE_MS else 0

    async def _hear_last_words(self) -> None:
        """Only the plugin knows the MVP of the last round, and its report may come after the log's last line."""
        if self._ending is None or self._ending.result is None or not uses_plugin_match(self._match.settings):
            return
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                while True:
                    await self._live.woken.wait()
                    self._live.woken.clear()
                    await self._read_late()
        except TimeoutError:
            await self._read_late()
        self._ending = Ending(result=msgspec.json.encode(build_result(self._match)))

    async def _read_late(self) -> None:
        entries = await raw_log.read_after(self._around.db, self._live.server_id, self._live.seq, limit=READ_ENTRIES)
        for entry in entries:
            self._fold.take(entry)
            self._live.read(entry.seq)

    async def _wait(self) -> None:
        now_ms = self._around.clock.now_ms()
        alarms_ms = (self._fold.next_deadline_ms(), self._recorder.due_ms(now_ms))
        waits = [max(0, due_ms - now_ms) / 1000 for due_ms in alarms_ms if due_ms is not None]
        if self._around.db.is_shared:
            waits.append(POLL_S)
        try:
            async with asyncio.timeout(min(waits, default=None)):
                await self._live.woken.wait()
        except TimeoutError:
            pass

    # --- reading --------------------------------------------------------------------------------------------------

    async def _read_new(self) -> None:
        while self._ending is None:
            entry = self._live.take()
            if entry is not None:
                self._read([entry])
                continue
            may_have_more = self._live.is_behind or self._around.db.is_shared
            if not may_have_more or not await self._read_stored(limit=READ_ENTRIES):
                return

    async def _read_stored(self, limit: int | None = None) -> int:
        """Read entries from the database, all or at most so many; answers how many."""
        count = 0
        while self._ending is None and (limit is None or count < limit):
            entries = await raw_log.read_after(
                self._around.db, self._live.server_id, self._live.seq, limit=READ_ENTRIES
            )
            if not entries:
                break
            self._read(entries)
            count += len(entries)
        return count

    def _read(self, entries: Sequence[RawEntry]) -> None:
        measures, now_ms = self._around.measures, self._around.clock.now_ms()
        reader = self._fold.reader
        for entry in entries:
            lines, unknown = reader.lines_read, reader.lines_unknown
            if entry.kind == LOG:
                self._watch.heard(entry.received_ms)
            self._hear_late(entry)
            reading = self._fold.take(entry)
            self._live.read(entry.seq)
            measures.fold_s.observe(max(0, now_ms - entry.received_ms) / 1000)
            measures.lines.inc("all", amount=reader.lines_read - lines)
            measures.lines.inc("unknown", amount=reader.lines_unknown - unknown)
            self._note(reading.events)
            self._obey(reading.effects)
            if self._ending is not None:
                return

    def _note(self, events: Iterable[GameEvent]) -> None:
        for event in events:
            match event:
                case MapLoading():
                    self._order(MapLoaded())
                case ServerRestarted():
                    self._lose("it was restarted")
                case _ if isinstance(event, _WORTH_KEEPING):
                    self._is_snapshot_due = True
                case _:
                    pass

    def _obey(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case EndMatch():
                    self._ending = Ending(result=msgspec.json.encode(build_result(self._match)))
                case CancelMatch():
                    self._ending = Ending(
                        reason=effect.reason,
                        missing_players=effect.missing_players,
                        connected_players=effect.connected_players,
                    )
                case _:
                    self._order(effect)

    def _order(self, order: Order) -> None:
        if self._is_acting:
            self._hands.order(order)

    async def _pass_time(self, *, busy_ms: int) -> None:
        """Let alarms fire that are due, unless we ourselves were late: then what forestalls them may be at the door."""
        due_ms, now_ms = self._fold.next_deadline_ms(), self._around.clock.now_ms()
        if self._ending is not None or due_ms is None or due_ms > now_ms:
            return
        if max(now_ms - due_ms, busy_ms) > LATE_MS and self._may_delay():
            await self._note_deafness()
            return
        self._delays = 0
        effects = self._fold.advance(now_ms)
        if effects:
            self._live.changed()
            self._obey(effects)

    def _may_delay(self) -> bool:
        self._delays += 1
        _LOG.warning("alarms of a match were heard late", extra=self._about(delays=self._delays))
        return self._delays <= MAX_DELAYS

    def _hear_late(self, entry: RawEntry) -> None:
        """The same for an entry that came long after an alarm which we slept through: it would fire the alarm."""
        if self._is_acting and self._fold.is_late(entry) and self._may_delay():
            self._fold.sleep_through(entry)
            # No entry before this one says so: whoever reads the match again begins after it.
            self._is_snapshot_due, self._snapshot_ms = True, 0

    async def _note_deafness(self) -> None:
        now_ms = self._around.clock.now_ms()
        await store(self._around.db, self._around.live, self._live.server_id, RESUMED, received_ms=now_ms, body=b"")

    # --- the server -----------------------------------------------------------------------------------------------

    def _lose(self, why: str) -> None:
        self._lost = why
        self._live.woken.set()

    def _fail(self, why: str) -> None:
        self._lost_as = CancelReason.SERVER_FAILED
        self._lose(why)

    async def _end_lost(self) -> None:
        await self._read_stored()  # its last words may have been stored since
        if self._ending is not None:
            return
        self._obey(self._fold.settle())  # it may have said how the match ended, and died
        if self._ending is None:
            _LOG.warning("server lost", extra=self._about(why=self._lost))
            self._fold.cancel(self._lost_as, self._around.clock.now_ms())
            self._ending = Ending(reason=self._lost_as)

    def _about(self, **fields: str | int) -> dict[str, str | int]:
        return {"server_id": self._live.server_id, **fields}

    async def _keep(self) -> None:
        """Write what is new into the match's history, and now and then a snapshot with it."""
        now_ms = self._around.clock.now_ms()
        due_ms = self._recorder.due_ms(now_ms)
        snapshot: list[Statement] = []
        if self._is_snapshot_due and not 0 <= now_ms - self._snapshot_ms < SNAPSHOT_MS:
            row = self._claim.row
            snapshot = snapshots.save(row.id, row.fence, snapshots.Snapshot(self._live.seq, self._fold.to_bytes()))
            self._snapshot_ms, self._is_snapshot_due = now_ms, False
        if snapshot or (due_ms is not None and due_ms <= now_ms):
            await self._recorder.write(now_ms, snapshot)


def _cause(failed: BaseExceptionGroup) -> BaseException:
    """The one error that says what to do next; tasks that fell with it have little to add."""
    leaf = failed.exceptions[0]
    return _cause(leaf) if isinstance(leaf, BaseExceptionGroup) else leaf
