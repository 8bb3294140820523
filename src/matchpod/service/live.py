"""Which matches does this process follow, and how do they stand? The meeting point of ingest, runners and readers.

An entry that was just stored is handed over here, so that its bytes are not read back from the database. Nothing
depends on that: where an inbox was full or has a hole, the runner reads the database instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import msgspec

from matchpod.core.result import live_match
from matchpod.service.folding import Fold
from matchpod.storage.raw_log import RawEntry

MAX_INBOX: Final = 256
"""Entries that wait for a runner; it takes them within milliseconds, and what does not fit is in the database."""


class LiveMatch:
    """A match that this process follows: its state, and what came for it since."""

    def __init__(self, server_id: str, fold: Fold, seq: int) -> None:
        self.server_id = server_id
        self.fold = fold
        self.seq = seq
        """The last entry that was read."""
        self.newest_seq = seq
        """The newest entry that this process knows of."""
        self.woken = asyncio.Event()
        self._inbox: deque[RawEntry] = deque()
        self._view: bytes | None = None

    def offer(self, entry: RawEntry) -> None:
        """Here is an entry that was just stored."""
        self.newest_seq = max(self.newest_seq, entry.seq)
        if len(self._inbox) < MAX_INBOX:
            self._inbox.append(entry)
        self.woken.set()

    def take(self) -> RawEntry | None:
        """The next entry, if it is at hand; None does not say that there is none."""
        while self._inbox:
            if self._inbox[0].seq > self.seq + 1:
                return None  # one before it is still under way, or was stored by another process
            entry = self._inbox.popleft()
            if entry.seq == self.seq + 1:
                return entry
        return None

    @property
    def is_behind(self) -> bool:
        """True when an entry is known that was not read."""
        return self.newest_seq > self.seq

    def read(self, seq: int) -> None:
        """The entry of this number was read."""
        self.seq = seq
        self._view = None

    def changed(self) -> None:
        """The match moved by time alone."""
        self._view = None

    def view(self) -> bytes:
        """The live object as JSON."""
        if self._view is None:
            self._view = msgspec.json.encode(live_match(self.fold.reader.match))
        return self._view


class LiveMatches:
    """The matches that this process follows, by server."""

    def __init__(self) -> None:
        self._matches: dict[str, LiveMatch] = {}

    def add(self, live: LiveMatch) -> None:
        """Begin to follow a match."""
        self._matches[live.server_id] = live

    def remove(self, live: LiveMatch) -> None:
        """Follow it no longer; another runner's entry for the same server stays."""
        if self._matches.get(live.server_id) is live:
            del self._matches[live.server_id]

    def get(self, server_id: str) -> LiveMatch | None:
        """The match, if this process follows it."""
        return self._matches.get(server_id)

    def offer(self, entry: RawEntry) -> None:
        """Hand an entry that was just stored to whoever follows its match here."""
        live = self._matches.get(entry.server_id)
        if live is not None:
            live.offer(entry)
