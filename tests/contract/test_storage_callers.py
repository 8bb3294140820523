"""Storage of organizations, API keys and region flags."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.ports import Database, DuplicateError
from matchpod.storage import api_keys, organizations, region_flags
from matchpod.storage.api_keys import ApiKey
from matchpod.storage.organizations import Organization
from tests.contract import databases

harness = databases.harness

ACME = Organization(id="org_1", name="acme", webhook_secret=b"\x00sealed", created_at_ms=1)
KEY = ApiKey(
    id="key_1", org_id="org_1", name="ci", prefix="mk_live_ab", key_hash="ff00", role="member",
    scopes=("matches:read", "matches:write"), created_at_ms=1,
)  # fmt: skip


async def test_organizations_are_found_by_id_and_name(db: Database) -> None:
    zeta = Organization(id="org_0", name="zeta", webhook_secret=b"z", created_at_ms=0)
    await organizations.create(db, zeta)
    await organizations.create(db, ACME)
    assert await organizations.get(db, "org_1") == ACME
    assert await organizations.by_name(db, "acme") == ACME
    assert await organizations.get(db, "acme") is None
    assert await organizations.by_name(db, "org_1") is None
    assert await organizations.list(db) == [ACME, zeta]


async def test_organization_names_are_unique(db: Database) -> None:
    await organizations.create(db, ACME)
    with pytest.raises(DuplicateError):
        await organizations.create(db, msgspec.structs.replace(ACME, id="org_2"))


async def test_webhook_secret_is_replaced(db: Database) -> None:
    await organizations.create(db, ACME)
    assert await organizations.set_webhook_secret(db, "org_1", b"new")
    assert not await organizations.set_webhook_secret(db, "org_2", b"new")
    assert await organizations.get(db, "org_1") == msgspec.structs.replace(ACME, webhook_secret=b"new")


async def test_keys_are_found_by_hash_and_listed_by_organization(db: Database) -> None:
    bare = msgspec.structs.replace(KEY, id="key_0", key_hash="aa", scopes=(), created_at_ms=2, expires_at_ms=9)
    other = msgspec.structs.replace(KEY, id="key_2", key_hash="bb", org_id="org_2")
    for key in (bare, KEY, other):
        await db.write([api_keys.insert(key)])
    assert await api_keys.by_hash(db, "ff00") == KEY
    assert await api_keys.by_hash(db, "cc") is None
    assert await api_keys.list(db, "org_1") == [KEY, bare]
    with pytest.raises(DuplicateError):
        await db.write([api_keys.insert(msgspec.structs.replace(KEY, id="key_3"))])


async def test_key_cannot_be_revoked_twice(db: Database) -> None:
    await db.write([api_keys.insert(KEY)])
    assert await api_keys.revoke(db, "key_1", 5)
    assert not await api_keys.revoke(db, "key_1", 6)
    assert not await api_keys.revoke(db, "key_2", 6)
    assert await api_keys.by_hash(db, "ff00") == msgspec.structs.replace(KEY, revoked_at_ms=5)


async def test_expiry_of_a_key_can_only_be_moved_earlier(db: Database) -> None:
    await db.write([api_keys.insert(KEY)])
    for at_ms, expires_at_ms in ((50, 50), (60, 50), (40, 40)):
        assert await api_keys.expire_by(db, "key_1", at_ms)
        assert await api_keys.by_hash(db, "ff00") == msgspec.structs.replace(KEY, expires_at_ms=expires_at_ms)
    assert not await api_keys.expire_by(db, "key_2", 40)


async def test_revoked_key_is_not_replaced(db: Database) -> None:
    await db.write([api_keys.insert(KEY)])
    await api_keys.revoke(db, "key_1", 5)
    new = api_keys.insert(msgspec.structs.replace(KEY, id="key_2", key_hash="ff01"))
    assert not await api_keys.expire_by(db, "key_1", 40, new)
    assert await api_keys.get(db, "key_2") is None


async def test_last_use_of_a_key_only_moves_forward(db: Database) -> None:
    await db.write([api_keys.insert(KEY)])
    assert await api_keys.mark_used(db, "key_1", 50)
    assert not await api_keys.mark_used(db, "key_1", 40)
    assert await api_keys.by_hash(db, "ff00") == msgspec.structs.replace(KEY, last_used_at_ms=50)


async def test_region_flags_are_stored(db: Database) -> None:
    assert await region_flags.active_flags(db) == {}
    await region_flags.set_active(db, "eu", False)
    await region_flags.set_active(db, "us", False)
    await region_flags.set_active(db, "us", True)
    assert await region_flags.active_flags(db) == {"eu": False, "us": True}
