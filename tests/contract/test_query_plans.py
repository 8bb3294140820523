"""The number of rows read for a page does not grow with the number of matches."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from operator import methodcaller
from typing import Any, NamedTuple

import asyncpg  # type: ignore[import-untyped]
import pytest

from matchpod.adapters.sql_text import number_parameters
from matchpod.core.labels import Label
from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState
from matchpod.core.requests.history_query import ListQuery
from matchpod.core.requests.match_list_query import ListedOutcome, MatchListQuery
from matchpod.core.server_status import ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, Row, Statement, Value
from matchpod.storage import (
    acknowledgements,
    audit_log,
    callback_lists,
    heartbeats,
    history,
    map_events,
    match_lists,
    organization_events,
    outbox,
    region_statistics,
    servers,
    waiting_matches,
)
from matchpod.storage.acknowledgements import Acknowledgement
from matchpod.storage.history_counts import DAY_MS, add, end_server
from matchpod.storage.history_lists import list_maps, list_series
from matchpod.storage.list_positions import ListPositions
from matchpod.storage.match_lists import list_matches, maps_of_listed
from matchpod.storage.server_labels import COMPARED
from tests.contract import databases
from tests.contract.databases import DelegatingDatabase, Harness
from tests.contract.match_histories import ORG

PART_ROWS = 2_000
"""Rows per insert."""

TABLES = (
    "maps", "series", "history_counts", "map_events", "servers", "outcomes", "callbacks", "callback_attempts",
    "organization_events", "audit_log", "server_labels", "match_words",
)  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def harness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """Provide a filled database of each kind; all tests here only read it."""
    filled = databases.create_harness(request, tmp_path_factory.mktemp("plans"))

    async def fill_database() -> None:
        async with filled.open_migrated() as db:
            await fill(db)

    asyncio.run(fill_database())
    return filled


MATCHES = 5_000
MAPS_OF_MATCH = 2
DAYS = 40
FIRST_DAY = 20_000
MAPS_OF_DAY = MATCHES * MAPS_OF_MATCH // DAYS
PAGE = 20
IDLE_MAPS = 3_000
"""Maps of another organization that never started."""
LIVE_OF_MATCHES = 100
RARE = 250
"""One match in this number has the same table."""
"""One match of this many has not ended."""
FAILED_OF_MATCHES = 5
"""One match of this many ended without a result."""
UNACKNOWLEDGED_OF_MATCHES = 125
"""One match of this many is not acknowledged."""
BATCHES = 1_000
BATCH_ITEMS = 3
EVENTS = 2_000
"""Events of each of three organizations."""
AUDIT_ENTRIES = 3_000
"""Of two organizations and of operators, a third each."""
CALLBACKS = 5_000
DUE_EVERY = 20
"""One callback in 20 is due; of the others, one in 20 is given up, and the rest is delivered."""
FROM_MS = (FIRST_DAY + 3) * DAY_MS + DAY_MS // 3
BEFORE_MS = (FIRST_DAY + 33) * DAY_MS + DAY_MS // 2

Query = tuple[str, Mapping[str, Value]]
Plan = dict[str, Any]


class RecordingDatabase(DelegatingDatabase):
    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.queries: list[Query] = []

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self.queries.append((sql, params or {}))
        return await super().read(sql, params)


def numbered(last: int, insert: str) -> list[str]:
    """Split an insert from `numbers` into parts that take only seconds each, even on a slow machine."""
    return [
        f"WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers"
        f" WHERE n < {min(first + PART_ROWS - 1, last)}) {insert}"
        for first in range(1, last + 1, PART_ROWS)
    ]


async def fill(db: Database) -> None:
    """Insert matches of two organizations, evenly over the days: 9 of 10 finished, a third on each of three maps."""
    sort_ms = f"{FIRST_DAY * DAY_MS} + CAST(n AS BIGINT) * {DAYS * DAY_MS} / {{}}"
    status = (
        f"CASE WHEN {{0}} % {LIVE_OF_MATCHES} = 0 THEN 'live' WHEN {{0}} % 40 = 0 THEN 'cancelled' ELSE 'finished' END"
    )
    org_of = f"CASE WHEN {{}} % 8 = 0 THEN 'org_2' ELSE '{ORG}' END"
    org_id, of_map = org_of.format("n"), f"((n + 1) / {MAPS_OF_MATCH})"
    maps = MATCHES * MAPS_OF_MATCH
    open_or = f"CASE WHEN n % {LIVE_OF_MATCHES} = 0 THEN 'running' ELSE"
    open_or_live, ended = open_or.replace("running", "live"), "match_phase = 'ended'"
    of_ended, by_status = end_server("")
    statements = [
        *numbered(
            maps,
            "INSERT INTO maps (id, server_id, org_id, series_id, map_number, map_name, game_mode,"
            " server_name, team1_score, team2_score, status, player_count, is_final, sort_ms)"
            f" SELECT 'map_' || n, 'srv_' || {of_map}, {org_of.format(of_map)}, NULL, n % {MAPS_OF_MATCH},"
            f" 'de_' || (n % 3), 'competitive', 'x', 0, 0, {status.format(of_map)}, 10, 1, {sort_ms.format(maps)}"
            " FROM numbers",
        ),
        *numbered(
            IDLE_MAPS,
            "INSERT INTO maps (id, server_id, org_id, map_number, map_name, game_mode, server_name, team1_score,"
            " team2_score, status, player_count, is_final, sort_ms) SELECT 'idle_' || n, 'srv_' || (90000 + n),"
            " 'org_idle', 1, 'de_1', 'competitive', 'x', 0, 0, 'cancelled', 0, 1, 0 FROM numbers",
        ),
        *numbered(
            MATCHES,
            "INSERT INTO series (id, series_id, server_id, org_id, server_name, format,"
            " game_mode, team1_name, team2_name, team1_maps_won, team2_maps_won, status, sort_ms)"
            f" SELECT 'series_' || n, 'ser_' || n, 'srv_' || n, {org_id}, 'x', 'bo3', 'competitive', 'A', 'B', 0, 0,"
            f" {status.format('n')}, {sort_ms.format(MATCHES)} FROM numbers",
        ),
        add("").sql.replace("WHERE server_id = :server_id", ""),
        *numbered(
            BATCHES,
            "INSERT INTO map_events (map_id, first_seq, count, at_ms, is_compressed, body)"
            f" SELECT column1, (n - 1) * {BATCH_ITEMS} + 1, {BATCH_ITEMS}, n, 0, CAST('1\n2\n3' AS BLOB)"
            " FROM numbers CROSS JOIN (VALUES ('map_1'), ('map_2'), ('map_3')) AS chosen",
        ),
        *numbered(
            MATCHES,
            "INSERT INTO servers (id, game_id, org_id, region, phase, status, match_phase, external_match_id, settings,"
            " log_token_hash,"
            " report_token_hash, plugin_match_id, created_at_ms, was_pending, next_at_ms, fence, tries, log_from_seq,"
            " is_password_ours, ended_at_ms, reason, acknowledged_at_ms)"
            f" SELECT 'srv_' || n, 'x', {org_id}, CASE WHEN n % 3 = 0 THEN 'us' ELSE 'eu' END, CASE WHEN n % {LIVE_OF_MATCHES} = 0 THEN 'running' WHEN n % 10"
            f" = 1 THEN 'ending' ELSE 'released' END, {open_or} 'stopped' END, {open_or_live} 'ended' END, 'match ' || n,"
            f" CAST('x' AS BLOB), 'l' || n, 'r' || n, 1, {sort_ms.format(MATCHES)}, 0, n, 0, 0, 0, 1,"
            f" CASE WHEN n % {LIVE_OF_MATCHES} <> 0 THEN {sort_ms.format(MATCHES)} END,"
            f" CASE WHEN n % {FAILED_OF_MATCHES} <> 1 THEN NULL WHEN n % 2 = 1 THEN 'server_lost'"
            " ELSE 'canceled_by_user' END,"
            f" CASE WHEN n % {FAILED_OF_MATCHES} = 1 AND n % {UNACKNOWLEDGED_OF_MATCHES} <> 1 THEN n END FROM numbers",
        ),
        *numbered(
            MATCHES,
            "INSERT INTO server_labels (org_id, name, value, created_at_ms, server_id)"
            f" SELECT {org_id}, column1, CASE WHEN column1 = 'event' THEN 'league' ELSE CAST(n % {RARE} AS TEXT) END,"
            f" {sort_ms.format(MATCHES)}, 'srv_' || n FROM numbers"
            " CROSS JOIN (VALUES ('event'), ('table')) AS chosen",
        ),
        *numbered(
            MATCHES,
            "INSERT INTO match_words (org_id, word, created_at_ms, server_id)"
            f" SELECT {org_id}, CAST(CASE WHEN column1 = 'cup' THEN 'cup' ELSE 'w' || (n % {RARE}) END AS BLOB),"
            f" {sort_ms.format(MATCHES)}, 'srv_' || n FROM numbers CROSS JOIN (VALUES ('cup'), ('w')) AS chosen",
        ),
        *(
            of_ended.sql.replace("WHERE id = :server_id", f"WHERE {ended}"),
            by_status.sql.replace("WHERE id = :server_id", f"WHERE {ended}"),
            of_ended.sql.replace("WHERE id = :server_id", "").replace("'ended'", "''"),
        ),
        *numbered(
            CALLBACKS,
            "INSERT INTO callbacks (id, server_id, org_id, host, url, body, created_at_ms, attempts, next_at_ms,"
            " delivered_at_ms)"
            " SELECT 'cb_' || n, 'srv_' || n, 'org_' || (n % 7), 'host_' || (n % 30), 'x', CAST('x' AS BLOB), n, 1,"
            f" CASE WHEN n % {DUE_EVERY} = 0 THEN n END, CASE WHEN n % {DUE_EVERY} > 1 THEN n END FROM numbers",
        ),
        *numbered(
            CALLBACKS,
            "INSERT INTO callback_attempts (callback_id, number, at_ms, duration_ms)"
            " SELECT 'cb_' || n, 1, n, 1 FROM numbers",
        ),
        *numbered(
            CALLBACKS,
            "INSERT INTO outcomes (server_id, kind, at_ms, callback_body)"
            " SELECT 'srv_' || n, 'match_over', n, CAST('x' AS BLOB) FROM numbers",
        ),
        *numbered(
            EVENTS,
            "INSERT INTO organization_events (org_id, seq, at_ms, line) SELECT column1, n, n, CAST('{}' AS BLOB)"
            " FROM numbers CROSS JOIN (VALUES ('org_1'), ('org_2'), ('org_3')) AS chosen",
        ),
        *numbered(
            AUDIT_ENTRIES,
            "INSERT INTO audit_log (id, org_id, at_ms, actor, action, target, detail) SELECT"
            " 'act_' || SUBSTR('0000000' || n, LENGTH('' || n)), CASE WHEN n % 3 > 0 THEN 'org_' || (n % 3) END, n,"
            " 'key_1', 'match_canceled', '', '' FROM numbers",
        ),
    ]
    for sql in statements:
        await db.write([Statement(sql)])
    if db.is_postgres:
        await vacuum(db)


async def vacuum(db: Database) -> None:
    """Do what PostgreSQL does by itself in regular use, and SQLite does not: only then it uses index-only scans.

    Again if rows count as new, because some other transaction was not over yet.
    """
    for _ in range(50):
        for table in TABLES:
            await db.write([Statement(f"VACUUM ANALYZE {table}")])
        visible = await db.read(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
            " AND relallvisible < relpages"
        )
        if not {str(name) for (name,) in visible} & set(TABLES):
            return
        await asyncio.sleep(0.2)
    raise AssertionError("a transaction stays open")


# --- plans --------------------------------------------------------------------------------------------------------


async def sqlite_plan(db: Database, query: Query) -> list[str]:
    """Return the steps of the plan, each prefixed with dots according to its depth."""
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
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes(plan)
        # The rows of a bitmap are counted in the scan above it.
        if "Scan" in node["Node Type"] and node["Node Type"] not in ("Subquery Scan", "Bitmap Index Scan")
    )


SMALL = ("page", "ordered", "listed", "edge", "wanted", "labeled", "counted", "found", "one", "part_0")
"""Parts of queries that have few rows; so has the index of open servers."""


class QueryCost:
    """The plans of the queries of one call, and how much they read."""

    def __init__(self) -> None:
        self.queries = 0
        self.rows = 0
        self.indexes: set[str] = set()
        self.plans: list[object] = []

    def add_sqlite_plan(self, steps: list[str]) -> None:
        self.plans.append(steps)
        for before, step in itertools.pairwise(["", *steps]):
            words = step.lstrip(".").split()
            if words[0] == "SCAN":
                assert words[1] in SMALL or "CONSTANT" in words or "servers_open" in words, steps
            if "TEMP B-TREE" in step:
                # Only the rows of the page may be sorted, not the rows it is selected from, unless these are few.
                is_of_few = "servers_open" in before or any(
                    "SCAN labeled" in one or "SCAN part_" in one for one in steps
                )
                assert not step.startswith(".") or is_of_few, steps
            if "INDEX" in words:
                self.indexes.add(words[words.index("INDEX") + 1])

    def add_postgres_plan(self, plan: Plan) -> None:
        self.plans.append(plan)
        self.rows += rows_read(plan)
        for node in nodes(plan):
            assert node["Node Type"] != "Seq Scan", json.dumps(plan, indent=1)
            if "Index Name" in node:
                self.indexes.add(node["Index Name"])


CostOf = Callable[[Callable[[Database], Awaitable[object]]], Awaitable[QueryCost]]


@pytest.fixture
def cost_of(harness: Harness, db: Database) -> CostOf:
    async def measure(call: Callable[[Database], Awaitable[object]]) -> QueryCost:
        recording = RecordingDatabase(db)
        await call(recording)
        cost = QueryCost()
        cost.queries = len(recording.queries)
        if harness.is_sqlite:
            for query in recording.queries:
                cost.add_sqlite_plan(await sqlite_plan(db, query))
            return cost
        connection = await asyncpg.connect(harness.location)
        try:
            for query in recording.queries:
                cost.add_postgres_plan(await postgres_plan(connection, query))
        finally:
            await connection.close()
        return cost

    return measure


# --- tests --------------------------------------------------------------------------------------------------------

STATUSES = (None, MapStatus.FINISHED, MapStatus.LIVE)
TIMES: tuple[tuple[int | None, int | None], ...] = ((None, None), (FROM_MS, BEFORE_MS), (FROM_MS, None))
MAP_INDEXES = {
    (False, False): "maps_ended",
    (False, True): "maps_ended_by_status",
    (True, False): "maps_ended_of_name",
    (True, True): "maps_ended_of_name",
}
OPEN_SERVERS = MATCHES // LIVE_OF_MATCHES
OPEN_ROWS = 2 * OPEN_SERVERS * (1 + MAPS_OF_MATCH)
"""Open servers and their maps, twice: for the page and for a partial day."""


async def test_page_of_maps_reads_only_its_index_and_rows(cost_of: CostOf) -> None:
    for status, name, (from_ms, before_ms), page in itertools.product(STATUSES, (None, "de_1"), TIMES, (1, 5)):
        query = ListQuery(status=status, map_name=name, from_ms=from_ms, before_ms=before_ms, page=page)
        if status is MapStatus.LIVE and page > 1:
            continue  # they are few
        cost = await cost_of(partial(list_maps, org_id=ORG, query=query))
        index = "maps_of_server" if status is MapStatus.LIVE else MAP_INDEXES[name is not None, status is not None]
        assert index in cost.indexes, cost.plans
        assert cost.queries == 2
        edges = 2 * MAPS_OF_DAY + DAYS if from_ms is not None else 1
        # Most maps of a name are finished. Those of open servers may all be read.
        skipped = page * PAGE * 0.2 if status is not None and name is not None else 0
        assert cost.rows <= edges + page * PAGE + skipped + PAGE + OPEN_ROWS, (query, cost.rows, cost.plans)


async def test_page_of_series_reads_only_its_index_rows_and_maps(cost_of: CostOf) -> None:
    for status, (from_ms, before_ms), page in itertools.product(STATUSES, TIMES, (1, 5)):
        query = ListQuery(status=status, from_ms=from_ms, before_ms=before_ms, page=page)
        if status is MapStatus.LIVE and page > 1:
            continue
        cost = await cost_of(partial(list_series, org_id=ORG, query=query))
        index = "series_ended_by_status" if status is not None else "series_ended"
        assert ("series_of_server" if status is MapStatus.LIVE else index) in cost.indexes, cost.plans
        assert "maps_of_server" in cost.indexes
        assert cost.queries == 2
        edges = 2 * MAPS_OF_DAY + DAYS if from_ms is not None else 1
        max_rows = edges + page * PAGE + 2 * PAGE + PAGE * MAPS_OF_MATCH + OPEN_ROWS
        assert cost.rows <= max_rows, (query, cost.rows, cost.plans)


SERVER_INDEXES = {
    (False, None, None): "servers_listed",
    (False, ServerStatus.STOPPED, None): "servers_listed",
    (False, ServerStatus.RUNNING, None): "servers_open",
    (False, None, PublicPhase.ENDED): "servers_listed",
    (False, None, PublicPhase.LIVE): "servers_open",
    (True, None, None): "servers_ended_of_region",
    (True, ServerStatus.STOPPED, None): "servers_ended_of_region",
    (True, ServerStatus.RUNNING, None): "servers_open",
    (True, None, PublicPhase.ENDED): "servers_ended_of_region",
}


async def test_page_of_servers_reads_only_its_index_and_rows(cost_of: CostOf) -> None:
    for ((in_region, status, phase), index), (from_ms, before_ms), page in itertools.product(
        SERVER_INDEXES.items(), TIMES, (1, 5)
    ):
        query = MatchListQuery(
            status=status,
            phase=phase,
            region="eu" if in_region else None,
            from_ms=from_ms,
            before_ms=before_ms,
            page=page,
        )
        cost = await cost_of(partial(list_matches, org_id=ORG, query=query))
        is_open = status is ServerStatus.RUNNING or phase is PublicPhase.LIVE
        # PostgreSQL may prefer the index of all servers that are not released.
        assert index in cost.indexes or (is_open and "servers_due" in cost.indexes), (query, cost.plans)
        assert cost.queries <= 2
        counted = (
            2 * (OPEN_SERVERS + MATCHES // 10) if is_open else 2 * MATCHES // DAYS + DAYS if from_ms is not None else 1
        )
        open_ones = 2 * OPEN_SERVERS if in_region else 0
        assert cost.rows <= counted + page * PAGE + PAGE + open_ones, (query, cost.rows, cost.plans)


async def test_labeled_matches_are_found_by_the_index_of_their_rarest_label(cost_of: CostOf) -> None:
    rare, all_of_them = Label("table", "7"), Label("event", "league")
    listed = MATCHES // RARE
    for labels, external_id in (((rare,), None), ((all_of_them, rare), None), ((all_of_them,), "match 77")):
        query = MatchListQuery(labels=labels, external_match_id=external_id, status=ServerStatus.STOPPED)
        cost = await cost_of(partial(list_matches, org_id=ORG, query=query))
        assert "server_labels_newest" in cost.indexes or external_id, cost.plans
        counted = 2 * COMPARED if len(labels) > 1 else 0
        assert cost.rows <= counted + 6 * listed + 2 * PAGE, (query, cost.rows, cost.plans)
    for read in (list_maps, list_series):
        cost = await cost_of(partial(read, org_id=ORG, query=ListQuery(labels=(rare,))))
        assert "server_labels_newest" in cost.indexes, cost.plans
        assert cost.rows <= 10 * MAPS_OF_MATCH * listed + 8 * PAGE, (cost.rows, cost.plans)


class Reading(NamedTuple):
    """A call, the index that it must use, if that matters, and how many rows it may read at most."""

    call: Callable[[Database], Awaitable[object]]
    uses: str
    rows: int
    queries: int = 0
    """How many it may run; 0 for any number."""


LISTED = [f"srv_{number}" for number in range(1, PAGE + 1)]
ORGS = ["org_1", "org_2", "org_3", "org_4"]
EXTERNAL_ID = MatchListQuery(external_match_id="match 77", status=ServerStatus.STOPPED)
OF_SERVER = CallbacksQuery(server_id="srv_78")
PART_OF_TIMELINE = partial(map_events.read_after, map_id="map_2", limit=30)
PART_OF_STREAM = partial(organization_events.read_after, org_id="org_2", limit=30)
READINGS = {
    "maps of listed servers": Reading(
        partial(maps_of_listed, server_ids=LISTED), "maps_of_server", 2 * PAGE * MAPS_OF_MATCH + PAGE, queries=1
    ),
    "servers of an external id": Reading(
        partial(list_matches, org_id=ORG, query=EXTERNAL_ID), "servers_by_external_id", 2
    ),
    # The counts per day, for the total and for skipping; at most one day at each of three points; the page.
    "deep page of servers": Reading(
        partial(list_matches, org_id=ORG, query=MatchListQuery(page=110), deep_offset=1_000),
        "servers_listed",
        2 * DAYS + 3 * MATCHES // DAYS + 2 * PAGE,
        queries=3,
    ),
    "older processes": Reading(partial(heartbeats.has_older_process, now_ms=DAY_MS), "servers_by_owner", OPEN_SERVERS),
    "maps of a server": Reading(partial(history.maps_of, server_id="srv_77"), "maps_of_server", MAPS_OF_MATCH),
    "maps of servers": Reading(
        partial(history.maps_of_servers, server_ids=["srv_77", "srv_78"]), "maps_of_server", 2 * MAPS_OF_MATCH
    ),
    "list of the maps of a server": Reading(
        partial(list_maps, org_id=ORG, query=ListQuery(server_id="srv_77")), "maps_of_server", MAPS_OF_MATCH
    ),
    "series of a server": Reading(partial(history.series_of, server_id="srv_77"), "series_of_server", 1),
    "list of the series of a server": Reading(
        partial(list_series, org_id=ORG, query=ListQuery(server_id="srv_77")), "series_of_server", MAPS_OF_MATCH + 3
    ),
    "series": Reading(partial(history.get_series, series_id="ser_77"), "series", 4),
    "map": Reading(partial(history.get_map, map_id="map_77"), "maps", 1),
    "rounds of a map": Reading(partial(history.rounds_of, map_id="map_77"), "map_rounds", 1),
    **{
        f"timeline after {after}": Reading(
            partial(PART_OF_TIMELINE, after_seq=after), "", 30 // BATCH_ITEMS + 4, queries=1
        )
        for after in (0, BATCHES * BATCH_ITEMS // 2, BATCHES * BATCH_ITEMS)
    },
    "last items of timelines": Reading(partial(map_events.last_seqs, server_id="srv_1"), "", 3 * MAPS_OF_MATCH),
    "newest events of organizations": Reading(partial(organization_events.newest_of, org_ids=ORGS), "", 3 * len(ORGS)),
    "newest event": Reading(partial(organization_events.newest, org_id="org_2"), "", 2),
    "events": Reading(partial(PART_OF_STREAM, seq=EVENTS // 2), "", 31),
    "last events": Reading(partial(PART_OF_STREAM, seq=EVENTS - 3), "", 4),
    # One query per organization and bound; all events are young.
    "old events": Reading(partial(organization_events.count_prunable, before_ms=1), "", 30),
    "callbacks of a server": Reading(partial(callback_lists.list_page, org_id="org_1", query=OF_SERVER), "", 6),
    "callback": Reading(partial(callback_lists.get, org_id="org_1", callback_id="cb_78"), "", 4),
    "body of a callback": Reading(partial(callback_lists.body_of, callback_id="cb_78"), "", 2),
    "attempts of a callback": Reading(partial(callback_lists.newest_attempts, callback_id="cb_78", limit=9), "", 1),
    "oldest given up": Reading(partial(outbox.oldest_given_up, owner="org_1", from_ms=5_000), "", 1),
    **{
        f"matches that were {outcome}": Reading(
            partial(list_matches, org_id=ORG, query=MatchListQuery(outcome=outcome)),
            "servers_without_result",
            2 * MATCHES // FAILED_OF_MATCHES,
        )
        for outcome in (ListedOutcome.CANCELED, ListedOutcome.FAILED)
    },
}


@pytest.mark.parametrize("what", READINGS)
async def test_call_reads_its_index_and_few_rows(cost_of: CostOf, what: str) -> None:
    reading = READINGS[what]
    cost = await cost_of(reading.call)
    assert not reading.uses or any(reading.uses in name for name in cost.indexes), cost.plans
    assert cost.queries == reading.queries or not reading.queries
    assert cost.rows <= reading.rows, (cost.rows, cost.plans)


async def test_deep_page_skips_whole_days(cost_of: CostOf) -> None:
    for before_ms in (None, BEFORE_MS):
        query = ListQuery(page=200, before_ms=before_ms)
        cost = await cost_of(partial(list_maps, org_id=ORG, query=query))
        assert "maps_ended" in cost.indexes
        assert cost.queries == 3
        # The counts per day, for the total and for skipping; at most one day at each of three points; the page.
        assert cost.rows <= 2 * DAYS + 3 * MAPS_OF_DAY + 2 * PAGE, cost.plans


async def test_deep_page_with_remembered_positions_reads_little_more_than_its_rows(
    cost_of: CostOf, db: Database
) -> None:
    positions = ListPositions(step=100)
    started, idle = ListQuery(page=200), ListQuery(page=75, status=MapStatus.CANCELLED)
    for org_id, query, skipped, index in (
        (ORG, started, MAPS_OF_DAY, "maps_ended"),
        ("org_idle", idle, 100, "maps_ended_by_status"),
    ):
        read = partial(list_maps, org_id=org_id, query=query, deep_offset=500, positions=positions)
        expected = await list_maps(db, org_id, query)
        assert await read(db) == expected
        cost = await cost_of(read)
        assert index in cost.indexes, cost.plans
        assert cost.queries == 3
        assert cost.rows <= skipped + 3 * PAGE, (cost.rows, cost.plans)


async def test_gauges_read_only_waiting_callbacks_and_pending_matches(
    cost_of: CostOf, db: Database, harness: Harness
) -> None:
    for call, index in (
        (outbox.count_waiting, "callbacks_waiting"),
        (waiting_matches.oldest_pending, "servers_waiting"),
    ):
        recording = RecordingDatabase(db)
        await call(recording)
        if harness.is_sqlite:  # the whole index is read, which has no other rows
            (step,) = await sqlite_plan(db, recording.queries[0])
            assert f"INDEX {index}" in step
        else:
            assert (await cost_of(call)).rows <= (await outbox.count_waiting(db)).number


async def test_live_matches_are_counted_from_their_own_index_up_to_the_limit(cost_of: CostOf, db: Database) -> None:
    for limit, is_below in ((MATCHES, True), (20, False)):
        params: dict[str, Value] = {"org_id": ORG, "others": limit - 1}
        check = f"SELECT 1 WHERE {servers.HAS_FEWER_LIVE}"
        assert bool(await db.read(check, params)) is is_below
        cost = await cost_of(methodcaller("read", check, params))
        assert "servers_open" in cost.indexes, cost.plans
        assert cost.rows <= min(limit, MATCHES // LIVE_OF_MATCHES) + 2, cost.plans


async def test_open_servers_are_read_by_the_index_of_live_matches(
    cost_of: CostOf, db: Database, harness: Harness
) -> None:
    assert 0 < len(await match_lists.open_of(db, ORG)) <= OPEN_SERVERS
    cost = await cost_of(partial(match_lists.open_of, org_id=ORG))
    # PostgreSQL may prefer the index of all servers that are not released; both are without the many released ones.
    assert cost.indexes < {"servers_open", "servers_due"}, cost.plans
    assert "servers_open" in cost.indexes or not harness.is_sqlite
    assert cost.rows <= OPEN_SERVERS + MATCHES // 10, cost.plans


async def test_matches_that_finished_lately_are_found_by_the_index_of_ends(cost_of: CostOf, db: Database) -> None:
    since_ms = (FIRST_DAY + DAYS) * DAY_MS - DAY_MS // 24
    read = partial(match_lists.finished_ids, org_id=ORG, since_ms=since_ms, limit=100)
    assert await read(db)
    cost = await cost_of(read)
    assert cost.indexes == {"servers_ended"}, cost.plans
    assert cost.rows <= MATCHES // DAYS // 24 + 2, cost.plans


@pytest.mark.parametrize(("is_by_hand", "index"), [(False, "servers_failed"), (True, "servers_canceled")])
async def test_matches_to_acknowledge_are_found_without_reading_others(
    cost_of: CostOf, db: Database, is_by_hand: bool, index: str
) -> None:
    number = MATCHES // UNACKNOWLEDGED_OF_MATCHES // 2
    kind = partial(acknowledgements.canceled_ids, since_ms=0) if is_by_hand else acknowledgements.unacknowledged_ids
    for limit in (5, 100):
        read = partial(kind, org_id=ORG, limit=limit)
        found = await read(db)
        assert min(limit, number // 2) <= len(found) <= min(limit, number)
        cost = await cost_of(read)
        assert cost.indexes == {index}, cost.plans
        assert cost.rows <= number, cost.plans
    for call in (
        partial(acknowledgements.still_unacknowledged, org_id=ORG, server_ids=found),
        partial(match_lists.summaries_of, server_ids=found),
        partial(acknowledgements.of_server, server_id=found[0]),
    ):
        cost = await cost_of(call)
        assert cost.rows <= 2 * number, cost.plans
    given = Acknowledgement(acknowledged_at_ms=1, acknowledged_by="key_1")
    older = acknowledgements.acknowledge_older(ORG, 1, given)
    for change, used in ((older, "servers_failed"), (acknowledgements.withdraw(ORG, given), "servers_acknowledged")):
        condition = change.sql.partition(" WHERE ")[2].removesuffix(" RETURNING id")
        params = {name: value for name, value in change.params.items() if f":{name}" in condition}
        cost = await cost_of(methodcaller("read", f"SELECT id FROM servers WHERE {condition}", params))
        assert cost.indexes == {used}, cost.plans
        assert cost.rows <= number, cost.plans


async def test_matches_of_a_day_are_found_by_an_index(cost_of: CostOf, db: Database, harness: Harness) -> None:
    since_ms = (FIRST_DAY + DAYS - 1) * DAY_MS
    for org_id, condition in ((ORG, "servers_listed (org_id=? AND created_at_ms>?)"), (None, "(id>?)")):
        recording = RecordingDatabase(db)
        read = partial(region_statistics.newest_matches, since_ms=since_ms, since_id="srv_4")
        assert await read(recording, org_id)
        (query,) = recording.queries
        if harness.is_sqlite:
            steps = await sqlite_plan(db, query)
            assert [step for step in steps if "servers" in step and condition in step], steps
        elif org_id is not None:
            cost = await cost_of(partial(read, org_id=org_id))
            assert cost.rows <= 2 * MATCHES // DAYS, cost.plans


async def test_audit_log_is_read_from_its_indexes(cost_of: CostOf, harness: Harness) -> None:
    before_id = f"act_{AUDIT_ENTRIES // 2:08}"
    for read in (
        partial(audit_log.list, org_id="org_1", limit=PAGE),
        partial(audit_log.list, org_id="org_1", limit=PAGE, before_id=before_id),
        partial(audit_log.list, org_id=None, limit=PAGE, before_id=before_id),
    ):
        cost = await cost_of(read)
        assert "audit_log_of_org" in cost.indexes or not harness.is_sqlite
        # PostgreSQL skips the entries of others, if it expects few of them before it has found enough.
        assert cost.rows <= 4 * PAGE, cost.plans


async def test_due_callbacks_are_read_from_their_index_alone(cost_of: CostOf, harness: Harness) -> None:
    for orgs, hosts, limit in (
        ((), (), 20),
        (("org_1", "org_2", "org_3"), (("org_4", "host_10"), ("org_5", "host_20")), 20),
        ((), (), 1_000),
    ):
        due = partial(outbox.due_callbacks, now_ms=CALLBACKS, limit=limit, without_orgs=orgs, without_hosts=hosts)
        cost = await cost_of(due)
        assert cost.indexes == {"callbacks_due"}, cost.plans
        if harness.is_sqlite:
            assert all("COVERING INDEX" in step for step in sqlite_steps(cost) if "callbacks" in step), cost.plans
        # Skipped callbacks are read; delivered ones are not.
        assert cost.rows <= (limit if not orgs else CALLBACKS // DUE_EVERY), cost.plans


ORG_CALLBACKS = CALLBACKS // 7
CALLBACK_INDEXES = {
    None: "callbacks_of_org",
    CallbackState.WAITING: "callbacks_waiting",
    CallbackState.DELIVERED: "callbacks_delivered",
    CallbackState.GIVEN_UP: "callbacks_given_up",
}


async def test_page_of_callbacks_reads_only_its_index_up_to_the_limit_and_its_rows(
    cost_of: CostOf, harness: Harness
) -> None:
    times = ((None, None), (CALLBACKS // 4, CALLBACKS // 2), (CALLBACKS // 2, None))
    for (state, index), (from_ms, before_ms), page in itertools.product(CALLBACK_INDEXES.items(), times, (1, 2)):
        query = CallbacksQuery(state=state, from_ms=from_ms, before_ms=before_ms, page=page, page_size=5)
        for max_listed in (60, callback_lists.MAX_LISTED):
            call = partial(callback_lists.list_page, org_id="org_1", query=query, max_listed=max_listed)
            cost = await cost_of(call)
            assert index in cost.indexes, (query, cost.plans)
            assert cost.queries == 2
            if harness.is_sqlite:
                steps = [step for step in sqlite_steps(cost) if index in step]
                assert all("COVERING INDEX" in step for step in steps), cost.plans
            # The count, the ids of this page and those before it, and for each the callback, its server, its outcome
            # and its last attempt.
            assert cost.rows <= min(max_listed, ORG_CALLBACKS + 1) + 1 + page * 5 + 5 + 4 * 5, (query, cost.plans)


async def test_given_up_callbacks_to_send_again_are_read_from_their_index(cost_of: CostOf) -> None:
    given_up = outbox.given_up_ids("org_1", from_ms=CALLBACKS // 2, limit=10)
    cost = await cost_of(methodcaller("read", given_up.sql, given_up.params))
    assert cost.indexes == {"callbacks_given_up"}, cost.plans
    assert cost.rows <= 10, cost.plans


def sqlite_steps(cost: QueryCost) -> list[str]:
    return [step for steps in cost.plans if isinstance(steps, list) for step in steps]


async def test_next_match_of_a_region_is_found_by_the_indexes_of_open_servers(
    cost_of: CostOf, db: Database, harness: Harness
) -> None:
    indexes = {"servers_placed", "servers_open"}
    call = partial(waiting_matches.next_matches, region="eu", limit=3)
    if harness.is_sqlite:  # all that wait are ranked, so their indexes are read as a whole
        recording = RecordingDatabase(db)
        await call(recording)
        steps = [step.lstrip(".") for step in await sqlite_plan(db, recording.queries[0]) if "servers_" in step]
        placed = "SEARCH servers USING COVERING INDEX servers_placed (region=?)"
        assert sorted(steps) == ["SCAN waiting USING INDEX servers_open", placed]
    else:
        cost = await cost_of(call)
        assert cost.indexes <= indexes, cost.plans
        assert cost.rows <= MATCHES // LIVE_OF_MATCHES, cost.plans
    assert "servers_waiting" in (await cost_of(partial(waiting_matches.has_pending_match, region="eu"))).indexes


async def test_search_reads_what_its_rarest_word_finds(cost_of: CostOf) -> None:
    few = MATCHES // RARE
    outcomes = (None, ListedOutcome.FINISHED, ListedOutcome.CANCELED)
    for words, status, outcome in itertools.product((("w77",), ("w77", "w76")), (None, ServerStatus.STOPPED), outcomes):
        query = MatchListQuery(words=words, status=status, outcome=outcome)
        cost = await cost_of(partial(list_matches, org_id=ORG, query=query))
        assert cost.rows <= 12 * few, (query, cost.rows, cost.plans)
