"""Entries are committed together, in order, and none is answered before it is stored; answers may be held."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError, Statement
from matchpod.service.match_log import log_writer
from matchpod.service.match_log.entries import EntryKind, NewEntry
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import TURN_S, FoldTurns
from matchpod.service.match_log.held_answers import FEW_MATCHES, MAX_HOLD_S, TICK_S, hold_s
from matchpod.service.match_log.live import LocalMatch, LocalMatches
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.storage import raw_log
from matchpod.storage.raw_log import RawEntry
from tests.contract import databases
from tests.contract.databases import HookedDatabase
from tests.unit.service.match_log.test_fold import recorded, row_of

harness = databases.mostly_sqlite_harness


def post(body: bytes, attempt: str = "") -> tuple[NewEntry]:
    return (NewEntry(kind=EntryKind.LOG, received_ms=1, body=body, attempt=attempt),)


def bodies_in(statements: Sequence[Statement]) -> list[object]:
    """Return the bodies of a transaction: one statement for all, or two for each."""
    if "bodies" in statements[0].params:
        (together,) = statements
        return list(cast(list[object], together.params["bodies"]))
    return [one.params["body"] for one in statements if "body" in one.params]


class CountingDatabase(HookedDatabase):
    """Counts the entries of transactions, and fails those that contain the body `bad`."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, before_write=self._count)
        self.sizes: list[int] = []
        self.error_of_bad: DatabaseError | None = None

    async def _count(self, statements: Sequence[Statement]) -> None:
        self.sizes.append(len(bodies_in(statements)))
        if self.error_of_bad is not None and b"bad" in bodies_in(statements):
            raise self.error_of_bad


class Told:
    def __init__(self) -> None:
        self.results: list[int | DatabaseError] = []
        self.is_complete = asyncio.Event()

    def note(self, count: int) -> Callable[[int | DatabaseError], None]:
        """Return a callback that completes after `count` results."""

        def done(result: int | DatabaseError) -> None:
            self.results.append(result)
            if len(self.results) == count:
                self.is_complete.set()

        return done


def writer_of(db: Database, distance_s: float = 0.0) -> LogWriter:
    return LogWriter(db, LocalMatches(), FoldTurns(), distance_of=lambda _: distance_s)


async def bodies(db: Database, server_id: str) -> list[bytes]:
    return [one.body for one in await raw_log.read_after(db, server_id, 0, limit=100)]


@databases.on_both
async def test_posts_that_arrive_together_are_one_transaction(db: Database) -> None:
    counting, told = CountingDatabase(db), Told()
    writer, done = writer_of(counting), told.note(3)
    for number in range(3):
        writer.add(f"srv_{number}", post(b"line %d" % number), done)
    await told.is_complete.wait()
    assert counting.sizes == [3]
    assert told.results == [6, 6, 6], "the bytes that each match has stored"
    assert [await bodies(db, f"srv_{number}") for number in range(3)] == [[b"line 0"], [b"line 1"], [b"line 2"]]


async def test_all_that_waits_is_committed_with_an_entry_that_does_not(db: Database) -> None:
    counting, told = CountingDatabase(db), Told()
    writer = writer_of(counting, distance_s=3_600.0)
    writer.add("srv_1", post(b"waits"), told.note(1))
    writer.add("srv_2", post(b"waits too"), told.note(2))
    await writer.append("srv_1", [NewEntry(kind=EntryKind.DEADLINE, received_ms=2)])
    assert counting.sizes == [3]
    assert told.results == [5, 9]
    assert [one.kind for one in await raw_log.read_after(db, "srv_1", 0, limit=9)] == ["log", "deadline"]


@pytest.mark.parametrize(
    ("kind", "body", "waits"),
    [
        (EntryKind.LOG, b'"A<2><[U:1:1]><CT>" say "hello"', True),
        (EntryKind.LOG, b'World triggered "Round_End"', False),
        (EntryKind.LOG, b"Game Over: competitive 13:5", False),
        (EntryKind.REPORT, b'{"event": "player_disconnect"}', True),
        (EntryKind.REPORT, b'{"event": "round_end"}', False),
        (EntryKind.REPORT, b'{"event": "map_result"}', False),
        (EntryKind.REPORT, b'{"event": "series_end"}', False),
    ],
)
async def test_what_may_end_a_round_does_not_wait_for_the_next_commit(
    db: Database, monkeypatch: pytest.MonkeyPatch, kind: EntryKind, body: bytes, *, waits: bool
) -> None:
    monkeypatch.setattr(log_writer, "TICK_S", 3_600.0)
    monkeypatch.setattr(log_writer, "AFTER_ANSWERS_S", 3_600.0)
    writer, told = writer_of(db, distance_s=1.5), Told()
    writer.add("srv_1", [NewEntry(kind=kind, received_ms=1, body=body)], told.note(1))
    if waits:
        for _ in range(9):
            assert not await bodies(db, "srv_1")
        await writer.flush("srv_1")
    async with asyncio.timeout(60):
        await told.is_complete.wait()


@pytest.mark.parametrize(
    ("body", "is_map_point", "waits"),
    [
        (b'"A<2><[U:1:1]><CT>" [1 2 3] killed "B<3><[U:1:2]><TERRORIST>" [1 2 3] with "ak47"', True, False),
        (b'"A<2><[U:1:1]><CT>" triggered "Defused_The_Bomb"', True, False),
        (b'"A<2><[U:1:1]><CT>" say "hello"', True, True),
        (b'"A<2><[U:1:1]><CT>" [1 2 3] killed "B<3><[U:1:2]><TERRORIST>" [1 2 3] with "ak47"', False, True),
    ],
)
async def test_what_may_decide_the_last_round_does_not_keep_game_over_waiting(
    db: Database, monkeypatch: pytest.MonkeyPatch, body: bytes, *, is_map_point: bool, waits: bool
) -> None:
    monkeypatch.setattr(log_writer, "TICK_S", 3_600.0)
    world = HeldWorld(db)
    world.may_map_end = world.may_round_end_map = is_map_point
    world.writer.add("srv_1", post(body), Told().note(1))
    assert await is_committed_soon(db) is not waits


async def is_committed_soon(db: Database) -> bool:
    for _ in range(20):
        if await bodies(db, "srv_1"):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_post_that_cannot_be_stored_does_not_affect_others(db: Database) -> None:
    counting, told = CountingDatabase(db), Told()
    counting.error_of_bad = DatabaseError("a value does not fit")
    writer, done = writer_of(counting), told.note(3)
    for body in (b"good", b"bad", b"fine"):
        writer.add(f"srv_{body.decode()}", post(body), done)
    await told.is_complete.wait()
    assert sorted(map(str, told.results)) == ["4", "4", "a value does not fit"]
    assert (await bodies(db, "srv_good"), await bodies(db, "srv_bad")) == ([b"good"], [])


@databases.on_both
async def test_small_entries_are_stored_on_a_full_disk_if_they_fit(db: Database) -> None:
    counting, told = CountingDatabase(db), Told()
    counting.error_of_bad = DatabaseUnavailableError("the disk is full")
    writer, done = writer_of(counting), told.note(2)
    for body in (b"good", b"bad"):
        writer.add("srv_1", post(body), done)
    await told.is_complete.wait()
    is_shared = counting.is_shared  # then it is not tried again: each would wait for the database
    assert sorted(map(str, told.results)) == ["the disk is full" if is_shared else "4", "the disk is full"]
    assert counting.sizes == ([2] if is_shared else [2, 1, 1])
    counting.error_of_bad = None
    assert await writer.append("srv_1", post(b"later")) == (5 if is_shared else 9)


async def test_writer_survives_a_bug(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(statements: Sequence[Statement]) -> None:
        if b"bad" in bodies_in(statements):
            raise RuntimeError("a bug")

    writer = writer_of(HookedDatabase(db, before_write=fail))
    with pytest.raises(DatabaseError, match="RuntimeError: a bug"):
        await writer.append("srv_bad", post(b"bad"))
    assert [record.message for record in caplog.records] == ["log writer failed"]
    assert await writer.append("srv_1", post(b"two")) == 3


async def test_sender_that_fails_does_not_stop_the_others(db: Database) -> None:
    writer, told = writer_of(db), Told()

    def fail(_: int | DatabaseError) -> None:
        raise RuntimeError("the connection is in an impossible state")

    writer.add("srv_1", post(b"one"), fail)
    writer.add("srv_2", post(b"two"), told.note(1))
    await told.is_complete.wait()
    assert await writer.append("srv_1", post(b"three")) == 8


async def test_sender_that_has_gone_leaves_no_error(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    writer = writer_of(db)
    gone = asyncio.create_task(writer.append("srv_1", post(b"one")))
    await asyncio.sleep(0)
    gone.cancel()
    assert await writer.append("srv_1", post(b"two")) == 6
    assert caplog.records == []


class IdleMatch:
    """The runner of a match that waits for entries; `error` is raised after the first."""

    def __init__(self, matches: LocalMatches, name: str, error: Exception | None = None) -> None:
        self.live = LocalMatch(name, cast(Fold, None), 0)
        self.live.idle = self
        self.applied: list[bytes] = []
        self._error = error
        matches.add(self.live)

    def apply(self, entry: RawEntry) -> bool:
        self.live.seq = entry.seq
        self.applied.append(entry.body)
        return True

    def is_due(self, now_ms: int) -> bool:
        return False

    def has_work(self) -> bool:
        if self._error is not None:
            raise self._error
        return self.applied[-1] == b"wakes"


async def test_entries_are_applied_for_idle_runners_which_wake_if_they_have_work_or_fail(db: Database) -> None:
    matches = LocalMatches()
    broken = IdleMatch(matches, "srv_broken", KeyError("a bug"))
    idle, woken = IdleMatch(matches, "srv_idle"), IdleMatch(matches, "srv_woken")
    writer = LogWriter(db, matches, FoldTurns(), distance_of=lambda _: 0.0)
    for name, body in (("srv_broken", b"one"), ("srv_idle", b"two"), ("srv_woken", b"wakes")):
        writer.add(name, post(body), lambda _: None)
    async with asyncio.timeout(60):
        await woken.live.woken.wait()
    assert (broken.applied, idle.applied, woken.applied) == ([b"one"], [b"two"], [b"wakes"])
    assert isinstance(broken.live.error, KeyError)
    assert (broken.live.woken.is_set(), idle.live.woken.is_set()) == (True, False)
    await writer.append("srv_idle", post(b"three"))
    async with asyncio.timeout(60):
        while idle.applied != [b"two", b"three"]:
            await asyncio.sleep(0)


class WaitingMatch(IdleMatch):
    """The runner of a match that waits for the others as soon as its entries are applied."""

    def __init__(self, matches: LocalMatches, number: int, writer: LogWriter) -> None:
        super().__init__(matches, f"srv_{number}")
        self.waiting: asyncio.Task[None] | None = None
        self._writer = writer
        self._is_slow = number > 0

    def apply(self, entry: RawEntry) -> bool:
        if self._is_slow:
            time.sleep(2 * TURN_S)  # a whole turn
        return super().apply(entry)

    def has_work(self) -> bool:
        self.waiting = asyncio.create_task(self._writer.folded())
        return False


async def first_waited(db: Database, count: int) -> tuple[LogWriter, list[WaitingMatch]]:
    """Commit a post of each of these matches; return when the first one no longer waits for the others."""
    matches = LocalMatches()
    writer = LogWriter(db, matches, FoldTurns(), distance_of=lambda _: 0.0)
    runners = [WaitingMatch(matches, number, writer) for number in range(count)]
    for one in runners:
        writer.add(one.live.server_id, post(b"line"), lambda _: None)
    async with asyncio.timeout(60):
        while runners[0].waiting is None:
            await asyncio.sleep(0)
        await runners[0].waiting
    return writer, runners


async def test_what_follows_from_a_transaction_waits_until_all_of_it_is_applied(db: Database) -> None:
    writer, runners = await first_waited(db, 3)
    assert [one.applied for one in runners] == [[b"line"]] * 3
    async with asyncio.timeout(60):
        await writer.folded()


async def test_nothing_waits_for_entries_that_are_applied_too_slowly(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "MAX_FOLDING_S", 0.0)
    _, runners = await first_waited(db, 9)
    assert not runners[-1].applied


@pytest.mark.parametrize(
    ("matches", "distance_s"), [(0, 0.0), (FEW_MATCHES, 0.0), (100, 0.3), (400, 1.2), (50_000, MAX_HOLD_S)]
)
def test_answers_are_further_apart_with_more_matches(matches: int, distance_s: float) -> None:
    assert hold_s(matches) == pytest.approx(distance_s)


class HeldWorld:
    """A match in which a round is played, on a server whose answers are held for very long."""

    def __init__(self, db: Database) -> None:
        self.matches, self.answers = LocalMatches(), 0
        self.may_map_end = self.may_round_end_map = False
        self.live = LocalMatch("srv_1", cast(Fold, self), 0)
        self.matches.add(self.live)
        self.writer = LogWriter(db, self.matches, FoldTurns(), distance_of=lambda _: 3_600.0)

    async def post(self, body: bytes) -> None:
        self.writer.add("srv_1", post(body), self._answered, may_hold=True)
        await self.writer.flush("srv_1")

    def _answered(self, result: int | DatabaseError) -> None:
        assert not isinstance(result, DatabaseError)
        self.answers += 1


async def test_answer_is_held_after_the_commit_until_it_is_due(db: Database) -> None:
    world = HeldWorld(db)
    await world.post(b"one")
    async with asyncio.timeout(60):
        while not world.answers:  # the first one is due at the next tick
            await asyncio.sleep(0.01)
    await world.post(b"two")
    await asyncio.sleep(3 * TICK_S)
    assert world.answers == 1, "the next one not before its time"
    assert await bodies(db, "srv_1") == [b"one", b"two"]


async def test_held_answer_goes_out_when_the_map_may_end_or_the_match_is_not_driven_any_longer(db: Database) -> None:
    world = HeldWorld(db)
    world.live.answered_s = asyncio.get_running_loop().time()
    await world.post(b"one")
    (entry,) = await raw_log.read_after(db, "srv_1", 0, limit=9)
    world.live.applied(entry)
    assert world.answers == 0
    world.may_map_end = True
    world.live.applied(entry)
    assert world.answers == 1
    await world.post(b"two")
    world.matches.remove(world.live)
    assert world.answers == 2
    await world.post(b"of a match of another process")
    assert world.answers == 3, "nothing is known of its map"


async def test_answer_to_a_post_that_its_server_sent_again_is_not_lost(db: Database) -> None:
    world = HeldWorld(db)
    world.live.answered_s = asyncio.get_running_loop().time()
    await world.post(b"one")
    await world.post(b"one, from another connection")
    assert world.answers == 1


async def test_match_lacks_a_post_until_it_is_stored(db: Database) -> None:
    counting, matches, told = CountingDatabase(db), LocalMatches(), Told()
    row = row_of(recorded().settings, id="srv_1")
    live = LocalMatch("srv_1", Fold.begin(row, 1.0), 0)
    matches.add(live)
    writer = LogWriter(counting, matches, FoldTurns(), distance_of=lambda _: 0.0)
    counting.error_of_bad = DatabaseError("a value does not fit")
    with pytest.raises(DatabaseError):
        await writer.append("srv_1", post(b"bad", "of a server that was replaced"))
    assert not live.lacks_post, "it is not awaited"
    writer.add("srv_1", post(b"bad", row.attempt), told.note(1))
    await told.is_complete.wait()
    assert live.lacks_post
    await writer.append("srv_1", [NewEntry(kind=EntryKind.REPORT, received_ms=2, body=b"{}")])
    assert live.lacks_post, "a report is no post"
    await writer.append("srv_1", post(b"again", "of a server that was replaced"))
    assert live.lacks_post, "it is another server's"
    await writer.append("srv_1", post(b"again", row.attempt))
    assert not live.lacks_post
