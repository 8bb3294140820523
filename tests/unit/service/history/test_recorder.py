"""The recorder writes new items once, with a minimum of other writes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.core.views.timeline_items import PausedItem
from matchpod.core.views.timeline_writer import MapItem
from matchpod.ports import DuplicateError, Row, Statement, Value
from matchpod.service.history.recorder import FLUSH_MS, Recorder, TimelinePage, new_pages
from matchpod.service.identity.identifiers import map_id
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.streams.map_streams import Streams
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage import history_counts
from matchpod.storage.raw_log import RawEntry
from tests.unit.service.history.sample_log import first_round, log_post, players_join
from tests.unit.service.match_log.test_fold import PLAYERS, row_of
from tests.unit.service.test_access_rules import NoDatabase
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


def test_items_are_paged_by_map() -> None:
    items = [item(1, 1), item(1, 2), item(2, 1), item(1, 3)]
    assert new_pages(items, GAME, {}) == [
        TimelinePage(FIRST, 1, [line(1, 1), line(1, 2), line(1, 3)]),
        TimelinePage(SECOND, 1, [line(2, 1)]),
    ]


def test_stored_items_are_omitted() -> None:
    items = [item(1, 1), item(1, 2), item(1, 3), item(2, 1)]
    assert new_pages(items, GAME, {FIRST: 2}) == [
        TimelinePage(FIRST, 3, [line(1, 3)]),
        TimelinePage(SECOND, 1, [line(2, 1)]),
    ]
    assert new_pages(items, GAME, {FIRST: 3, SECOND: 1}) == []
    assert new_pages([], GAME, {FIRST: 3}) == []


class FakeDatabase(NoDatabase):
    items = 0

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        return [(FIRST, self.items)] if self.items and "JOIN map_events" in sql else []


class Recording:
    def __init__(self) -> None:
        row = row_of(SETTINGS, game_id=GAME)
        self.db = FakeDatabase()
        self.fold = Fold.begin(row, 1.0)
        self.written: list[Sequence[Statement]] = []
        self.stored_by_another = 0
        self.is_cancelled = False
        self.entries = 0
        streams = Streams(db=self.db, live=LocalMatches(), metrics=Metrics(Registry()))
        self.recorder = Recorder(row, self.fold, db=self.db, write=self._write, streams=streams, server_name="Europe 1")

    async def _write(self, statements: Sequence[Statement]) -> None:
        if self.stored_by_another:
            self.db.items, self.stored_by_another = self.stored_by_another, 0
            raise DuplicateError("an item with this number exists")
        self.written.append(statements)
        if self.is_cancelled:
            raise asyncio.CancelledError

    def apply(self, *lines: str) -> None:
        self.entries += 1
        at_ms = START_MS + 1_000 * self.entries
        body = log_post(*lines)
        self.fold.apply(
            RawEntry(
                server_id="srv_1", seq=self.entries, kind=EntryKind.LOG, received_ms=at_ms, headers=b"{}", body=body
            )
        )

    @property
    def tables(self) -> list[str]:
        """The tables that the last write changed, in order."""
        tables = ("history_counts", "maps", "series", "map_events", "organization_events")
        changed = (
            table
            for one in self.written[-1]
            for table in tables
            if one.sql.lstrip().startswith((f"INSERT INTO {table} ", f"UPDATE {table} "))
        )
        return list(dict.fromkeys(changed))


async def test_match_without_history_gets_one_at_once() -> None:
    recording = Recording()
    recorder = recording.recorder
    await recorder.begin()
    assert recorder.due_ms(START_MS) == 0
    await recorder.write(START_MS)
    assert {"maps", "series", "history_counts"} <= set(recording.tables)
    assert recorder.due_ms(START_MS) is None, "there is nothing new"


async def test_counts_are_written_only_if_a_list_key_changes() -> None:
    recording = Recording()
    recorder = recording.recorder
    await recorder.begin()
    await recorder.write(START_MS)
    recording.apply(*players_join())
    assert recorder.due_ms(START_MS) == START_MS + FLUSH_MS, "a player connected: not urgent"
    recording.apply(*first_round()[:5])
    assert recorder.due_ms(START_MS) == 0, "a map began: due at once"
    await recorder.write(START_MS + 1)
    assert set(recording.tables) == {"history_counts", "maps", "series", "map_events", "organization_events"}
    recording.apply(*first_round()[5:])
    await recorder.write(START_MS + 2)
    # A won round does not change the series; the counts are only locked, as late as possible, for its event.
    assert recording.tables == ["maps", "map_events", "history_counts", "organization_events"]
    assert recording.written[-1][-2] == history_counts.lock("org_1")
    await recorder.write(START_MS + 3, [Statement("UPDATE snapshots SET seq = 1")])
    assert len(recording.written[-1]) == 2, "the check of the fence and the other statement"


async def test_rows_are_not_built_for_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording()
    await recording.recorder.begin()
    recording.apply(*players_join())
    recording.apply(*first_round()[:5])
    await recording.recorder.write(START_MS)
    monkeypatch.setattr("matchpod.service.history.recorder.history_of", None)
    recording.apply(first_round()[5])
    await recording.recorder.write(START_MS + 1)
    assert recording.tables == ["map_events"]
    monkeypatch.undo()
    recording.apply(*first_round()[6:])
    await recording.recorder.write(START_MS + 2)
    assert "maps" in recording.tables


async def test_clock_that_was_set_back_does_not_delay_items() -> None:
    recording = Recording()
    await recording.recorder.begin()
    await recording.recorder.write(START_MS)
    recording.apply(*players_join())
    assert recording.recorder.due_ms(START_MS - 1) == 0


@pytest.mark.parametrize("stored_by_another", [0, 3])
async def test_items_of_a_cancelled_write_are_still_in_the_next_snapshot(stored_by_another: int) -> None:
    """The process stops: it saves the match, and cannot know whether the items were stored."""
    recording = Recording()
    await recording.recorder.begin()
    recording.apply(*players_join())
    recording.stored_by_another = stored_by_another
    before, recording.is_cancelled = recording.fold.dump(), True
    with pytest.raises(asyncio.CancelledError):
        await recording.recorder.write(START_MS)
    assert recording.fold.dump() == before


async def test_items_that_another_process_stored_meanwhile_are_not_stored_again() -> None:
    recording = Recording()
    await recording.recorder.begin()
    recording.apply(*players_join())
    recording.stored_by_another = 3
    await recording.recorder.write(START_MS)
    (appended,) = (one for one in recording.written[-1] if "INTO map_events" in one.sql)
    assert (appended.params["first_seq"], appended.params["count"]) == (4, 1)


async def test_events_that_another_process_stored_meanwhile_are_not_stored_again() -> None:
    recording = Recording()
    await recording.recorder.begin()
    recording.apply(*players_join())
    recording.apply(*first_round())
    recording.stored_by_another = 1_000
    await recording.recorder.write(START_MS)
    assert not {"map_events", "organization_events"} & set(recording.tables)
