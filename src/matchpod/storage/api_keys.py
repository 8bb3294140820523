"""Which keys open the API, and for whom? Only hashes are stored; a key's text is shown once, when it is made."""

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
    """The first characters of its text, to tell keys apart."""
    key_hash: str
    role: str
    scopes: tuple[str, ...] = ()
    """Words without spaces."""
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    last_used_at_ms: int | None = None


_COLUMNS: Final = column_list(ApiKey)


def insertion(key: ApiKey) -> Statement:
    """Add a key; DuplicateError when its id or hash is taken."""
    return Statement(f"INSERT INTO api_keys ({_COLUMNS}) VALUES ({parameter_list(ApiKey)})", to_params(key))


async def insert(db: Database, key: ApiKey) -> None:
    """Add a key by itself."""
    await db.write([insertion(key)])


async def get(db: Database, key_id: str) -> ApiKey | None:
    """The key of this id, expired and revoked ones included."""
    row = await db.look_up(f"SELECT {_COLUMNS} FROM api_keys WHERE id = :id", {"id": key_id})
    return None if row is None else from_row(ApiKey, row)


async def by_hash(db: Database, key_hash: str) -> ApiKey | None:
    """The key of this hash, expired and revoked ones included."""
    row = await db.look_up(f"SELECT {_COLUMNS} FROM api_keys WHERE key_hash = :key_hash", {"key_hash": key_hash})
    return None if row is None else from_row(ApiKey, row)


async def revoke(db: Database, key_id: str, now_ms: int) -> bool:
    """End a key at once; False when there is none, or it was revoked before."""
    return await _set(db, "revoked_at_ms = :at_ms WHERE id = :id AND revoked_at_ms IS NULL", key_id, now_ms)


async def expire_at(db: Database, key_id: str, at_ms: int) -> bool:
    """Let a key end at a time, as after a rotation; False when there is none, or it ends before that anyway."""
    ends_later = "(expires_at_ms IS NULL OR expires_at_ms > :at_ms)"
    return await _set(db, f"expires_at_ms = :at_ms WHERE id = :id AND {ends_later}", key_id, at_ms)


async def mark_used(db: Database, key_id: str, now_ms: int) -> bool:
    """Note when a key was last used; False when there is none, or a later use is noted."""
    is_later = "(last_used_at_ms IS NULL OR last_used_at_ms < :at_ms)"
    return await _set(db, f"last_used_at_ms = :at_ms WHERE id = :id AND {is_later}", key_id, now_ms)


async def list(db: Database, org_id: str) -> builtins.list[ApiKey]:
    """All keys of an organization, the oldest first."""
    rows = await db.read(
        f"SELECT {_COLUMNS} FROM api_keys WHERE org_id = :org_id ORDER BY created_at_ms, id", {"org_id": org_id}
    )
    return [from_row(ApiKey, row) for row in rows]


async def _set(db: Database, change: str, key_id: str, at_ms: int) -> bool:
    params: dict[str, Value] = {"id": key_id, "at_ms": at_ms}
    (rows,) = await db.write([Statement(f"UPDATE api_keys SET {change} RETURNING id", params)])
    return bool(rows)
