"""Store organizations. Each organization sees only its own matches, and has its own secret for signing callbacks."""

from __future__ import annotations

import builtins

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage import rows


class Organization(msgspec.Struct, frozen=True, kw_only=True):
    """One organization that uses the API."""

    id: str
    name: str
    webhook_secret: bytes
    """Sealed (encrypted by the vault)."""
    created_at_ms: int
    old_webhook_secret: bytes | None = None
    """The previous secret, sealed. Until `old_secret_until_ms`, callbacks are also signed with it."""
    old_secret_until_ms: int | None = None


async def create(db: Database, organization: Organization, *also: Statement) -> None:
    """Insert an organization in one transaction with other statements; DuplicateError if its name or id exists."""
    await db.write([rows.insert("organizations", organization), *also])


async def get(db: Database, org_id: str) -> Organization | None:
    return await rows.read_first(db, Organization, "FROM organizations WHERE id = :id", {"id": org_id})


async def by_name(db: Database, name: str) -> Organization | None:
    return await rows.read_first(db, Organization, "FROM organizations WHERE name = :name", {"name": name})


async def set_webhook_secret(
    db: Database, org_id: str, webhook_secret: bytes, *also: Statement, old_until_ms: int | None = None
) -> bool:
    """Replace the sealed secret, in one transaction with other statements. Keep the old secret until `old_until_ms`.

    If `old_until_ms` is None, the old secret is deleted. If the organization does not exist, return False and write
    nothing.
    """
    update = (
        "UPDATE organizations SET webhook_secret = :webhook_secret, old_secret_until_ms = :until_ms,"
        " old_webhook_secret = CASE WHEN CAST(:until_ms AS BIGINT) IS NULL THEN NULL ELSE webhook_secret END"
        " WHERE id = :id RETURNING id"
    )
    params = {"id": org_id, "webhook_secret": webhook_secret, "until_ms": old_until_ms}
    return bool(await rows.write_if_changed(db, Statement(update, params), *also))


async def forget_old_secret(db: Database, org_id: str, *also: Statement) -> None:
    """Delete the previous secret, in one transaction with other statements."""
    update = "UPDATE organizations SET old_webhook_secret = NULL, old_secret_until_ms = NULL WHERE id = :id"
    await db.write([Statement(update, {"id": org_id}), *also])


async def list(db: Database) -> builtins.list[Organization]:
    """Return all organizations, ordered by name."""
    return await rows.read_all(db, Organization, "FROM organizations ORDER BY name")
