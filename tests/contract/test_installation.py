"""The whole installation as operators see it, keys of one organization, and log-ins, on both databases."""

from __future__ import annotations

import pytest

from matchpod.core.errors import InvalidParamsError, NotFoundError
from matchpod.ports import Database, Statement
from matchpod.service.access.audit import Action, Audit
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.access.key_management import KeyManagement
from matchpod.service.access.organizations import Access
from matchpod.service.identity.principals import KeyState, Role, Scope
from matchpod.service.operations.installation import Installation
from matchpod.service.operations.pruning import Retention
from matchpod.service.regions.switch import RegionSwitch
from matchpod.storage import servers
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.test_access import START_MS
from tests.contract.test_storage_servers import create, server
from tests.operations import new_readiness
from tests.vaults import VAULT

harness = databases.mostly_sqlite_harness


class World:
    """One process, with the organizations `acme` and `zeta`."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = ManualClock(START_MS)
        self.audit = Audit(db=db, clock=self.clock)
        self.access = Access(db=db, clock=self.clock, vault=VAULT)
        self.keys = KeyManagement(self.access)
        self.sessions = ConsoleSessions(db=db, clock=self.clock, access=self.access, audit=self.audit)
        readiness = new_readiness(db, self.clock)
        readiness.mark_ready()
        self.installation = Installation(
            db=db,
            clock=self.clock,
            readiness=readiness,
            retention=Retention(raw_log_days=30, event_days=365),
            regions=RegionSwitch(db=db, audit=self.audit, codes=["sandbox"]),
            owner="me",
        )

    async def set_up(self) -> World:
        self.acme = (await self.access.create_organization("acme")).id
        self.zeta = (await self.access.create_organization("zeta")).id
        return self


@pytest.fixture
async def world(db: Database) -> World:
    return await World(db).set_up()


async def test_matches_are_counted_by_process_and_organization(world: World) -> None:
    now_ms = world.clock.now_ms()
    for number, org_id in enumerate([world.acme, world.acme, world.zeta]):
        await create(world.db, server(f"srv_{number}", org_id=org_id, next_at_ms=0))
    await servers.claim_due(world.db, owner="other", now_ms=now_ms, limit=2)
    await servers.claim_due(world.db, owner="me", now_ms=now_ms, limit=1)
    state = await world.installation.read()
    assert [(one.owner, one.matches, one.is_alive) for one in state.processes] == [("me", 1, True), ("other", 2, True)]
    assert [one.live_matches for one in state.organizations] == [2, 1]
    assert state.stored_matches == 3
    world.clock.at_ms += servers.LEASE_MS
    assert [one.is_alive for one in (await world.installation.read()).processes] == [True, False]


async def test_only_keys_that_can_be_used_are_counted(world: World) -> None:
    scopes = [Scope.SERVERS_READ]
    await world.access.create_key("acme", role=Role.OWNER, scopes=scopes)
    await world.access.create_key("acme", role=Role.OWNER, scopes=scopes, expires_in_s=1)
    revoked = await world.access.create_key("acme", role=Role.OWNER, scopes=scopes)
    await world.access.revoke_key(revoked.view.id)
    world.clock.at_ms += 1000
    assert [one.active_keys for one in (await world.installation.read()).organizations] == [1, 0]
    first, *others = await world.keys.keys("acme")
    assert first.state is KeyState.ACTIVE
    assert {one.state for one in others} == {KeyState.REVOKED, KeyState.EXPIRED}


@databases.on_both
async def test_unknown_region_is_not_switched(world: World) -> None:
    world.clock.at_ms += 1
    with pytest.raises(NotFoundError):
        await world.installation.switch_region("mars", is_active=False, actor="ses_1")
    await world.installation.switch_region("sandbox", is_active=False, actor="ses_1")
    assert (await world.audit.page(None))[0].actor == "ses_1"


@databases.on_both
async def test_keys_are_managed_in_one_organization(world: World) -> None:
    new = await world.keys.create(
        "acme", name="ci", role=Role.ADMIN, scopes=[Scope.SERVERS_READ], expires_in_s=None, actor="ses_1"
    )
    for act in (
        world.keys.revoke("zeta", new.view.id, actor="ses_2"),
        world.keys.rotate("zeta", new.view.id, overlap_s=0, actor="ses_2"),
    ):
        with pytest.raises(NotFoundError):
            await act
    assert await world.keys.revoke("acme", new.view.id, actor="ses_1")
    assert not await world.keys.revoke("acme", new.view.id, actor="ses_1")
    with pytest.raises(InvalidParamsError, match="is revoked"):
        await world.keys.rotate("acme", new.view.id, overlap_s=0, actor="ses_1")
    with pytest.raises(InvalidParamsError, match="already exists"):
        await world.keys.create_organization("acme", actor="ses_1")
    acts = [(one.action, one.actor) for one in await world.audit.page(world.acme)]
    assert sorted(acts) == [(Action.KEY_CREATED, "ses_1"), (Action.KEY_REVOKED, "ses_1")]


@databases.on_both
async def test_log_ins_to_all_organizations_are_listed_with_their_names(world: World) -> None:
    ids = []
    for org_id in (world.acme, None, world.zeta):
        token = await world.sessions.create_link(org_id)
        ids.append((await world.sessions.open_by_link(token, user_agent="")).session_id)
        world.clock.at_ms += 1
    found = await world.audit.log_ins()
    assert [(one.actor, one.org_name) for one in found] == [(ids[2], "zeta"), (ids[1], None), (ids[0], "acme")]
    assert await world.audit.log_in_details(world.acme, ids) == {ids[0]: "with a link"}
    assert await world.audit.log_in_details(None, [*ids, "unknown"]) == {ids[1]: "with a link"}
    assert await world.audit.log_in_details(None, []) == {}


@databases.on_both
async def test_sessions_of_keys_that_cannot_be_used_are_not_listed(world: World) -> None:
    key = await world.access.create_key("acme", role=Role.OWNER, scopes=[Scope.SERVERS_READ], expires_in_s=60)
    other = await world.access.create_key("acme", role=Role.OWNER, scopes=[Scope.SERVERS_READ])
    kept = await world.sessions.open_by_key(other.text, user_agent="")
    await world.sessions.open_by_key(key.text, user_agent="")
    assert len(await world.sessions.list(world.acme)) == 2
    world.clock.at_ms += 60_000
    assert [one.id for one in await world.sessions.list(world.acme)] == [kept.session_id]
    await world.access.revoke_key(other.view.id)
    assert await world.sessions.list(world.acme) == []


@databases.on_both
async def test_stored_data_begins_with_the_oldest_entry(world: World) -> None:
    insert = "INSERT INTO raw_log VALUES ('srv_1', :seq, 'log', :at_ms, :body, :body, 0, '')"
    await world.db.write([Statement(insert, {"seq": one, "at_ms": 5000 - one, "body": b""}) for one in (1, 2)])
    assert (await world.installation.read()).oldest_log_at == "1970-01-01T00:00:04.998Z"
