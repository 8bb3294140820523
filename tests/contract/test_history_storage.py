"""Match history is inserted once, can be rewritten, and its counts always match the rows."""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest

from matchpod.core.match.played_map import MapStatus
from matchpod.ports import Database, DuplicateError, Statement
from matchpod.storage import history
from matchpod.storage.history import MapStats, MatchHistory
from matchpod.storage.history_counts import DAY_MS
from matchpod.storage.servers import EndColumns
from tests.contract import databases
from tests.contract.match_histories import (
    ORG,
    MapState,
    create_server,
    insert_counted,
    map_id,
    match_history,
    stored_counts,
    true_counts,
)
from tests.effort import seeds

harness = databases.harness

UPCOMING, LIVE, FINISHED, CANCELLED = MapStatus
NOON_MS = 100 * DAY_MS + DAY_MS // 2


def stats_of(server_id: str, number: int = 1, version: int = 1) -> MapStats:
    return MapStats(
        map_id=map_id(server_id, number),
        stats_version=version,
        players=b"[1]",
        anti_cheat=b"[2]",
        leaderboard=b"[3]",
    )


async def test_inserted_match_is_found_by_each_of_its_ids(db: Database) -> None:
    first = match_history("srv_1", [MapState(), MapState(name="de_nuke")])
    await db.write(insert_counted(first))
    await db.write(insert_counted(match_history("srv_2", is_series=False)))
    assert first.series is not None
    assert await history.maps_of(db, "srv_1") == list(first.maps)
    assert await history.get_map(db, map_id("srv_1", 2)) == first.maps[1]
    assert await history.series_of(db, "srv_1") == first.series
    assert await history.get_series(db, first.series.id) == (first.series, EndColumns())
    assert await history.get_series(db, "ser_srv_1") == (first.series, EndColumns())
    assert await history.stats_of(db, map_id("srv_1")) is None
    assert await history.get_map(db, "x") is None
    assert await history.get_series(db, "x") is None
    assert await history.maps_of(db, "x") == []
    assert await history.series_of(db, "srv_2") is None
    several = await history.maps_of_servers(db, ["srv_2", "x", "srv_1"])
    assert [row.map_number for row in several] == [1, 1, 2]
    assert [row for row in several if row.server_id == "srv_1"] == list(first.maps)


async def test_match_cannot_be_inserted_twice(db: Database) -> None:
    await db.write(insert_counted(match_history("srv_1")))
    with pytest.raises(DuplicateError):
        await db.write(insert_counted(match_history("srv_1")))
    assert await stored_counts(db) == await true_counts(db)


def test_match_without_maps_needs_no_statements(harness: databases.Harness) -> None:
    empty = MatchHistory(())
    assert history.replace(empty) == history.refresh(empty) == []


async def test_replacing_twice_gives_the_same_rows(db: Database) -> None:
    later = match_history("srv_1", [MapState(FINISHED, NOON_MS), MapState(CANCELLED, name="de_nuke")], score=13)
    final = MatchHistory(
        tuple(msgspec.structs.replace(row, is_final=True) for row in later.maps), later.series, (stats_of("srv_1"),)
    )
    await db.write(insert_counted(match_history("srv_1", [MapState(), MapState(name="de_nuke")])))
    for _ in range(2):
        await db.write(history.replace(final))
        assert await history.maps_of(db, "srv_1") == list(final.maps)
        assert await history.series_of(db, "srv_1") == final.series
        assert await history.stats_of(db, map_id("srv_1")) == final.stats[0]
        assert await stored_counts(db) == await true_counts(db)
    await db.write(history.replace(MatchHistory(final.maps, final.series, (stats_of("srv_1", version=2),))))
    assert await history.stats_of(db, map_id("srv_1")) == stats_of("srv_1", version=2)


async def test_replacing_inserts_missing_rows(db: Database) -> None:
    found = match_history("srv_1", [MapState(FINISHED, NOON_MS)] * 3)
    await db.write(history.replace(found))
    assert await history.maps_of(db, "srv_1") == list(found.maps)
    assert await stored_counts(db) == await true_counts(db) != {}


async def test_refreshing_updates_only_columns_that_do_not_affect_the_counts(db: Database) -> None:
    await db.write(insert_counted(match_history("srv_1", [MapState(LIVE, NOON_MS)])))
    later = match_history("srv_1", [MapState(FINISHED, NOON_MS + 1, "de_nuke")], score=7)
    await db.write(history.refresh(MatchHistory(later.maps, later.series, (stats_of("srv_1"),))))
    (row,) = await history.maps_of(db, "srv_1")
    series = await history.series_of(db, "srv_1")
    assert row == match_history("srv_1", [MapState(LIVE, NOON_MS)], score=7).maps[0]
    assert series == match_history("srv_1", [MapState(LIVE, NOON_MS)], score=7).series
    assert await history.stats_of(db, map_id("srv_1")) == stats_of("srv_1")
    assert await stored_counts(db) == await true_counts(db)


async def test_refreshing_does_not_insert_missing_rows(db: Database) -> None:
    await db.write(history.refresh(match_history("srv_1")))
    assert await history.maps_of(db, "srv_1") == []


async def test_cancelling_keeps_finished_maps(db: Database) -> None:
    await create_server(db, "srv_1")
    states = [MapState(FINISHED, NOON_MS), MapState(LIVE, NOON_MS + 9), MapState()]
    await db.write(insert_counted(match_history("srv_1", states)))
    await db.write(history.replace(match_history("srv_2", [MapState(LIVE, NOON_MS)])))
    for _ in range(2):
        await db.write(history.cancel_open("srv_1"))
    rows = await history.maps_of(db, "srv_1")
    assert [row.status for row in rows] == [FINISHED, CANCELLED, CANCELLED]
    assert [row.sort_ms for row in rows] == [NOON_MS, NOON_MS + 9, 0]
    assert [row.status for row in await history.maps_of(db, "srv_2")] == [LIVE]
    assert await stored_counts(db) == await true_counts(db)


def random_history(rng: random.Random, server_id: str, org_id: str) -> MatchHistory:
    size = 1 + int(server_id[-1]) % 3
    states = [
        MapState(
            rng.choice(list(MapStatus)),
            rng.choice([None, 1, DAY_MS - 1, DAY_MS, NOON_MS, NOON_MS + rng.randrange(3) * DAY_MS]),
            rng.choice(["de_mirage", "de_nuke", "workshop/1/x"]),
        )
        for _ in range(size)
    ]
    return match_history(server_id, states, org_id=org_id, is_series=size > 1, score=rng.randrange(9))


def random_change(rng: random.Random, server_id: str, org_id: str) -> list[Statement]:
    kind = rng.choice(["replace", "replace", "refresh", "cancel"])
    if kind == "cancel":
        return history.cancel_open(server_id)
    change = random_history(rng, server_id, org_id)
    return history.replace(change) if kind == "replace" else history.refresh(change)


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(2))
async def test_counts_are_correct_after_any_sequence_of_changes(db: Database, seed: int) -> None:
    rng = random.Random(seed)
    owners = {f"srv_{number}": f"org_{number % 2}" for number in range(8)}
    for server_id, org_id in owners.items():
        await create_server(db, server_id, org_id=org_id)
        if rng.random() < 0.5:
            await db.write(insert_counted(random_history(rng, server_id, org_id)))
    for _ in range(60):
        server_id, org_id = rng.choice(list(owners.items()))
        await db.write(random_change(rng, server_id, org_id))
        assert await stored_counts(db) == await true_counts(db)


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(1))
async def test_counts_are_correct_after_concurrent_changes(replicas: databases.Replicas, seed: int) -> None:
    rng = random.Random(seed)
    db, peer = replicas
    for number in range(3):
        await create_server(db, f"srv_{number}")

    async def make_changes() -> None:
        for _ in range(12):
            server_id = f"srv_{rng.randrange(3)}"
            await rng.choice([db, peer]).write(random_change(rng, server_id, ORG))

    async def insert_others(name: str) -> None:
        for number in range(8):
            await peer.write(insert_counted(random_history(rng, f"srv_{name}{number}", ORG)))

    await asyncio.gather(*(make_changes() for _ in range(6)), insert_others("a"), insert_others("b"))
    assert await stored_counts(db) == await true_counts(db)


async def test_counts_are_correct_if_rows_are_cancelled_while_being_inserted(replicas: databases.Replicas) -> None:
    db, peer = replicas
    for number in range(20):
        name = f"srv_{number}"
        await create_server(db, name)
        change = history.replace(match_history(name, [MapState(LIVE, NOON_MS)]))
        await asyncio.gather(db.write(change), peer.write(history.cancel_open(name)))
    assert await stored_counts(db) == await true_counts(db)
