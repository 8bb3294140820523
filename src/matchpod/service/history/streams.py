"""How does a reader get what happens on a map while it happens? In the order of the timeline, each item once.

A reader is a number, the last item he got. He joins the channel of the map first and then learns what the database
has, so nothing that is stored in between is missed. What the channel still holds comes from there, the rest from the
database, page by page. Nothing depends on being told: each channel looks into the database now and then, and every
second where another process may be the one that writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from matchpod.core.errors import UnavailableError
from matchpod.ports import Database, DatabaseAwayError, DatabaseError
from matchpod.service.availability import unavailable_when_away
from matchpod.service.history.stream_channels import Channel, Frame
from matchpod.service.live import LiveMatches
from matchpod.service.measures import Measures
from matchpod.storage import history, map_events
from matchpod.storage.history import MapRow

MAX_READERS: Final = 10_000
"""Of one process: each has a connection and a few kilobytes, and the files that may be open are 65,536."""
FULL_RETRY_S: Final = 5
"""Streams are long: a place is not free at once."""
PAGE: Final = 200
"""Items sent at once, some 60 KB: what a reader who does not read makes us hold beside the connection's own buffer."""
POLL_S: Final = 1.0
"""How late a reader hears of what another process stored."""
CHECK_TURNS: Final = 5
"""Every how many polls it is asked whether the map is over, and what is followed here is compared at all."""
AWAY_PAUSE_S: Final = 1.0
"""Between two tries of a reader while the database is away."""

_log = logging.getLogger(__name__)


class _Place:
    """Where a reader is on one map."""

    __slots__ = ("channel", "seq")

    def __init__(self, channel: Channel, seq: int) -> None:
        self.channel = channel
        self.seq = seq


class Reader:
    """One stream: the maps it is of, and how far it got on each. To be closed by whoever opened it."""

    def __init__(self, streams: Streams, db: Database, places: Sequence[_Place], *, names_maps: bool) -> None:
        self.is_over = False
        """True when everything was given and nothing more will come."""
        self.is_closed = False
        self._streams = streams
        self._db = db
        self._places = places
        self._names_maps = names_maps
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._when_closed: Callable[[], None] | None = None
        for place in places:
            place.channel.listeners.add(self)

    @property
    def channels(self) -> list[Channel]:
        """The channels it listens to."""
        return [place.channel for place in self._places]

    @property
    def has_everything(self) -> bool:
        """True when nothing is left to give, now or later."""
        return all(place.channel.is_complete and place.seq >= place.channel.newest for place in self._places)

    async def next(self, within_s: float) -> bytes | None:
        """The frames that come next; empty when none came within the time, None when the stream is at its end."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not self.is_closed:
            behind = self._behind()
            if behind is not None:
                frames = behind.channel.after(behind.seq, PAGE)
                if frames is None:
                    frames = await self._read(behind, deadline)
                if frames:
                    return self._give(behind, frames)
            elif self.has_everything:
                self.is_over = True
                return None
            else:
                await self._wait(deadline)
            if loop.time() >= deadline:
                return b""
        return None

    def wake(self) -> None:
        """Look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """Let go of everything; `next` answers None from now on. Closing twice changes nothing."""
        if not self.is_closed:
            self.is_closed = True
            self._streams.leave(self)
            self._cancel_alarm()
            self.wake()
            if self._when_closed is not None:
                self._when_closed()

    def when_closed(self, act: Callable[[], None]) -> None:
        """Do this when somebody closes it."""
        self._when_closed = act

    def _behind(self) -> _Place | None:
        for place in self._places:
            if place.seq < place.channel.newest:
                return place
        return None

    async def _read(self, place: _Place, deadline: float) -> Sequence[Frame]:
        newest = place.channel.newest
        try:
            stored = await map_events.read_after(self._db, place.channel.map_id, place.seq, limit=PAGE)
        except DatabaseAwayError:
            await self._wait(min(deadline, asyncio.get_running_loop().time() + AWAY_PAUSE_S))
            return ()
        if not stored:
            place.seq = newest  # it was kept long enough, and is deleted
        return [Frame(seq, line) for seq, line in stored]

    def _give(self, place: _Place, frames: Sequence[Frame]) -> bytes:
        place.seq = frames[-1].seq
        if not self._names_maps:
            return b"".join([frame.alone() for frame in frames])
        # The id says how far every map got: one that was over can go on when a round of it is restored.
        index = self._places.index(place)
        seqs = [one.seq for one in self._places]
        before = b"id: " + b"".join([b"%d." % seq for seq in seqs[:index]])
        last = max((number for number, seq in enumerate(seqs) if seq), default=index)
        after = b"".join([b".%d" % seq for seq in seqs[index + 1 : last + 1]])
        named = place.channel.place
        return b"".join([b"%b%d%b%b" % (before, frame.seq, after, frame.among(named)) for frame in frames])

    async def _wait(self, deadline: float) -> None:
        """Until there may be something new, or it may be time; either can be a false alarm."""
        loop = asyncio.get_running_loop()
        if self._alarm is None or self._alarm.when() > deadline:
            # One that rings too early costs less than a new one each time.
            self._cancel_alarm()
            self._alarm = loop.call_at(deadline, self._ring)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


class Streams:
    """All streams of this process."""

    def __init__(
        self, *, db: Database, live: LiveMatches, measures: Measures | None = None, max_readers: int = MAX_READERS
    ) -> None:
        self._db = db
        self._live = live
        self._measures = measures
        self._max_readers = max_readers
        self._channels: dict[str, Channel] = {}
        self._watches: dict[str, _Watch] = {}
        self._readers: set[Reader] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._readers)

    # --- for those who write ----------------------------------------------------------------------------------------

    def publish(self, map_id: str, first_seq: int, lines: Sequence[bytes]) -> None:
        """These items of the map were committed."""
        channel = self._channels.get(map_id)
        if channel is not None:
            channel.take(first_seq, lines)

    def finish(self, map_id: str) -> None:
        """The map is final, and that is committed: its readers end when they have everything."""
        watch = self._watches.get(map_id)
        if watch is not None:
            watch.finish()

    def close(self) -> None:
        """The process stops: all readers end now, and there are no new ones."""
        self._is_closed = True
        for reader in tuple(self._readers):
            reader.close()

    # --- for those who read -----------------------------------------------------------------------------------------

    async def open_map(self, row: MapRow, after: int) -> Reader | None:
        """A reader of what follows this item of a map; None when nothing ever will."""
        return await self._open([row], [after], names_maps=False)

    async def open_server(self, rows: Sequence[MapRow], after: Sequence[int]) -> Reader | None:
        """A reader of all maps of a match, each after the item of the same place; None when nothing ever comes."""
        return await self._open(rows, [*after, *[0] * (len(rows) - len(after))], names_maps=True)

    def leave(self, reader: Reader) -> None:
        """Forget a reader; a channel without readers is given up."""
        self._readers.discard(reader)
        for channel in reader.channels:
            channel.listeners.discard(reader)
            if not channel.listeners and self._channels.get(channel.map_id) is channel:
                del self._channels[channel.map_id]
                self._watches.pop(channel.map_id).stop()

    @unavailable_when_away
    async def _open(self, rows: Sequence[MapRow], after: Sequence[int], *, names_maps: bool) -> Reader | None:
        if self._is_closed:
            raise UnavailableError("The service is draining; try again.", retry_after_s=1)
        if len(self._readers) >= self._max_readers:
            raise UnavailableError("There are too many streams; try again.", retry_after_s=FULL_RETRY_S)
        places = [_Place(self._join(row), seq) for row, seq in zip(rows, after, strict=True)]
        reader = Reader(self, self._db, places, names_maps=names_maps)
        self._readers.add(reader)
        try:
            await self._compare(rows)
            if reader.has_everything:
                reader.close()
                return None
        except BaseException:
            reader.close()
            raise
        return reader

    def _join(self, row: MapRow) -> Channel:
        channel = self._channels.get(row.id)
        if channel is None:
            channel = self._channels[row.id] = Channel(row.id, row.server_id, row.map_number)
            self._watches[row.id] = _Watch(channel, db=self._db, live=self._live, measures=self._measures)
        return channel

    async def _compare(self, rows: Sequence[MapRow]) -> None:
        """Bring the channels of these maps up to what is stored, where that is not known."""
        channels = [self._channels[row.id] for row in rows]
        over = [channel for row, channel in zip(rows, channels, strict=True) if row.is_final]
        if all(one.is_current for one in channels) and all(one.is_complete for one in over):
            return
        last = await map_events.last_seqs(self._db, rows[0].server_id)
        for channel in channels:
            channel.catch_up(last.get(channel.map_id, 0))
        for channel in over:  # known before the database was asked, so the answer was the last word
            channel.complete()


class _Watch:
    """Looks after one channel: what was stored without our being told, and whether the map is over."""

    def __init__(self, channel: Channel, *, db: Database, live: LiveMatches, measures: Measures | None) -> None:
        self._channel = channel
        self._db = db
        self._live = live
        self._measures = measures
        self._is_over = False
        self._told = asyncio.Event()
        self._turn = 0
        self._was_here = False
        self._task = asyncio.create_task(self._run(), name=f"stream of map {channel.map_id}")

    def finish(self) -> None:
        """The map is over: look at once."""
        self._is_over = True
        self._told.set()

    def stop(self) -> None:
        """Nobody reads any more."""
        self._task.cancel()

    async def _run(self) -> None:
        while not self._channel.is_complete:
            await self._pause()
            try:
                await self._look()
            except DatabaseError as exc:
                _log.debug("stream not compared", extra={"map_id": self._channel.map_id, "reason": str(exc)})
            except Exception:  # noqa: BLE001 - readers of the map would wait for ever
                _log.exception("stream not compared", extra={"map_id": self._channel.map_id})
                if self._measures is not None:
                    self._measures.crashes.inc("streams")

    async def _pause(self) -> None:
        # Only where others may write does one look often; the rest is told, and compared in case that got lost.
        pause_s = POLL_S if self._db.is_shared or self._is_over else POLL_S * CHECK_TURNS
        try:
            async with asyncio.timeout(pause_s):
                await self._told.wait()
        except TimeoutError:
            pass
        self._told.clear()

    async def _look(self) -> None:
        channel = self._channel
        self._turn += 1
        is_here = self._live.get(channel.server_id) is not None
        # Once more after we began to follow: whoever did before may have stored something since the last look.
        is_told, self._was_here = is_here and self._was_here, is_here
        is_check = not self._db.is_shared or self._turn % CHECK_TURNS == 0
        if is_told and not is_check and not self._is_over:
            return
        if is_check and not self._is_over:
            row = await history.get_map(self._db, channel.map_id)
            self._is_over = row is None or row.is_final
        is_over = self._is_over
        if not channel.is_current:
            last = await map_events.last_seqs(self._db, channel.server_id)
            channel.catch_up(last.get(channel.map_id, 0))
        while stored := await map_events.read_after(self._db, channel.map_id, channel.newest, limit=PAGE):
            for seq, line in stored:
                channel.take(seq, [line])
        if is_over:
            channel.complete()
