"""What is new of a match is written once, in the least that must be written, and told to readers afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.core.timeline import MapItem
from matchpod.core.timeline_items import PausedItem
from matchpod.ports import Database, DuplicateError, Row, Statement, Value
from matchpod.service.folding import LOG, Fold
from matchpod.service.history.naming import map_id
from matchpod.service.history.recorder import FLUSH_MS, Pages, Recorder, new_pages
from matchpod.service.history.streams import Streams
from matchpod.service.live import LiveMatches
from matchpod.storage.raw_log import RawEntry
from tests.unit.service.history.spoken_lines import coming, first_round, logged
from tests.unit.service.test_folding import PLAYERS, row_of
from tests.unit.simulator.played_match import START_MS

GAME = "00000000-0000-0000-0000-000000000001"
SETTINGS = GameSettings(
    match_type=MatchType.WINGMAN,
    maps=("de_nuke",),
    team1=TeamRoster("Reds", PLAYERS[:2]),
    team2=TeamRoster("Blues", PLAYERS[2:]),
)
FIRST, SECOND = map_id(GAME, 1), map_id(GAME, 2)


def item(number: int, seq: int) -> MapItem:
    return MapItem(number, PausedItem(seq=seq, timestamp="", round_number=None, by=f"{number}.{seq}"))


def line(number: int, seq: int) -> bytes:
    return msgspec.json.encode(item(number, seq).item)


def test_items_are_paged_by_map_and_numbered_from_the_first() -> None:
    items = [item(1, 1), item(1, 2), item(2, 1), item(1, 3)]
    assert new_pages(items, GAME, {}) == [
        Pages(FIRST, 1, [line(1, 1), line(1, 2), line(1, 3)]),
        Pages(SECOND, 1, [line(2, 1)]),
    ]


def test_items_that_are_stored_are_left_out() -> None:
    items = [item(1, 1), item(1, 2), item(1, 3), item(2, 1)]
    assert new_pages(items, GAME, {FIRST: 2}) == [Pages(FIRST, 3, [line(1, 3)]), Pages(SECOND, 1, [line(2, 1)])]
    assert new_pages(items, GAME, {FIRST: 3, SECOND: 1}) == []
    assert new_pages([], GAME, {FIRST: 3}) == []


class Nothing(Database):
    """A database in which nothing is stored but so many items of the first map."""

    def __init__(self) -> None:
        self.items = 0

    @property
    def is_shared(self) -> bool:
        return False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        return [(FIRST, self.items)] if self.items and "JOIN map_events" in sql else []

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        return None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class Recording:
    """A recorder of a match, and what it writes."""

    def __init__(self) -> None:
        row = row_of(SETTINGS, game_id=GAME)
        self.db = Nothing()
        self.fold = Fold.begin(row, 1.0)
        self.written: list[Sequence[Statement]] = []
        self.stored_by_another = 0
        self.entries = 0
        streams = Streams(db=self.db, live=LiveMatches())
        self.recorder = Recorder(
            row, self.fold.reader, db=self.db, write=self._write, streams=streams, server_name="Europe 1"
        )

    async def _write(self, statements: Sequence[Statement]) -> None:
        if self.stored_by_another:
            self.db.items, self.stored_by_another = self.stored_by_another, 0
            raise DuplicateError("an item of this number")
        self.written.append(statements)

    def hear(self, *lines: str) -> None:
        self.entries += 1
        at_ms = START_MS + 1_000 * self.entries
        said = logged(*lines)
        self.fold.take(
            RawEntry(server_id="srv_1", seq=self.entries, kind=LOG, received_ms=at_ms, headers=b"{}", body=said)
        )

    @property
    def tables(self) -> list[str]:
        """The tables that the last write changed, in order."""
        words = ("history_counts", "maps", "series", "map_events")
        changed = (
            word
            for one in self.written[-1]
            for word in words
            if one.sql.lstrip().startswith((f"INSERT INTO {word} ", f"UPDATE {word} "))
        )
        return list(dict.fromkeys(changed))


def test_a_match_that_has_no_history_yet_gets_one_at_once() -> None:
    async def scenario() -> None:
        recording = Recording()
        recorder = recording.recorder
        await recorder.begin()
        assert recorder.due_ms(START_MS) == 0
        await recorder.write(START_MS)
        assert {"maps", "series", "history_counts"} <= set(recording.tables)
        assert recorder.due_ms(START_MS) is None, "nothing is new"

    asyncio.run(scenario())


def test_only_what_lists_are_counted_by_is_counted_again() -> None:
    async def scenario() -> None:
        recording = Recording()
        recorder = recording.recorder
        await recorder.begin()
        await recorder.write(START_MS)
        recording.hear(*coming())
        assert recorder.due_ms(START_MS) == START_MS + FLUSH_MS, "somebody came: that can wait a little"
        recording.hear(*first_round()[:5])
        assert recorder.due_ms(START_MS) == 0, "a map began: everybody is to know at once"
        await recorder.write(START_MS + 1)
        assert set(recording.tables) == {"history_counts", "maps", "series", "map_events"}
        recording.hear(*first_round()[5:])
        await recorder.write(START_MS + 2)
        assert recording.tables == ["maps", "map_events"], "a round was won, of which the series knows nothing"
        await recorder.write(START_MS + 3, [Statement("UPDATE snapshots SET seq = 1")])
        assert len(recording.written[-1]) == 2, "the claim is held, and what else was wanted is written"

    asyncio.run(scenario())


def test_a_clock_that_was_set_back_does_not_put_off_what_is_due() -> None:
    async def scenario() -> None:
        recording = Recording()
        await recording.recorder.begin()
        await recording.recorder.write(START_MS)
        recording.hear(*coming())
        assert recording.recorder.due_ms(START_MS - 1) == 0

    asyncio.run(scenario())


def test_items_that_somebody_stored_meanwhile_are_not_stored_again() -> None:
    async def scenario() -> None:
        recording = Recording()
        await recording.recorder.begin()
        recording.hear(*coming())
        recording.stored_by_another = 3
        await recording.recorder.write(START_MS)
        (appended,) = (one for one in recording.written[-1] if "INTO map_events" in one.sql)
        assert (appended.params["first_seq"], appended.params["count"]) == (4, 1)

    asyncio.run(scenario())
