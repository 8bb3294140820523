"""Storage of organizations, API keys and region flags."""

from __future__ import annotations

import msgspec

from matchpod.ports import Database
from matchpod.storage import api_keys
from matchpod.storage.api_keys import ApiKey
from tests.contract import databases

harness = databases.harness
KEY = ApiKey(
    id="key_1", org_id="org_1", name="ci", prefix="mk_live_ab", key_hash="ff00", role="member",
    scopes=("matches:read", "matches:write"), created_at_ms=1,
)  # fmt: skip


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
