"""Streams of what happens on maps: channels and readers, on a database that can be held at any point."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.errors import UnavailableError
from matchpod.core.played_map import MapStatus
from matchpod.ports import Database, DatabaseAwayError, Row, Value
from matchpod.service.folding import Fold
from matchpod.service.history import streams as streams_module
from matchpod.service.history.stream_channels import RING, Channel, Frame, type_of
from matchpod.service.history.streams import PAGE, Reader, Streams
from matchpod.service.live import LiveMatch, LiveMatches
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.storage import history, map_events
from matchpod.storage.history import MapRow, MatchHistory
from matchpod.storage.migrate import migrate
from tests.contract.databases import PassedOn

PATIENCE_S = 20.0
SERVER = "srv_1"


def line(seq: int, kind: str = "kill") -> bytes:
    return b'{"type":"%b","seq":%d,"text":"a\\nb"}' % (kind.encode(), seq)


def lines(first: int, last: int) -> list[bytes]:
    return [line(seq) for seq in range(first, last + 1)]


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


class Gate(PassedOn):
    """A database whose reads can be held back after they were made, or fail."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.reads = 0
        self.held: asyncio.Event | None = None
        self.reached = asyncio.Event()
        self.trouble: Exception | None = None
        self.is_with_others = False

    @property
    def is_shared(self) -> bool:
        return self.is_with_others

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self.reads += 1
        if self.trouble is not None:
            raise self.trouble
        rows = await super().read(sql, params)
        if self.held is not None:
            self.reached.set()
            await self.held.wait()
        return rows

    def hold(self) -> asyncio.Event:
        """From now on nothing that is read arrives until the event is set."""
        self.held = asyncio.Event()
        self.reached.clear()
        return self.held


class Ground:
    """Streams on a database with a match of three maps."""

    def __init__(self, db: Gate) -> None:
        self.db = db
        self.measures = Measures(Metrics())
        self.live = LiveMatches()
        self.streams = Streams(db=db, live=self.live, measures=self.measures)
        self.rows = [map_row(number) for number in (1, 2, 3)]
        self.row = self.rows[0]

    async def store(self, first: int, last: int, *, number: int = 1) -> None:
        await self.db.write([map_events.append(f"map-{number}", first, lines(first, last), at_ms=1)])

    async def tell(self, first: int, last: int, *, number: int = 1) -> None:
        """Store items and publish them, as a recorder does."""
        await self.store(first, last, number=number)
        self.streams.publish(f"map-{number}", first, lines(first, last))

    async def end(self) -> list[MapRow]:
        """All maps are final."""
        final = [replace(row, is_final=True, status=MapStatus.FINISHED) for row in self.rows]
        await self.db.write(history.refresh(MatchHistory(tuple(final))))
        return final

    async def open(self, after: int = 0) -> Reader:
        reader = await self.streams.open_map(self.row, after)
        assert reader is not None
        return reader


Scenario = Callable[[Ground], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Scenario], None]:
    """Runs a scenario; nothing of it may be left running."""
    # So that nobody looks by himself unless a test wants it.
    monkeypatch.setattr(streams_module, "POLL_S", 3_600.0)

    async def main(scenario: Scenario) -> None:
        db = Gate(await SqliteDatabase.open(tmp_path / "matchpod.sqlite"))
        try:
            await migrate(db)
            ground = Ground(db)
            await db.write(history.begin(MatchHistory(tuple(ground.rows))))
            async with asyncio.timeout(PATIENCE_S):
                await scenario(ground)
                ground.streams.close()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            assert not ground.streams
            assert len(asyncio.all_tasks()) == 1
        finally:
            await db.close()

    return lambda scenario: asyncio.run(main(scenario))


def ids(frames: bytes | None) -> list[str]:
    assert frames is not None
    return [part.partition(b"\n")[0].removeprefix(b"id: ").decode() for part in frames.split(b"\n\n")[:-1]]


async def read_all(reader: Reader) -> list[str]:
    """The ids of everything until the end."""
    found: list[str] = []
    while (frames := await reader.next(PATIENCE_S)) is not None:
        found += ids(frames)
    return found


async def at_hand(reader: Reader) -> list[str]:
    """The ids of everything that can be read without waiting for news."""
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
def test_type_is_read_from_the_item(item: bytes, expected: bytes) -> None:
    assert type_of(item) == expected


def test_frame_has_id_type_and_the_item_as_it_is() -> None:
    frame = Frame(57, b'{"type":"kill","seq":57}')
    assert frame.alone() == b'id: 57\nevent: kill\ndata: {"type":"kill","seq":57}\n\n'
    assert frame.alone() is frame.alone()
    among = frame.among(b'"mapId":"m","mapNumber":1,')
    assert among == b'\nevent: kill\ndata: {"mapId":"m","mapNumber":1,"type":"kill","seq":57}\n\n'


def channel_at(newest: int) -> Channel:
    channel = Channel("map-1", SERVER, 1)
    channel.catch_up(newest)
    return channel


def seqs(frames: Sequence[Frame] | None) -> list[int] | None:
    return None if frames is None else [frame.seq for frame in frames]


def test_what_is_known_is_taken_once() -> None:
    channel = channel_at(3)
    channel.take(2, lines(2, 5))
    channel.take(4, lines(4, 5))
    channel.take(5, lines(5, 6))
    assert seqs(channel.after(3, 100)) == [4, 5, 6]
    assert channel.after(2, 100) is None
    assert channel.newest == 6


def test_what_comes_after_a_hole_is_kept_and_what_lies_before_is_read_elsewhere() -> None:
    channel = channel_at(3)
    channel.take(4, lines(4, 5))
    channel.take(8, lines(8, 9))
    channel.take(6, lines(6, 7))
    assert channel.after(5, 100) is None
    assert channel.after(3, 100) is None
    assert seqs(channel.after(7, 100)) == [8, 9]
    assert seqs(channel.after(9, 100)) == []


def test_ring_is_bounded() -> None:
    channel = channel_at(0)
    for seq in range(1, 10 * RING):
        channel.take(seq, [line(seq)])
        kept = channel.after(channel.newest - min(seq, RING), 10**6)
        assert kept is not None
        assert len(kept) == min(seq, RING)
    assert channel.after(channel.newest - 2 * RING - 1, 10) is None


def test_database_that_knows_more_empties_the_ring() -> None:
    channel = channel_at(3)
    channel.take(4, lines(4, 4))
    channel.catch_up(4)
    assert seqs(channel.after(3, 100)) == [4]
    channel.catch_up(6)
    assert channel.after(3, 100) is None
    channel.take(5, lines(5, 7))
    assert seqs(channel.after(6, 100)) == [7]


# --- readers --------------------------------------------------------------------------------------------------------


def test_reader_gets_what_is_stored_and_then_what_is_told(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 3)
        reader = await ground.open(after=1)
        assert await at_hand(reader) == ["2", "3"]
        waiting = asyncio.create_task(reader.next(PATIENCE_S))
        await asyncio.sleep(0)
        await ground.tell(4, 5)
        assert await waiting == Frame(4, line(4)).alone() + Frame(5, line(5)).alone()
        assert await reader.next(0.0) == b""

    play(scenario)


def test_long_past_is_read_in_pages(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        last = 2 * PAGE + 7
        await ground.store(1, last)
        reader = await ground.open()
        sizes = [len(ids(await reader.next(0.0))) for _ in range(3)]
        assert sizes == [PAGE, PAGE, 7]

    play(scenario)


def test_what_is_stored_while_a_reader_joins_is_not_missed(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 2)
        held = ground.db.hold()
        opening = asyncio.create_task(ground.open())
        await ground.db.reached.wait()  # the database was asked, its answer is under way
        await ground.tell(3, 4)
        ground.db.held = None
        held.set()
        assert await at_hand(await opening) == numbers(1, 4)

    play(scenario)


def test_what_is_stored_while_a_page_is_read_comes_once(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 2)
        reader = await ground.open()
        held = ground.db.hold()
        reading = asyncio.create_task(reader.next(PATIENCE_S))
        await ground.db.reached.wait()
        await ground.tell(3, 4)
        ground.db.held = None
        held.set()
        assert ids(await reading) == ["1", "2"]
        assert await at_hand(reader) == ["3", "4"]

    play(scenario)


def test_what_was_read_before_it_was_told_comes_once(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 2)
        reader = await ground.open()
        await ground.store(3, 4)
        assert await at_hand(reader) == numbers(1, 4)
        ground.streams.publish("map-1", 3, lines(3, 4))
        assert await at_hand(reader) == []
        await ground.tell(5, 5)
        assert await at_hand(reader) == ["5"]

    play(scenario)


def test_publications_out_of_order_twice_and_lost_change_nothing(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        reader, late = await ground.open(), await ground.open()
        for seq in range(1, 10):
            await ground.store(seq, seq)
        for seq in (2, 2, 1, 5, 4, 9, 3):
            ground.streams.publish("map-1", seq, [line(seq)])
            await asyncio.sleep(0)
            if seq == 5:
                assert await at_hand(reader) == numbers(1, 9)  # a page of the database goes on past what was told
        assert await at_hand(reader) == []
        assert await at_hand(late) == numbers(1, 9)

    play(scenario)


def test_position_ahead_of_everything_waits_until_it_is_reached(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        reader = await ground.open(after=3)
        await ground.tell(1, 2)
        assert await at_hand(reader) == []
        await ground.tell(3, 4)
        assert await at_hand(reader) == ["4"]
        far = await ground.open(after=2**53 - 1)
        assert await at_hand(far) == []

    play(scenario)


def test_items_that_were_deleted_are_passed_over(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 3)
        reader = await ground.open()
        await map_events.prune(ground.db, 100)
        before = ground.db.reads
        assert await reader.next(0.05) == b""
        assert ground.db.reads == before + 1
        await ground.tell(4, 4)
        assert await at_hand(reader) == ["4"]

    play(scenario)


def test_one_who_waits_sees_time_pass(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        reader = await ground.open()
        assert await reader.next(0.01) == b""

    play(scenario)


def test_readers_of_one_map_share_frames_and_ask_the_database_nothing(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        readers = [await ground.open() for _ in range(20)]
        before = ground.db.reads
        await ground.tell(1, 1)
        frames = [await reader.next(0.0) for reader in readers]
        assert len(set(map(id, frames))) == 1
        assert ground.db.reads == before

    play(scenario)


def test_publishing_where_nobody_listens_leaves_nothing_behind(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.tell(1, 1)
        ground.streams.finish("map-1")
        reader = await ground.open()
        reader.close()
        await ground.tell(2, 2)
        assert await reader.next(0.0) is None
        assert not reader.is_over

    play(scenario)


# --- the end --------------------------------------------------------------------------------------------------------


def test_finished_map_ends_its_readers_when_they_have_everything(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        reader, behind = await ground.open(), await ground.open()
        await ground.tell(1, 2)
        assert await at_hand(reader) == ["1", "2"]
        await ground.store(3, 3)  # which nobody was told of
        await ground.end()
        ground.streams.finish("map-1")
        assert await read_all(reader) == ["3"]
        assert await read_all(behind) == ["1", "2", "3"]
        assert reader.is_over

    play(scenario)


def test_map_that_ends_while_its_first_reader_joins_is_given_whole(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 2)
        held = ground.db.hold()
        opening = asyncio.create_task(ground.open())
        await ground.db.reached.wait()
        before = ground.db.reads
        await ground.store(3, 3)
        await ground.end()
        ground.streams.finish("map-1")
        while ground.db.reads == before:  # the end is looked at before the reader is there
            await asyncio.sleep(0)
        ground.db.held = None
        held.set()
        assert await read_all(await opening) == ["1", "2", "3"]

    play(scenario)


def test_map_that_is_final_is_read_to_its_end_and_then_there_is_nothing(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 3)
        final = await ground.end()
        reader = await ground.streams.open_map(final[0], 1)
        assert reader is not None
        assert await read_all(reader) == ["2", "3"]
        assert await ground.streams.open_map(final[0], 3) is None
        assert await ground.streams.open_map(final[0], 4) is None
        assert await ground.streams.open_map(final[1], 0) is None
        assert await ground.streams.open_server([], []) is None

    play(scenario)


def test_final_row_brings_a_channel_up_to_date_before_it_ends(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        early = await ground.open()
        await ground.tell(1, 1)
        await ground.store(2, 3)  # by another process
        final = await ground.end()
        late = await ground.streams.open_map(final[0], 1)
        assert late is not None
        assert await read_all(late) == ["2", "3"]
        assert await read_all(early) == ["1", "2", "3"]

    play(scenario)


def test_what_nobody_told_is_found_by_looking(
    play: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(ground: Ground) -> None:
        monkeypatch.setattr(streams_module, "POLL_S", 0.001)
        reader = await ground.open()
        await ground.store(1, 2)
        assert ids(await reader.next(PATIENCE_S)) == ["1", "2"]
        ground.db.trouble = DatabaseAwayError("gone")
        await asyncio.sleep(0.02)
        ground.db.trouble = ValueError("bug")
        while not ground.measures.crashes.value("streams"):
            await asyncio.sleep(0.001)
        ground.db.trouble = None
        await ground.store(3, 3)
        await ground.end()
        assert await read_all(reader) == ["3"]

    play(scenario)


def test_map_that_is_followed_here_is_looked_at_once_more_and_then_left_alone(
    play: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "CHECK_TURNS", 10**9)

    async def scenario(ground: Ground) -> None:
        monkeypatch.setattr(streams_module, "POLL_S", 0.001)
        ground.db.is_with_others = True
        reader = await ground.open()
        await ground.store(1, 1)
        assert ids(await reader.next(PATIENCE_S)) == ["1"]
        held = ground.db.hold()
        await ground.db.reached.wait()  # a look is under way, which saw nothing
        await ground.store(2, 2)
        ground.live.add(LiveMatch(SERVER, cast(Fold, None), 0))
        ground.db.held = None
        held.set()
        assert ids(await reader.next(PATIENCE_S)) == ["2"]
        await asyncio.sleep(0.01)
        before = ground.db.reads
        await asyncio.sleep(0.02)
        assert ground.db.reads == before
        await ground.tell(3, 3)
        assert ids(await reader.next(PATIENCE_S)) == ["3"]

    play(scenario)


def test_closing_ends_all_and_lets_nobody_in(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        reader = await ground.open()
        waiting = asyncio.create_task(reader.next(PATIENCE_S))
        await asyncio.sleep(0)
        ground.streams.close()
        assert await waiting is None
        assert not reader.is_over
        with pytest.raises(UnavailableError):
            await ground.open()

    play(scenario)


def test_readers_are_bounded(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        ground.streams = Streams(db=ground.db, live=LiveMatches(), max_readers=2)
        first, _ = await ground.open(), await ground.open()
        with pytest.raises(UnavailableError, match="too many streams"):
            await ground.open()
        first.close()
        first.close()
        await ground.open()

    play(scenario)


def test_database_that_is_away_refuses_new_readers_and_lets_the_others_wait(
    play: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "AWAY_PAUSE_S", 0.001)

    async def scenario(ground: Ground) -> None:
        await ground.store(1, 2)
        reader = await ground.open()
        ground.db.trouble = DatabaseAwayError("gone")
        assert await reader.next(0.01) == b""
        reading = asyncio.create_task(reader.next(PATIENCE_S))
        other = replace(ground.rows[1])
        with pytest.raises(UnavailableError):
            await ground.streams.open_map(other, 0)
        assert len(ground.streams) == 1
        ground.db.trouble = None
        assert ids(await reading) == ["1", "2"]

    play(scenario)


# --- all maps of a match --------------------------------------------------------------------------------------------


def test_stream_of_a_match_says_how_far_each_map_got(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 2)
        reader = await ground.streams.open_server(ground.rows, [])
        assert reader is not None
        assert await at_hand(reader) == ["1", "2"]
        await ground.tell(1, 1, number=2)
        frames = await reader.next(0.0)
        assert frames is not None
        assert frames.startswith(b'id: 2.1\nevent: kill\ndata: {"mapId":"map-2","mapNumber":2,"type":"kill","seq":1,')
        await ground.tell(3, 4)  # a round of the first map was restored
        assert await at_hand(reader) == ["3.1", "4.1"]
        await ground.tell(1, 1, number=3)
        assert await at_hand(reader) == ["4.1.1"]

    play(scenario)


def test_stream_of_a_match_goes_on_where_each_map_was(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        await ground.store(1, 4)
        await ground.store(1, 3, number=2)
        final = await ground.end()
        for after, expected in {
            (): ["1", "2", "3", "4", "4.1", "4.2", "4.3"],
            (3,): ["4", "4.1", "4.2", "4.3"],
            (3, 2): ["4.2", "4.3"],
            (0, 3): ["1.3", "2.3", "3.3", "4.3"],
            (4, 2, 0): ["4.3"],
        }.items():
            reader = await ground.streams.open_server(final, after)
            assert reader is not None
            assert await read_all(reader) == expected
            reader.close()
        assert await ground.streams.open_server(final, [4, 3]) is None

    play(scenario)


def test_stream_of_a_match_ends_with_its_last_map(play: Callable[[Scenario], None]) -> None:
    async def scenario(ground: Ground) -> None:
        reader = await ground.streams.open_server(ground.rows, [])
        assert reader is not None
        await ground.tell(1, 1)
        await ground.end()
        for number in (1, 2, 3):
            ground.streams.finish(f"map-{number}")
        assert await read_all(reader) == ["1"]

    play(scenario)
