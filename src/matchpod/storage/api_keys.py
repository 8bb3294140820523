"""Store API keys. Only hashes are stored; the text of a key is shown once, when it is created."""

from __future__ import annotations

import builtins
from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage.rows import column_list, from_row, parameter_list, to_params


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key of an organization."""

    id: str
    org_id: str
    name: str
    prefix: str
    """The first characters of its text, to tell keys apart in lists."""
    key_hash: str
    role: str
    scopes: tuple[str, ...] = ()
    """Without spaces: they are stored as one text."""
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    last_used_at_ms: int | None = None


_COLUMNS: Final = column_list(ApiKey)


def insert_statement(key: ApiKey) -> Statement:
    """Insert a key; DuplicateError if its id or hash exists."""
    return Statement(f"INSERT INTO api_keys ({_COLUMNS}) VALUES ({parameter_list(ApiKey)})", to_params(key))


async def insert(db: Database, key: ApiKey) -> None:
    """Insert a key in a transaction of its own."""
    await db.write([insert_statement(key)])


async def get(db: Database, key_id: str) -> ApiKey | None:
    """Return the key with this id, even if expired or revoked."""
    row = await db.read_one(f"SELECT {_COLUMNS} FROM api_keys WHERE id = :id", {"id": key_id})
    return None if row is None else from_row(ApiKey, row)


async def by_hash(db: Database, key_hash: str) -> ApiKey | None:
    """Return the key with this hash, even if expired or revoked."""
    row = await db.read_one(f"SELECT {_COLUMNS} FROM api_keys WHERE key_hash = :key_hash", {"key_hash": key_hash})
    return None if row is None else from_row(ApiKey, row)


async def revoke(db: Database, key_id: str, now_ms: int) -> bool:
    """Revoke a key at once; False if it does not exist or is already revoked."""
    return await _set(db, "revoked_at_ms = :at_ms WHERE id = :id AND revoked_at_ms IS NULL", key_id, now_ms)


async def expire_at(db: Database, key_id: str, at_ms: int) -> bool:
    """Set when a key expires, as after a rotation; False if it does not exist or expires earlier."""
    ends_later = "(expires_at_ms IS NULL OR expires_at_ms > :at_ms)"
    return await _set(db, f"expires_at_ms = :at_ms WHERE id = :id AND {ends_later}", key_id, at_ms)


async def mark_used(db: Database, key_id: str, now_ms: int) -> bool:
    """Record when a key was last used; False if it does not exist or a later use is recorded."""
    is_later = "(last_used_at_ms IS NULL OR last_used_at_ms < :at_ms)"
    return await _set(db, f"last_used_at_ms = :at_ms WHERE id = :id AND {is_later}", key_id, now_ms)


async def list(db: Database, org_id: str) -> builtins.list[ApiKey]:
    """Return all keys of an organization, oldest first."""
    rows = await db.read(
        f"SELECT {_COLUMNS} FROM api_keys WHERE org_id = :org_id ORDER BY created_at_ms, id", {"org_id": org_id}
    )
    return [from_row(ApiKey, row) for row in rows]


async def _set(db: Database, change: str, key_id: str, at_ms: int) -> bool:
    params: dict[str, Value] = {"id": key_id, "at_ms": at_ms}
    (rows,) = await db.write([Statement(f"UPDATE api_keys SET {change} RETURNING id", params)])
    return bool(rows)
