"""The pages of a list of maps or series contain all matching rows for every filter, and `total` is their number."""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from matchpod.core.labels import Label
from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.history_query import ListQuery
from matchpod.ports import Database, Statement
from matchpod.storage import history, server_labels
from matchpod.storage.history import MapRow, MatchHistory, SeriesRow
from matchpod.storage.history_counts import DAY_MS
from matchpod.storage.history_lists import HistoryMap, list_maps, list_series
from matchpod.storage.list_positions import KEPT_S, ListPositions
from tests.contract import databases
from tests.contract.match_histories import ORG, MapState, create_server, insert_counted, match_history
from tests.effort import some_of

harness = databases.harness

DAY = 20_000
NOON_MS = DAY * DAY_MS + DAY_MS // 2
STATUSES: tuple[MapStatus | None, ...] = (None, *MapStatus)
NAMES = (None, "de_mirage", "de_nuke", "de_nowhere")
TIMES: tuple[tuple[int | None, int | None], ...] = (
    (None, None),
    (NOON_MS, None),
    (None, NOON_MS + DAY_MS),
    (DAY * DAY_MS, (DAY + 2) * DAY_MS),
    (NOON_MS - 1, NOON_MS + 2 * DAY_MS + 1),
    (NOON_MS, NOON_MS + 1),
    (NOON_MS + 5, NOON_MS),
    (-5, 0),
)
NEVER_DEEP = 10**9

_T = TypeVar("_T")


def played_matches(seed: int, count: int = 40) -> list[MatchHistory]:
    """Create matches of two organizations in four days: many at the same time, some never started, some long ago."""
    rng = random.Random(seed)
    matches = []
    for number in range(count):
        states = []
        for _ in range(rng.choice([1, 1, 3])):
            status = rng.choice(list(MapStatus))
            moments = [NOON_MS + rng.randrange(4) * DAY_MS + rng.choice([-1, 0, 0, 1, DAY_MS // 2]), 1, DAY_MS]
            started = None if status is MapStatus.UPCOMING else rng.choice([*moments[:1] * 6, *moments, None])
            states.append(MapState(status, started, rng.choice(["de_mirage", "de_nuke"])))
        org_id = ORG if rng.random() < 0.9 else "org_2"
        matches.append(match_history(f"srv_{number}", states, org_id=org_id, is_series=rng.random() < 0.8))
    return matches


def is_selected(row: MapRow | SeriesRow, query: ListQuery) -> bool:
    if query.from_ms is not None and (row.started_at_ms is None or row.started_at_ms < query.from_ms):
        return False
    if query.before_ms is not None and (row.started_at_ms is None or row.started_at_ms >= query.before_ms):
        return False
    if isinstance(row, MapRow) and query.map_name not in (None, row.map_name):
        return False
    return row.org_id == ORG and query.status in (None, row.status) and query.server_id in (None, row.server_id)


def expected_maps(matches: list[MatchHistory], query: ListQuery) -> list[MapRow]:
    rows = [row for match in matches for row in match.maps if is_selected(row, query)]
    by_creation = sorted(sorted(rows, key=lambda row: row.map_number), key=lambda row: row.server_id, reverse=True)
    return sorted(by_creation, key=lambda row: -(row.started_at_ms or 0))


def expected_series(matches: list[MatchHistory], query: ListQuery) -> list[tuple[SeriesRow, list[HistoryMap]]]:
    found = [
        (match.series, msgspec.convert(match.maps, list[HistoryMap], from_attributes=True))
        for match in matches
        if match.series and is_selected(match.series, query)
    ]
    by_creation = sorted(found, key=lambda entry: entry[0].server_id, reverse=True)
    return sorted(by_creation, key=lambda entry: -(entry[0].started_at_ms or 0))


async def store(db: Database, matches: list[MatchHistory]) -> None:
    for match in matches:
        await create_server(db, match.maps[0].server_id, org_id=match.maps[0].org_id)
        await db.write(insert_counted(match))


Page = Callable[[ListQuery], Awaitable[tuple[int, Sequence[_T]]]]


async def all_pages(query: ListQuery, read: Page[_T]) -> list[_T]:
    """Return the items of all pages; the total on the last must be their number."""
    items: list[_T] = []
    for page in itertools.count(1):
        total, found = await read(msgspec.structs.replace(query, page=page))
        items += found
        if len(found) < query.page_size:
            assert total == len(items)
            break
    return items


async def all_maps(
    db: Database, query: ListQuery, deep_offset: int, positions: ListPositions | None = None
) -> list[MapRow]:
    return await all_pages(query, partial(list_maps, db, ORG, deep_offset=deep_offset, positions=positions))


async def all_series(
    db: Database, query: ListQuery, deep_offset: int, positions: ListPositions | None = None
) -> list[tuple[SeriesRow, list[HistoryMap]]]:
    found = await all_pages(query, partial(list_series, db, ORG, deep_offset=deep_offset, positions=positions))
    return [(one.series, one.maps) for one in found]


KINDS = (
    (7, NEVER_DEEP, None),
    (5, 0, None),
    (1, NEVER_DEEP, None),
    (2, 3, None),
    (100, NEVER_DEEP, None),
    (2, NEVER_DEEP, "srv_3"),
    (2, NEVER_DEEP, "srv_none"),
)
"""Items per page, how many rows are few enough to count them, and the server."""


async def test_pages_of_maps_are_complete_for_every_filter(db: Database) -> None:
    matches = played_matches(1)
    await store(db, matches)
    filters = itertools.product(KINDS, STATUSES, NAMES, TIMES)
    for (page_size, deep_offset, server_id), status, name, (from_ms, before_ms) in some_of(filters, 80):
        query = ListQuery(
            server_id=server_id,
            status=status,
            map_name=name,
            from_ms=from_ms,
            before_ms=before_ms,
            page_size=page_size,
        )
        assert await all_maps(db, query, deep_offset) == expected_maps(matches, query), query


async def test_pages_of_series_are_complete_for_every_filter(db: Database) -> None:
    matches = played_matches(2)
    await store(db, matches)
    filters = itertools.product(KINDS, STATUSES, TIMES)
    for (page_size, deep_offset, server_id), status, (from_ms, before_ms) in some_of(filters, 60):
        query = ListQuery(server_id=server_id, status=status, from_ms=from_ms, before_ms=before_ms, page_size=page_size)
        assert await all_series(db, query, deep_offset) == expected_series(matches, query), query


async def test_pages_by_label_have_only_the_maps_and_series_of_labeled_matches(db: Database) -> None:
    matches = played_matches(6)
    await store(db, matches)
    rng, label, labeled = random.Random(6), Label("event", "finals"), []
    for match in matches:
        org_id, server_id = match.maps[0].org_id, match.maps[0].server_id
        if rng.random() < 0.5:
            await db.write(server_labels.insert(org_id, server_id, rng.randrange(5), {"event": "finals", "table": "1"}))
            labeled.append(match)
        else:
            await db.write(server_labels.insert(org_id, server_id, rng.randrange(5), {"event": "semi"}))
    filters = itertools.product(STATUSES, NAMES, TIMES, ((label,), (label, Label("table", "1"))), (None, "srv_3"))
    for status, name, (from_ms, before_ms), labels, server_id_or_all in some_of(filters, 60):
        query = ListQuery(
            status=status,
            map_name=name,
            from_ms=from_ms,
            before_ms=before_ms,
            labels=labels,
            server_id=server_id_or_all,
            page_size=7,
        )
        assert await all_maps(db, query, NEVER_DEEP) == expected_maps(labeled, query), query
        query = msgspec.structs.replace(query, map_name=None)
        assert await all_series(db, query, NEVER_DEEP) == expected_series(labeled, query), query


async def test_pages_are_complete_with_remembered_positions_while_matches_are_added(db: Database) -> None:
    matches = played_matches(6, count=60)
    positions = ListPositions(step=3)
    numbers = sorted(range(60), key=lambda number: (matches[number].maps[0].server_id, number))
    stored: list[MatchHistory] = []
    for part in (numbers[:40], numbers[40:50], numbers[50:]):
        # What is added has newer ids, and starts on the last days or never.
        added = [_late(matches[number]) if stored else matches[number] for number in part]
        await store(db, added)
        stored += added
        for status, name, page_size in some_of(itertools.product(STATUSES, NAMES, [1, 4]), 25):
            query = ListQuery(status=status, map_name=name, page_size=page_size)
            assert await all_maps(db, query, 0, positions) == expected_maps(stored, query), query
        for status in STATUSES:
            query = ListQuery(status=status, page_size=3)
            assert await all_series(db, query, 0, positions) == expected_series(stored, query), query


def _late(match: MatchHistory) -> MatchHistory:
    """The match, on the day after all others if it was started."""
    states = [
        MapState(one.status, None if one.started_at_ms is None else NOON_MS + 5 * DAY_MS, one.map_name)
        for one in match.maps
    ]
    first = match.maps[0]
    return match_history(first.server_id, states, org_id=first.org_id, is_series=match.series is not None)


async def test_positions_are_read_once_a_minute(db: Database) -> None:
    now_s = 0.0
    counted = databases.HookedDatabase(db)
    positions = ListPositions(now_s=lambda: now_s)
    await store(db, [match_history(f"srv_{n}", [MapState(MapStatus.FINISHED, NOON_MS + n * DAY_MS)]) for n in range(9)])
    query = ListQuery(page=3, page_size=1)
    for at_s, queries in ((0.0, 4), (1.0, 3), (KEPT_S - 0.1, 3), (KEPT_S, 4), (KEPT_S + 1, 3)):
        now_s, counted.reads = at_s, 0
        _, (row,) = await list_maps(counted, ORG, query, deep_offset=0, positions=positions)
        assert row.server_id == "srv_6"
        assert counted.reads == queries, at_s


async def test_positions_among_upcoming_maps_are_not_remembered(db: Database) -> None:
    """They start in their order, so all positions change all the time."""
    await store(db, [match_history(f"srv_{number}") for number in range(9)])
    positions, query = ListPositions(step=1), ListQuery(status=MapStatus.UPCOMING, page=5, page_size=1)
    for oldest, expected in (("srv_0", "srv_4"), ("srv_1", "srv_4"), ("srv_2", "srv_4")):
        _, (row,) = await list_maps(db, ORG, query, deep_offset=0, positions=positions)
        assert row.server_id == expected
        await db.write(history.replace(match_history(oldest, [MapState(MapStatus.LIVE, NOON_MS)])))


async def test_series_without_maps_is_listed(db: Database) -> None:
    match = match_history("srv_1")
    await store(db, [match])
    await db.write([Statement("DELETE FROM maps")])
    total, (listed,) = await list_series(db, ORG, ListQuery())
    assert (total, listed.series, listed.maps) == (1, match.series, [])
