"""The events of an organization are numbered without gaps, in the order of their transactions, and read by it alone."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from matchpod.ports import Database, Statement
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.operations.pruning import DAY_MS, STREAM_DAYS, Retention, count_prunable, prune
from matchpod.service.streams.map_streams import Streams
from matchpod.service.streams.organization_streams import OrganizationReader
from matchpod.service.streams.readers import PollPace
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage import organization_events as stored_events
from tests.contract import databases
from tests.effort import seeds

harness = databases.mostly_sqlite_harness

TIMEOUT_S = 200.0
ORG = "org_1"
KEEP = Retention(raw_log_days=30, event_days=365)


def line(number: int) -> bytes:
    return b'{"type":"score_changed","number":%d}' % number


async def append(db: Database, count: int = 1, *, org_id: str = ORG, at_ms: int = 1) -> None:
    first = await stored_events.newest(db, org_id) + 1
    await db.write(stored_events.append(org_id, [line(first + index) for index in range(count)], at_ms=at_ms))


def process(db: Database) -> Streams:
    pace = PollPace(poll_s=0.02, check_polls=1, gather_s=0.02)
    return Streams(db=db, live=LocalMatches(), metrics=Metrics(Registry()), pace=pace)


async def frames(reader: OrganizationReader) -> list[tuple[int, dict[str, Any]]]:
    got = await reader.next(TIMEOUT_S)
    assert got, "timeout"
    found = []
    for frame in got.decode().removesuffix("\n\n").split("\n\n"):
        fields = dict(one.split(": ", 1) for one in frame.split("\n"))
        item = json.loads(fields["data"])
        assert item["type"] == fields["event"]
        found.append((int(fields["id"]), item))
    return found


async def read_until(reader: OrganizationReader, last: int) -> list[int]:
    ids: list[int] = []
    while not ids or ids[-1] < last:
        ids += [seq for seq, _ in await frames(reader)]
    return ids


@databases.on_both
async def test_numbers_follow_each_other_in_each_organization(db: Database) -> None:
    assert await stored_events.newest(db, ORG) == 0
    await append(db, 3)
    await append(db, org_id="org_2")
    await append(db)
    assert await stored_events.read_after(db, ORG, 0, limit=10) == [(seq, line(seq)) for seq in (1, 2, 3, 4)]
    assert await stored_events.read_after(db, ORG, 1, limit=2) == [(2, line(2)), (3, line(3))]
    assert await stored_events.newest_of(db, [ORG, "org_2", "org_3"]) == {ORG: 4, "org_2": 1}
    assert stored_events.append(ORG, [], at_ms=1) == []


@databases.on_both
async def test_newest_numbers_of_many_organizations(db: Database) -> None:
    names = [f"org_{number}" for number in range(1_100)]
    await db.write([one for name in names[::100] for one in stored_events.append(name, [line(1)], at_ms=1)])
    assert await stored_events.newest_of(db, names) == dict.fromkeys(names[::100], 1)


@databases.on_both
async def test_concurrent_writers_leave_no_gap_and_no_number_appears_late(replicas: databases.Replicas) -> None:
    count, seen = 20, 0

    async def write(db: Database, writer: int) -> None:
        for number in range(count):
            text = b'{"type":"score_changed","by":"%d %d"}' % (writer, number)
            await db.write(stored_events.append(ORG, [text], at_ms=1))

    async def watch() -> None:
        nonlocal seen
        while seen < 4 * count:
            rows = await stored_events.read_after(replicas[0], ORG, seen, limit=1_000)
            assert [seq for seq, _ in rows] == list(range(seen + 1, seen + 1 + len(rows)))
            seen += len(rows)
            await asyncio.sleep(0)

    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        group.create_task(watch())
        for writer in range(4):
            group.create_task(write(replicas[writer % 2], writer))
    stored = [
        json.loads(text)["by"].split() for _, text in await stored_events.read_after(replicas[0], ORG, 0, limit=99)
    ]
    for writer in range(4):
        assert [int(number) for by, number in stored if int(by) == writer] == list(range(count))


@databases.on_both
async def test_event_of_a_failed_transaction_leaves_no_trace(db: Database) -> None:
    await append(db)
    failing = Statement("UPDATE servers SET phase = 'ending' WHERE id = 'unknown'", must_change=True)
    with pytest.raises(Exception, match="changed too few rows"):
        await db.write([*stored_events.append(ORG, [line(2)], at_ms=1), failing])
    await append(db)
    assert await stored_events.read_after(db, ORG, 0, limit=10) == [(1, line(1)), (2, line(2))]


async def test_reader_without_position_gets_its_position_and_then_new_events(db: Database) -> None:
    await append(db, 5)
    streams = process(db)
    reader = await streams.organizations.open(ORG, None)
    assert await frames(reader) == [(5, {"type": "position"})]
    await append(db, 2)
    streams.organizations.wake()
    assert await read_until(reader, 7) == [6, 7]
    reader.close()
    assert await reader.next(TIMEOUT_S) is None
    assert not streams


async def test_reader_with_a_position_above_all_events_is_told_the_newest(db: Database) -> None:
    await append(db, 5)
    reader = await process(db).organizations.open(ORG, 77)
    assert await frames(reader) == [(5, {"type": "position"})]
    reader.close()


@databases.on_both
async def test_reader_sees_no_event_of_another_organization(db: Database) -> None:
    streams = process(db)
    await append(db, 3, org_id="org_2")
    reader = await streams.organizations.open(ORG, 0)
    other = await streams.organizations.open("org_2", 0)
    assert await read_until(other, 3) == [1, 2, 3]
    await append(db, org_id="org_2")
    assert await read_until(other, 4) == [4]
    assert await reader.next(0.1) == b""
    await append(db)
    assert await read_until(reader, 1) == [1]
    for one in (reader, other):
        one.close()


@databases.on_both
async def test_all_readers_of_a_process_are_fed_by_one_poll(db: Database) -> None:
    reads: list[str] = []

    async def note(sql: str) -> None:
        reads.append(sql)

    streams = process(databases.HookedDatabase(db, before_read=note))
    readers = [await streams.organizations.open(ORG, 0) for _ in range(20)]
    reads.clear()
    await append(db, 50)
    streams.organizations.wake()
    for reader in readers:
        assert await read_until(reader, 50) == list(range(1, 51))
    assert sum(sql.startswith("SELECT seq, line") for sql in reads) == 1
    for reader in readers:
        reader.close()


# --- a standby that was promoted --------------------------------------------------------------------------------


async def lose(db: Database, *, after: int, others: int) -> None:
    """Lose the last events, as an asynchronous standby does, and store other ones under their numbers."""
    delete = Statement("DELETE FROM organization_events WHERE seq > :after", {"after": after})
    await db.write([delete, *other_events(others)])


def other_events(count: int) -> list[Statement]:
    return stored_events.append(ORG, [b'{"type":"map_live"}'] * count, at_ms=2)


async def read_others(reader: OrganizationReader, last: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    while not found or found[-1] != (last, "map_live"):
        found += [(seq, item["type"]) for seq, item in await frames(reader)]
    return found


@pytest.mark.parametrize("others", [1, 3, 7], ids=["fewer", "as many", "more"])
async def test_open_reader_gets_its_position_and_events_whose_numbers_are_used_again(db: Database, others: int) -> None:
    streams = process(db)
    reader, behind = await streams.organizations.open(ORG, 0), await streams.organizations.open(ORG, 0)
    await append(db, 5)
    assert await read_until(reader, 5) == [1, 2, 3, 4, 5]
    await lose(db, after=2, others=others)
    await db.write(other_events(1))
    last = 2 + others + 1
    expected = [(seq, "map_live") for seq in range(3, last + 1)]
    assert await read_others(reader, last) == [(2, "position"), *expected]
    assert await read_others(behind, last) == [(1, "score_changed"), (2, "score_changed"), *expected]
    for one in (reader, behind):
        one.close()


async def test_reader_that_reconnects_before_the_loss_was_noticed_is_told_the_newest(db: Database) -> None:
    own = databases.HookedDatabase(db, is_shared=False)  # which is polled only after a write of this process
    pace = PollPace(poll_s=3_600.0, gather_s=0.0)
    streams = Streams(db=own, live=LocalMatches(), metrics=Metrics(Registry()), pace=pace)
    other = await streams.organizations.open(ORG, 0)
    await append(db, 5)
    streams.organizations.wake()
    assert await read_until(other, 5) == [1, 2, 3, 4, 5]
    await lose(db, after=2, others=1)
    reader = await streams.organizations.open(ORG, 5)
    assert await frames(reader) == [(3, {"type": "position"})]
    assert await read_others(other, 3) == [(2, "position"), (3, "map_live")]
    for one in (reader, other):
        one.close()


@pytest.mark.law
@databases.on_both
@pytest.mark.parametrize("seed", seeds(1))
async def test_readers_get_every_event_once_despite_reconnects_and_restarts(
    replicas: databases.Replicas, seed: int
) -> None:
    rng = random.Random(seed)
    processes = [process(one) for one in replicas]
    total = 900

    async def write() -> None:
        stored = 0
        while stored < total:
            count = min(rng.choice((1, 1, 2, 5, 150)), total - stored)
            await append(rng.choice(replicas), count)
            stored += count
            if rng.random() < 0.7:
                rng.choice(processes).organizations.wake()
            if rng.random() < 0.2:  # a process is replaced by a new one
                index = rng.randrange(2)
                processes[index].close()
                processes[index] = process(replicas[index])
            await asyncio.sleep(rng.choice((0, 0, 0.01)))

    async def read() -> list[int]:
        ids: list[int] = []
        while not ids or ids[-1] < total:
            reader = await rng.choice(processes).organizations.open(ORG, ids[-1] if ids else 0)
            for _ in range(rng.choice((1, 2, 5, 10**6))):
                got = await reader.next(TIMEOUT_S)
                if got is None:
                    break
                assert got, "timeout"
                new = [int(one.partition(b"\n")[0].removeprefix(b"id: ")) for one in got.split(b"\n\n")[:-1]]
                # A connection may break in the middle of the frames.
                ids += new if rng.random() < 0.7 else new[: rng.randint(1, len(new))]
                if ids[-1] != new[-1] or ids[-1] == total:
                    break
            reader.close()
        return ids

    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        readers = [group.create_task(read()) for _ in range(8)]
        group.create_task(write())
    assert all(reader.result() == list(range(1, total + 1)) for reader in readers)
    await asyncio.sleep(0)
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("stream")] == []


# --- retention ------------------------------------------------------------------------------------------------------


@databases.on_both
async def test_old_events_are_deleted_but_never_the_newest(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_events, "PRUNE_EVENTS", 3)
    now_ms = 100 * DAY_MS
    old_ms, young_ms = now_ms - STREAM_DAYS * DAY_MS - 1, now_ms - STREAM_DAYS * DAY_MS
    await append(db, 7, at_ms=old_ms)
    await append(db, 2, at_ms=young_ms)
    await append(db, 1, at_ms=old_ms)  # the clock was set back
    await append(db, 5, org_id="org_2", at_ms=old_ms)
    assert (await count_prunable(db, KEEP, now_ms)).organization_events == 7 + 4
    assert (await prune(db, KEEP, now_ms)).organization_events == 7 + 4
    assert (await count_prunable(db, KEEP, now_ms)).is_empty
    assert (await prune(db, KEEP, now_ms)).is_empty
    assert [seq for seq, _ in await stored_events.read_after(db, ORG, 0, limit=10)] == [8, 9, 10]
    assert [seq for seq, _ in await stored_events.read_after(db, "org_2", 0, limit=10)] == [5]
    await append(db, org_id="org_2")
    assert await stored_events.newest(db, "org_2") == 6, "numbers are not reused"


async def test_reader_behind_the_retention_gets_a_gap_and_the_rest(db: Database) -> None:
    await append(db, 7, at_ms=1)
    await append(db, 3, at_ms=50 * DAY_MS)
    streams = process(db)
    late = await streams.organizations.open(ORG, 2)
    exact = await streams.organizations.open(ORG, 7)
    await prune(db, KEEP, 51 * DAY_MS)
    assert (await frames(late))[:2] == [
        (7, {"type": "gap", "firstId": 3, "lastId": 7}),
        (8, {"type": "score_changed", "number": 8}),
    ]
    assert await read_until(exact, 10) == [8, 9, 10]
    for reader in (late, exact):
        reader.close()


async def test_events_before_the_newest_that_were_deleted_are_not_taken_for_lost_ones(db: Database) -> None:
    await append(db, 5)
    await append(db, at_ms=10 * STREAM_DAYS * DAY_MS)
    assert await stored_events.prune(db, STREAM_DAYS * DAY_MS) == 5
    streams = process(db)
    reader = await streams.organizations.open(ORG, 6)
    for seq in (7, 8):
        await append(db)
        streams.organizations.wake()
        assert await frames(reader) == [(seq, {"type": "score_changed", "number": seq})]
    reader.close()
