"""Organizations and keys on both databases: what opens the API, for how long, and what people are told."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.errors import UnauthorizedError, UnavailableError
from matchpod.ports import Database, DatabaseAwayError, Row, Statement, Value
from matchpod.service import access as rules
from matchpod.service.access import Access, AccessError
from matchpod.service.principals import KeyState, NewKey, Role, Scope
from tests.contract import databases

home = databases.sqlite_home

BOTH = (Scope.SERVERS_READ, Scope.SERVERS_WRITE)
START_MS = 1_700_000_000_000


class ManualClock:
    def __init__(self) -> None:
        self.at_ms = START_MS

    def now_ms(self) -> int:
        return self.at_ms


class WatchedDatabase(databases.PassedOn):
    """A database that counts what it is asked, and goes away when told to."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.reads = 0
        self.writes = 0
        self.is_read_away = False
        self.is_write_away = False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self.reads += 1
        if self.is_read_away:
            raise DatabaseAwayError("gone for a test")
        return await super().read(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.writes += 1
        if self.is_write_away:
            raise DatabaseAwayError("gone for a test")
        return await super().write(statements)


class Office:
    """One process with the organization `acme`."""

    def __init__(self, db: Database) -> None:
        self.db = WatchedDatabase(db)
        self.clock = ManualClock()
        self.vault = KeyFileVault(bytes(32))
        self.access = self.another()

    def another(self) -> Access:
        """The same database as another process sees it."""
        return Access(db=self.db, clock=self.clock, vault=self.vault)

    async def new_key(self, *, expires_in_s: int | None = None) -> NewKey:
        return await self.access.create_key("acme", role=Role.ADMIN, scopes=BOTH, expires_in_s=expires_in_s)

    async def opens(self, key: NewKey) -> bool:
        try:
            await self.access.authenticate(f"Bearer {key.text}")
        except UnauthorizedError as refusal:
            if str(refusal) != rules.KEY_INVALID:
                raise
            return False
        return True


def run(home: databases.Home, scenario: Callable[[Office], Awaitable[None]]) -> None:
    async def main(db: Database) -> None:
        office = Office(db)
        await office.access.create_organization("acme")
        await scenario(office)

    home.run(main)


# --- the door -----------------------------------------------------------------------------------------------------


def test_a_key_names_its_organization_role_and_scopes(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        key = await office.access.create_key("acme", name="ci", role=Role.MEMBER, scopes=[Scope.SERVERS_READ])
        principal = await office.access.authenticate(f"Bearer {key.text}")
        (acme,) = await office.access.organizations()
        assert (principal.org_id, principal.key_id) == (acme.id, key.view.id)
        assert (principal.role, principal.scopes) == (Role.MEMBER, frozenset({Scope.SERVERS_READ}))

    run(home, scenario)


def test_a_key_that_was_never_made_is_not_valid(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        with pytest.raises(UnauthorizedError, match=re.escape(rules.KEY_INVALID)):
            await office.access.authenticate(f"Bearer mk_live_{'A' * 43}")

    run(home, scenario)


def test_a_key_ends_when_it_expires_even_if_it_was_just_used(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key(expires_in_s=2)
        office.clock.at_ms += 1_999
        assert await office.opens(key)
        office.clock.at_ms += 1
        assert not await office.opens(key)
        assert [view.state for view in await office.access.keys("acme")] == [KeyState.EXPIRED]

    run(home, scenario)


def test_a_revoked_key_is_refused_at_once_here_and_in_five_seconds_elsewhere(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key()
        assert await office.opens(key)
        terminal = office.another()
        assert await terminal.revoke_key(key.view.id)
        office.clock.at_ms += rules.CACHE_MS - 1
        assert await office.opens(key)
        office.clock.at_ms += 1
        assert not await office.opens(key)

        other = await office.new_key()
        assert await office.opens(other)
        assert await office.access.revoke_key(other.view.id)
        assert not await office.opens(other)

    run(home, scenario)


def test_a_key_in_use_is_looked_up_once_in_five_seconds(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key()
        before = office.db.reads
        for _ in range(10):
            assert await office.opens(key)
        assert office.db.reads == before + 1
        office.clock.at_ms += rules.CACHE_MS
        assert await office.opens(key)
        assert office.db.reads == before + 2

    run(home, scenario)


def test_no_more_keys_are_remembered_than_the_limit(home: databases.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_CACHED", 2)

    async def scenario(office: Office) -> None:
        first, second, third = [await office.new_key() for _ in range(3)]
        for key in (first, second, third):
            assert await office.opens(key)
        before = office.db.reads
        assert await office.opens(second)
        assert await office.opens(third)
        assert office.db.reads == before
        assert await office.opens(first)
        assert office.db.reads == before + 1

    run(home, scenario)


def test_bad_keys_are_not_remembered(home: databases.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_CACHED", 1)

    async def scenario(office: Office) -> None:
        key = await office.new_key()
        assert await office.opens(key)
        before = office.db.reads
        for letter in "ABC":
            with pytest.raises(UnauthorizedError):
                await office.access.authenticate(f"Bearer mk_live_{letter * 43}")
        assert await office.opens(key)
        assert office.db.reads == before + 3

    run(home, scenario)


def test_the_use_of_a_key_is_noted_at_most_once_a_minute(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key()
        before = office.db.writes
        assert await asyncio.gather(*(office.opens(key) for _ in range(5))) == [True] * 5
        for _ in range(11):
            office.clock.at_ms += rules.CACHE_MS
            assert await office.opens(key)
        assert office.db.writes == before + 1
        (view,) = await office.access.keys("acme")
        assert view.last_used_at == "2023-11-14T22:13:20.000Z"
        office.clock.at_ms += rules.CACHE_MS
        assert await office.opens(key)
        assert office.db.writes == before + 2
        (view,) = await office.access.keys("acme")
        assert view.last_used_at == "2023-11-14T22:14:20.000Z"

    run(home, scenario)


def test_another_process_does_not_note_the_same_minute_again(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key()
        assert await office.opens(key)
        before = office.db.writes
        await office.another().authenticate(f"Bearer {key.text}")
        assert office.db.writes == before

    run(home, scenario)


def test_a_database_that_cannot_be_written_does_not_lock_anybody_out(
    home: databases.Home, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key()
        office.db.is_write_away = True
        assert await office.opens(key)
        office.clock.at_ms += rules.CACHE_MS
        assert await office.opens(key)
        assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
            "use of a key not noted"
        ]

    run(home, scenario)


def test_while_the_database_is_away_known_keys_go_on_and_others_are_told_to_try_again(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        known, other = await office.new_key(), await office.new_key()
        assert await office.opens(known)
        office.db.is_read_away = True
        assert await office.opens(known)
        with pytest.raises(UnavailableError):
            await office.opens(other)
        office.clock.at_ms += rules.CACHE_MS
        with pytest.raises(UnavailableError):
            await office.opens(known)

    run(home, scenario)


# --- organizations ------------------------------------------------------------------------------------------------


def test_organizations_are_listed_by_name(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        await office.access.create_organization("Zoë & friends [eu]")
        await office.access.create_organization("beta")
        listed = await office.access.organizations()
        # Where capitals stand is the database's own business.
        assert sorted(view.name for view in listed) == ["Zoë & friends [eu]", "acme", "beta"]
        assert all(re.fullmatch(r"org_[0-9a-f]{20}", view.id) for view in listed)
        assert listed[0].created_at == "2023-11-14T22:13:20.000Z"

    run(home, scenario)


def test_an_organization_is_founded_with_a_key_that_opens_everything_or_not_at_all(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        made = await office.access.found_organization("demo", key_name="first")
        principal = await office.access.authenticate(f"Bearer {made.text}")
        assert principal.may_create
        assert principal.scopes == frozenset(Scope)
        with pytest.raises(AccessError, match="an organization named demo already"):
            await office.access.found_organization("demo", key_name="second")
        assert [key.name for key in await office.access.keys("demo")] == ["first"]

    run(home, scenario)


def test_a_name_is_given_once(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        with pytest.raises(AccessError, match="an organization named acme already"):
            await office.access.create_organization("acme")

    run(home, scenario)


def test_every_organization_has_its_own_webhook_secret_and_can_replace_it(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        await office.access.create_organization("beta")
        first = await office.access.webhook_secret("acme")
        assert first.startswith("whsec_")
        assert first == await office.access.webhook_secret("acme")
        assert first != await office.access.webhook_secret("beta")
        replaced = await office.access.replace_webhook_secret("acme")
        assert replaced != first
        assert await office.access.webhook_secret("acme") == replaced

    run(home, scenario)


def test_a_webhook_secret_sealed_with_another_key_is_said_to_be_so(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        stranger = Access(db=office.db, clock=office.clock, vault=KeyFileVault(b"x" * 32))
        with pytest.raises(AccessError, match="cannot be opened"):
            await stranger.webhook_secret("acme")

    run(home, scenario)


@pytest.mark.parametrize("name", ["nobody", "", "a\x00b", "\udcff", "x" * 10_000])
def test_an_unknown_organization_is_said_to_be_unknown(home: databases.Home, name: str) -> None:
    async def scenario(office: Office) -> None:
        for work in (
            office.access.webhook_secret(name),
            office.access.replace_webhook_secret(name),
            office.access.keys(name),
            office.access.create_key(name, role=Role.OWNER, scopes=BOTH),
        ):
            with pytest.raises(AccessError, match="no organization named"):
                await work

    run(home, scenario)


# --- keys ---------------------------------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_only_its_hash_is_kept(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key()
        assert re.fullmatch(r"mk_live_[A-Za-z0-9_-]{43}", key.text)
        rows = await office.db.read("SELECT id, name, prefix, key_hash, role, scopes FROM api_keys")
        assert key.text not in repr(rows)
        assert key.text not in repr(key)
        (view,) = await office.access.keys("acme")
        assert view == key.view
        assert view.prefix == key.text[:12]

    run(home, scenario)


def test_keys_are_listed_for_their_organization_only(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        await office.access.create_organization("beta")
        first = await office.new_key()
        office.clock.at_ms += 1
        second = await office.new_key(expires_in_s=60)
        await office.access.create_key("beta", role=Role.OWNER, scopes=BOTH)
        assert await office.access.keys("acme") == [first.view, second.view]
        assert second.view.expires_at == "2023-11-14T22:14:20.001Z"

    run(home, scenario)


def test_a_rotated_key_goes_on_for_the_overlap(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        old = await office.access.create_key("acme", name="ci", role=Role.OWNER, scopes=BOTH)
        assert await office.opens(old)
        new = await office.access.rotate_key(old.view.id, overlap_s=60)
        assert new.text != old.text
        assert (new.view.name, new.view.role, new.view.scopes) == ("ci", Role.OWNER, BOTH)
        assert new.view.expires_at is None
        office.clock.at_ms += 59_999
        assert await office.opens(old)
        assert await office.opens(new)
        office.clock.at_ms += 1
        assert not await office.opens(old)
        assert await office.opens(new)

    run(home, scenario)


def test_a_rotation_without_overlap_ends_the_old_key_at_once(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        old = await office.new_key()
        assert await office.opens(old)
        await office.access.rotate_key(old.view.id, overlap_s=0)
        assert not await office.opens(old)

    run(home, scenario)


def test_a_rotated_key_that_expires_gets_its_whole_time_again_and_the_old_one_no_more(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        old = await office.new_key(expires_in_s=100)
        office.clock.at_ms += 90_000
        new = await office.access.rotate_key(old.view.id, overlap_s=3_600)
        office.clock.at_ms += 10_000
        assert not await office.opens(old)
        office.clock.at_ms += 89_999
        assert await office.opens(new)
        office.clock.at_ms += 1
        assert not await office.opens(new)

    run(home, scenario)


def test_a_key_that_opens_nothing_is_not_rotated(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        revoked, expired = await office.new_key(), await office.new_key(expires_in_s=1)
        await office.access.revoke_key(revoked.view.id)
        office.clock.at_ms += 1_000
        for key, state in ((revoked, "revoked"), (expired, "expired")):
            with pytest.raises(AccessError, match=f"is {state}"):
                await office.access.rotate_key(key.view.id, overlap_s=60)
        assert len(await office.access.keys("acme")) == 2

    run(home, scenario)


def test_a_key_is_revoked_once(home: databases.Home) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key()
        assert await office.access.revoke_key(key.view.id)
        office.clock.at_ms += 1
        assert not await office.access.revoke_key(key.view.id)
        (view,) = await office.access.keys("acme")
        assert (view.state, view.revoked_at) == (KeyState.REVOKED, "2023-11-14T22:13:20.000Z")

    run(home, scenario)


@pytest.mark.parametrize("key_id", ["key_0", "", "\udcff", "a\x00b"])
def test_an_unknown_key_is_said_to_be_unknown(home: databases.Home, key_id: str) -> None:
    async def scenario(office: Office) -> None:
        await office.new_key()
        for work in (office.access.revoke_key(key_id), office.access.rotate_key(key_id, overlap_s=0)):
            with pytest.raises(AccessError, match="no key with the id"):
                await work

    run(home, scenario)


def test_every_change_leaves_a_line_in_the_log_and_no_secret(
    home: databases.Home, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(office: Office) -> None:
        key = await office.new_key()
        new = await office.access.rotate_key(key.view.id, overlap_s=60)
        await office.access.revoke_key(key.view.id)
        secret = await office.access.replace_webhook_secret("acme")
        ours = [record for record in caplog.records if record.name == rules.__name__]
        assert [record.getMessage() for record in ours] == [
            "organization created",
            "key created",
            "key rotated",
            "key revoked",
            "webhook secret replaced",
        ]
        assert {record.levelno for record in ours} == {logging.INFO}
        written = repr([vars(record) for record in ours])
        assert key.view.id in written
        for text in (key.text, new.text, secret):
            assert text not in written

    with caplog.at_level(logging.INFO, logger=rules.__name__):
        run(home, scenario)
