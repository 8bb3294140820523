"""Append entries to the logs of matches.

Waiting entries are committed in one transaction, then applied match by match. While this process drives few matches, a
commit begins when the first entry arrives. With many matches, a commit begins once per tick, or at once if an entry may
end a round or precede the end of a map. A post is answered after it was stored, or later if many matches are driven
(`held_answers.py`). Servers resend unanswered posts, so nothing is lost if this process dies.
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
"""Delay in seconds between the answers at a tick and the next commit. Servers send their next posts within this
time."""

MAX_GROUP: Final = 1_000
"""Maximum number of requests whose entries share a transaction, so that other writers do not wait long."""

MAX_FOLDING_S: Final = 0.05
"""Maximum time in seconds that a runner waits until the entries of other matches are applied, so that the runners'
writes share a transaction."""

ANSWERS_AT_ONCE: Final = 50
"""Maximum number of requests that are answered before other tasks run. An answer takes about 50 µs."""

REPORTED_ENDS: Final = (b"round_end", b"map_result", b"series_end")
"""The plugin's names for the end of a round, a map or a series. Reports with these names are committed at once."""

_DECIDES: Final = (b' killed "', b"_The_Bomb")
"""Texts in log lines about kills and the bomb, which may decide a round."""

Done = Callable[[int | DatabaseError], None]
"""A function that is called when a request may be answered: with the total stored bytes of the match, or with an
error."""


_log = logging.getLogger(__name__)


class _Waiting(msgspec.Struct, gc=False):
    server_id: str
    entries: Sequence[NewEntry]
    done: Done
    may_hold: bool
    """True if the answer may be held after the commit."""


_Result = tuple[_Waiting, tuple[list[RawEntry], int] | DatabaseError]
"""The entries of a request, and its result: the stored entries and the match's total stored bytes, or an error."""


class LogWriter:
    """Commits entries, answers their senders, and passes the entries to the runners of their matches."""

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
        """The matches with entries that the writer has to apply, in the order in which the entries were stored."""
        self._reading: asyncio.Task[None] | None = None
        self._folded: asyncio.Future[None] | None = None
        """A future that is done when all stored entries are applied; None if no runner waits for it."""
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_due = False
        """True if waiting entries are written without waiting for the next tick."""

    @property
    def distance_s(self) -> float:
        """The minimum time in seconds between two answers to a server; 0 if posts are answered at once."""
        return self._distance_of(len(self._live))

    def add(self, server_id: str, entries: Sequence[NewEntry], done: Done, *, may_hold: bool = False) -> None:
        """Append entries at the next commit, or now if they may end a round or precede the end of a map.

        `done` is called after the commit. With `may_hold`, the call may be delayed until an answer to the server is
        due.
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
        """Append entries after all waiting entries of this match; return the total stored bytes of the match.

        The entries are written now or, with `may_wait`, at the next commit. With `may_hold`, the return may be delayed
        until an answer to the server is due.
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
        """Commit all waiting entries of a match."""
        await self.append(server_id, ())

    async def folded(self) -> None:
        """Wait until all stored entries are applied, but at most MAX_FOLDING_S.

        Then the runners' writes that result from these entries share a transaction.
        """
        if self._reading is None:
            return
        if self._folded is None:
            loop = asyncio.get_running_loop()
            self._folded = loop.create_future()
            loop.call_later(MAX_FOLDING_S, self._end_folding, self._folded)
        await asyncio.shield(self._folded)

    def _end_folding(self, folded: asyncio.Future[None] | None) -> None:
        """Wake all runners that wait in `folded` for this future."""
        if folded is not None and not folded.done():
            folded.set_result(None)
        if self._folded is folded:
            self._folded = None

    def _may_precede_end(self, server_id: str, entries: Sequence[NewEntry]) -> bool:
        """True if the entries contain a kill or a bomb event in a round that may end the map.

        The server posts `Game Over` only after this post was answered, so the answer must not be delayed.
        """
        live = self._live.get(server_id)
        return (
            live is not None
            and any(entry.kind == EntryKind.LOG and any(part in entry.body for part in _DECIDES) for entry in entries)
            and live.fold.may_round_end_map
        )

    def _next_commit_s(self, now_s: float) -> float:
        if not self.distance_s:
            return now_s
        return (math.floor((now_s - AFTER_ANSWERS_S) / TICK_S) + 1) * TICK_S + AFTER_ANSWERS_S

    def _begin(self) -> None:
        """Write all waiting entries. If a write is in progress, they are written after it."""
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
        """Commit the entries of a group of requests. If that fails, commit each request alone.

        A single request may have caused the failure, and small entries may still fit on a full disk. If a shared
        database is unavailable, do not retry, because each commit would wait for a timeout.
        """
        result = await self._try_commit(group, LOCK_MS)
        if not isinstance(result, DatabaseError):
            for first in range(0, len(result), ANSWERS_AT_ONCE):
                self._finish(result[first : first + ANSWERS_AT_ONCE])
                await asyncio.sleep(0)  # let other tasks run
        elif len(group) == 1 or self._is_unavailable(result):
            self._finish([(waiting, result) for waiting in group])
        else:
            await self._store_each(group)

    async def _store_each(self, group: Sequence[_Waiting]) -> None:
        """Commit and answer each request alone. For each locked row, only the first request waits for the lock."""
        locked: dict[str, RowLockedError] = {}
        for number, waiting in enumerate(group):
            result = locked.get(waiting.server_id) or await self._try_commit([waiting], LOCK_ALONE_MS)
            if not isinstance(result, DatabaseError):
                self._finish(result)
                continue
            if self._is_unavailable(result):
                self._finish([(left, result) for left in group[number:]])
                return
            if isinstance(result, RowLockedError):
                locked[waiting.server_id] = result
            self._finish([(waiting, result)])

    def _is_unavailable(self, error: DatabaseError) -> bool:
        """True if a shared database is unavailable, so that each further commit would wait for a timeout."""
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
            (waiting.server_id, new.kind, new.received_ms, new.headers, new.body, new.attempt)
            for waiting in group
            for new in waiting.entries
        ]
        announced = self._driven_elsewhere(group)
        numbers = iter(await append_group(self._db, rows, announced, lock_ms=lock_ms))
        results: list[_Result] = []
        for waiting in group:
            stored, total = [], 0
            for new in waiting.entries:
                seq, total = next(numbers)
                stored.append(stored_entry(waiting.server_id, seq, new))
            results.append((waiting, (stored, total)))
        return results

    def _driven_elsewhere(self, group: Sequence[_Waiting]) -> set[str]:
        """Return the servers whose matches another process may drive, so that the process has to be notified."""
        if not self._db.is_shared:
            return set()
        return {waiting.server_id for waiting in group if self._live.get(waiting.server_id) is None}

    def _finish(self, results: Sequence[_Result]) -> None:
        """Answer the senders now, or when an answer is due, and pass the entries to their matches."""
        for waiting, result in results:
            self._answer(waiting, result)
        for waiting, result in results:
            self._note_posts(waiting, is_stored=not isinstance(result, DatabaseError))
            if not isinstance(result, DatabaseError):
                for entry in result[0]:
                    live = self._live.publish(entry)
                    if live is not None and live.idle is not None:
                        self._unread[live] = None
        if self._unread and self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="log reader")

    def _answer(self, waiting: _Waiting, result: tuple[list[RawEntry], int] | DatabaseError) -> None:
        if waiting.may_hold and not isinstance(result, DatabaseError) and (distance_s := self.distance_s):
            live = self._live.get(waiting.server_id)
            if live is not None:
                answer = functools.partial(waiting.done, result[1])  # the closure must not keep the entries in memory
                self._held.hold(live, answer, distance_s)
                return
        try:
            waiting.done(result if isinstance(result, DatabaseError) else result[1])
        except Exception:  # noqa: BLE001 - an error of one sender must not stop the writer
            _log.exception("post could not be answered", extra={"server_id": waiting.server_id})

    def _note_posts(self, waiting: _Waiting, *, is_stored: bool) -> None:
        live = self._live.get(waiting.server_id)
        if live is None or live.lacks_post is not is_stored:
            return
        if any(_is_own_post(live, new) for new in waiting.entries):
            live.lacks_post = not is_stored

    async def _read(self) -> None:
        """Apply stored entries match by match for idle runners. A runner is woken only if it has work."""
        try:
            while self._unread:
                await self._turns.next_turn()
                while self._unread:
                    live = next(iter(self._unread))
                    del self._unread[live]
                    if not live.advance(self._turns):
                        self._unread[live] = None  # at the end: the other matches have their turns first
                        break
        finally:
            self._reading = None
            self._end_folding(self._folded)


def _is_own_post(live: LocalMatch, new: NewEntry) -> bool:
    """True for a log post of the server on which the match is currently played."""
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
