"""Store API keys. Only their hashes are stored; a key is shown once, when it is created."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage import rows


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key of an organization."""

    id: str
    org_id: str
    name: str
    prefix: str
    """The first characters of the key, by which users recognize it in lists."""
    key_hash: str
    role: str
    scopes: tuple[str, ...] = ()
    """Must not contain spaces, because the scopes are stored as one text separated by spaces."""
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    last_used_at_ms: int | None = None


def insert(key: ApiKey) -> Statement:
    """Insert a key; DuplicateError if its id or hash exists."""
    return rows.insert("api_keys", key)


async def get(db: Database, key_id: str) -> ApiKey | None:
    """Return the key with this id, even if expired or revoked."""
    return await rows.read_first(db, ApiKey, "FROM api_keys WHERE id = :id", {"id": key_id})


async def by_hash(db: Database, key_hash: str) -> ApiKey | None:
    """Return the key with this hash, even if expired or revoked."""
    return await rows.read_first(db, ApiKey, "FROM api_keys WHERE key_hash = :key_hash", {"key_hash": key_hash})


async def by_ids(db: Database, key_ids: Sequence[str]) -> builtins.list[ApiKey]:
    """Return the keys with these ids, even if expired or revoked, in any order."""
    listed, params = rows.parameter_list("id", key_ids)
    return await rows.read_all(db, ApiKey, f"FROM api_keys WHERE id IN {listed}", params)


async def revoke(db: Database, key_id: str, now_ms: int, *also: Statement) -> bool:
    """Revoke a key immediately, in one transaction with the statements in `also`.

    Return False, and write nothing, if the key does not exist or is already revoked.
    """
    return await _set(db, "revoked_at_ms = :at_ms WHERE id = :id AND revoked_at_ms IS NULL", key_id, now_ms, *also)


async def expire_by(db: Database, key_id: str, at_ms: int, *also: Statement) -> bool:
    """Let a key expire at `at_ms` at the latest (after a rotation, for example), together with other statements.

    All statements run in one transaction. Return False, and write nothing, if the key does not exist or is revoked.
    """
    earlier = "CASE WHEN expires_at_ms <= :at_ms THEN expires_at_ms ELSE :at_ms END"
    change = f"expires_at_ms = {earlier} WHERE id = :id AND revoked_at_ms IS NULL"
    return await _set(db, change, key_id, at_ms, *also)


async def mark_used(db: Database, key_id: str, now_ms: int) -> bool:
    """Record when a key was last used; False if the key does not exist, or its recorded time is not before `now_ms`."""
    is_later = "(last_used_at_ms IS NULL OR last_used_at_ms < :at_ms)"
    return await _set(db, f"last_used_at_ms = :at_ms WHERE id = :id AND {is_later}", key_id, now_ms)


async def list(db: Database, org_id: str) -> builtins.list[ApiKey]:
    """Return all keys of an organization, oldest first."""
    rest = "FROM api_keys WHERE org_id = :org_id ORDER BY created_at_ms, id"
    return await rows.read_all(db, ApiKey, rest, {"org_id": org_id})


async def _set(db: Database, change: str, key_id: str, at_ms: int, *also: Statement) -> bool:
    update = Statement(f"UPDATE api_keys SET {change} RETURNING id", {"id": key_id, "at_ms": at_ms})
    return bool(await rows.write_if_changed(db, update, *also))
