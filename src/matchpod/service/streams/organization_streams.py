"""Stream the events of an organization's matches to readers: in order, each event once.

The position of a reader is the number of the last event that it got. The events of an organization are stored in the
order of their numbers. So a process polls for events after the newest known event, once for all its readers: every
second if another process may write, otherwise right after a write. A reader that is further behind reads the database
itself.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Final

from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.fair_turns import FairTurns, streams_of
from matchpod.service.streams import organization_event_lines
from matchpod.service.streams.channels import PAGE, Channel, StreamItem
from matchpod.service.streams.readers import OpenReaders, PollPace, StreamReader
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage import organization_events

EVENT_RING: Final = 1_000
"""Minimum number of events in a full ring. A thousand matches cause about a thousand events per minute. The maximum is
twice EVENT_RING, about 1 MB per organization with readers."""

_log = logging.getLogger(__name__)


class OrganizationReader(StreamReader):
    """A reader of an organization's events. It does not end by itself, because there are always new events."""

    def __init__(self, streams: OrganizationStreams, db: Database, channel: Channel, org_id: str) -> None:
        super().__init__(org_id)
        self._streams = streams
        self._db = db
        self._channel = channel
        self._seq = 0
        self._opening = b""
        channel.subscribers.add(self)

    def begin(self, newest: int, after: int | None) -> None:
        """Set the position to `after`. If None or unknown, begin after the newest event, and first send its number."""
        self._seq = newest if after is None else min(after, newest)
        if after is None or after > newest:
            self._opening = StreamItem(newest, organization_event_lines.POSITION).frame()

    def rewind(self, _: Channel, seq: int) -> None:
        """Go back to the number `seq`, because later events were lost, and send this number first."""
        if self._seq > seq:
            self._seq = seq
            self._opening = StreamItem(seq, organization_event_lines.POSITION).frame()

    async def next(self, within_s: float) -> bytes | None:
        """Return the next frames; empty if there are no events after `within_s`, None once the reader is closed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not self.is_closed:
            if self._opening:
                opening, self._opening = self._opening, b""
                return opening
            if self._seq < self._channel.newest:
                frames = await self._next_frames(deadline)
                if frames:
                    return frames
            else:
                await self.wait(deadline)
            if loop.time() >= deadline:
                return b""
        return None

    async def _next_frames(self, deadline: float) -> bytes:
        after = self._seq
        items = self._channel.after(after, PAGE)
        if items is None:
            try:
                read = partial(organization_events.read_after, self._db, self.org_id, after, limit=PAGE)
                stored = await self._streams.fair_turns.run(streams_of(self.org_id), read)
            except DatabaseUnavailableError:
                stored = []
            items = [StreamItem(seq, line) for seq, line in stored]
        if self._seq != after:
            return b""  # the reader was rewound during the read
        if not items:
            await self.wait(min(deadline, asyncio.get_running_loop().time() + self._streams.pace.retry_s))
            return b""
        frames = [item.frame() for item in items]
        first = items[0].seq
        if first > after + 1:  # deleted after their retention time
            frames.insert(0, StreamItem(first - 1, organization_event_lines.gap(after + 1, first - 1)).frame())
        self._seq = items[-1].seq
        return b"".join(frames)

    def _leave(self) -> None:
        self._streams.remove(self)


class OrganizationStreams:
    """The streams of the organizations that have readers in this process."""

    def __init__(
        self, *, db: Database, readers: OpenReaders, metrics: Metrics, fair_turns: FairTurns, pace: PollPace
    ) -> None:
        self.pace = pace
        self.fair_turns = fair_turns
        self._db = db
        self._readers = readers
        self._metrics = metrics
        self._channels: dict[str, Channel] = {}
        self._woken = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Read new events soon, because this process has stored events. Only reduces latency."""
        self._woken.set()

    @unavailable_on_outage
    async def open(self, org_id: str, after: int | None) -> OrganizationReader:
        """Return a reader of the events after the number `after`. If it is None or unknown, only of new events."""
        self._readers.check(org_id)
        channel = self._channels.setdefault(org_id, Channel(EVENT_RING))
        reader = OrganizationReader(self, self._db, channel, org_id)
        self._readers.add(reader)
        try:
            known = channel.newest
            newest = await organization_events.newest(self._db, org_id)
            if not channel.is_current:
                channel.catch_up(newest)
            elif newest < known:
                await self._read_on(org_id, channel)
            reader.begin(newest, after)
        except BaseException:
            reader.close()
            raise
        if self._poller is None and not reader.is_closed:
            self._poller = asyncio.create_task(self._poll_forever(), name="stream poller of organizations")
        return reader

    def remove(self, reader: OrganizationReader) -> None:
        """Remove a reader, its channel if it has no other readers, and the poller if there are no channels."""
        self._readers.discard(reader)
        channel = self._channels[reader.org_id]
        channel.subscribers.discard(reader)
        if not channel.subscribers:
            del self._channels[reader.org_id]
        if not self._channels and self._poller is not None:
            self._poller.cancel()
            self._poller = None

    async def _poll_forever(self) -> None:
        while True:
            await self._pause()
            try:
                await self._poll()
            except DatabaseError as exc:
                _log.debug("stream poll failed", extra={"reason": str(exc)})
            except Exception:  # noqa: BLE001 - otherwise the readers would wait forever
                _log.exception("stream poll failed")
                self._metrics.crashes.inc("streams")

    async def _pause(self) -> None:
        if self._db.is_shared:
            await asyncio.sleep(self.pace.poll_s)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self.pace.check_s):
                await self._woken.wait()
            await asyncio.sleep(self.pace.gather_s)
        self._woken.clear()

    async def _poll(self) -> None:
        newest = await organization_events.newest_of(self._db, list(self._channels))
        for org_id, channel in tuple(self._channels.items()):
            if channel.is_current and channel.newest != newest.get(org_id, 0):
                await self._read_on(org_id, channel)

    async def _read_on(self, org_id: str, channel: Channel) -> None:
        await channel.read_on(partial(organization_events.read_after, self._db, org_id, limit=PAGE))
