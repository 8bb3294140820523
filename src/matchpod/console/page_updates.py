"""Send changed fragments of pages to all viewers of these pages.

A subject is what a page shows: the wall of an organization, or a match. While a subject has viewers, it is read once
per second, and its changes are rendered once for all viewers. A viewer is the stream of one browser; it follows the
subjects of all pages that are open there. A viewer that reconnects gets the changes that it missed, or all fragments if
those changes are no longer stored. An event is named after its subject, and its id is the position after the event. A
`time` event contains the time of the service, and the names of subjects that could not be read for a while.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from matchpod.core.errors import MatchpodError
from matchpod.service.streams.readers import OpenReaders, StreamReader

MAX_VIEWERS: Final = 5_000
MAX_OF_OWNER: Final = 500
"""Maximum number of streams per owner: an organization, or the overlay of a match."""

_log = logging.getLogger(__name__)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often subjects are read, and how long they are kept without viewers. Times are in seconds."""

    tick_s: float = 1.0
    beat_s: float = 5.0
    """Interval at which `time` events are sent. If three of them are missed, a page reports that it is out of date."""
    kept: int = 60
    """Number of changes stored per subject for viewers that reconnect: about one minute."""
    idle_ticks: int = 15
    """Number of ticks for which a subject without viewers is kept, because pages are reloaded and browsers
    reconnect."""


DEFAULT_PACE: Final = Pace()


class PageSubject(Protocol):
    """The content of a page, rendered as fragments."""

    async def changes(self) -> bytes:
        """Read the subject again; return the fragments that changed since the last call. Pages swap them in by id."""

    def everything(self) -> bytes:
        """Return all current fragments. Pages swap them in by id."""


def swapped(fragment: bytes) -> bytes:
    """Mark a fragment to replace the content of the element with the same id. The id must be its first attribute."""
    start = fragment.index(b' id="')
    return fragment[:start] + b' data-swap="content"' + fragment[start:]


def removed(element_id: str) -> bytes:
    return b'<i id="%s" data-swap="removed"></i>' % element_id.encode()


def inserted(fragment: bytes, *, before: str) -> bytes:
    """Mark a fragment to be inserted before an element; an existing element with its id is moved there."""
    return b'<div data-swap="before" data-target="%s">%s</div>' % (before.encode(), fragment)


def added(fragments: bytes, *, to: str, is_first: bool = False) -> bytes:
    """Mark fragments to be added as the first or last children of an element; existing elements are moved."""
    how = b"first" if is_first else b"last"
    return b'<div data-swap="%s" data-target="%s">%s</div>' % (how, to.encode(), fragments)


def frame(name: str, position: str, content: bytes) -> bytes:
    """Return the event with the changes of a subject."""
    lines = b"".join(b"data: " + line + b"\n" for line in content.splitlines() if line)
    return b"event: %s\nid: %s\n%s\n" % (name.encode(), position.encode(), lines)


class Viewer(StreamReader):
    """The stream of one browser."""

    def __init__(
        self, broadcasts: Broadcasts, owner: str, positions: Mapping[Broadcast, str], gone: Sequence[str]
    ) -> None:
        super().__init__(owner)
        self._broadcasts = broadcasts
        self._numbers = {broadcast: broadcast.number_of(position) for broadcast, position in positions.items()}
        self._gone = b"".join(b"event: gone\ndata: %s\n\n" % name.encode() for name in gone)
        self._beats_at = 0.0
        for broadcast in positions:
            broadcast.viewers.add(self)

    async def next(self, within_s: float) -> bytes | None:
        """Wait up to `within_s` for events, and return them, or empty bytes; None once the stream is closed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not self.is_closed:
            found = self._collect(loop.time())
            if found or loop.time() >= deadline:
                return found
            await self.wait(min(deadline, self._beats_at))
        return None

    def tell_time(self) -> None:
        """Send a `time` event now: a subject that could not be read is up to date again."""
        self._beats_at = 0.0
        self.wake()

    def _collect(self, now_s: float) -> bytes:
        found = [self._gone]
        self._gone = b""
        for broadcast, number in self._numbers.items():
            frames, self._numbers[broadcast] = broadcast.after(number)
            found.append(frames)
        if now_s >= self._beats_at:
            self._beats_at = now_s + self._broadcasts.pace.beat_s
            outdated = "".join(f" {broadcast.name}" for broadcast in self._numbers if not broadcast.is_current(now_s))
            found.append(b"event: time\ndata: %d%s\n\n" % (self._broadcasts.now_ms(), outdated.encode()))
        return b"".join(found)

    def _leave(self) -> None:
        for broadcast in self._numbers:
            broadcast.viewers.discard(self)
        self._broadcasts.readers.discard(self)


class Broadcast:
    """A subject (the content of a page) with its viewers and its latest changes."""

    def __init__(self, broadcasts: Broadcasts, name: str, key: str, subject: PageSubject) -> None:
        self._broadcasts = broadcasts
        self.name = name
        self.key = key
        self.subject = subject
        self.viewers: set[Viewer] = set()
        self._boot = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=broadcasts.pace.kept)
        self._everything: bytes | None = None
        self._task: asyncio.Task[None] | None = None
        self._reading = asyncio.Lock()
        self._read_at: float | None = None

    @property
    def position(self) -> str:
        """The position of a page with the current state of the subject."""
        return f"{self._boot}.{self._number}"

    def number_of(self, position: str) -> int | None:
        """Return the number in a position; None if it is of an earlier broadcast, so all fragments have to be sent."""
        boot, _, number = position.partition(".")
        is_known = boot == self._boot and number.isascii() and number.isdecimal() and len(number) < 16
        return int(number) if is_known else None

    def after(self, number: int | None) -> tuple[bytes, int]:
        """Return the events after a number, and the number of the last of them."""
        if number == self._number:
            return b"", number
        oldest = self._kept[0][0] if self._kept else self._number + 1
        if number is None or number > self._number or number < oldest - 1:
            if self._everything is None:
                self._everything = frame(self.name, self.position, self.subject.everything())
            return self._everything, self._number
        return b"".join(change for kept, change in self._kept if kept > number), self._number

    async def ready(self) -> None:
        """Wait until the subject was read for the first time, and start the task that reads it every second."""
        if self._read_at is None:
            async with self._reading:
                if self._read_at is None:
                    await self.subject.changes()
                    self._read_at = asyncio.get_running_loop().time()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"broadcast {self.key}")

    async def refresh(self) -> None:
        """Read the subject, and send its changes: every second, and immediately after an action has changed it."""
        async with self._reading:
            changed = await self.subject.changes()
            now_s = asyncio.get_running_loop().time()
            was_current, self._read_at = self.is_current(now_s), now_s
            if changed:
                self._publish(changed)
            if not was_current:
                for viewer in self.viewers:
                    viewer.tell_time()

    def is_current(self, now_s: float) -> bool:
        """False if the last successful read was too long ago, so that pages are out of date."""
        return self._read_at is not None and now_s - self._read_at <= self._broadcasts.pace.beat_s

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        idle, pace = 0, self._broadcasts.pace
        while idle < pace.idle_ticks or self.viewers:  # viewers may have connected during the last read
            await asyncio.sleep(pace.tick_s)
            idle = 0 if self.viewers else idle + 1
            try:
                await self.refresh()
            except MatchpodError as exc:  # for example, the database is unavailable; the next tick reads again
                _log.debug("page update failed", extra={"page": self.key, "reason": str(exc)})
            except Exception:  # noqa: BLE001 - otherwise its viewers would wait forever
                _log.exception("page update failed", extra={"page": self.key})
        self._broadcasts.remove(self)

    def _publish(self, changed: bytes) -> None:
        self._number += 1
        self._everything = None
        self._kept.append((self._number, frame(self.name, self.position, changed)))
        for viewer in self.viewers:
            viewer.wake()


class Broadcasts:
    """The broadcasts of all subjects that have viewers, or had viewers until recently."""

    def __init__(self, now_ms: Callable[[], int], pace: Pace = DEFAULT_PACE) -> None:
        self.now_ms = now_ms
        self.pace = pace
        self.readers = OpenReaders(max_readers=MAX_VIEWERS, max_of_org=MAX_OF_OWNER)
        self._broadcasts: dict[str, Broadcast] = {}

    async def find(self, name: str, owner: str, create: Callable[[], PageSubject]) -> Broadcast:
        """Return the broadcast of a subject, started if necessary. Its content is usually at most a second old.

        Subjects of different owners may have the same name.
        """
        key = f"{name} of {owner}"
        while True:
            broadcast = self._broadcasts.get(key)
            if broadcast is None:
                broadcast = self._broadcasts[key] = Broadcast(self, name, key, create())
            try:
                await broadcast.ready()
            except BaseException:
                if not broadcast.viewers:
                    self.remove(broadcast)
                raise
            if self._broadcasts.get(key) is broadcast:
                return broadcast
            broadcast.stop()  # another request has removed it, because it could not read the subject

    async def refresh(self, owner: str, kinds: Collection[str]) -> None:
        """Immediately read those subjects of an owner whose names begin with one of these kinds."""
        ours = [one for key, one in self._broadcasts.items() if key.endswith(f" of {owner}")]
        for broadcast in ours:
            if broadcast.name.partition("/")[0] in kinds:
                await broadcast.refresh()

    def view(self, owner: str, positions: Mapping[Broadcast, str], gone: Sequence[str] = ()) -> Viewer:
        """Return a viewer that first gets the names of the `gone` subjects, then the changes after these positions."""
        self.readers.check(owner)
        viewer = Viewer(self, owner, positions, gone)
        self.readers.add(viewer)
        return viewer

    def remove(self, broadcast: Broadcast) -> None:
        """Stop reading a subject, and remove its broadcast."""
        if self._broadcasts.get(broadcast.key) is broadcast:
            del self._broadcasts[broadcast.key]
        broadcast.stop()

    def close(self) -> None:
        """Close all viewers, and reject new viewers, because the process is stopping."""
        self.readers.close()
        self.forget()

    def forget(self) -> None:
        """Stop reading all subjects, and remove their broadcasts."""
        for broadcast in tuple(self._broadcasts.values()):
            self.remove(broadcast)
