"""Hold the matches that this process drives, for ingest, runners and readers.

A stored entry is passed on in memory, so its bytes are not read back from the database. This is an optimization: if
an inbox is full or an entry is missing, the runner reads the database.
"""

# Who folds? The runner, unless it does nothing but wait; then the log writer.
#
# - Only `LocalMatch.dequeue` and the database give entries to a fold, in the order of their numbers, each once.
# - `LocalMatch.idle` says whose turn it is. The runner sets it when it begins to wait for an alarm, and clears it
#   before it does anything else. Both happen in one event loop: there is no moment for two.
# - While it is set, the writer folds what it has committed (`advance`), and wakes the runner only if there is work:
#   an alarm, a snapshot, history, the end, or an entry that only the database has. So most posts wake no task.
# - While it is not set, the writer only fills the inbox and wakes the runner, which folds before it waits again.
# - If folding raises, `error` keeps it: the runner raises it, and this fold is not used again.
# - A match that another process drives is folded here for readers only, from the database (`remote.py`).

from __future__ import annotations

import asyncio
import logging
import math
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from matchpod.core.views.match_progress import LiveState, MatchProgress
from matchpod.ports import DatabaseError
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.storage.raw_log import RawEntry

MAX_INBOX: Final = 256
"""Maximum entries in an inbox. The runner dequeues them within milliseconds, and reads others from the database."""

RECENT: Final = 32
"""Applied entries that are compared with those stored under the same numbers: more than a failover loses unnoticed."""

Answer = Callable[[], None]
"""Answers a log post."""

_log = logging.getLogger(__name__)


@contextmanager
def logged_if_failed(server_id: str) -> Iterator[None]:
    """Log an error in a view of a match instead of raising it: readers see the rest, and the match goes on."""
    try:
        yield
    except DatabaseError:
        raise
    except Exception:  # noqa: BLE001 - a bug in what is shown must not end what is played
        _log.exception("view of a match failed", extra={"server_id": server_id})


class LogRewoundError(Exception):
    """The database no longer has all entries that were applied: after a failover, a standby lacks the last ones.

    Their numbers are used again: the match has to be loaded again.
    """


class IdleRunner(Protocol):
    """The runner of a match while it waits for entries: others may apply them for it."""

    def apply(self, entry: RawEntry) -> bool:
        """Apply an entry; False once the match is over."""

    def has_work(self) -> bool:
        """True if the runner has to do something about what was applied."""

    def is_due(self, now_ms: int) -> bool:
        """True if the time has come until which it waits."""


class LocalMatch:
    """A match that this process drives: its fold, and an inbox of entries that are not applied yet."""

    def __init__(self, server_id: str, fold: Fold, seq: int) -> None:
        self.server_id = server_id
        self.fold = fold
        self.seq = seq
        """The number of the last applied entry."""
        self.newest_seq = seq
        """The number of the newest entry that this process knows of."""
        self.woken = asyncio.Event()
        self.idle: IdleRunner | None = None
        """Its runner, while that does nothing but wait for entries."""
        self.error: Exception | None = None
        """Why the fold must not be used any longer; the runner raises it."""
        self.lacks_post = False
        """True if the newest log post could not be stored; its server sends it again."""
        self.answered_s = -math.inf
        """When the last post of its server was answered."""
        self.held_until: int | None = None
        """The tick in which the answer that is held is due; None if none is held."""
        self._held: Answer | None = None
        self._inbox: list[RawEntry] = []
        self._received_ms = array("q")
        """When each of the last applied entries was received; numbers of entries have no gaps."""
        self._is_doubtful = False
        """True if another process has stored an entry under a number that was applied."""
        self._seen_seq = seq
        self._state: LiveState | None = None
        self._progress: MatchProgress | None = None

    def enqueue(self, entry: RawEntry) -> None:
        """Queue an entry that was just stored, and wake the runner unless it is idle."""
        self.newest_seq = max(self.newest_seq, entry.seq)
        if len(self._inbox) < MAX_INBOX:
            self._inbox.append(entry)
        if self.idle is None:
            self.woken.set()

    def announce(self, seq: int) -> None:
        """Another process has stored entries up to this number: wake the runner, which reads them."""
        self._is_doubtful = self._is_doubtful or seq <= self.seq
        self.expect(seq)
        if self._is_doubtful:
            self.woken.set()

    def compare(self, seq: int, now_ms: int, *, applied_seq: int) -> None:
        """Compare with the newest number in the database; `applied_seq` was the last applied one before it was read.

        Wake the runner if an entry is missing that was in the database at the last call already: another process has
        stored it. A newer one may be about to be enqueued here. Also if the clock was set.
        """
        if seq < applied_seq:
            self._fail(LogRewoundError(f"entry {applied_seq} of {self.server_id} was applied, the newest is {seq}"))
            return
        self.expect(self._seen_seq)
        self._seen_seq = seq
        if self.idle is not None and self.idle.is_due(now_ms):
            self.woken.set()

    def expect(self, seq: int) -> None:
        """Wake the runner if this number is newer than all known ones: another process has stored it."""
        if seq > self.newest_seq:
            self.newest_seq = seq
            self.woken.set()

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.woken.set()

    def advance(self, turns: FoldTurns) -> bool:
        """Apply queued entries for an idle runner while the turn lasts; False if some are left."""
        runner = self.idle
        if runner is None:
            return True
        try:
            if not turns.advance(self.dequeue, runner.apply):
                return False
            if runner.has_work():
                self.woken.set()
        except Exception as exc:  # noqa: BLE001 - the runner raises it
            self._fail(exc)
        return True

    def dequeue(self) -> RawEntry | None:
        """The next entry if it is queued. If None, the database may still have it: see `is_behind`."""
        while self._inbox:
            if self._inbox[0].seq > self.seq + 1:
                return None  # an earlier one is still being stored, or was stored by another process
            entry = self._inbox.pop(0)
            if entry.seq == self.seq + 1:
                return entry
            if not self.is_applied(entry):
                self._fail(LogRewoundError(f"entry {entry.seq} of {self.server_id} was stored again"))
        return None

    def is_applied(self, entry: RawEntry) -> bool:
        """True if the entry with this number that was applied is this one, as far as that is known."""
        place = len(self._received_ms) - 1 - (self.seq - entry.seq)
        is_known = 0 <= place < len(self._received_ms)
        return not is_known or self._received_ms[place] == entry.received_ms

    def begin_reading(self) -> int:
        """The number from which on to read the database: with the last applied entry, to see that it is still there."""
        self._is_doubtful = False
        return self.seq if self._received_ms else self.seq + 1

    @property
    def received_ms(self) -> int | None:
        """When the last applied entry was received; None if none was applied since the match was loaded."""
        return self._received_ms[-1] if self._received_ms else None

    @property
    def is_behind(self) -> bool:
        """True if a known entry has not been applied yet."""
        return self.newest_seq > self.seq or self._is_doubtful

    def applied(self, entry: RawEntry) -> None:
        self.seq = entry.seq
        self._received_ms.append(entry.received_ms)
        del self._received_ms[:-RECENT]
        self._state = self._progress = None

        if self._held is not None and self.fold.may_map_end:
            self.answer()

    def hold_answer(self, answer: Answer, tick: int) -> None:
        """Hold an answer until a tick, or until the map may end: then the next lines must not wait."""
        self._held, self.held_until = answer, tick

    def answer(self) -> None:
        """Send the answer that is held, if there is one."""
        held, self._held, self.held_until = self._held, None, None
        if held is None:
            return
        self.answered_s = asyncio.get_running_loop().time()
        try:
            held()
        except Exception:  # noqa: BLE001 - one sender must not stop what else is done with the match
            _log.exception("log post not answered", extra={"server_id": self.server_id})

    def state(self) -> LiveState:
        """What callers see of the match; built at most once per applied entry."""
        if self._state is None:
            self._state = self.fold.state()
        return self._state

    def progress(self) -> MatchProgress:
        """Where the match stands; built at most once per applied entry."""
        if self._progress is None:
            self._progress = self.fold.progress()
        return self._progress


class LocalMatches:
    """The matches that this process drives, by server id."""

    def __init__(self) -> None:
        self._matches: dict[str, LocalMatch] = {}

    def add(self, live: LocalMatch) -> None:
        self._matches[live.server_id] = live

    def remove(self, live: LocalMatch) -> None:
        """Unregister a match, unless a later runner has registered the same server again."""
        if self._matches.get(live.server_id) is live:
            del self._matches[live.server_id]
        live.answer()

    def get(self, server_id: str) -> LocalMatch | None:
        """The match of a server, if this process drives it."""
        return self._matches.get(server_id)

    def __len__(self) -> int:
        return len(self._matches)

    def publish(self, entry: RawEntry) -> LocalMatch | None:
        """Pass a stored entry to its match, and return that, if this process drives it."""
        live = self._matches.get(entry.server_id)
        if live is not None:
            live.enqueue(entry)
        return live
