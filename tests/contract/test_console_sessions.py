"""Sessions of the console: log in, expiry, revocation, and the record of who did what."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from functools import partial

import pytest

from matchpod.core.errors import RateLimitError, UnauthorizedError
from matchpod.core.requests.audit_query import AuditQuery
from matchpod.ports import Database, Statement
from matchpod.service.access import console_sessions as rules
from matchpod.service.access.actor_names import actor_names
from matchpod.service.access.audit import COMMAND_LINE, Audit
from matchpod.service.access.console_sessions import (
    IDLE_MS,
    LOG_INS_PER_MINUTE,
    MAX_MS,
    MAX_SESSIONS,
    RECORD_USE_MS,
    ConsoleSessions,
    ConsoleUser,
)
from matchpod.service.access.organizations import Access, AccessError
from matchpod.service.identity.principals import LINK_ROLES, ConsoleRole, NewKey, Principal, Role, Scope
from matchpod.service.operations.pruning import AUDIT_DAYS, DAY_MS, Retention, prune
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.test_access import START_MS
from tests.vaults import VAULT

harness = databases.mostly_sqlite_harness


class World:
    """One process with the organizations `acme` and `zeta`, and a key of the first."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = ManualClock(START_MS)
        numbers = itertools.count(1)

        def random_bytes(length: int) -> bytes:
            return next(numbers).to_bytes(length, "big")

        self.access = Access(db=db, clock=self.clock, vault=VAULT, random_bytes=random_bytes)
        self.audit = Audit(db=db, clock=self.clock, random_bytes=random_bytes)
        create = partial(
            ConsoleSessions, db=db, clock=self.clock, access=self.access, audit=self.audit, random_bytes=random_bytes
        )
        self.sessions, self.unlimited = create(), create(log_ins_per_minute=1_000)

    async def set_up(self) -> World:
        self.org_id = (await self.access.create_organization("acme")).id
        self.other_id = (await self.access.create_organization("zeta")).id
        self.key = await self.access.create_key("acme", role=Role.MEMBER, scopes=[Scope.SERVERS_READ])
        self.owner = Principal(org_id=self.org_id, key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))
        await self.db.write([Statement("DELETE FROM audit_log")])
        return self

    async def user(self, cookie: str) -> ConsoleUser:
        found = await self.sessions.find(cookie)
        assert found is not None
        return found

    async def log_in(self, org_id: str | None, *, name: str = "", role: Role | ConsoleRole = Role.OWNER) -> str:
        token = await self.sessions.create_link(org_id, name=name, role=role)
        return (await self.sessions.open_by_link(token, user_agent="a browser")).cookie

    async def actions(self, org_id: str | None) -> list[tuple[str, str, str]]:
        return [(item.action, item.actor, item.target) for item in await self.audit.page(org_id)]


@pytest.fixture
async def world(db: Database) -> World:
    return await World(db).set_up()


async def test_rights_and_actor_of_a_session_follow_from_its_link_or_key(world: World) -> None:
    owner = await world.user(await world.log_in(world.org_id))
    assert (owner.org_id, owner.org_name, owner.is_operator) == (world.org_id, "acme", False)
    opened = await world.sessions.open_by_key(f" {world.key.text}\n", user_agent="a browser")
    member = await world.user(opened.cookie)
    for user, role, scopes in ((owner, Role.OWNER, tuple(Scope)), (member, Role.MEMBER, (Scope.SERVERS_READ,))):
        assert user.principal is not None
        assert (user.principal.role, user.principal.scopes) == (role, frozenset(scopes))
        assert user.principal.actor == user.session_id
    by_key = await world.access.authenticate(f"Bearer {world.key.text}")
    assert by_key.actor == world.key.view.id
    operator = await world.user(await world.log_in(None))
    assert (operator.org_id, operator.principal, operator.is_operator) == (None, None, True)


@pytest.mark.parametrize(
    ("role", "may_create", "may_act", "may_connect"),
    [
        (Role.OWNER, True, True, True),
        (Role.ADMIN, True, True, True),
        (Role.MEMBER, False, False, False),
        (ConsoleRole.REFEREE, False, True, True),
        (ConsoleRole.CASTER, False, False, True),
    ],
)
async def test_link_is_for_a_person_and_gives_the_rights_of_a_role(
    world: World, role: Role | ConsoleRole, *, may_create: bool, may_act: bool, may_connect: bool
) -> None:
    user = await world.user(await world.log_in(world.org_id, name="Ann, the 1st", role=role))
    rights = user.principal
    assert (user.name, rights is not None and rights.role) == ("Ann, the 1st", role)
    assert rights is not None
    assert (rights.may_create, rights.may_act, rights.audience.may_connect) == (may_create, may_act, may_connect)
    assert rights.audience.sees_creator is may_create
    (session,) = await world.sessions.list(world.org_id, key_id=rights.key_id)
    assert (session.name, session.role) == ("Ann, the 1st", None if role is Role.OWNER else role)


@databases.on_both
async def test_person_is_named_for_as_long_as_their_acts_are_recorded(world: World) -> None:
    user = await world.user(await world.log_in(world.org_id, name="Ann", role=ConsoleRole.REFEREE))
    operator = await world.user(await world.log_in(None, name="Olga"))
    await world.sessions.log_out(user)
    assert operator.name == "Olga"
    page = await world.audit.list(world.owner, AuditQuery(page_size=10))
    assert {(one.action, one.actor_name, one.detail) for one in page.items} == {
        ("link_created", None, "for Ann, as referee"),
        ("logged_in", "Ann", "with a link, for Ann, as referee"),
        ("logged_out", "Ann", ""),
    }
    assert await actor_names(world.db, [user.session_id, "ses_2"]) == {user.session_id: "Ann", "ses_2": "a link"}
    keep = Retention(raw_log_days=1, event_days=1)
    for days, known in ((AUDIT_DAYS, {user.session_id: "Ann"}), (AUDIT_DAYS + 1, {})):
        await prune(world.db, keep, world.clock.at_ms + days * DAY_MS)
        assert await world.audit.people([user.session_id]) == known


@databases.on_both
async def test_links_and_sessions_with_a_role_do_not_exist_for_versions_without_roles(world: World) -> None:
    """They would be those of an owner there."""
    for role in LINK_ROLES:
        token = await world.sessions.create_link(world.org_id, name="Ann", role=role)
        as_before = hashlib.sha256(token.encode()).hexdigest()
        links = await world.db.read("SELECT token_hash FROM console_links")
        assert (links == [(as_before,)]) is (role is Role.OWNER), role
        opened = await world.sessions.open_by_link(token, user_agent="")
        as_before = hashlib.sha256(opened.cookie.encode()).hexdigest()
        found = await world.db.read("SELECT id FROM console_sessions WHERE token_hash = :hash", {"hash": as_before})
        assert (found == [(opened.session_id,)]) is (role is Role.OWNER), role
        assert await world.sessions.find(opened.cookie) is not None


async def test_role_of_a_later_version_gives_no_rights(world: World) -> None:
    cookie = await world.log_in(world.org_id, role=ConsoleRole.CASTER)
    await world.db.write([Statement("UPDATE console_sessions SET role = 'judge'")])
    assert await world.sessions.find(cookie) is None


@pytest.mark.parametrize("name", [" ", "x" * 65, " Ann", "A\nnn", "\u202eAnn"])
async def test_name_that_cannot_be_shown_is_rejected(world: World, name: str) -> None:
    with pytest.raises(AccessError, match="The name of a person must"):
        await world.sessions.create_link(world.org_id, name=name)
    assert await world.db.read("SELECT token_hash FROM console_links") == []


async def test_link_works_once_and_for_five_minutes(world: World) -> None:
    token = await world.sessions.create_link(world.org_id)
    await world.sessions.open_by_link(token, user_agent="")
    late = await world.sessions.create_link(world.org_id)
    world.clock.at_ms += rules.LINK_MS
    for unusable in (token, late, "", "x", "é" * 43):
        with pytest.raises(UnauthorizedError, match="works once, for 5 minutes"):
            await world.sessions.open_by_link(unusable, user_agent="")


async def test_session_ends_if_it_is_not_used(world: World) -> None:
    cookie = await world.log_in(world.org_id)
    for _ in range(3):
        world.clock.at_ms += rules.IDLE_MS - 1
        assert await world.sessions.find(cookie) is not None
    world.clock.at_ms += rules.IDLE_MS
    assert await world.sessions.find(cookie) is None
    assert await world.sessions.list(world.org_id) == []


async def test_session_ends_after_a_week_even_if_it_is_used(world: World) -> None:
    cookie = await world.log_in(world.org_id)
    until_ms = world.clock.at_ms + rules.MAX_MS
    while (world.clock.at_ms + rules.IDLE_MS // 2) < until_ms:
        world.clock.at_ms += rules.IDLE_MS // 2
        assert await world.sessions.find(cookie) is not None
    world.clock.at_ms = until_ms
    assert await world.sessions.find(cookie) is None


@databases.on_both
async def test_session_of_a_deleted_key_or_organization_is_nobody(world: World) -> None:
    by_key = await world.sessions.open_by_key(world.key.text, user_agent="")
    by_link = await world.log_in(world.other_id)
    await world.db.write([Statement("DELETE FROM api_keys"), Statement("DELETE FROM organizations")])
    assert await world.sessions.find(by_key.cookie) is None
    assert await world.sessions.find(by_link) is None


async def test_own_session_and_others_of_the_same_organization_can_be_ended(world: World) -> None:
    user = await world.user(await world.log_in(world.org_id))
    lost = await world.log_in(world.org_id)
    foreign = await world.log_in(world.other_id)
    operator = await world.log_in(None)
    (lost_id,) = (one.id for one in await world.sessions.list(world.org_id) if one.id != user.session_id)
    assert await world.sessions.end(user, lost_id)
    assert not await world.sessions.end(user, lost_id)
    for cookie in (foreign, operator):
        assert not await world.sessions.end(user, (await world.user(cookie)).session_id)
        assert await world.sessions.find(cookie) is not None
    assert await world.sessions.find(lost) is None
    await world.sessions.log_out(user)
    assert await world.sessions.list(world.org_id) == []
    assert len(await world.sessions.list(world.other_id)) == 1


@databases.on_both
async def test_other_sessions_of_the_organization_or_of_the_key_are_ended(world: World) -> None:
    user = await world.user(await world.log_in(world.org_id))
    linked = [await world.log_in(world.org_id), await world.log_in(world.other_id), await world.log_in(None)]
    keys = [(await world.sessions.open_by_key(world.key.text, user_agent="")).cookie for _ in range(2)]
    member = await world.user(keys[0])
    assert await world.sessions.end_others(member, key_id=world.key.view.id) == 1
    assert [await world.sessions.find(cookie) is not None for cookie in keys] == [True, False]
    assert await world.sessions.end_others(user) == 2
    assert [await world.sessions.find(cookie) is not None for cookie in linked] == [False, True, True]
    before = await world.actions(world.org_id)
    assert await world.sessions.end_others(user) == 0
    assert await world.actions(world.org_id) == before
    assert before[0] == ("other_sessions_ended", user.session_id, "")


@databases.on_both
async def test_pages_of_sessions_have_all_that_can_be_used(world: World) -> None:
    revoked = await world.access.create_key("acme", role=Role.MEMBER, scopes=[Scope.SERVERS_READ])
    short = await world.access.create_key("acme", role=Role.MEMBER, scopes=[Scope.SERVERS_READ], expires_in_s=1)
    others = [await world.access.create_key("acme", role=Role.MEMBER, scopes=[Scope.SERVERS_READ]) for _ in range(3)]
    for key in (revoked, short, world.key, *others):
        for _ in range(MAX_SESSIONS):
            await world.unlimited.open_by_key(key.text, user_agent="")
    await world.access.revoke_key(revoked.view.id)
    world.clock.at_ms += 1_000
    user = await world.user(await world.log_in(world.org_id))
    pages = [await world.sessions.list(world.org_id, page=page) for page in (1, 2, 3, 4)]
    listed = [one.id for page in pages for one in page]
    assert [len(page) for page in pages] == [100, 100, 1, 0]
    assert len(set(listed)) == 4 * MAX_SESSIONS + 1 == await world.sessions.count(world.org_id)
    assert await world.sessions.active_sessions(listed) == set(listed)
    assert listed[0] == user.session_id
    own = await world.sessions.list(world.org_id, key_id=world.key.view.id)
    assert {one.key_id for one in own} == {world.key.view.id}
    assert len(own) == MAX_SESSIONS == await world.sessions.count(world.org_id, key_id=world.key.view.id)
    assert await world.sessions.end(user, listed[-1])
    assert await world.sessions.count(world.org_id) == 4 * MAX_SESSIONS


@databases.on_both
async def test_every_log_in_and_out_is_recorded_for_its_organization(world: World) -> None:
    user = await world.user(await world.log_in(world.org_id))
    await world.log_in(world.other_id)
    await world.log_in(None)
    world.clock.at_ms += 1
    await world.sessions.log_out(user)
    assert await world.actions(world.org_id) == [
        ("logged_out", user.session_id, ""),
        *sorted([("logged_in", user.session_id, ""), ("link_created", COMMAND_LINE, "")], reverse=True),
    ]
    assert [action for action, _, _ in await world.actions(None)] == ["logged_in", "link_created"]


# --- log-ins that repeat others -----------------------------------------------------------------------------------


async def open_by_key(world: World, key: NewKey | None = None) -> ConsoleUser:
    return await world.user((await world.sessions.open_by_key((key or world.key).text, user_agent="a browser")).cookie)


async def log_ins(world: World) -> list[tuple[str, str]]:
    """Return the recorded log-ins, each with the id of its session and its detail, oldest first."""
    items = (await world.audit.page(world.org_id))[::-1]
    return [(item.actor, item.detail) for item in items if item.action == "logged_in"]


async def test_log_ins_with_a_key_are_limited_per_minute(world: World) -> None:
    other = await world.access.create_key("acme", role=Role.OWNER, scopes=list(Scope))
    for _ in range(LOG_INS_PER_MINUTE):
        await open_by_key(world)
    for _ in range(3):
        with pytest.raises(RateLimitError, match="The limit of this key is 10 log-ins to the console per minute"):
            await open_by_key(world)
    assert await world.sessions.count(world.org_id) == LOG_INS_PER_MINUTE
    await open_by_key(world, other)
    assert await world.log_in(world.org_id)
    assert (await world.access.authenticate(f"Bearer {world.key.text}")).org_id == world.org_id
    world.clock.at_ms += 60_000 // LOG_INS_PER_MINUTE
    await open_by_key(world)


@databases.on_both
async def test_repeated_log_ins_with_a_key_are_one_entry_with_their_number(world: World) -> None:
    key_id = world.key.view.id
    users = await asyncio.gather(*[open_by_key(world) for _ in range(3)])
    ids = sorted(user.session_id for user in users)
    assert await log_ins(world) == [(ids[0], f"with {key_id}, 3 times")]
    details = await world.audit.log_in_details(world.org_id, [*ids, "ses_unknown"])
    assert details == dict.fromkeys(ids, f"with {key_id}, 3 times"), "every session is known by its key"
    for user in users:
        await world.sessions.log_out(user)
    assert [item.action for item in await world.audit.page(world.org_id)].count("logged_out") == 1
    assert await world.sessions.count(world.org_id) == 0


async def test_repeated_log_in_after_an_hour_or_with_another_key_has_its_own_entry(world: World) -> None:
    other = await world.access.create_key("acme", role=Role.OWNER, scopes=list(Scope))
    first = await open_by_key(world)
    second = await open_by_key(world, other)
    world.clock.at_ms += rules.REPEAT_MS - 1
    await open_by_key(world)
    world.clock.at_ms += 1
    third = await open_by_key(world)
    assert await log_ins(world) == [
        (first.session_id, f"with {world.key.view.id}, 2 times"),
        (second.session_id, f"with {other.view.id}"),
        (third.session_id, f"with {world.key.view.id}"),
    ]


@databases.on_both
async def test_no_log_in_is_without_an_entry(world: World) -> None:
    await open_by_key(world)
    await world.db.write([Statement("DELETE FROM audit_log")])
    user = await open_by_key(world)
    assert await log_ins(world) == [(user.session_id, f"with {world.key.view.id}")]
    assert await world.sessions.count(world.org_id) == 2


@databases.on_both
@pytest.mark.parametrize("role", [Role.OWNER, ConsoleRole.CASTER])
async def test_secrets_are_not_stored_or_shown(world: World, role: Role | ConsoleRole) -> None:
    token = await world.sessions.create_link(world.org_id, role=role)
    links = await world.db.read("SELECT * FROM console_links")
    opened = await world.sessions.open_by_link(token, user_agent="")
    stored = [
        links,
        await world.db.read("SELECT * FROM console_sessions"),
        await world.db.read("SELECT * FROM audit_log"),
    ]
    assert token not in str(stored)
    assert opened.cookie not in str(stored)
    assert opened.cookie not in repr(opened)


@databases.on_both
async def test_sweep_deletes_what_cannot_be_used(world: World) -> None:
    await world.log_in(world.org_id)
    await world.sessions.create_link(world.org_id)
    world.clock.at_ms += rules.IDLE_MS
    kept = await world.log_in(world.org_id)
    await world.sessions.sweep()
    assert len(await world.db.read("SELECT id FROM console_sessions")) == 1
    assert await world.db.read("SELECT token_hash FROM console_links") == []
    assert await world.sessions.find(kept) is not None


async def test_user_agent_is_kept_short_and_printable(world: World) -> None:
    opened = await world.sessions.open_by_key(world.key.text, user_agent="Mozilla \x1b[31m\u202e" + "x" * 5000)
    (session,) = await world.sessions.list(world.org_id)
    assert session.id == opened.session_id
    assert len(session.user_agent) < 300
    assert session.user_agent.isprintable()


async def test_many_log_ins_with_one_key_end_its_oldest_sessions_only(world: World) -> None:
    linked = await world.log_in(world.org_id)
    cookies = []
    for _ in range(MAX_SESSIONS + 2):
        world.clock.at_ms += 1
        cookies.append((await world.unlimited.open_by_key(world.key.text, user_agent="a monitor")).cookie)
    valid = [await world.sessions.find(cookie) is not None for cookie in cookies]
    assert valid == [False, False] + [True] * MAX_SESSIONS
    assert await world.sessions.find(linked) is not None


async def test_open_stream_keeps_a_session_until_it_is_too_old(world: World) -> None:
    session_id = (await world.user(await world.log_in(world.org_id))).session_id
    active = []
    for _ in range(2 * MAX_MS // IDLE_MS):
        world.clock.at_ms += IDLE_MS // 2
        active.append(await world.sessions.active_sessions([session_id, "ses_unknown"]))
    assert active == [{session_id}] * (len(active) - 1) + [set()]


@databases.on_both
async def test_use_by_streams_is_written_once_per_minute(world: World) -> None:
    session_id = (await world.user(await world.log_in(world.org_id))).session_id
    seen = []
    for _ in range(4):
        world.clock.at_ms += RECORD_USE_MS // 2
        await world.sessions.active_sessions([session_id])
        (session,) = await world.sessions.list(world.org_id)
        seen.append(world.clock.at_ms - session.seen_at_ms)
    assert seen == [RECORD_USE_MS // 2, 0] * 2


async def test_sessions_end_with_their_key_and_when_they_are_ended(world: World) -> None:
    linked = await world.user(await world.log_in(world.org_id))
    keyed = await world.user((await world.sessions.open_by_key(world.key.text, user_agent="")).cookie)
    operator = await world.user(await world.log_in(None))
    ids = [one.session_id for one in (linked, keyed, operator)]
    assert await world.sessions.active_sessions(ids) == set(ids)
    await world.access.revoke_key(world.key.view.id)
    assert await world.sessions.active_sessions(ids) == {linked.session_id, operator.session_id}
    await world.sessions.log_out(linked)
    assert await world.sessions.active_sessions(ids) == {operator.session_id}
