"""Migrations are applied once, even by concurrent processes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed
import pytest

from matchpod.core.requests.match_list_query import MatchListQuery
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, Row, Statement, Value
from matchpod.storage import history, outbox, servers
from matchpod.storage.history_counts import DAY_MS
from matchpod.storage.match_lists import list_matches
from matchpod.storage.migrate import NewerSchemaError, SchemaVersion, current_version, migrate, read_version
from matchpod.storage.migration_locks import locked_tables
from matchpod.storage.schema import CONTRACTIONS, LAST_RELEASE, MIGRATIONS, WITHOUT_EXPANSIONS
from tests.contract import databases
from tests.vaults import VAULT, tokens_of

PATIENCE_S = 60.0
harness = databases.harness


async def write_version(db: Database, version: int) -> None:
    """Create the tables of a version, as processes of that version did."""
    schema = [sql for statements in MIGRATIONS[:version] for sql in statements]
    schema.append("CREATE TABLE schema_versions (version BIGINT PRIMARY KEY)")
    schema += [f"INSERT INTO schema_versions (version) VALUES ({number + 1})" for number in range(version)]
    await db.write(list(map(Statement, schema)))


@pytest.fixture
async def empty(harness: databases.Harness) -> AsyncIterator[Database]:
    db = await harness.open()
    yield db
    await db.close()


async def test_migrating_again_changes_nothing(db: Database) -> None:
    assert await migrate(db, VAULT.seal) == await current_version(db) == len(MIGRATIONS)


async def test_concurrent_migrations_all_succeed(harness: databases.Harness) -> None:
    handles = [await harness.open() for _ in range(1 if harness.is_sqlite else 4)]
    try:
        versions = await asyncio.gather(*(migrate(db, VAULT.seal) for db in handles * 2))
    finally:
        for db in handles:
            await db.close()
    assert set(versions) == {len(MIGRATIONS)}


async def test_migration_that_waits_for_a_dump_blocks_no_writer(
    harness: databases.Harness, empty: Database, caplog: pytest.LogCaptureFixture
) -> None:
    if harness.is_sqlite:
        pytest.skip("SQLite has one writer")
    others = await harness.open()
    dump = await asyncpg.connect(harness.location, server_settings={"application_name": "pg_dump"})
    try:
        await write_version(empty, LAST_RELEASE)
        await dump.execute("BEGIN; LOCK TABLE maps IN ACCESS SHARE MODE")
        task = asyncio.create_task(migrate(empty, VAULT.seal, lock_ms=10, lock_pause_s=0.01))
        async with asyncio.timeout(PATIENCE_S):
            while not caplog.records:
                await asyncio.sleep(0.01)
            for _ in range(5):
                await others.write([Statement("DELETE FROM maps")])
        assert not task.done()
        await dump.execute("COMMIT")
        assert await task == len(MIGRATIONS)
    finally:
        await dump.close()
        await others.close()
    waiting = vars(caplog.records[0])
    assert waiting["changes"].startswith("CREATE INDEX maps_of_name, DROP INDEX maps_by_name")
    assert any(user.startswith("pg_dump (process ") for user in waiting["used_by"])


def test_tables_that_a_migration_locks_are_known() -> None:
    assert locked_tables(("CREATE TABLE a (b TEXT)", "ALTER TABLE a ADD COLUMN c TEXT")) == []
    assert locked_tables(("CREATE INDEX a ON maps (id)", "DROP INDEX maps_newest", "DROP INDEX series_newest")) == [
        "maps",
        "series",
    ]
    assert locked_tables(("ALTER TABLE servers ADD COLUMN a TEXT", "DROP INDEX raw_log_by_age")) == [
        "servers",
        "raw_log",
    ]


async def test_newer_schema_is_rejected(db: Database) -> None:
    await db.write([Statement("INSERT INTO schema_versions (version) VALUES (:version)", {"version": 99})])
    with pytest.raises(NewerSchemaError) as caught:
        await migrate(db, VAULT.seal)
    assert (caught.value.required, caught.value.known) == (99, len(MIGRATIONS))


async def test_schema_that_a_newer_version_has_expanded_is_used(db: Database) -> None:
    await db.write([Statement("INSERT INTO applied_migrations (version) VALUES (:version)", {"version": 99})])
    assert await migrate(db, VAULT.seal) == 99
    assert await read_version(db) == SchemaVersion(applied=99, required=WITHOUT_EXPANSIONS)


async def test_only_a_contraction_locks_older_processes_out(empty: Database) -> None:
    assert await read_version(empty) == SchemaVersion(applied=0, required=0)
    await migrate(empty, VAULT.seal, contractions={MIGRATIONS[-1]: LAST_RELEASE + 1})
    assert await read_version(empty) == SchemaVersion(applied=len(MIGRATIONS), required=LAST_RELEASE + 1)


async def test_database_of_the_last_release_is_expanded_only(empty: Database) -> None:
    await write_version(empty, LAST_RELEASE)
    assert await read_version(empty) == SchemaVersion(applied=LAST_RELEASE, required=LAST_RELEASE)
    await migrate(empty, VAULT.seal)
    assert await read_version(empty) == SchemaVersion(applied=len(MIGRATIONS), required=LAST_RELEASE)


ADDITIONS = re.compile(
    r"CREATE TABLE \w+ |CREATE INDEX \w+ |ALTER TABLE \w+ ADD COLUMN \w+ \w+(?:$|( NOT NULL)? DEFAULT )"
)

REPLACED = (
    "maps_by_name", "maps_by_name_and_status", "servers_newest", "servers_by_status", "servers_by_phase",
    "servers_by_region", "servers_by_region_and_status", "servers_by_region_and_phase",
    "maps_newest", "maps_by_status", "maps_of_name", "series_newest", "series_by_status", "servers_live",
    "servers_unplaced", "servers_of_region", "audit_log_by_time", "raw_log_by_age",
)  # fmt: skip
"""Indexes that the last release can do without, as ADR 0023, 0025 and 0026 say."""


def test_migrations_since_the_last_release_add_or_are_listed_as_contractions() -> None:
    replaced = {f"DROP INDEX {name}" for name in REPLACED}
    for statements in MIGRATIONS[LAST_RELEASE:]:
        is_addition = all(sql in replaced or ADDITIONS.match(" ".join(sql.split())) for sql in statements)
        assert is_addition or statements in CONTRACTIONS, f"an older process may not work after: {statements}"


def test_contractions_remove_only_what_releases_before_the_last_one_use() -> None:
    assert all(required <= LAST_RELEASE for required in CONTRACTIONS.values())
    assert CONTRACTIONS.keys() <= set(MIGRATIONS[LAST_RELEASE:])


# --- rows of the first version ----------------------------------------------------------------------------------------


OLD_SERVERS = {
    ServerPhase.RUNNING: "running",
    ServerPhase.PENDING: "pending",
    ServerPhase.ENDING: "stopped",
    ServerPhase.RELEASED: "stopped",
}
"""Their ids are their phases; each has its status."""


def old_server(name: str, phase: ServerPhase = ServerPhase.RUNNING) -> Statement:
    numbers = ("plugin_match_id", "created_at_ms", "was_pending", "next_at_ms", "fence", "tries", "log_from_seq")
    values: dict[str, Value] = dict.fromkeys((*numbers, "is_password_ours"), 1)
    values |= {"id": name, "game_id": name, "org_id": "org_1", "region": "eu", "settings": b"{}"}
    values |= {"phase": phase.value, "status": OLD_SERVERS[phase]}
    values |= {"log_token": f"log-{name}", "report_token": f"report-{name}"}
    parameters = ", ".join(f":{column}" for column in values)
    return Statement(f"INSERT INTO servers ({', '.join(values)}) VALUES ({parameters})", values)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def migrated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> databases.Harness:
    """Provide a database of the first version after its migration."""
    created = databases.create_harness(request, tmp_path_factory.mktemp("old"))
    outcomes = [
        "UPDATE servers SET ended_at_ms = 7 WHERE status = 'stopped'",
        "INSERT INTO outcomes (server_id, kind, reason, at_ms, callback_body) VALUES"
        " ('released', 'x', 'no_players_joined', 7, CAST('{}' AS BLOB)), ('ending', 'x', NULL, 7, CAST('{}' AS BLOB))",
        "INSERT INTO callbacks (id, server_id, org_id, url, body, created_at_ms, attempts, next_at_ms)"
        " VALUES ('cb_1', 's', 'org_1', 'http://caller.example/', CAST('x' AS BLOB), 1, 1, 5)",
    ]

    async def write() -> None:
        db = await created.open()
        await write_version(db, 1)
        await db.write([*(old_server(phase, phase) for phase in OLD_SERVERS), *map(Statement, outcomes)])
        assert await migrate(db, VAULT.seal) == len(MIGRATIONS)
        await db.close()

    asyncio.run(write())
    return created


@pytest.fixture
async def old(migrated: databases.Harness) -> AsyncIterator[Database]:
    db = await migrated.open()
    yield db
    await db.close()


async def test_callbacks_of_an_old_database_are_due(old: Database) -> None:
    (due,) = await outbox.due_callbacks(old, now_ms=5, limit=9, without_hosts=[("org_1", "caller.example:80")])
    (row,) = await outbox.claim_callbacks(old, [due.id], owner="me", now_ms=5)
    assert (row.id, row.host, row.attempts, row.url) == ("cb_1", "", 1, "http://caller.example/")


async def test_plain_tokens_of_an_old_database_are_hashed_and_sealed(old: Database) -> None:
    for phase in (ServerPhase.RUNNING, ServerPhase.ENDING):
        row = await servers.by_log_token(old, f"log-{phase}")
        assert row is not None
        assert row == await servers.by_report_token(old, f"report-{phase}") == await servers.get(old, phase)
        assert (tokens_of(row).log, tokens_of(row).report) == (f"log-{phase}", f"report-{phase}")
        assert (row.org_id, row.region, row.phase, row.created_at_ms) == ("org_1", "eu", phase, 1)
        assert await history.maps_of(old, phase) == []
    assert await servers.by_log_token(old, "log-released") is None
    released = await servers.get(old, "released")
    assert released is not None
    assert released.log_token is None
    stored = str(await old.read("SELECT * FROM servers"))
    assert "log-" not in stored
    assert "report-" not in stored


async def test_server_created_during_the_migration_is_converted_too(empty: Database) -> None:
    created: list[str] = []

    async def create(sql: str, _: list[Row]) -> None:
        if "log_token" in sql and len(created) < 2:  # an old process does, after the tokens were read
            created.append(f"srv_{len(created)}")
            await empty.write([old_server(created[-1])])

    await write_version(empty, 2)
    assert await migrate(databases.HookedDatabase(empty, after_read=create), VAULT.seal) == len(MIGRATIONS)
    assert len(created) == 2
    for name in created:
        assert await servers.by_log_token(empty, f"log-{name}") is not None


async def test_servers_of_an_old_database_get_the_reasons_of_their_outcomes(old: Database) -> None:
    found = await old.read("SELECT id, reason FROM servers WHERE failure IS NULL ORDER BY id")
    assert found == [("ending", None), ("pending", None), ("released", "no_players_joined"), ("running", None)]


async def test_servers_of_an_old_database_are_listed_and_counted(old: Database) -> None:
    for query, total in (
        (MatchListQuery(region="eu"), 4),
        (MatchListQuery(page_size=1, page=3, phase=PublicPhase.ENDED), 2),
        (MatchListQuery(phase=PublicPhase.ENDED, before_ms=DAY_MS), 2),
        (MatchListQuery(phase=PublicPhase.WAITING_FOR_PLAYERS), 1),
    ):
        assert (await list_matches(old, "org_1", query))[0] == total, query
