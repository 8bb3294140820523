"""Store organizations. Each one sees only its own matches and has its own secret for signing callbacks."""

from __future__ import annotations

import builtins
from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage.rows import column_list, from_row, parameter_list, to_params


class Organization(msgspec.Struct, frozen=True, kw_only=True):
    """One organization that uses the API."""

    id: str
    name: str
    webhook_secret: bytes
    """Sealed."""
    created_at_ms: int


_COLUMNS: Final = column_list(Organization)


async def create(db: Database, organization: Organization, *also: Statement) -> None:
    """Insert an organization in one transaction with other statements; DuplicateError if its name or id exists."""
    insert = f"INSERT INTO organizations ({_COLUMNS}) VALUES ({parameter_list(Organization)})"
    await db.write([Statement(insert, to_params(organization)), *also])


async def get(db: Database, org_id: str) -> Organization | None:
    """Return the organization with this id."""
    return await _one(db, "id = :id", {"id": org_id})


async def by_name(db: Database, name: str) -> Organization | None:
    """Return the organization with this name."""
    return await _one(db, "name = :name", {"name": name})


async def set_webhook_secret(db: Database, org_id: str, webhook_secret: bytes) -> bool:
    """Replace the sealed secret; False if the organization does not exist."""
    update = Statement(
        "UPDATE organizations SET webhook_secret = :webhook_secret WHERE id = :id RETURNING id",
        {"id": org_id, "webhook_secret": webhook_secret},
    )
    (rows,) = await db.write([update])
    return bool(rows)


async def list(db: Database) -> builtins.list[Organization]:
    """Return all organizations, ordered by name."""
    rows = await db.read(f"SELECT {_COLUMNS} FROM organizations ORDER BY name")
    return [from_row(Organization, row) for row in rows]


async def _one(db: Database, condition: str, params: dict[str, Value]) -> Organization | None:
    rows = await db.read(f"SELECT {_COLUMNS} FROM organizations WHERE {condition}", params)
    return from_row(Organization, rows[0]) if rows else None
