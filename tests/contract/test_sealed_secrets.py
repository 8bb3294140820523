"""All stored secrets are encrypted again with another key, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.vault import KeyFileVault
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Row, Statement
from matchpod.service.access.organizations import Access
from matchpod.storage import organizations, sealed_secrets, servers
from matchpod.storage.sealed_secrets import Resealed
from tests.contract import databases
from tests.contract.ended_matches import store_match
from tests.contract.webhook_world import World as WebhookWorld
from tests.contract.webhook_world import principal
from tests.vaults import VAULT

harness = databases.harness

NEW_KEY = "B" * 43 + "="
NEW = KeyFileVault.from_text(NEW_KEY)
BOTH = KeyFileVault.from_text(f"{NEW_KEY},{'A' * 43}=")


async def tables(db: Database) -> list[str]:
    sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    if not db.is_postgres:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return sorted(str(name) for (name,) in await db.read(sql))


async def contents(db: Database) -> dict[str, list[Row]]:
    """Return all rows of all tables, with secrets decrypted by whichever key opens them."""
    return {
        table: sorted((opened(row) for row in await db.read(f"SELECT * FROM {table}")), key=repr)
        for table in await tables(db)
    }


def opened(row: Row) -> Row:
    return tuple(BOTH.open(value) if isinstance(value, bytes) and can_open(BOTH, value) else value for value in row)


def can_open(vault: KeyFileVault, value: bytes) -> bool:
    try:
        vault.open(value)
    except ValueError:
        return False
    return True


async def count(db: Database, vault: KeyFileVault) -> int:
    """Count the values in any column of any table that a vault opens: also those that `SEALED` does not list."""
    rows: Sequence[Row] = [row for table in await tables(db) for row in await db.read(f"SELECT * FROM {table}")]
    return sum(can_open(vault, value) for row in rows for value in row if isinstance(value, bytes))


async def store_secrets(db: Database) -> None:
    """Store an organization with two webhook secrets, an open match with all its secrets, and an ended one."""
    access = Access(db=db, clock=SystemClock(), vault=VAULT)
    await access.create_organization("acme")
    await access.replace_webhook_secret("acme")
    auth, rcon, password = (VAULT.seal(name) for name in ("auth", "rcon", "password"))
    store = partial(store_match, db, callback_auth=auth, rcon_password=rcon, server_password=password)
    await store("srv_open", phase=ServerPhase.RUNNING)
    webhook = await WebhookWorld(db).add()
    await WebhookWorld(db).webhooks.rotate_secret(principal(), webhook.id)
    await store("srv_ended", entries=10)


async def test_every_stored_secret_gets_the_new_key_and_nothing_else_changes(db: Database) -> None:
    await store_secrets(db)
    before, secrets = await contents(db), await count(db, VAULT)
    assert secrets == 2 + 5 + 1 + 3, "of the organization, of the open match, of the callback, of the webhook"
    done = await sealed_secrets.reseal_all(db, BOTH.reseal)
    assert {table: numbers.changed for table, numbers in done.items()} == {
        "organizations": 2,
        "servers": 5,
        "callbacks": 1,
        "webhooks": 3,
    }
    assert (await count(db, VAULT), await count(db, NEW)) == (0, secrets)
    assert await contents(db) == before
    again = await sealed_secrets.reseal_all(db, BOTH.reseal)
    assert sum(numbers.changed for numbers in again.values()) == 0
    assert sum(numbers.unchanged for numbers in again.values()) == secrets


async def test_secrets_of_an_unknown_key_are_counted_and_kept(db: Database) -> None:
    await store_secrets(db)
    before = await count(db, VAULT)
    done = await sealed_secrets.reseal_all(db, NEW.reseal)
    assert done["servers"] == Resealed(unreadable=5)
    assert (await count(db, VAULT), await count(db, NEW)) == (before, 0)


async def test_secret_that_is_replaced_meanwhile_keeps_its_new_value(db: Database) -> None:
    await store_secrets(db)
    (organization,) = await organizations.list(db)

    async def replace(statements: Sequence[Statement]) -> None:
        if "organizations" in statements[0].sql:
            await organizations.set_webhook_secret(db, organization.id, NEW.seal("newest"))

    await sealed_secrets.reseal_all(databases.HookedDatabase(db, before_write=replace), BOTH.reseal)
    (organization,) = await organizations.list(db)
    assert BOTH.open(organization.webhook_secret) == "newest"


async def test_lease_of_a_running_match_is_kept(db: Database) -> None:
    await store_secrets(db)
    (claimed,) = await servers.claim_due(db, owner="me", now_ms=2**45, limit=1)
    await sealed_secrets.reseal_all(db, BOTH.reseal)
    await db.write([servers.check_fence(claimed.id, claimed.fence)])


async def test_more_rows_than_are_read_at_a_time(db: Database) -> None:
    many = 1_200
    sql = (
        "INSERT INTO callbacks (id, server_id, org_id, url, auth, body, created_at_ms, attempts)"
        " VALUES (:id, :id, 'org_1', '', :auth, :auth, 1, 0)"
    )
    await db.write([Statement(sql, {"id": f"cb_{number}", "auth": VAULT.seal("x")}) for number in range(many)])
    done = await sealed_secrets.reseal_all(db, BOTH.reseal)
    assert done["callbacks"] == Resealed(changed=many)
