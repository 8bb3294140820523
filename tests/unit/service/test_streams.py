"""Channels and readers of timelines, with a database whose reads can be paused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.errors import RateLimitError, UnavailableError
from matchpod.core.match.played_map import MapStatus
from matchpod.ports import Database, DatabaseUnavailableError, Row, Statement, Value
from matchpod.service.fair_turns import streams_of
from matchpod.service.history.recorder import Recorder
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch, LocalMatches
from matchpod.service.streams.channels import RING, MapChannel, StreamItem, type_of
from matchpod.service.streams.map_streams import Reader, Streams
from matchpod.service.streams.readers import WOKEN_AT_ONCE, PollPace
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage import history, map_events
from matchpod.storage.history import MapRow, MatchHistory
from matchpod.storage.migrate import migrate
from tests.contract.databases import DelegatingDatabase
from tests.contract.match_histories import insert_counted
from tests.unit.service.match_log.test_fold import recorded, row_of
from tests.vaults import VAULT

TIMEOUT_S = 20.0
SERVER = "srv_1"
NO_POLLS = PollPace(poll_s=3_600.0, retry_s=0.001)


def line(seq: int, kind: str = "kill") -> bytes:
    return b'{"type":"%b","seq":%d,"text":"a\\nb"}' % (kind.encode(), seq)


def lines(first: int, last: int) -> list[bytes]:
    return [line(seq) for seq in range(first, last + 1)]


def other_lines(first: int, last: int) -> list[bytes]:
    return [line(seq, "chat") for seq in range(first, last + 1)]


def map_row(number: int = 1) -> MapRow:
    return MapRow(
        id=f"map-{number}",
        server_id=SERVER,
        org_id="org_1",
        map_number=number,
        map_name="de_mirage",
        game_mode="competitive",
        server_name="a server",
        status=MapStatus.LIVE,
    )


class PausableDatabase(DelegatingDatabase):
    """A database whose reads can fail, or be paused before they return."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.reads = 0
        self.held: asyncio.Event | None = None
        self.reached = asyncio.Event()
        self.error: Exception | None = None
        self.failed = asyncio.Event()
        """Set when `error` was raised."""
        self.has_other_writers = False

    @property
    def is_shared(self) -> bool:
        return self.has_other_writers

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self.reads += 1
        if self.error is not None:
            self.failed.set()
            raise self.error
        rows = await super().read(sql, params)
        if self.held is not None:
            self.reached.set()
            await self.held.wait()
        return rows

    def hold(self) -> asyncio.Event:
        """Pause all reads from now on until the event is set."""
        self.held = asyncio.Event()
        self.reached.clear()
        return self.held

    def release(self) -> None:
        """Let the paused reads return, and pause no others."""
        assert self.held is not None
        self.held.set()
        self.held = None


class PolledMatches(LocalMatches):
    """Local matches that every poll of a map looks up."""

    def __init__(self) -> None:
        super().__init__()
        self._lookups = 0

    def get(self, server_id: str) -> LocalMatch | None:
        self._lookups += 1
        return super().get(server_id)

    async def polled(self, times: int) -> None:
        last = self._lookups + times
        while self._lookups < last:
            await asyncio.sleep(0)


async def _write_nothing(_: Sequence[Statement]) -> None:
    raise AssertionError("nothing is written")


class World:
    """Streams, and a database with a match of three maps."""

    def __init__(self, db: PausableDatabase) -> None:
        self.db = db
        self.metrics = Metrics(Registry())
        self.live = PolledMatches()
        self.streams = self.new_streams(NO_POLLS)
        self.rows = [map_row(number) for number in (1, 2, 3)]
        self.row = self.rows[0]

    def new_streams(self, pace: PollPace) -> Streams:
        return Streams(db=self.db, live=self.live, metrics=self.metrics, pace=pace)

    async def store(self, first: int, last: int, *, number: int = 1) -> None:
        await self.db.write([map_events.append(f"map-{number}", first, lines(first, last), at_ms=1)])

    async def record(self, first: int, last: int, *, number: int = 1) -> None:
        """Store items and publish them, as a recorder does."""
        await self.store(first, last, number=number)
        self.streams.publish(f"map-{number}", first, lines(first, last))

    async def lose(self, after: int, *, number: int = 1) -> None:
        """Lose the last items, as an asynchronous standby does; each must be a batch of its own."""
        sql = "DELETE FROM map_events WHERE map_id = :map_id AND first_seq > :after"
        await self.db.write([Statement(sql, {"map_id": f"map-{number}", "after": after})])

    async def store_others(self, first: int, last: int, *, number: int = 1) -> None:
        await self.db.write([map_events.append(f"map-{number}", first, other_lines(first, last), at_ms=2)])

    async def record_others(self, first: int, last: int, *, number: int = 1) -> None:
        await self.store_others(first, last, number=number)
        self.streams.publish(f"map-{number}", first, other_lines(first, last))

    async def load_again(self) -> None:
        """Load the match from what is stored, as its next runner does."""
        row = row_of(recorded().settings, id=SERVER)
        fold = Fold.begin(row, 1.0)
        recorder = Recorder(row, fold, db=self.db, write=_write_nothing, streams=self.streams, server_name="")
        await recorder.begin()

    async def end(self) -> list[MapRow]:
        final = [replace(row, is_final=True, status=MapStatus.FINISHED) for row in self.rows]
        await self.db.write(history.refresh(MatchHistory(tuple(final))))
        return final

    async def open(self, after: int = 0) -> Reader:
        reader = await self.streams.open_map(self.row, after)
        assert reader is not None
        return reader


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Provide a world without polling; fail if a test leaves tasks behind."""
    db = PausableDatabase(await SqliteDatabase.open(tmp_path / "matchpod.sqlite"))
    await migrate(db, VAULT.seal)
    world = World(db)
    await db.write(insert_counted(MatchHistory(tuple(world.rows))))
    yield world
    world.streams.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await db.close()
    assert not world.streams
    assert len(asyncio.all_tasks()) == 1


def ids(frames: bytes | None) -> list[str]:
    assert frames is not None
    return [part.partition(b"\n")[0].removeprefix(b"id: ").decode() for part in frames.split(b"\n\n")[:-1]]


async def read_all(reader: Reader) -> list[str]:
    """The ids of all frames until the end of the stream."""
    found: list[str] = []
    while (frames := await reader.next(TIMEOUT_S)) is not None:
        found += ids(frames)
    return found


def frames_of(first: int, items: Sequence[bytes]) -> bytes:
    """The frames of a map's items, numbered from `first`."""
    return b"".join(StreamItem(seq, item).frame() for seq, item in enumerate(items, first))


async def read_available(reader: Reader) -> list[str]:
    """The ids of all frames that can be read without waiting."""
    found: list[str] = []
    while frames := await reader.next(0.0):
        found += ids(frames)
    return found


def numbers(first: int, last: int) -> list[str]:
    return [str(seq) for seq in range(first, last + 1)]


# --- frames and channels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (b'{"type":"kill","seq":1}', b"kill"),
        (b'{"seq":1,"type":"round_end"}', b"round_end"),
        (b'{ "type" : "chat", "text": "\\"type\\":\\"kill\\"" }', b"chat"),
        (b'{"seq":1,"text":"{\\"type\\":\\"kill\\"}"}', b"message"),
        (b'{"type":"two\\nlines"}', b"message"),
        (b'{"type":""}', b"message"),
        (b'{"type":7}', b"message"),
        (b"nonsense", b"message"),
        (b"", b"message"),
    ],
)
def test_event_type_is_read_from_the_item(item: bytes, expected: bytes) -> None:
    assert type_of(item) == expected


def test_frame_has_id_type_and_the_unchanged_item() -> None:
    frame = StreamItem(57, b'{"type":"kill","seq":57}')
    assert frame.frame() == b'id: 57\nevent: kill\ndata: {"type":"kill","seq":57}\n\n'
    assert frame.frame() is frame.frame()
    server_frame = frame.server_frame(b'"mapId":"m","mapNumber":1,')
    assert server_frame == b'\nevent: kill\ndata: {"mapId":"m","mapNumber":1,"type":"kill","seq":57}\n\n'


def channel_at(newest: int) -> MapChannel:
    channel = MapChannel("map-1", SERVER, 1)
    channel.catch_up(newest)
    return channel


def seqs(frames: Sequence[StreamItem] | None) -> list[int] | None:
    return None if frames is None else [frame.seq for frame in frames]


def test_gap_clears_the_items_before_it() -> None:
    channel = channel_at(3)
    channel.append(4, lines(4, 5))
    channel.append(8, lines(8, 9))
    channel.append(6, lines(6, 7))
    assert channel.after(5, 100) is None
    assert channel.after(3, 100) is None
    assert seqs(channel.after(7, 100)) == [8, 9]
    assert seqs(channel.after(9, 100)) == []


def test_ring_is_bounded() -> None:
    channel = channel_at(0)
    for seq in range(1, 10 * RING):
        channel.append(seq, [line(seq)])
        kept = channel.after(channel.newest - min(seq, RING), 10**6)
        assert kept is not None
        assert len(kept) == min(seq, RING)
    assert channel.after(channel.newest - 2 * RING - 1, 10) is None


def test_newer_items_in_the_database_clear_the_ring() -> None:
    channel = channel_at(3)
    channel.append(4, lines(4, 4))
    channel.catch_up(4)
    assert seqs(channel.after(3, 100)) == [4]
    channel.catch_up(6)
    assert channel.after(3, 100) is None
    channel.append(5, lines(5, 7))
    assert seqs(channel.after(6, 100)) == [7]


# --- readers --------------------------------------------------------------------------------------------------------


async def test_reader_gets_stored_items_and_then_published_ones(world: World) -> None:
    await world.store(1, 3)
    reader = await world.open(after=1)
    assert await read_available(reader) == ["2", "3"]
    waiting = asyncio.create_task(reader.next(TIMEOUT_S))
    await asyncio.sleep(0)
    await world.record(4, 5)
    assert await waiting == StreamItem(4, line(4)).frame() + StreamItem(5, line(5)).frame()
    assert await reader.next(0.0) == b""


async def test_items_stored_while_a_reader_joins_are_not_missed(world: World) -> None:
    await world.store(1, 2)
    world.db.hold()
    opening = asyncio.create_task(world.open())
    await world.db.reached.wait()  # the database was read, but the read has not returned
    await world.record(3, 4)
    world.db.release()
    assert await read_available(await opening) == numbers(1, 4)


async def test_items_stored_while_a_page_is_read_are_sent_once(world: World) -> None:
    await world.store(1, 2)
    reader = await world.open()
    world.db.hold()
    reading = asyncio.create_task(reader.next(TIMEOUT_S))
    await world.db.reached.wait()
    await world.record(3, 4)
    world.db.release()
    assert ids(await reading) == ["1", "2"]
    assert await read_available(reader) == ["3", "4"]


async def test_reader_with_a_position_past_the_end_gets_the_next_items(world: World) -> None:
    reader = await world.open(after=3)
    await world.record(1, 2)
    assert await read_available(reader) == ["1", "2"]
    far = await world.open(after=2**53 - 1)
    assert await read_available(far) == []
    await world.record(3, 4)
    assert await read_available(reader) == await read_available(far) == ["3", "4"]


async def test_deleted_items_are_skipped(world: World) -> None:
    await world.store(1, 3)
    reader = await world.open()
    await map_events.prune(world.db, 100)
    before = world.db.reads
    assert await reader.next(0.05) == b""
    assert world.db.reads == before + 1
    await world.record(4, 4)
    assert await read_available(reader) == ["4"]


async def test_readers_of_a_map_share_frames_without_database_reads(world: World) -> None:
    readers = [await world.open() for _ in range(20)]
    before = world.db.reads
    await world.record(1, 1)
    frames = [await reader.next(0.0) for reader in readers]
    assert len(set(map(id, frames))) == 1
    assert world.db.reads == before


async def test_a_few_of_many_readers_are_woken_at_a_time_in_turns_of_the_organizations(world: World) -> None:
    readers = [await world.open() for _ in range(20 * WOKEN_AT_ONCE)]
    other = await world.streams.open_map(replace(world.rows[1], org_id="org_2"), 0)
    assert other is not None
    waiting = [asyncio.create_task(reader.next(TIMEOUT_S)) for reader in readers]
    others = asyncio.create_task(other.next(TIMEOUT_S))
    await asyncio.sleep(0)
    world.streams.publish("map-1", 1, lines(1, 1))
    world.streams.publish("map-2", 1, lines(1, 1))
    counts = [0]
    while counts[-1] < len(readers):
        await asyncio.sleep(0)
        counts.append(sum(task.done() for task in waiting))
        if counts[-1] > 3 * WOKEN_AT_ONCE:
            assert others.done()
    assert max(after - before for before, after in pairwise(counts)) <= WOKEN_AT_ONCE
    assert {await task for task in waiting} == {StreamItem(1, line(1)).frame()}


async def test_closed_reader_among_many_is_woken(world: World) -> None:
    readers = [await world.open() for _ in range(5 * WOKEN_AT_ONCE)]
    waiting = [asyncio.create_task(reader.next(TIMEOUT_S)) for reader in readers]
    await asyncio.sleep(0)
    world.streams.publish("map-1", 1, lines(1, 1))
    for reader in readers:
        reader.close()
    assert len(await asyncio.gather(*waiting)) == len(readers)


async def test_missed_items_are_read_in_turns_of_the_organizations(world: World) -> None:
    await world.store(1, 3)
    await world.store(1, 3, number=2)
    turns = world.streams.fair_turns
    for _ in range(turns.limits.of_key):
        while not turns.begin(streams_of("org_1")):
            await asyncio.sleep(0)
    reader = await world.open()
    waiting = asyncio.create_task(reader.next(TIMEOUT_S))
    other = await world.streams.open_map(replace(world.rows[1], org_id="org_2"), 0)
    assert other is not None
    assert ids(await other.next(TIMEOUT_S)) == ["1", "2", "3"]
    assert not waiting.done()
    turns.end(streams_of("org_1"))
    assert ids(await waiting) == ["1", "2", "3"]


# --- the end --------------------------------------------------------------------------------------------------------


async def test_readers_of_a_finished_map_end_after_its_last_item(world: World) -> None:
    reader, behind = await world.open(), await world.open()
    await world.record(1, 2)
    assert await read_available(reader) == ["1", "2"]
    await world.store(3, 3)  # not published
    await world.end()
    world.streams.finish("map-1")
    assert await read_all(reader) == ["3"]
    assert await read_all(behind) == ["1", "2", "3"]
    assert reader.is_over


async def test_map_that_ends_while_its_first_reader_joins_is_read_completely(world: World) -> None:
    await world.store(1, 2)
    world.db.hold()
    opening = asyncio.create_task(world.open())
    await world.db.reached.wait()
    before = world.db.reads
    await world.store(3, 3)
    await world.end()
    world.streams.finish("map-1")
    while world.db.reads == before:  # the end is polled before the reader is open
        await asyncio.sleep(0)
    world.db.release()
    assert await read_all(await opening) == ["1", "2", "3"]


async def test_final_map_is_read_to_its_end_and_has_no_reader_after_that(world: World) -> None:
    await world.store(1, 3)
    final = await world.end()
    reader = await world.streams.open_map(final[0], 1)
    assert reader is not None
    assert await read_all(reader) == ["2", "3"]
    assert await world.streams.open_map(final[0], 3) is None
    assert await world.streams.open_map(final[0], 4) is None
    assert await world.streams.open_map(final[1], 0) is None
    assert await world.streams.open_server([], []) is None


async def test_opening_a_final_map_updates_its_channel_before_it_ends(world: World) -> None:
    early = await world.open()
    await world.record(1, 1)
    await world.store(2, 3)  # stored by another process
    final = await world.end()
    late = await world.streams.open_map(final[0], 1)
    assert late is not None
    assert await read_all(late) == ["2", "3"]
    assert await read_all(early) == ["1", "2", "3"]


async def test_items_that_were_not_published_are_found_by_polling(world: World) -> None:
    world.streams = world.new_streams(PollPace(poll_s=0.001))
    reader = await world.open()
    await world.store(1, 2)
    assert ids(await reader.next(TIMEOUT_S)) == ["1", "2"]
    world.db.error = DatabaseUnavailableError("gone")
    await world.db.failed.wait()
    world.db.error = ValueError("bug")
    while not world.metrics.crashes.value("streams"):
        await asyncio.sleep(0)
    world.db.error = None
    await world.store(3, 3)
    await world.end()
    assert await read_all(reader) == ["3"]


async def test_map_of_a_local_match_is_polled_once_more_and_then_not_again(world: World) -> None:
    world.streams = world.new_streams(PollPace(poll_s=0.001, check_polls=10**9))
    world.db.has_other_writers = True
    reader = await world.open()
    await world.store(1, 1)
    assert ids(await reader.next(TIMEOUT_S)) == ["1"]
    world.db.hold()
    await world.db.reached.wait()  # a poll that found nothing has not returned
    await world.store(2, 2)
    world.live.add(LocalMatch(SERVER, cast(Fold, None), 0))
    world.db.release()
    assert ids(await reader.next(TIMEOUT_S)) == ["2"]
    await world.live.polled(1)  # the poll that found it is over
    before = world.db.reads
    await world.live.polled(3)
    assert world.db.reads == before
    await world.record(3, 3)
    assert ids(await reader.next(TIMEOUT_S)) == ["3"]


async def test_closing_ends_all_readers_and_rejects_new_ones(world: World) -> None:
    reader = await world.open()
    waiting = asyncio.create_task(reader.next(TIMEOUT_S))
    await asyncio.sleep(0)
    world.streams.close()
    assert await waiting is None
    assert not reader.is_over
    with pytest.raises(UnavailableError):
        await world.open()


async def test_readers_are_bounded(world: World) -> None:
    world.streams = Streams(db=world.db, live=LocalMatches(), metrics=world.metrics, max_readers=2)
    first, _ = await world.open(), await world.open()
    with pytest.raises(UnavailableError, match="Too many open streams"):
        await world.open()
    first.close()
    first.close()
    await world.open()


async def test_readers_of_an_organization_are_bounded(world: World) -> None:
    world.streams = Streams(db=world.db, live=LocalMatches(), metrics=world.metrics, max_of_org=2)
    first, _ = await world.open(), await world.open()
    with pytest.raises(RateLimitError, match="This organization has 2 open streams, its limit"):
        await world.open()
    other = await world.streams.open_map(replace(map_row(), org_id="org_2"), 0)
    assert other is not None
    other.close()
    first.close()
    first.close()
    await world.open()
    with pytest.raises(RateLimitError):
        await world.open()


async def test_database_outage_rejects_new_readers_and_delays_others(world: World) -> None:
    await world.store(1, 2)
    reader = await world.open()
    world.db.error = DatabaseUnavailableError("gone")
    assert await reader.next(0.01) == b""
    reading = asyncio.create_task(reader.next(TIMEOUT_S))
    other = replace(world.rows[1])
    with pytest.raises(UnavailableError):
        await world.streams.open_map(other, 0)
    assert len(world.streams) == 1
    world.db.error = None
    assert ids(await reading) == ["1", "2"]


# --- a standby that was promoted ------------------------------------------------------------------------------------


async def test_open_reader_gets_items_whose_numbers_are_used_again(world: World) -> None:
    reader, behind = await world.open(), await world.open()
    for seq in range(1, 6):
        await world.record(seq, seq)
    assert await read_available(reader) == numbers(1, 5)
    await world.lose(after=2)
    await world.load_again()
    await world.record_others(3, 4)
    assert await reader.next(0.0) == frames_of(3, other_lines(3, 4))
    assert await behind.next(0.0) == frames_of(1, [*lines(1, 2), *other_lines(3, 4)])
    await world.record_others(5, 7)
    assert await reader.next(0.0) == frames_of(5, other_lines(5, 7))


@pytest.mark.parametrize("last", [4, 5, 9], ids=["fewer", "as many", "more"])
@pytest.mark.parametrize("is_published", [False, True])
async def test_reader_at_another_process_gets_items_whose_numbers_are_used_again(
    world: World, last: int, is_published: bool
) -> None:
    world.db.has_other_writers = True
    world.streams = world.new_streams(PollPace(poll_s=0.001))
    for seq in range(1, 6):
        await world.store(seq, seq)
    reader = await world.open()
    assert await read_available(reader) == numbers(1, 5)
    if is_published:
        await world.record(6, 6)
        assert await read_available(reader) == ["6"]
    await world.live.polled(2)
    world.db.error = DatabaseUnavailableError("gone")
    await world.live.polled(2)  # no poll that began before sees what follows
    await world.lose(after=2)
    await world.store_others(3, last)
    world.db.error = None
    assert await reader.next(TIMEOUT_S) == frames_of(3, other_lines(3, last))
    await world.store_others(last + 1, last + 1)
    assert await reader.next(TIMEOUT_S) == frames_of(last + 1, other_lines(last + 1, last + 1))


async def test_reader_that_reconnects_before_the_loss_was_noticed_gets_the_next_items(world: World) -> None:
    other = await world.open()
    for seq in range(1, 6):
        await world.record(seq, seq)
    await world.lose(after=2)
    reader = await world.open(after=6)
    await world.record_others(3, 4)
    assert await reader.next(0.0) == frames_of(3, other_lines(3, 4))
    assert await other.next(0.0) == frames_of(1, [*lines(1, 2), *other_lines(3, 4)])


async def test_page_that_is_read_while_items_are_lost_is_read_again(world: World) -> None:
    for seq in range(1, 6):
        await world.store(seq, seq)
    reader = await world.open(after=3)
    held = world.db.hold()
    reading = asyncio.create_task(reader.next(TIMEOUT_S))
    await world.db.reached.wait()
    world.db.held = None
    await world.lose(after=2)
    await world.load_again()
    await world.record_others(3, 3)
    held.set()
    assert await reading == frames_of(3, other_lines(3, 3))


async def test_stream_of_a_match_goes_back_on_the_map_that_lost_items(world: World) -> None:
    reader = await world.streams.open_server(world.rows, [])
    assert reader is not None
    for seq in (1, 2, 3):
        await world.record(seq, seq)
    await world.record(1, 1, number=2)
    assert await read_available(reader) == ["1", "2", "3", "3.1"]
    await world.lose(after=1)
    await world.load_again()
    await world.record_others(2, 2)
    await world.record(2, 2, number=2)
    assert await read_available(reader) == ["2.1", "2.2"]
    again = await world.streams.open_server(world.rows, [3, 9, 4])
    assert again is not None
    await world.record(3, 3, number=2)
    assert await read_available(again) == ["2.3"]


# --- all maps of a match --------------------------------------------------------------------------------------------


async def test_ids_in_the_stream_of_a_match_have_the_position_on_each_map(world: World) -> None:
    await world.store(1, 2)
    reader = await world.streams.open_server(world.rows, [])
    assert reader is not None
    assert await read_available(reader) == ["1", "2"]
    await world.record(1, 1, number=2)
    frames = await reader.next(0.0)
    assert frames is not None
    assert frames.startswith(b'id: 2.1\nevent: kill\ndata: {"mapId":"map-2","mapNumber":2,"type":"kill","seq":1,')
    await world.record(3, 4)  # a round of the first map was restored
    assert await read_available(reader) == ["3.1", "4.1"]
    await world.record(1, 1, number=3)
    assert await read_available(reader) == ["4.1.1"]


async def test_stream_of_a_match_resumes_at_the_position_on_each_map(world: World) -> None:
    await world.store(1, 4)
    await world.store(1, 3, number=2)
    final = await world.end()
    for after, expected in {
        (): ["1", "2", "3", "4", "4.1", "4.2", "4.3"],
        (3,): ["4", "4.1", "4.2", "4.3"],
        (3, 2): ["4.2", "4.3"],
        (0, 3): ["1.3", "2.3", "3.3", "4.3"],
        (4, 2, 0): ["4.3"],
    }.items():
        reader = await world.streams.open_server(final, after)
        assert reader is not None
        assert await read_all(reader) == expected
        reader.close()
    assert await world.streams.open_server(final, [4, 3]) is None


async def test_stream_of_a_match_ends_with_its_last_map(world: World) -> None:
    reader = await world.streams.open_server(world.rows, [])
    assert reader is not None
    await world.record(1, 1)
    await world.end()
    for number in (1, 2, 3):
        world.streams.finish(f"map-{number}")
    assert await read_all(reader) == ["1"]
