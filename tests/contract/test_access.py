"""Authentication, and management of organizations and keys."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.errors import UnauthorizedError, UnavailableError
from matchpod.ports import Database, DatabaseUnavailableError
from matchpod.service.access import organizations as rules
from matchpod.service.access.organizations import Access, AccessError
from matchpod.service.identity.principals import KeyState, NewKey, Role, Scope
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.databases import HookedDatabase

harness = databases.sqlite_harness

BOTH = (Scope.SERVERS_READ, Scope.SERVERS_WRITE)
START_MS = 1_700_000_000_000


class World:
    """One process with the organization `acme`."""

    def __init__(self, db: Database) -> None:
        self.writes = 0
        self.failing: set[str] = set()
        self.db = HookedDatabase(db, before_read=self._before_read, before_write=self._before_write)
        self.clock = ManualClock(START_MS)
        self.vault = KeyFileVault(bytes(32))
        self.access = self.another_process()

    async def _before_read(self, _: object) -> None:
        if "read" in self.failing:
            raise DatabaseUnavailableError("unavailable for a test")

    async def _before_write(self, _: object) -> None:
        self.writes += 1
        if "write" in self.failing:
            raise DatabaseUnavailableError("unavailable for a test")

    def another_process(self, max_cached: int = rules.MAX_CACHED) -> Access:
        """Another process on the same database."""
        return Access(db=self.db, clock=self.clock, vault=self.vault, max_cached=max_cached)

    async def new_key(self, *, expires_in_s: int | None = None) -> NewKey:
        return await self.access.create_key("acme", role=Role.ADMIN, scopes=BOTH, expires_in_s=expires_in_s)

    async def is_accepted(self, key: NewKey) -> bool:
        try:
            await self.access.authenticate(f"Bearer {key.text}")
        except UnauthorizedError as exc:
            if str(exc) != rules.KEY_INVALID:
                raise
            return False
        return True


@pytest.fixture
async def world(db: Database) -> World:
    world = World(db)
    await world.access.create_organization("acme")
    return world


# --- authentication -----------------------------------------------------------------------------------------------


async def test_key_expires_even_if_it_is_cached(world: World) -> None:
    key = await world.new_key(expires_in_s=2)
    world.clock.at_ms += 1_999
    assert await world.is_accepted(key)
    world.clock.at_ms += 1
    assert not await world.is_accepted(key)
    assert [view.state for view in await world.access.keys("acme")] == [KeyState.EXPIRED]


async def test_revoked_key_is_rejected_at_once_here_and_soon_in_other_processes(world: World) -> None:
    key = await world.new_key()
    assert await world.is_accepted(key)
    other_process = world.another_process()
    assert await other_process.revoke_key(key.view.id)
    world.clock.at_ms += rules.CACHE_MS - 1
    assert await world.is_accepted(key)
    world.clock.at_ms += 1
    assert not await world.is_accepted(key)

    other = await world.new_key()
    assert await world.is_accepted(other)
    assert await world.access.revoke_key(other.view.id)
    assert not await world.is_accepted(other)


async def test_number_of_cached_keys_is_limited_and_invalid_keys_are_not_cached(world: World) -> None:
    world.access = world.another_process(max_cached=2)
    first, second, third = [await world.new_key() for _ in range(3)]
    for key in (first, second, third):
        assert await world.is_accepted(key)
    before = world.db.reads
    for letter in "ABC":
        with pytest.raises(UnauthorizedError, match=re.escape(rules.KEY_INVALID)):
            await world.access.authenticate(f"Bearer mk_live_{letter * 43}")
    assert await world.is_accepted(second)
    assert await world.is_accepted(third)
    assert world.db.reads == before + 3
    assert await world.is_accepted(first)
    assert world.db.reads == before + 4


async def test_use_of_a_key_is_recorded_at_most_once_per_minute_by_all_processes(world: World) -> None:
    key = await world.new_key()
    before = world.writes
    assert await asyncio.gather(*(world.is_accepted(key) for _ in range(5))) == [True] * 5
    for _ in range(rules.RECORD_USE_MS // rules.CACHE_MS - 1):
        world.clock.at_ms += rules.CACHE_MS
        assert await world.is_accepted(key)
    await world.another_process().authenticate(f"Bearer {key.text}")
    assert world.writes == before + 1
    (view,) = await world.access.keys("acme")
    assert view.last_used_at == "2023-11-14T22:13:20.000Z"
    world.clock.at_ms += rules.CACHE_MS
    assert await world.is_accepted(key)
    assert world.writes == before + 2
    (view,) = await world.access.keys("acme")
    assert view.last_used_at == "2023-11-14T22:14:20.000Z"


async def test_valid_key_is_accepted_if_the_database_cannot_be_written(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    key = await world.new_key()
    world.failing.add("write")
    assert await world.is_accepted(key)
    world.clock.at_ms += rules.CACHE_MS
    assert await world.is_accepted(key)
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "key use not recorded"
    ]


async def test_only_cached_keys_are_accepted_during_a_database_outage(world: World) -> None:
    known, other = await world.new_key(), await world.new_key()
    assert await world.is_accepted(known)
    world.failing.add("read")
    assert await world.is_accepted(known)
    with pytest.raises(UnavailableError):
        await world.is_accepted(other)
    world.clock.at_ms += rules.CACHE_MS
    with pytest.raises(UnavailableError):
        await world.is_accepted(known)


# --- organizations ------------------------------------------------------------------------------------------------


async def test_each_organization_has_its_own_webhook_secret_that_can_be_replaced(world: World) -> None:
    await world.access.create_organization("beta")
    first = await world.access.webhook_secret("acme")
    assert first.startswith("whsec_")
    assert first == await world.access.webhook_secret("acme")
    assert first != await world.access.webhook_secret("beta")
    replaced = await world.access.replace_webhook_secret("acme")
    assert replaced != first
    assert await world.access.webhook_secret("acme") == replaced
    other = Access(db=world.db, clock=world.clock, vault=KeyFileVault(b"x" * 32))
    with pytest.raises(AccessError, match="cannot be decrypted"):
        await other.webhook_secret("acme")


@pytest.mark.parametrize("name", ["unknown", "", "a\x00b", "\udcff", "x" * 10_000])
async def test_unknown_organization_is_reported(world: World, name: str) -> None:
    for work in (
        world.access.webhook_secret(name),
        world.access.replace_webhook_secret(name),
        world.access.reveal_webhook_secret(name),
        world.access.keys(name),
        world.access.create_key(name, role=Role.OWNER, scopes=BOTH),
    ):
        with pytest.raises(AccessError, match="no organization named"):
            await work


# --- keys ---------------------------------------------------------------------------------------------------------


async def test_rotated_key_stays_valid_during_the_overlap(world: World) -> None:
    old = await world.access.create_key("acme", name="ci", role=Role.OWNER, scopes=BOTH)
    assert await world.is_accepted(old)
    new = await world.access.rotate_key(old.view.id, overlap_s=60)
    assert new.text != old.text
    assert (new.view.name, new.view.role, new.view.scopes) == ("ci", Role.OWNER, BOTH)
    assert new.view.expires_at is None
    world.clock.at_ms += 59_999
    assert await world.is_accepted(old)
    assert await world.is_accepted(new)
    world.clock.at_ms += 1
    assert not await world.is_accepted(old)
    assert await world.is_accepted(new)
    await world.access.rotate_key(new.view.id, overlap_s=0)
    assert not await world.is_accepted(new)


async def test_rotation_gives_the_new_key_a_full_lifetime_and_does_not_extend_the_old_key(world: World) -> None:
    old = await world.new_key(expires_in_s=100)
    world.clock.at_ms += 90_000
    new = await world.access.rotate_key(old.view.id, overlap_s=3_600)
    world.clock.at_ms += 10_000
    assert not await world.is_accepted(old)
    world.clock.at_ms += 89_999
    assert await world.is_accepted(new)
    world.clock.at_ms += 1
    assert not await world.is_accepted(new)


@pytest.mark.parametrize("expires_in_s", [None, 7_200])
async def test_key_rotated_again_within_the_overlap_gets_the_lifetime_of_the_original(
    world: World, expires_in_s: int | None
) -> None:
    old = await world.new_key(expires_in_s=expires_in_s)
    first = await world.access.rotate_key(old.view.id, overlap_s=60)
    await world.access.rotate_key(first.view.id, overlap_s=60)
    for key in (old, first, old):
        world.clock.at_ms += 1_000
        again = await world.access.rotate_key(key.view.id, overlap_s=60)
        fresh = await world.new_key(expires_in_s=expires_in_s)
        assert again.view.expires_at == fresh.view.expires_at
    world.clock.at_ms += 60_000
    assert not await world.is_accepted(old)


async def test_rotation_is_one_transaction(world: World) -> None:
    key = await world.new_key()
    writes = world.writes
    await world.access.rotate_key(key.view.id, overlap_s=0)
    assert world.writes == writes + 1


async def test_revoked_or_expired_key_cannot_be_rotated(world: World) -> None:
    revoked, expired = await world.new_key(), await world.new_key(expires_in_s=1)
    await world.access.revoke_key(revoked.view.id)
    world.clock.at_ms += 1_000
    for key, state in ((revoked, "revoked"), (expired, "expired")):
        with pytest.raises(AccessError, match=f"is {state}"):
            await world.access.rotate_key(key.view.id, overlap_s=60)
    assert len(await world.access.keys("acme")) == 2


@pytest.mark.parametrize("key_id", ["key_0", "", "\udcff", "a\x00b"])
async def test_unknown_key_id_is_reported(world: World, key_id: str) -> None:
    await world.new_key()
    for work in (world.access.revoke_key(key_id), world.access.rotate_key(key_id, overlap_s=0)):
        with pytest.raises(AccessError, match="no key with the id"):
            await work


async def test_changes_are_logged_without_secrets(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=rules.__name__):
        await world.access.create_organization("other")
        key = await world.new_key()
        new = await world.access.rotate_key(key.view.id, overlap_s=60)
        await world.access.revoke_key(key.view.id)
        secret = await world.access.replace_webhook_secret("acme")
        records = [record for record in caplog.records if record.name == rules.__name__]
        assert [record.getMessage() for record in records] == [
            "organization created",
            "key created",
            "key rotated",
            "key revoked",
            "webhook secret replaced",
        ]
        assert {record.levelno for record in records} == {logging.INFO}
        written = repr([vars(record) for record in records])
        assert key.view.id in written
        for text in (key.text, new.text, secret):
            assert text not in written
        assert key.text not in repr(key)
