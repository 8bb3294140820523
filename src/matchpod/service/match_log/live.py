"""Keep the matches that this process drives in memory, for ingest, runners and readers.

Stored entries are passed to their runners in memory, as an optimization. If an inbox is full or an entry is missing,
the runner reads the entries from the database.
"""

# The runner applies entries to the fold. While the runner only waits, the log writer applies them.
#
# - A fold gets entries only from `LocalMatch.dequeue` and from the database, in the order of their numbers, each once.
# - `LocalMatch.idle` determines who may apply entries. The runner sets it when it begins to wait for an alarm, and
#   clears it before it does anything else. Runner and writer share one event loop, so they never apply entries
#   concurrently.
# - While `idle` is set, the writer applies the entries that it has committed (`advance`). It wakes the runner only if
#   there is work: an alarm, a snapshot, history, the end, or an entry that is only in the database. So most posts wake
#   no task.
# - While `idle` is not set, the writer only appends to the inbox and wakes the runner, which applies the entries before
#   it waits again.
# - If applying an entry raises an error, the error is stored in `error`. The runner raises it, and the fold is not used
#   any longer.
# - Matches that other processes drive are folded from the database, for readers only (`remote.py`).

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
"""Maximum number of entries in an inbox. Entries are dequeued within milliseconds. The runner reads entries that did
not fit from the database."""

RECENT: Final = 32
"""Number of applied entries whose receive time is remembered, to detect that their numbers were used again after a
database failover. A failover that goes unnoticed loses fewer than RECENT entries."""

Answer = Callable[[], None]
"""A function that answers a log post."""

_log = logging.getLogger(__name__)


@contextmanager
def logged_if_failed(server_id: str) -> Iterator[None]:
    """Log an error in a view of a match instead of raising it, so that other views and the match itself still work."""
    try:
        yield
    except DatabaseError:
        raise
    except Exception:  # noqa: BLE001 - a bug in a view must not end the match
        _log.exception("match view could not be built", extra={"server_id": server_id})


class LogRewoundError(Exception):
    """The database has lost applied entries, because it has failed over to a standby that did not have them yet.

    New entries get the numbers of the lost entries, so the match has to be reloaded.
    """


class IdleRunner(Protocol):
    """The runner of a match while it waits for entries. While it waits, the log writer may apply entries for it."""

    def apply(self, entry: RawEntry) -> bool:
        """Apply an entry. Return False once the match is over."""

    def has_work(self) -> bool:
        """True if the runner has to act on the applied entries."""

    def is_due(self, now_ms: int) -> bool:
        """True if the time at which the runner must act next has come."""


class LocalMatch:
    """A match that this process drives: its fold, and an inbox of entries that are not applied yet."""

    def __init__(self, server_id: str, fold: Fold, seq: int) -> None:
        self.server_id = server_id
        self.fold = fold
        self.seq = seq
        """The number of the last applied entry."""
        self.newest_seq = seq
        """The number of the newest stored entry that this process knows of."""
        self.woken = asyncio.Event()
        self.idle: IdleRunner | None = None
        """The runner of the match while it only waits; None otherwise."""
        self.error: Exception | None = None
        """An error that the runner must raise. The fold must no longer be used."""
        self.lacks_post = False
        """True if the newest log post could not be stored, so that the server will resend it."""
        self.answered_s = -math.inf
        """When the server's last log post was answered, in event loop time."""
        self.held_until: int | None = None
        """The tick at which the held answer is due; None if no answer is held."""
        self._held: Answer | None = None
        self._inbox: list[RawEntry] = []
        self._received_ms = array("q")
        """The receive times of the last RECENT applied entries, whose numbers are consecutive."""
        self._is_doubtful = False
        """True if another process has announced an entry with a number that was already applied."""
        self._seen_seq = seq
        self._state: LiveState | None = None
        self._progress: MatchProgress | None = None

    def enqueue(self, entry: RawEntry) -> None:
        """Queue an entry that was just stored, and wake the runner. (For an idle runner, the log writer applies it.)"""
        self.newest_seq = max(self.newest_seq, entry.seq)
        if len(self._inbox) < MAX_INBOX:
            self._inbox.append(entry)
        if self.idle is None:
            self.woken.set()

    def announce(self, seq: int) -> None:
        """Record that another process has stored entries up to this number, and wake the runner to read them."""
        self._is_doubtful = self._is_doubtful or seq <= self.seq
        self.expect(seq)
        if self._is_doubtful:
            self.woken.set()

    def compare(self, seq: int, now_ms: int, *, applied_seq: int) -> None:
        """Compare with `seq`, the newest number in the database. `applied_seq` was the last applied before the read.

        Wake the runner if it misses an entry that was in the database at the previous call: another process must have
        stored that entry. (Newer entries may still be enqueued by this process.) Also wake the runner if it must act
        now, in case the clock was set.
        """
        if seq < applied_seq:
            self._fail(LogRewoundError(f"entry {applied_seq} of {self.server_id} was applied, the newest is {seq}"))
            return
        self.expect(self._seen_seq)
        self._seen_seq = seq
        if self.idle is not None and self.idle.is_due(now_ms):
            self.woken.set()

    def expect(self, seq: int) -> None:
        """Wake the runner if the entry with this number is unknown, because another process has stored it."""
        if seq > self.newest_seq:
            self.newest_seq = seq
            self.woken.set()

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.woken.set()

    def advance(self, turns: FoldTurns) -> bool:
        """Apply queued entries for an idle runner while the turn lasts. False if entries are left."""
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
        """Return the next entry; None if it is not in the inbox. If `is_behind`, the database may have it."""
        while self._inbox:
            if self._inbox[0].seq > self.seq + 1:
                return None  # a previous entry is still being stored, or another process stored it
            entry = self._inbox.pop(0)
            if entry.seq == self.seq + 1:
                return entry
            if not self.is_applied(entry):
                self._fail(LogRewoundError(f"entry {entry.seq} of {self.server_id} was stored again"))
        return None

    def is_applied(self, entry: RawEntry) -> bool:
        """True if this entry was applied, or if it is no longer known which entry was applied under its number."""
        place = len(self._received_ms) - 1 - (self.seq - entry.seq)
        is_known = 0 <= place < len(self._received_ms)
        return not is_known or self._received_ms[place] == entry.received_ms

    def begin_reading(self) -> int:
        """Return the first number to read: `seq`, to compare it, or the next if none was applied since the load."""
        self._is_doubtful = False
        return self.seq if self._received_ms else self.seq + 1

    @property
    def received_ms(self) -> int | None:
        """When the last applied entry was received; None if no entry was applied since the match was loaded."""
        return self._received_ms[-1] if self._received_ms else None

    @property
    def is_behind(self) -> bool:
        """True if the database has an entry that is not applied, or if the last applied entry must be compared."""
        return self.newest_seq > self.seq or self._is_doubtful

    def applied(self, entry: RawEntry) -> None:
        self.seq = entry.seq
        self._received_ms.append(entry.received_ms)
        del self._received_ms[:-RECENT]
        self._state = self._progress = None

        if self._held is not None and self.fold.may_map_end:
            self.answer()

    def hold_answer(self, answer: Answer, tick: int) -> None:
        """Hold an answer until a tick. Send it earlier if the map may end: then the next lines are urgent."""
        self._held, self.held_until = answer, tick

    def answer(self) -> None:
        """Send the held answer, if there is one."""
        held, self._held, self.held_until = self._held, None, None
        if held is None:
            return
        self.answered_s = asyncio.get_running_loop().time()
        try:
            held()
        except Exception:  # noqa: BLE001 - an error of a sender must not affect the match
            _log.exception("log post not answered", extra={"server_id": self.server_id})

    def state(self) -> LiveState:
        """Return the state of the match as callers see it. It is built at most once per applied entry."""
        if self._state is None:
            self._state = self.fold.state()
        return self._state

    def progress(self) -> MatchProgress:
        """Return the progress of the match. It is built at most once per applied entry."""
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
        """Unregister a match, unless a later runner has registered the same server."""
        if self._matches.get(live.server_id) is live:
            del self._matches[live.server_id]
        live.answer()

    def get(self, server_id: str) -> LocalMatch | None:
        """Return the match of a server; None if this process does not drive it."""
        return self._matches.get(server_id)

    def __len__(self) -> int:
        return len(self._matches)

    def publish(self, entry: RawEntry) -> LocalMatch | None:
        """Pass a stored entry to its match, and return the match; None if this process does not drive it."""
        live = self._matches.get(entry.server_id)
        if live is not None:
            live.enqueue(entry)
        return live
