"""How much do the databases read for a page? As much as the page has, however many matches were played."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from matchpod.adapters.sql_text import number_parameters
from matchpod.core.history_query import ListQuery
from matchpod.core.played_map import MapStatus
from matchpod.ports import Database, Row, Statement, Value
from matchpod.storage import history, map_events
from matchpod.storage.history_counts import DAY_MS, count
from matchpod.storage.history_lists import list_maps, list_series
from tests.contract import databases
from tests.contract.databases import Home, PassedOn
from tests.contract.match_histories import ORG

PART = 2_000
"""Rows inserted at once."""

TABLES = ("maps", "series", "history_counts", "map_events")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A database of each kind that all tests here only read."""
    filled = databases.home_of(request, tmp_path_factory.mktemp("plans"))
    filled.run(fill)
    return filled


MATCHES = 10_000
MAPS_OF_MATCH = 2
DAYS = 40
FIRST_DAY = 20_000
MAPS_OF_DAY = MATCHES * MAPS_OF_MATCH // DAYS
PAGE = 20
BATCHES = 2_000
BATCH_ITEMS = 3
FROM_MS = (FIRST_DAY + 3) * DAY_MS + DAY_MS // 3
BEFORE_MS = (FIRST_DAY + 33) * DAY_MS + DAY_MS // 2

Query = tuple[str, Mapping[str, Value]]
Plan = dict[str, Any]


class Overheard(PassedOn):
    """A database that remembers what it was asked."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.queries: list[Query] = []

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self.queries.append((sql, params or {}))
        return await super().read(sql, params)


def numbered(most: int, insert: str) -> list[str]:
    """An insert from `numbers`, in parts: each is done in seconds on a slow machine too."""
    return [
        f"WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers"
        f" WHERE n < {min(first + PART - 1, most)}) {insert}"
        for first in range(1, most + 1, PART)
    ]


async def fill(db: Database) -> None:
    """Matches of two organizations, evenly over the days: 9 of 10 finished, a third on each of three maps."""
    sort_ms = f"{FIRST_DAY * DAY_MS} + CAST(n AS BIGINT) * {DAYS * DAY_MS} / {{}}"
    status = "CASE WHEN n % 100 = 0 THEN 'cancelled' WHEN n % 10 = 0 THEN 'live' ELSE 'finished' END"
    org_id = f"CASE WHEN n % 8 = 0 THEN 'org_2' ELSE '{ORG}' END"
    maps = MATCHES * MAPS_OF_MATCH
    statements = [
        *numbered(
            maps,
            "INSERT INTO maps (id, server_id, org_id, series_id, map_number, map_name, game_mode,"
            " server_name, team1_score, team2_score, status, player_count, is_final, sort_ms)"
            f" SELECT 'map_' || n, 'srv_' || ((n + 1) / {MAPS_OF_MATCH}), {org_id}, NULL, n % {MAPS_OF_MATCH},"
            f" 'de_' || (n % 3), 'competitive', 'x', 0, 0, {status}, 10, 1, {sort_ms.format(maps)} FROM numbers",
        ),
        *numbered(
            MATCHES,
            "INSERT INTO series (id, series_id, server_id, org_id, server_name, format,"
            " game_mode, team1_name, team2_name, team1_maps_won, team2_maps_won, status, sort_ms)"
            f" SELECT 'series_' || n, 'ser_' || n, 'srv_' || n, {org_id}, 'x', 'bo3', 'competitive', 'A', 'B', 0, 0,"
            f" {status}, {sort_ms.format(MATCHES)} FROM numbers",
        ),
        count("").sql.replace("WHERE server_id = :server_id", ""),
        *numbered(
            BATCHES,
            "INSERT INTO map_events (map_id, first_seq, count, at_ms, is_compressed, body)"
            f" SELECT column1, (n - 1) * {BATCH_ITEMS} + 1, {BATCH_ITEMS}, n, 0, CAST('1\n2\n3' AS BLOB)"
            " FROM numbers CROSS JOIN (VALUES ('map_1'), ('map_2'), ('map_3')) AS chosen",
        ),
        # As a database in use looks: PostgreSQL does this by itself, and only then reads an index without its table.
        *(f"VACUUM ANALYZE {table}" if db.is_shared else f"ANALYZE {table}" for table in TABLES),
    ]
    for sql in statements:
        await db.write([Statement(sql)])


# --- plans --------------------------------------------------------------------------------------------------------


async def sqlite_plan(db: Database, query: Query) -> list[str]:
    """The steps, each with as many dots in front as it is deep."""
    sql, params = query
    depths: dict[Value, int] = {0: -1}
    steps = []
    for number, parent, _, detail in await db.read(f"EXPLAIN QUERY PLAN {sql}", params):
        depths[number] = depths[parent] + 1
        steps.append("." * depths[number] + str(detail))
    return steps


async def postgres_plan(connection: Any, query: Query) -> Plan:
    sql = number_parameters(query[0])
    values = [query[1][name] for name in sql.names]
    ((text,),) = await connection.fetch(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql.text}", *values)
    plan: Plan = json.loads(text)[0]["Plan"]
    return plan


def nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def rows_read(plan: Plan) -> int:
    """The rows and entries of indexes that were looked at."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes(plan)
        # A bitmap's rows are those of the scan above it.
        if "Scan" in node["Node Type"] and node["Node Type"] not in ("Subquery Scan", "Bitmap Index Scan")
    )


class Reading:
    """What one question made the database do."""

    def __init__(self) -> None:
        self.queries = 0
        self.rows = 0
        self.indexes: set[str] = set()
        self.plans: list[object] = []

    def take_sqlite(self, steps: list[str]) -> None:
        self.plans.append(steps)
        for step in steps:
            words = step.lstrip(".").split()
            if words[0] == "SCAN":
                assert words[1] in ("page", "edge", "CONSTANT"), steps
            if "TEMP B-TREE" in step:
                # Pages are put in order once more when their rows were read; what they are chosen from never is.
                assert not step.startswith("."), steps
            if "INDEX" in words:
                self.indexes.add(words[words.index("INDEX") + 1])

    def take_postgres(self, plan: Plan) -> None:
        self.plans.append(plan)
        self.rows += rows_read(plan)
        for node in nodes(plan):
            assert node["Node Type"] != "Seq Scan", json.dumps(plan, indent=1)
            if "Index Name" in node:
                self.indexes.add(node["Index Name"])


def reading_of(home: Home, ask: Callable[[Database], Awaitable[object]]) -> Callable[[Database], Awaitable[Reading]]:
    async def measure(db: Database) -> Reading:
        overheard = Overheard(db)
        await ask(overheard)
        reading = Reading()
        reading.queries = len(overheard.queries)
        if home.is_sqlite:
            for query in overheard.queries:
                reading.take_sqlite(await sqlite_plan(db, query))
            return reading
        connection = await asyncpg.connect(home.place)
        try:
            for query in overheard.queries:
                reading.take_postgres(await postgres_plan(connection, query))
        finally:
            await connection.close()
        return reading

    return measure


# --- tests --------------------------------------------------------------------------------------------------------

STATUSES = (None, MapStatus.FINISHED, MapStatus.LIVE)
TIMES: tuple[tuple[int | None, int | None], ...] = ((None, None), (FROM_MS, BEFORE_MS), (FROM_MS, None))
MAP_INDEXES = {
    (False, False): "maps_newest",
    (False, True): "maps_by_status",
    (True, False): "maps_by_name",
    (True, True): "maps_by_name_and_status",
}


def test_a_page_of_maps_reads_its_index_and_its_rows(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        for status, name, (from_ms, before_ms), page in itertools.product(STATUSES, (None, "de_1"), TIMES, (1, 5)):
            query = ListQuery(status=status, map_name=name, from_ms=from_ms, before_ms=before_ms, page=page)
            reading = await reading_of(home, partial(list_maps, org_id=ORG, query=query))(db)
            assert MAP_INDEXES[name is not None, status is not None] in reading.indexes, reading.plans
            assert reading.queries == 2
            edges = 2 * MAPS_OF_DAY + DAYS if from_ms is not None else 1
            assert reading.rows <= edges + page * PAGE + PAGE, (query, reading.rows, reading.plans)

    home.run(scenario)


def test_a_page_of_series_reads_its_index_its_rows_and_their_maps(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        for status, (from_ms, before_ms), page in itertools.product(STATUSES, TIMES, (1, 5)):
            query = ListQuery(status=status, from_ms=from_ms, before_ms=before_ms, page=page)
            reading = await reading_of(home, partial(list_series, org_id=ORG, query=query))(db)
            assert ("series_newest" if status is None else "series_by_status") in reading.indexes, reading.plans
            assert "maps_of_server" in reading.indexes
            assert reading.queries == 2
            edges = 2 * MAPS_OF_DAY + DAYS if from_ms is not None else 1
            most = edges + page * PAGE + PAGE + PAGE * MAPS_OF_MATCH
            assert reading.rows <= most, (query, reading.rows, reading.plans)

    home.run(scenario)


def test_a_deep_page_skips_whole_days(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        for before_ms in (None, BEFORE_MS):
            query = ListQuery(page=200, before_ms=before_ms)
            reading = await reading_of(home, partial(list_maps, org_id=ORG, query=query))(db)
            assert "maps_newest" in reading.indexes
            assert reading.queries == 3
            # The counts of days, for the total and for the skipping; up to a day in each of three places; the page.
            assert reading.rows <= 2 * DAYS + 3 * MAPS_OF_DAY + 2 * PAGE, reading.plans

    home.run(scenario)


def test_single_maps_and_series_are_found_by_an_index(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        asked: list[tuple[str, Callable[[Database], Awaitable[object]], int]] = [
            ("maps_of_server", lambda db: history.maps_of(db, "srv_77"), MAPS_OF_MATCH),
            ("series_of_server", lambda db: history.series_of(db, "srv_77"), 1),
            ("maps_of_server", lambda db: list_maps(db, ORG, ListQuery(server_id="srv_77")), MAPS_OF_MATCH),
            ("series_of_server", lambda db: list_series(db, ORG, ListQuery(server_id="srv_77")), MAPS_OF_MATCH + 1),
            ("series", lambda db: history.get_series(db, "ser_77"), 3),
            ("maps", lambda db: history.get_map(db, "map_77"), 1),
        ]
        for index, ask, most in asked:
            reading = await reading_of(home, ask)(db)
            assert any(index in name for name in reading.indexes), reading.plans
            assert reading.rows <= most, reading.plans

    home.run(scenario)


def test_events_are_read_from_the_batch_that_has_the_next_one(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        for after in (0, BATCHES * BATCH_ITEMS // 2, BATCHES * BATCH_ITEMS):
            reading = await reading_of(home, partial(map_events.read_after, map_id="map_2", after_seq=after, limit=30))(
                db
            )
            assert reading.queries == 1
            assert reading.rows <= 30 // BATCH_ITEMS + 4, reading.plans
        last = await reading_of(home, lambda db: map_events.last_seqs(db, "srv_1"))(db)
        assert last.rows <= 3 * MAPS_OF_MATCH, last.plans

    home.run(scenario)
