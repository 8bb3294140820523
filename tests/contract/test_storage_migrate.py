"""Migrations are applied once, even by concurrent processes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed
import pytest

from matchpod.core.requests.match_list_query import MatchListQuery
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, Row, Statement, Value
from matchpod.storage import outbox, servers
from matchpod.storage.history_counts import DAY_MS
from matchpod.storage.match_lists import list_matches
from matchpod.storage.migrate import NewerSchemaError, SchemaVersion, current_version, migrate, read_version
from matchpod.storage.migration_locks import locked_tables
from matchpod.storage.schema import CONTRACTIONS, LAST_RELEASE, MIGRATIONS, WITHOUT_EXPANSIONS
from tests.contract import databases
from tests.vaults import VAULT, tokens_of

PATIENCE_S = 60.0
harness = databases.harness


async def test_migrating_again_changes_nothing(db: Database) -> None:
    assert await migrate(db, VAULT.seal) == await current_version(db) == len(MIGRATIONS)


async def test_callbacks_of_an_older_version_are_due_after_the_migration(harness: databases.Harness) -> None:
    db = await harness.open()
    try:
        for sql in (sql for statements in MIGRATIONS[:2] for sql in statements):
            await db.write([Statement(sql)])
        await db.write(
            [
                Statement("CREATE TABLE schema_versions (version BIGINT PRIMARY KEY)"),
                Statement("INSERT INTO schema_versions (version) VALUES (1), (2)"),
                Statement(
                    "INSERT INTO callbacks (id, server_id, org_id, url, body, created_at_ms, attempts, next_at_ms)"
                    " VALUES ('cb_1', 's', 'org_1', 'http://caller.example/', CAST('x' AS BLOB), 1, 1, 5)"
                ),
            ]
        )
        await migrate(db, VAULT.seal)
        (due,) = await outbox.due_callbacks(db, now_ms=5, limit=9, without_hosts=[("org_1", "caller.example:80")])
        (row,) = await outbox.claim_callbacks(db, [due.id], owner="me", now_ms=5)
    finally:
        await db.close()
    assert (row.id, row.host, row.attempts, row.url) == ("cb_1", "", 1, "http://caller.example/")


async def test_concurrent_migrations_all_succeed(harness: databases.Harness) -> None:
    handles = [await harness.open() for _ in range(1 if harness.is_sqlite else 4)]
    try:
        versions = await asyncio.gather(*(migrate(db, VAULT.seal) for db in handles * 2))
    finally:
        for db in handles:
            await db.close()
    assert set(versions) == {len(MIGRATIONS)}


async def test_migration_that_waits_for_a_dump_blocks_no_writer(
    harness: databases.Harness, caplog: pytest.LogCaptureFixture
) -> None:
    if harness.is_sqlite:
        pytest.skip("SQLite has one writer")
    db, others = await harness.open(), await harness.open()
    dump = await asyncpg.connect(harness.location, server_settings={"application_name": "pg_dump"})
    try:
        schema = [sql for statements in MIGRATIONS[:LAST_RELEASE] for sql in statements]
        schema.append("CREATE TABLE schema_versions (version BIGINT PRIMARY KEY)")
        schema += [f"INSERT INTO schema_versions (version) VALUES ({number + 1})" for number in range(LAST_RELEASE)]
        await db.write(list(map(Statement, schema)))
        await dump.execute("BEGIN; LOCK TABLE maps IN ACCESS SHARE MODE")
        task = asyncio.create_task(migrate(db, VAULT.seal, lock_ms=10, lock_pause_s=0.01))
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
        await db.close()
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


async def test_only_a_contraction_locks_older_processes_out(harness: databases.Harness) -> None:
    db = await harness.open()
    try:
        assert await read_version(db) == SchemaVersion(applied=0, required=0)
        await migrate(db, VAULT.seal, contractions={MIGRATIONS[-1]: LAST_RELEASE + 1})
        assert await read_version(db) == SchemaVersion(applied=len(MIGRATIONS), required=LAST_RELEASE + 1)
    finally:
        await db.close()


async def test_database_of_the_last_release_is_expanded_only(harness: databases.Harness) -> None:
    """As the last release left it: one table with the versions."""
    db = await harness.open()
    try:
        schema = [sql for statements in MIGRATIONS[:LAST_RELEASE] for sql in statements]
        schema.append("CREATE TABLE schema_versions (version BIGINT PRIMARY KEY)")
        schema += [f"INSERT INTO schema_versions (version) VALUES ({number + 1})" for number in range(LAST_RELEASE)]
        await db.write(list(map(Statement, schema)))
        assert await read_version(db) == SchemaVersion(applied=LAST_RELEASE, required=LAST_RELEASE)
        await migrate(db, VAULT.seal)
        assert await read_version(db) == SchemaVersion(applied=len(MIGRATIONS), required=LAST_RELEASE)
    finally:
        await db.close()


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


@pytest.mark.parametrize(
    ("sql", "is_addition"),
    [
        ("CREATE TABLE heartbeats (owner TEXT)", True),
        ("CREATE INDEX servers_by_age ON servers (created_at_ms)", True),
        ("ALTER TABLE servers ADD COLUMN note TEXT", True),
        ("ALTER TABLE servers ADD COLUMN notes BIGINT NOT NULL DEFAULT 0", True),
        ("ALTER TABLE servers ADD COLUMN notes BIGINT NOT NULL", False),
        ("ALTER TABLE servers RENAME COLUMN id TO name", False),
        ("CREATE UNIQUE INDEX one_slot ON servers (slot)", False),
        ("DROP INDEX servers_by_age", False),
        ("UPDATE servers SET region = ''", False),
    ],
)
def test_what_an_addition_is(sql: str, *, is_addition: bool) -> None:
    assert bool(ADDITIONS.match(sql)) is is_addition


async def write_second_version(db: Database) -> None:
    """Write a database of version 2, which had plain tokens."""
    schema = [*MIGRATIONS[0], *MIGRATIONS[1], "CREATE TABLE schema_versions (version BIGINT PRIMARY KEY)"]
    schema += [f"INSERT INTO schema_versions (version) VALUES ({version})" for version in (1, 2)]
    await db.write([Statement(sql) for sql in schema])


def old_server(name: str, phase: ServerPhase) -> Statement:
    texts = ("id", "game_id", "org_id", "region", "phase", "status", "log_token", "report_token")
    numbers = ("plugin_match_id", "created_at_ms", "was_pending", "next_at_ms", "fence", "tries", "log_from_seq")
    columns = (*texts, *numbers, "is_password_ours", "settings")
    values: dict[str, Value] = {name: name for name in texts} | dict.fromkeys((*numbers, "is_password_ours"), 1)
    values |= {"id": name, "phase": phase.value, "status": "running", "settings": b"{}"}
    values |= {"log_token": f"log-{name}", "report_token": f"report-{name}"}
    parameters = ", ".join(f":{column}" for column in columns)
    return Statement(f"INSERT INTO servers ({', '.join(columns)}) VALUES ({parameters})", values)


async def test_plain_tokens_of_an_old_database_are_hashed_and_sealed(harness: databases.Harness) -> None:
    db = await harness.open()
    try:
        await write_second_version(db)
        phases = (ServerPhase.RUNNING, ServerPhase.ENDING, ServerPhase.RELEASED)
        await db.write([old_server(phase, phase) for phase in phases])
        assert await migrate(db, VAULT.seal) == len(MIGRATIONS)
        for phase in phases[:2]:
            row = await servers.by_log_token(db, f"log-{phase}")
            assert row is not None
            assert row == await servers.by_report_token(db, f"report-{phase}") == await servers.get(db, phase)
            assert (tokens_of(row).log, tokens_of(row).report) == (f"log-{phase}", f"report-{phase}")
        assert await servers.by_log_token(db, "log-released") is None
        released = await servers.get(db, "released")
        assert released is not None
        assert released.log_token is None
        stored = str(await db.read("SELECT * FROM servers"))
        assert "log-" not in stored
        assert "report-" not in stored
    finally:
        await db.close()


async def test_server_created_during_the_migration_is_converted_too(harness: databases.Harness) -> None:
    db = await harness.open()
    created: list[str] = []

    class CreatingDatabase(databases.DelegatingDatabase):
        """An old process creates a server after the tokens were read."""

        async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
            rows = await super().read(sql, params)
            if "log_token" in sql and len(created) < 2:
                created.append(f"srv_{len(created)}")
                await db.write([old_server(created[-1], ServerPhase.RUNNING)])
            return rows

    try:
        await write_second_version(db)
        assert await migrate(CreatingDatabase(db), VAULT.seal) == len(MIGRATIONS)
        assert len(created) == 2
        for name in created:
            assert await servers.by_log_token(db, f"log-{name}") is not None
    finally:
        await db.close()


async def test_servers_of_an_older_version_get_the_reasons_of_their_outcomes(harness: databases.Harness) -> None:
    db = await harness.open()
    try:
        await write_second_version(db)
        outcomes = {"canceled": "no_players_joined", "finished": None}
        for name, reason in outcomes.items():
            insert = "INSERT INTO outcomes (server_id, kind, reason, at_ms, callback_body) VALUES (:id, 'x', :reason, 7, :body)"
            await db.write(
                [
                    old_server(name, ServerPhase.RELEASED),
                    Statement("UPDATE servers SET ended_at_ms = 7 WHERE id = :id", {"id": name}),
                    Statement(insert, {"id": name, "reason": reason, "body": b"{}"}),
                ]
            )
        await db.write([old_server("open", ServerPhase.RUNNING)])
        await migrate(db, VAULT.seal)
        found = await db.read("SELECT id, reason, failure FROM servers ORDER BY id")
    finally:
        await db.close()
    assert found == [("canceled", "no_players_joined", None), ("finished", None, None), ("open", None, None)]


async def test_servers_of_an_older_version_are_listed_and_counted(harness: databases.Harness) -> None:
    db = await harness.open()
    try:
        await write_second_version(db)
        for phase in (ServerPhase.RELEASED, ServerPhase.ENDING, ServerPhase.RUNNING, ServerPhase.PENDING):
            await db.write([old_server(phase.value, phase)])
        set_owner = "UPDATE servers SET org_id = 'org_1', region = 'eu', settings = :settings, status = :status"
        await db.write(
            [
                Statement(
                    f"{set_owner} WHERE phase IN ('released', 'ending')", {"settings": b"{}", "status": "stopped"}
                ),
                Statement(f"{set_owner} WHERE phase = 'running'", {"settings": b"{}", "status": "running"}),
                Statement(f"{set_owner} WHERE phase = 'pending'", {"settings": b"{}", "status": "pending"}),
            ]
        )
        await migrate(db, VAULT.seal)
        queries = {
            4: MatchListQuery(region="eu"),
            3: MatchListQuery(page_size=1, page=3, phase=PublicPhase.ENDED),
            2: MatchListQuery(phase=PublicPhase.ENDED, before_ms=DAY_MS),
            1: MatchListQuery(phase=PublicPhase.WAITING_FOR_PLAYERS),
        }
        totals = {number: (await list_matches(db, "org_1", query))[0] for number, query in queries.items()}
    finally:
        await db.close()
    assert totals == {4: 4, 3: 2, 2: 2, 1: 1}
