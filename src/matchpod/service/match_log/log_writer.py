"""Append entries to the logs of all matches of this process, in ticks.

The posts of a tick are committed in one transaction; then they are answered, and folded match by match. While few
matches are driven, a tick begins with its first post. With many, ticks have a minimum distance: a game server has one
request in flight and sends in the next what it logged meanwhile, so posts become fewer and larger. A post that has not
been answered is repeated by its server: if this process dies nothing is lost, and if the server dies, its last lines
are lost, up to one tick's worth.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError, RowLockedError
from matchpod.service.match_log.entries import EntryKind, NewEntry, stored_entry
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatch, LocalMatches
from matchpod.storage.entry_groups import LOCK_ALONE_MS, LOCK_MS, append_group
from matchpod.storage.raw_log import RawEntry

FEW_MATCHES: Final = 32
"""Up to this many matches, nothing is held back."""

TICK_S_PER_MATCH: Final = 0.002
"""Distance between two ticks for each match that this process drives."""

MAX_TICK_S: Final = 1.0
"""Longest distance between two ticks: what an overlay shows is that old, and so much of a log is lost with a server."""

MAX_GROUP: Final = 1_000
"""Maximum senders of a transaction, so that other writers hardly wait."""

ANSWERS_AT_ONCE: Final = 50
"""Senders that are answered in one turn of the event loop: each takes some 50 µs."""

Done = Callable[[int | DatabaseError], None]
"""Called after the commit with the bytes that the match has stored so far, or with the error."""


_log = logging.getLogger(__name__)


class _Waiting(msgspec.Struct, gc=False):
    server_id: str
    entries: Sequence[NewEntry]
    done: Done


_Result = tuple[_Waiting, tuple[list[RawEntry], int] | DatabaseError]
"""What became of entries: as they are stored, with all bytes of the match, or the error."""


def tick_distance_s(matches: int) -> float:
    """The minimum distance between two ticks of a process that drives this many matches."""
    return 0.0 if matches <= FEW_MATCHES else min(matches * TICK_S_PER_MATCH, MAX_TICK_S)


class LogWriter:
    """Commits entries, answers their senders and passes them to the runners of their matches."""

    def __init__(
        self,
        db: Database,
        live: LocalMatches,
        turns: FoldTurns,
        *,
        distance_of: Callable[[int], float] = tick_distance_s,
    ) -> None:
        self._db = db
        self._distance_of = distance_of
        self._live = live
        self._turns = turns
        self._unread: dict[LocalMatch, None] = {}
        """Matches with entries to be applied, in the order in which they were stored."""
        self._reading: asyncio.Task[None] | None = None
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._tick_s = -math.inf
        """When the last tick began."""
        self._urgent: set[str] = set()
        """Servers whose entries do not wait for the next tick."""

    @property
    def distance_s(self) -> float:
        """The minimum distance between two ticks now."""
        return self._distance_of(len(self._live))

    def add(self, server_id: str, entries: Sequence[NewEntry], done: Done) -> None:
        """Append entries with the next tick."""
        self._waiting.append(_Waiting(server_id, entries, done))
        if self._timer is None and self._writing is None:
            self._plan()

    async def append(self, server_id: str, entries: Sequence[NewEntry], *, may_wait: bool = False) -> int:
        """Append entries, after all of this match that wait; return how many bytes the match has stored so far.

        They are written now, or with the next tick if they `may_wait`.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def done(result: int | DatabaseError) -> None:
            if future.done():
                return
            if isinstance(result, DatabaseError):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.add(server_id, entries, done)
        if not may_wait:
            self._urgent.add(server_id)
            self._begin()
        return await future

    async def flush(self, server_id: str) -> None:
        """Commit all that waits of a match."""
        await self.append(server_id, ())

    def _plan(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(max(loop.time(), self._next_tick_s()), self._begin)

    def _next_tick_s(self) -> float:
        return self._tick_s + self.distance_s

    def _begin(self) -> None:
        """Write what is due. If something is being written, that task goes on with it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="log writer")

    async def _write(self) -> None:
        try:
            while group := self._next_group():
                await self._store(group)
        finally:
            self._writing = None
            if self._waiting:
                self._plan()

    def _next_group(self) -> list[_Waiting]:
        """Remove and return what has to be written now: all that waits if a tick is due, else only what is urgent."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._next_tick_s() or len(self._waiting) >= MAX_GROUP:
            self._tick_s = now_s
            group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
            self._urgent.intersection_update(one.server_id for one in self._waiting)
        else:
            group = [one for one in self._waiting if one.server_id in self._urgent]
            self._waiting = [one for one in self._waiting if one.server_id not in self._urgent]
            self._urgent.clear()
        return group

    async def _store(self, group: Sequence[_Waiting]) -> None:
        """Commit a group. If that fails, each alone: one may be at fault, and on a full disk small ones may still fit.

        Not if a shared database is unavailable: each would wait for it.
        """
        result = await self._try_commit(group, LOCK_MS)
        if not isinstance(result, DatabaseError):
            for first in range(0, len(result), ANSWERS_AT_ONCE):
                self._finish(result[first : first + ANSWERS_AT_ONCE])
                await asyncio.sleep(0)  # callers wait for a few milliseconds at most
        elif len(group) == 1 or self._is_unavailable(result):
            self._finish([(one, result) for one in group])
        else:
            await self._store_each(group)

    async def _store_each(self, group: Sequence[_Waiting]) -> None:
        """Commit one after the other, and answer each at once. For a row that is locked only the first one waits."""
        locked: dict[str, RowLockedError] = {}
        for number, one in enumerate(group):
            result = locked.get(one.server_id) or await self._try_commit([one], LOCK_ALONE_MS)
            if not isinstance(result, DatabaseError):
                self._finish(result)
                continue
            if self._is_unavailable(result):
                self._finish([(left, result) for left in group[number:]])
                return
            if isinstance(result, RowLockedError):
                locked[one.server_id] = result
            self._finish([(one, result)])

    def _is_unavailable(self, error: DatabaseError) -> bool:
        """True if each further attempt would wait for a shared database."""
        is_unavailable = isinstance(error, DatabaseUnavailableError) and not isinstance(error, RowLockedError)
        return self._db.is_shared and is_unavailable

    async def _try_commit(self, group: Sequence[_Waiting], lock_ms: int) -> list[_Result] | DatabaseError:
        try:
            return await self._commit(group, lock_ms)
        except DatabaseError as exc:
            return exc
        except Exception as exc:  # noqa: BLE001 - the only writer must survive, and its callers need a result
            _log.exception("log writer failed")
            return DatabaseError(f"{type(exc).__name__}: {exc}")

    async def _commit(self, group: Sequence[_Waiting], lock_ms: int) -> list[_Result]:
        rows = [
            (one.server_id, new.kind, new.received_ms, new.headers, new.body, new.attempt)
            for one in group
            for new in one.entries
        ]
        announced = self._driven_elsewhere(group)
        numbers = iter(await append_group(self._db, rows, announced, lock_ms=lock_ms))
        results: list[_Result] = []
        for one in group:
            stored, total = [], 0
            for new in one.entries:
                seq, total = next(numbers)
                stored.append(stored_entry(one.server_id, seq, new))
            results.append((one, (stored, total)))
        return results

    def _driven_elsewhere(self, group: Sequence[_Waiting]) -> set[str]:
        """Servers of a shared database that this process does not drive: another one may."""
        return (
            {one.server_id for one in group if self._live.get(one.server_id) is None} if self._db.is_shared else set()
        )

    def _finish(self, results: Sequence[_Result]) -> None:
        """Answer the senders, then pass the entries to their matches."""
        for one, result in results:
            try:
                one.done(result if isinstance(result, DatabaseError) else result[1])
            except Exception:  # noqa: BLE001 - one sender must not stop the writer
                _log.exception("sender of an entry could not be told", extra={"server_id": one.server_id})
        for one, result in results:
            self._note_posts(one, is_stored=not isinstance(result, DatabaseError))
            if not isinstance(result, DatabaseError):
                for entry in result[0]:
                    live = self._live.publish(entry)
                    if live is not None and live.idle is not None:
                        self._unread[live] = None
        if self._unread and self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="log reader")

    def _note_posts(self, one: _Waiting, *, is_stored: bool) -> None:
        live = self._live.get(one.server_id)
        if live is not None and live.lacks_post is is_stored and any(_is_own_post(live, new) for new in one.entries):
            live.lacks_post = not is_stored

    async def _read(self) -> None:
        """Fold what was stored, match by match: a runner is woken only if it has something to do."""
        try:
            while self._unread:
                await self._turns.next_turn()
                while self._unread:
                    live = next(iter(self._unread))
                    del self._unread[live]
                    if not live.advance(self._turns):
                        self._unread[live] = None  # after the others
                        break
        finally:
            self._reading = None


def _is_own_post(live: LocalMatch, new: NewEntry) -> bool:
    """True for a log post of the server that plays the match; another one's are not awaited."""
    return new.kind == EntryKind.LOG and new.attempt in ("", live.fold.attempt)
