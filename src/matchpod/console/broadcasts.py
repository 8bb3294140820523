"""Send what changes on a page to everyone who looks at it.

A subject is what a page shows: the wall of an organization, or a match. While it has viewers it is read once per
second, and what has changed is rendered once, for all of them. A viewer that reconnects gets the changes that it
missed, or all fragments if they are no longer known.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from matchpod.core.errors import MatchpodError
from matchpod.service.history.stream_readers import OpenReaders, StreamReader

TICK_S: Final = 1.0
MAX_VIEWERS: Final = 5_000
MAX_OF_OWNER: Final = 500
"""Open pages of one organization, and of the overlay of one match."""
MAX_KEPT: Final = 60
"""Changes that are kept for viewers that reconnect: about a minute."""
IDLE_TICKS: Final = 15
"""A subject without viewers is kept this long: pages are loaded again, and browsers reconnect."""

_log = logging.getLogger(__name__)


class Subject(Protocol):
    """What a page shows."""

    async def changes(self) -> bytes:
        """Read again; return the fragments that changed since the last call, to be swapped in by their ids."""

    def everything(self) -> bytes:
        """Return all fragments as they are now, to be swapped in by their ids."""


def swapped(fragment: bytes) -> bytes:
    """Return a fragment that replaces the element with the same id; the id must be its first attribute."""
    start = fragment.index(b' id="')
    return fragment[:start] + b' hx-swap-oob="true"' + fragment[start:]


def frame(number: str, content: bytes) -> bytes:
    """Return an event of a stream."""
    lines = b"".join(b"data: " + line + b"\n" for line in content.splitlines() if line)
    return b"id: " + number.encode() + b"\n" + lines + b"\n"


class Viewer(StreamReader):
    """The stream of one open page."""

    def __init__(self, broadcast: Broadcast, owner: str, number: int | None) -> None:
        super().__init__(owner)
        self._broadcast = broadcast
        self._number = number
        broadcast.viewers.add(self)

    async def next(self, within_s: float) -> bytes | None:
        """The next changes; empty if there are none after `within_s`, None once it is closed."""
        deadline = asyncio.get_running_loop().time() + within_s
        while not self.is_closed:
            found, self._number = self._broadcast.after(self._number)
            if found:
                return found
            if asyncio.get_running_loop().time() >= deadline:
                return b""
            await self.wait(deadline)
        return None

    def _leave(self) -> None:
        self._broadcast.leave(self)


class Broadcast:
    """A subject and its viewers."""

    def __init__(self, broadcasts: Broadcasts, key: str, subject: Subject) -> None:
        self._broadcasts = broadcasts
        self.key = key
        self.subject = subject
        self.viewers: set[Viewer] = set()
        self._boot = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=MAX_KEPT)
        self._everything: bytes | None = None
        self._task: asyncio.Task[None] | None = None
        self._reading = asyncio.Lock()
        self._is_read = False

    @property
    def position(self) -> str:
        """The position of a page that shows the subject as it is now."""
        return f"{self._boot}.{self._number}"

    def number_of(self, position: str) -> int | None:
        """The number in a position; None if it is from an earlier time, and everything has to be sent."""
        boot, _, number = position.partition(".")
        is_known = boot == self._boot and number.isascii() and number.isdecimal() and len(number) < 16
        return int(number) if is_known else None

    def after(self, number: int | None) -> tuple[bytes, int]:
        """The frames after a number, and the new number."""
        if number == self._number:
            return b"", number
        oldest = self._kept[0][0] if self._kept else self._number + 1
        if number is None or number > self._number or number < oldest - 1:
            if self._everything is None:
                self._everything = frame(self.position, self.subject.everything())
            return self._everything, self._number
        return b"".join(one for kept, one in self._kept if kept > number), self._number

    async def ready(self) -> None:
        """Read the subject, unless it is being read every second already; then read it every second."""
        if not self._is_read:
            async with self._reading:
                if not self._is_read:
                    await self.subject.changes()
                    self._is_read = True
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"broadcast {self.key}")

    async def refresh(self) -> None:
        """Read the subject now, and send what has changed: something was just done to it."""
        async with self._reading:
            changed = await self.subject.changes()
            if changed:
                self._publish(changed)

    def leave(self, viewer: Viewer) -> None:
        """Remove a viewer."""
        self.viewers.discard(viewer)
        self._broadcasts.readers.discard(viewer)

    def stop(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        idle = 0
        while idle < IDLE_TICKS or self.viewers:  # one may have come during the last reading
            await asyncio.sleep(TICK_S)
            idle = 0 if self.viewers else idle + 1
            try:
                await self.refresh()
            except MatchpodError as exc:  # an outage of the database; try again
                _log.debug("page not updated", extra={"page": self.key, "reason": str(exc)})
            except Exception:  # noqa: BLE001 - otherwise its viewers would wait forever
                _log.exception("page not updated", extra={"page": self.key})
        self._broadcasts.remove(self)

    def _publish(self, changed: bytes) -> None:
        self._number += 1
        self._everything = None
        self._kept.append((self._number, frame(self.position, changed)))
        for viewer in self.viewers:
            viewer.wake()


class Broadcasts:
    """All subjects that are being viewed."""

    def __init__(self) -> None:
        self.readers = OpenReaders(max_readers=MAX_VIEWERS, max_of_org=MAX_OF_OWNER)
        self._broadcasts: dict[str, Broadcast] = {}

    async def find(self, key: str, create: Callable[[], Subject]) -> Broadcast:
        """Return the broadcast of a subject, which is up to date within a second; begin it if there is none."""
        while True:
            broadcast = self._broadcasts.get(key)
            if broadcast is None:
                broadcast = self._broadcasts[key] = Broadcast(self, key, create())
            try:
                await broadcast.ready()
            except BaseException:
                if not broadcast.viewers:
                    self.remove(broadcast)
                raise
            if self._broadcasts.get(key) is broadcast:
                return broadcast
            broadcast.stop()  # it was removed meanwhile, because another request could not read it

    def view(self, broadcast: Broadcast, owner: str, position: str) -> Viewer:
        """Return a viewer that gets what changed after a position."""
        self.readers.check(owner)
        viewer = Viewer(broadcast, owner, broadcast.number_of(position))
        self.readers.add(viewer)
        return viewer

    def remove(self, broadcast: Broadcast) -> None:
        """Stop reading a subject, and forget it."""
        if self._broadcasts.get(broadcast.key) is broadcast:
            del self._broadcasts[broadcast.key]
        broadcast.stop()

    def close(self) -> None:
        """Close all viewers and accept no new ones: the process is stopping."""
        self.readers.close()
        self.forget()

    def forget(self) -> None:
        """Stop reading all subjects, and forget them."""
        for broadcast in tuple(self._broadcasts.values()):
            self.remove(broadcast)
