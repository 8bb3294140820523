"""Store organizations. Each one sees only its own matches and has its own secret for signing callbacks."""

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


async def create(db: Database, organization: Organization, *also: Statement) -> None:
    """Insert an organization in one transaction with other statements; DuplicateError if its name or id exists."""
    await db.write([rows.insert("organizations", organization), *also])


async def get(db: Database, org_id: str) -> Organization | None:
    """Return the organization with this id."""
    return await rows.read_first(db, Organization, "FROM organizations WHERE id = :id", {"id": org_id})


async def by_name(db: Database, name: str) -> Organization | None:
    """Return the organization with this name."""
    return await rows.read_first(db, Organization, "FROM organizations WHERE name = :name", {"name": name})


async def set_webhook_secret(db: Database, org_id: str, webhook_secret: bytes) -> bool:
    """Replace the sealed secret; False if the organization does not exist."""
    update = "UPDATE organizations SET webhook_secret = :webhook_secret WHERE id = :id RETURNING id"
    return bool(await rows.write_one(db, update, {"id": org_id, "webhook_secret": webhook_secret}))


async def list(db: Database) -> builtins.list[Organization]:
    """Return all organizations, ordered by name."""
    return await rows.read_all(db, Organization, "FROM organizations ORDER BY name")
