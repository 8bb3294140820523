"""Append entries to the logs of all matches of this process.

What has arrived is committed in one transaction, then applied match by match. While few matches are driven, that begins
with the first post; with many, once per tick, or at once if a post may end a round or precede the end of a map. A post
is answered once it is stored: at once, or later if many matches are driven (`held_answers.py`). A post that has not
been answered is repeated by its server, so nothing is lost if this process dies.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError, RowLockedError
from matchpod.service.match_log.entries import EntryKind, NewEntry, stored_entry
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.held_answers import TICK_S, HeldAnswers, hold_s
from matchpod.service.match_log.live import LocalMatch, LocalMatches
from matchpod.storage.entry_groups import LOCK_ALONE_MS, LOCK_MS, append_group
from matchpod.storage.raw_log import RawEntry

AFTER_ANSWERS_S: Final = 0.03
"""When a tick commits: the posts that follow its answers have arrived by then."""

MAX_GROUP: Final = 1_000
"""Maximum senders of a transaction, so that other writers hardly wait."""

MAX_FOLDING_S: Final = 0.05
"""How long what follows from entries waits at most for others that are being applied, to be written with theirs."""

ANSWERS_AT_ONCE: Final = 50
"""Senders that are answered in one turn of the event loop: each takes some 50 µs."""

REPORTED_ENDS: Final = (b"round_end", b"map_result", b"series_end")
"""What the plugin calls the end of a round, a map or a series: it is not kept waiting."""

_DECIDES: Final = (b' killed "', b"_The_Bomb")
"""Part of the lines that may decide a round."""

Done = Callable[[int | DatabaseError], None]
"""Called with the bytes that the match has stored so far, or with the error: then the sender may be answered."""


_log = logging.getLogger(__name__)


class _Waiting(msgspec.Struct, gc=False):
    server_id: str
    entries: Sequence[NewEntry]
    done: Done
    may_hold: bool
    """The answer may wait longer than the commit."""


_Result = tuple[_Waiting, tuple[list[RawEntry], int] | DatabaseError]
"""What became of entries: as they are stored, with all bytes of the match, or the error."""


class LogWriter:
    """Commits entries, answers their senders and passes them to the runners of their matches."""

    def __init__(
        self,
        db: Database,
        live: LocalMatches,
        turns: FoldTurns,
        *,
        distance_of: Callable[[int], float] = hold_s,
    ) -> None:
        self._db = db
        self._distance_of = distance_of
        self._live = live
        self._turns = turns
        self._held = HeldAnswers()
        self._unread: dict[LocalMatch, None] = {}
        """Matches with entries to be applied, in the order in which they were stored."""
        self._reading: asyncio.Task[None] | None = None
        self._folded: asyncio.Future[None] | None = None
        """Done when what has been stored is applied, while runners wait for it."""
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_due = False
        """True if what waits is written without waiting for the next tick."""

    @property
    def distance_s(self) -> float:
        """The minimum distance between two answers to a server now; 0 if nothing waits."""
        return self._distance_of(len(self._live))

    def add(self, server_id: str, entries: Sequence[NewEntry], done: Done, *, may_hold: bool = False) -> None:
        """Append entries with the next tick, or now if they may end a round or the lines of a map's end may follow.

        With `may_hold`, `done` is called when the answer is due, otherwise after the commit.
        """
        self._waiting.append(_Waiting(server_id, entries, done, may_hold))
        if _may_end_round(entries) or self._may_precede_end(server_id, entries):
            self._begin()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._next_commit_s(loop.time()), self._begin)

    async def append(
        self, server_id: str, entries: Sequence[NewEntry], *, may_wait: bool = False, may_hold: bool = False
    ) -> int:
        """Append entries, after all of this match that wait; return how many bytes the match has stored so far.

        They are written now, or with the next tick if they `may_wait`. With `may_hold`, return when the answer is due.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def done(result: int | DatabaseError) -> None:
            if future.done():
                return
            if isinstance(result, DatabaseError):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.add(server_id, entries, done, may_hold=may_hold)
        if not may_wait:
            self._begin()
        return await future

    async def flush(self, server_id: str) -> None:
        """Commit all that waits of a match."""
        await self.append(server_id, ())

    async def folded(self) -> None:
        """Wait until all that has been stored is applied, at most MAX_FOLDING_S.

        What follows from the posts of a tick is then written in one transaction, not in one for each match.
        """
        if self._reading is None:
            return
        if self._folded is None:
            loop = asyncio.get_running_loop()
            self._folded = loop.create_future()
            loop.call_later(MAX_FOLDING_S, self._end_folding, self._folded)
        await asyncio.shield(self._folded)

    def _end_folding(self, folded: asyncio.Future[None] | None) -> None:
        """Wake all that wait for this future."""
        if folded is not None and not folded.done():
            folded.set_result(None)
        if self._folded is folded:
            self._folded = None

    def _may_precede_end(self, server_id: str, entries: Sequence[NewEntry]) -> bool:
        """True for a kill or a bomb in a round that may end the map: the server sends `Game Over` after our answer."""
        live = self._live.get(server_id)
        return (
            live is not None
            and any(entry.kind == EntryKind.LOG and any(one in entry.body for one in _DECIDES) for entry in entries)
            and live.fold.may_round_end_map
        )

    def _next_commit_s(self, now_s: float) -> float:
        if not self.distance_s:
            return now_s
        return (math.floor((now_s - AFTER_ANSWERS_S) / TICK_S) + 1) * TICK_S + AFTER_ANSWERS_S

    def _begin(self) -> None:
        """Write all that waits. If something is being written, that task goes on with it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_due = True
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="log writer")

    async def _write(self) -> None:
        try:
            while self._is_due:
                group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
                self._is_due = bool(self._waiting)
                await self._store(group)
        finally:
            self._writing = None

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
        """Answer the senders now or later, then pass the entries to their matches."""
        for one, result in results:
            self._answer(one, result)
        for one, result in results:
            self._note_posts(one, is_stored=not isinstance(result, DatabaseError))
            if not isinstance(result, DatabaseError):
                for entry in result[0]:
                    live = self._live.publish(entry)
                    if live is not None and live.idle is not None:
                        self._unread[live] = None
        if self._unread and self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="log reader")

    def _answer(self, one: _Waiting, result: tuple[list[RawEntry], int] | DatabaseError) -> None:
        if one.may_hold and not isinstance(result, DatabaseError) and (distance_s := self.distance_s):
            live = self._live.get(one.server_id)
            if live is not None:
                self._held.hold(live, functools.partial(one.done, result[1]), distance_s)  # without the entries
                return
        try:
            one.done(result if isinstance(result, DatabaseError) else result[1])
        except Exception:  # noqa: BLE001 - one sender must not stop the writer
            _log.exception("sender of an entry could not be told", extra={"server_id": one.server_id})

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
            self._end_folding(self._folded)


def _is_own_post(live: LocalMatch, new: NewEntry) -> bool:
    """True for a log post of the server that plays the match; another one's are not awaited."""
    return new.kind == EntryKind.LOG and new.attempt in ("", live.fold.attempt)


def _may_end_round(entries: Sequence[NewEntry]) -> bool:
    for entry in entries:
        body = entry.body
        if entry.kind == EntryKind.LOG:
            if b"Round_End" in body or b"Game Over" in body:
                return True
        elif entry.kind == EntryKind.REPORT and any(end in body for end in REPORTED_ENDS):
            return True
    return False
