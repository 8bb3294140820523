"""Stream the timeline of maps to readers while it is recorded: in order, each item once.

The position of a reader is the number of the last item that it got. A reader first joins the channel of the map, and
then compares the channel with the database, so it misses no items that are stored in between. Recent items are read
from the channel, older items from the database, page by page. Publishing is only an optimization: each channel also
polls the database, every 5 s, or every second if another process may write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.fair_turns import FairTurns, streams_of
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.streams import readers
from matchpod.service.streams.channels import PAGE, Channel, MapChannel, ReadAfter, StreamItem
from matchpod.service.streams.organization_streams import OrganizationStreams
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage import history, map_events
from matchpod.storage.history import MapRow

_log = logging.getLogger(__name__)


class _Position:
    """The position of a reader on one map."""

    __slots__ = ("channel", "seq")

    def __init__(self, channel: MapChannel, seq: int) -> None:
        self.channel = channel
        self.seq = seq


class Reader(readers.StreamReader):
    """A reader of one or more maps, with its position on each map."""

    def __init__(
        self, streams: Streams, db: Database, positions: Sequence[_Position], *, org_id: str, spans_maps: bool
    ) -> None:
        super().__init__(org_id)
        self._streams = streams
        self._db = db
        self._positions = positions
        self._spans_maps = spans_maps
        for position in positions:
            position.channel.subscribers.add(self)

    @property
    def channels(self) -> list[MapChannel]:
        return [position.channel for position in self._positions]

    @property
    def is_at_end(self) -> bool:
        """True if all items were returned and there will be no further items."""
        return all(
            position.channel.is_complete and position.seq >= position.channel.newest for position in self._positions
        )

    async def next(self, within_s: float) -> bytes | None:
        """Return the next frames; empty if there are no items after `within_s`, None at the end of the stream."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not self.is_closed:
            behind = self._behind()
            if behind is not None:
                items = behind.channel.after(behind.seq, PAGE)
                if items is None:
                    items = await self._read(behind, deadline)
                if items:
                    return self._advance(behind, items)
            elif self.is_at_end:
                self.is_over = True
                return None
            else:
                await self.wait(deadline)
            if loop.time() >= deadline:
                return b""
        return None

    def rewind(self, channel: Channel, seq: int) -> None:
        """Go back to the item number `seq` on the map of this channel."""
        for position in self._positions:
            if position.channel is channel:
                position.seq = min(position.seq, seq)

    def _leave(self) -> None:
        self._streams.remove(self)

    def _behind(self) -> _Position | None:
        for position in self._positions:
            if position.seq < position.channel.newest:
                return position
        return None

    async def _read(self, position: _Position, deadline: float) -> Sequence[StreamItem]:
        seq, newest = position.seq, position.channel.newest
        try:
            read = partial(map_events.read_after, self._db, position.channel.map_id, seq, limit=PAGE)
            stored = await self._streams.fair_turns.run(streams_of(self.org_id), read)
        except DatabaseUnavailableError:
            await self.wait(min(deadline, asyncio.get_running_loop().time() + self._streams.pace.retry_s))
            return ()
        if position.seq != seq:
            return ()  # the reader was rewound during the read
        if not stored:
            position.seq = newest  # the items were deleted after their retention time
        return [StreamItem(seq, line) for seq, line in stored]

    def _advance(self, position: _Position, items: Sequence[StreamItem]) -> bytes:
        """Advance the position past these items, and return their frames."""
        position.seq = items[-1].seq
        if not self._spans_maps:
            return b"".join([item.frame() for item in items])
        # The id contains the positions on all maps, because a map that was over continues if one of its rounds is
        # restored.
        index = self._positions.index(position)
        seqs = [at.seq for at in self._positions]
        before = b"id: " + b"".join([b"%d." % seq for seq in seqs[:index]])
        last = max((number for number, seq in enumerate(seqs) if seq), default=index)
        after = b"".join([b".%d" % seq for seq in seqs[index + 1 : last + 1]])
        fields = position.channel.map_fields
        return b"".join([b"%b%d%b%b" % (before, item.seq, after, item.server_frame(fields)) for item in items])


class Streams:
    """The streams of maps and organizations that are open in this process."""

    def __init__(
        self,
        *,
        db: Database,
        live: LocalMatches,
        metrics: Metrics,
        max_readers: int = readers.MAX_READERS,
        max_of_org: int | None = None,
        fair_turns: FairTurns | None = None,
        pace: readers.PollPace = readers.DEFAULT_PACE,
    ) -> None:
        """`fair_turns` schedules reads of items that a reader has missed. It also schedules requests."""
        self.pace = pace
        self.fair_turns = fair_turns or FairTurns()
        self._db = db
        self._live = live
        self._metrics = metrics
        self._readers = readers.OpenReaders(max_readers=max_readers, max_of_org=max_of_org)
        self.organizations = OrganizationStreams(
            db=db, readers=self._readers, metrics=metrics, fair_turns=self.fair_turns, pace=pace
        )
        """The streams of organizations. The limits of open readers apply to maps and organizations together."""
        self._channels: dict[str, MapChannel] = {}
        self._pollers: dict[str, _Poller] = {}

    def __len__(self) -> int:
        return len(self._readers)

    # --- for writers ----------------------------------------------------------------------------------------------

    def publish(self, map_id: str, first_seq: int, lines: Sequence[bytes]) -> None:
        """Pass committed items of a map to its readers."""
        channel = self._channels.get(map_id)
        if channel is not None:
            channel.append(first_seq, lines)

    async def compare(self, map_id: str) -> None:
        """Compare a map's channel with the database: its match may have been loaded after the last items were lost."""
        channel = self._channels.get(map_id)
        if channel is not None and channel.is_current:
            await channel.read_on(_read_after(self._db, map_id))

    def finish(self, map_id: str) -> None:
        """End the streams of a map after they have sent all items. The final row of the map must be committed."""
        poller = self._pollers.get(map_id)
        if poller is not None:
            poller.finish()

    def close(self) -> None:
        """Close all readers and accept no further readers, because the process is stopping."""
        self._readers.close()

    # --- for readers ----------------------------------------------------------------------------------------------

    async def open_map(self, row: MapRow, after: int) -> Reader | None:
        """Return a reader of a map's items after the number `after`; None if there will be no such items."""
        return await self._open([row], [after], spans_maps=False)

    async def open_server(self, rows: Sequence[MapRow], after: Sequence[int]) -> Reader | None:
        """Return a reader of all maps of a match, each after its number in `after`; None if there will be no items."""
        return await self._open(rows, [*after, *[0] * (len(rows) - len(after))], spans_maps=True)

    def remove(self, reader: Reader) -> None:
        """Remove a reader, and those of its channels that have no other readers."""
        self._readers.discard(reader)
        for channel in reader.channels:
            channel.subscribers.discard(reader)
            if not channel.subscribers and self._channels.get(channel.map_id) is channel:
                del self._channels[channel.map_id]
                self._pollers.pop(channel.map_id).stop()

    @unavailable_on_outage
    async def _open(self, rows: Sequence[MapRow], after: Sequence[int], *, spans_maps: bool) -> Reader | None:
        if not rows:
            return None
        org_id = rows[0].org_id
        self._readers.check(org_id)
        positions = [_Position(self._join(row), seq) for row, seq in zip(rows, after, strict=True)]
        reader = Reader(self, self._db, positions, org_id=org_id, spans_maps=spans_maps)
        self._readers.add(reader)
        try:
            await self._compare(rows, positions)
            if reader.is_at_end:
                reader.close()
                return None
        except BaseException:
            reader.close()
            raise
        return reader

    def _join(self, row: MapRow) -> MapChannel:
        channel = self._channels.get(row.id)
        if channel is None:
            channel = self._channels[row.id] = MapChannel(row.id, row.server_id, row.map_number)
            self._pollers[row.id] = _Poller(
                channel, db=self._db, live=self._live, metrics=self._metrics, pace=self.pace
            )
        return channel

    async def _compare(self, rows: Sequence[MapRow], positions: Sequence[_Position]) -> None:
        """Bring the channels of these maps up to date with the database if necessary, and compare the positions.

        A position after the last stored item is set back to that item, because new items get the numbers of lost items.
        """
        unknown = [position for position in positions if not position.channel.is_current]
        if unknown:
            last = await map_events.last_seqs(self._db, rows[0].server_id)
            for position in unknown:
                stored = last.get(position.channel.map_id, 0)
                position.channel.catch_up(stored)
                position.seq = min(position.seq, stored)
        for row, position in zip(rows, positions, strict=True):
            channel = position.channel
            if position not in unknown and (
                position.seq > channel.newest or (row.is_final and not channel.is_complete)
            ):
                await channel.read_on(_read_after(self._db, channel.map_id))
                position.seq = min(position.seq, channel.newest)
            if row.is_final:  # the row was final before the items were read, so none is missing
                channel.complete()


def _read_after(db: Database, map_id: str) -> ReadAfter:
    return partial(map_events.read_after, db, map_id, limit=PAGE)


class _Poller:
    """Polls the database for a channel, to find items that were not published, and the end of the map."""

    def __init__(
        self, channel: MapChannel, *, db: Database, live: LocalMatches, metrics: Metrics, pace: readers.PollPace
    ) -> None:
        self._pace = pace
        self._channel = channel
        self._db = db
        self._live = live
        self._metrics = metrics
        self._is_over = False
        self._woken = asyncio.Event()
        self._polls = 0
        self._was_local = False
        self._task = asyncio.create_task(self._run(), name=f"stream of map {channel.map_id}")

    def finish(self) -> None:
        """Poll the database now, because the map is over."""
        self._is_over = True
        self._woken.set()

    def stop(self) -> None:
        """Stop polling, because the channel has no readers."""
        self._task.cancel()

    async def _run(self) -> None:
        while not self._channel.is_complete:
            await self._pause()
            try:
                await self._poll()
            except DatabaseError as exc:
                _log.debug("stream poll failed", extra={"map_id": self._channel.map_id, "reason": str(exc)})
            except Exception:  # noqa: BLE001 - otherwise the readers of the map would wait forever
                _log.exception("stream poll failed", extra={"map_id": self._channel.map_id})
                self._metrics.crashes.inc("streams")

    async def _pause(self) -> None:
        # Poll often only if another process may write. Otherwise all items are published, and polling is a safeguard.
        pause_s = self._pace.poll_s if self._db.is_shared or self._is_over else self._pace.check_s
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._woken.wait()
        self._woken.clear()

    async def _poll(self) -> None:
        channel = self._channel
        self._polls += 1
        is_local = self._live.get(channel.server_id) is not None
        # After this process has acquired the match, poll once more: the previous process may have stored items after
        # the last poll.
        is_published, self._was_local = is_local and self._was_local, is_local
        is_check = not self._db.is_shared or self._polls % self._pace.check_polls == 0
        if is_published and not is_check and not self._is_over:
            return
        if is_check and not self._is_over:
            row = await history.get_map(self._db, channel.map_id)
            self._is_over = row is None or row.is_final
        is_over = self._is_over
        if not channel.is_current:
            last = await map_events.last_seqs(self._db, channel.server_id)
            channel.catch_up(last.get(channel.map_id, 0))
        await channel.read_on(_read_after(self._db, channel.map_id))
        if is_over:
            channel.complete()
