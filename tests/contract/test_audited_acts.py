"""Acts of the API, of the console and of the command line are recorded together with what they do."""

from __future__ import annotations

import itertools
import re

import pytest

from matchpod.core.errors import CallbackWaitingError, ServerNotRunningError
from matchpod.core.iso_dates import iso_time
from matchpod.ports import Database, DatabaseError, Statement
from matchpod.service.access.audit import COMMAND_LINE
from matchpod.service.access.organizations import AccessError
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.regions.switch import RegionSwitch
from matchpod.storage import outbox, region_flags, servers, withheld_servers
from tests.contract import databases
from tests.contract.test_access import START_MS
from tests.contract.test_matches import Callers, body

harness = databases.mostly_sqlite_harness

PROGRAM = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))
PERSON = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope), session_id="ses_1")

Act = tuple[str, str, str, str]


class World(Callers):
    """One process; each act is a millisecond later than the one before."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.clock.at_ms = START_MS
        self.audit, self.access, self.callbacks = self.services.audit, self.services.access, self.services.callbacks
        self.switch = RegionSwitch(db=db, audit=self.audit, codes=["eu"])

    def wait(self) -> None:
        self.clock.at_ms += 1

    async def acts(self, org_id: str | None = "org_1") -> list[Act]:
        """Return who did what, in order."""
        items = await self.audit.page(org_id)
        return [(item.actor, item.action, item.target, item.detail) for item in reversed(items)]


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


# --- matches and callbacks ----------------------------------------------------------------------------------------


async def test_canceled_match_is_recorded_once(world: World) -> None:
    for principal, actor in ((PROGRAM, "key_1"), (PERSON, "ses_1")):
        server_id = (await world.matches.create(PROGRAM, body(), None)).server.server_id
        world.wait()
        for _ in range(2):
            await world.matches.cancel(principal, server_id)
        assert (await world.acts())[-1] == (actor, "match_canceled", server_id, "")
        world.wait()
    assert [act[1] for act in await world.acts()].count("match_canceled") == 2


@databases.on_both
async def test_match_that_has_ended_otherwise_is_not_recorded(world: World) -> None:
    server_id = (await world.matches.create(PROGRAM, body(), None)).server.server_id
    await world.db.write([Statement("UPDATE servers SET phase = 'ending', ended_at_ms = 1, status = 'stopped'")])
    with pytest.raises(ServerNotRunningError):
        await world.matches.cancel(PROGRAM, server_id)
    assert [act[1] for act in await world.acts()] == ["match_created"]


async def test_creators_of_matches_are_recorded_once(world: World) -> None:
    first = (await world.matches.create(PROGRAM, body(), None)).server
    world.wait()
    second = (await world.matches.create(PERSON, body(), "once")).server
    assert (await world.matches.create(PERSON, body(), "once")).server == second
    assert await world.acts() == [
        ("key_1", "match_created", first.server_id, ""),
        ("ses_1", "match_created", second.server_id, ""),
    ]
    for created, key_id in ((first, "key_1"), (second, "key_1")):
        row = await servers.get(world.db, created.server_id)
        assert row is not None
        assert row.created_by == key_id


async def ended_callbacks(world: World, count: int) -> list[str]:
    """Cancel matches; return the ids of their callbacks, which are given up."""
    ids = []
    for _ in range(count):
        server_id = (
            await world.matches.create(PROGRAM, body(callbackUrl="https://caller.example"), None)
        ).server.server_id
        await world.matches.cancel(PROGRAM, server_id)
        callback = await outbox.callback_of(world.db, server_id)
        assert callback is not None
        ids.append(callback.id)
    await world.db.write([Statement("UPDATE callbacks SET next_at_ms = NULL"), Statement("DELETE FROM audit_log")])
    return ids


async def test_redelivery_is_recorded_only_if_there_is_one(world: World) -> None:
    callback_id, _ = await ended_callbacks(world, 2)
    await world.callbacks.redeliver(PERSON, callback_id)
    world.wait()
    with pytest.raises(CallbackWaitingError):
        await world.callbacks.redeliver(PERSON, callback_id)
    since = iso_time(world.clock.now_ms() - 1_000)
    for count in (1, 0):
        done = await world.callbacks.redeliver_given_up(PROGRAM, f'{{"since": "{since}"}}'.encode())
        assert done.count == count
    assert await world.acts() == [
        ("ses_1", "callback_redelivered", callback_id, ""),
        ("key_1", "callback_redelivered", "", f"all that were given up since {since}"),
    ]


# --- organizations, keys and regions ------------------------------------------------------------------------------


@databases.on_both
async def test_keys_are_recorded_in_their_organization(world: World) -> None:
    org_id = (await world.access.create_organization("acme")).id
    key = await world.access.create_key("acme", role=Role.MEMBER, scopes=[Scope.SERVERS_READ], actor="ses_1")
    world.wait()
    new = await world.access.rotate_key(key.view.id, overlap_s=60)
    world.wait()
    assert [await world.access.revoke_key(new.view.id, actor="ses_1") for _ in range(2)] == [True, False]
    assert await world.acts(org_id) == [
        ("ses_1", "key_created", key.view.id, "member, servers:read"),
        (COMMAND_LINE, "key_rotated", key.view.id, f"replaced by {new.view.id}"),
        ("ses_1", "key_revoked", new.view.id, ""),
    ]
    assert await world.acts(None) == [(COMMAND_LINE, "organization_created", org_id, "acme")]


async def test_organization_with_its_first_key_is_recorded(world: World) -> None:
    key = await world.access.create_organization_with_key("acme", key_name="first")
    principal = await world.access.authenticate(f"Bearer {key.text}")
    assert (principal.may_create, principal.scopes) == (True, frozenset(Scope))
    for again in (
        world.access.create_organization("acme"),
        world.access.create_organization_with_key("acme", key_name="second"),
    ):
        with pytest.raises(AccessError, match="An organization named acme already exists"):
            await again
    ((_, _, org_id, name),) = await world.acts(None)
    assert name == "acme"
    assert await world.acts(org_id) == [(COMMAND_LINE, "key_created", key.view.id, "owner, servers:read servers:write")]


@databases.on_both
async def test_webhook_secrets_are_recorded_without_the_secret(world: World) -> None:
    org_id = (await world.access.create_organization("acme")).id
    secrets = []
    for keeps_old in (True, False):
        secrets.append(await world.access.replace_webhook_secret("acme", keeps_old=keeps_old))
        world.wait()
    await world.access.end_old_webhook_secret("acme", actor="ses_1")
    assert await world.acts(org_id) == [
        (COMMAND_LINE, "webhook_secret_replaced", "", ""),
        (COMMAND_LINE, "webhook_secret_replaced", "", "without an overlap"),
        ("ses_1", "old_webhook_secret_ended", "", ""),
    ]
    stored = str(await world.db.read("SELECT * FROM audit_log"))
    assert not [secret for secret in secrets if secret in stored]


async def test_regions_are_recorded_for_operators(world: World) -> None:
    assert await world.switch.set_active("eu", is_active=False, actor="ses_1")
    assert not await region_flags.is_active(world.db, "eu")
    world.wait()
    assert await world.switch.set_active("eu", is_active=True, actor=COMMAND_LINE)
    assert await region_flags.is_active(world.db, "eu")
    assert not await world.switch.set_active("us", is_active=False, actor="ses_1")
    assert await region_flags.active_flags(world.db) == {"eu": True}
    assert await world.acts(None) == [
        ("ses_1", "region_changed", "eu", "deactivated"),
        (COMMAND_LINE, "region_changed", "eu", "activated"),
    ]


async def test_confirmed_sweep_is_recorded_with_its_servers(world: World) -> None:
    assert await world.switch.confirm_sweep("eu", actor=COMMAND_LINE) == []
    assert await world.acts(None) == []
    await withheld_servers.add(world.db, "eu", [f"srv_{number:02}" for number in range(22)], 1)
    await world.switch.confirm_sweep("eu", actor="ses_1")
    ((actor, action, target, detail),) = await world.acts(None)
    assert (actor, action, target) == ("ses_1", "sweep_confirmed", "eu")
    assert detail.startswith("srv_00, srv_01, ")
    assert detail.endswith(", srv_19 and 2 others")


# --- both or neither ----------------------------------------------------------------------------------------------


@databases.on_both
async def test_act_does_not_happen_if_it_cannot_be_recorded(world: World) -> None:
    org_id = (await world.access.create_organization("acme")).id
    key = await world.access.create_key("acme", role=Role.OWNER, scopes=list(Scope))
    server_id = (await world.matches.create(PROGRAM, body(), None)).server.server_id
    (callback_id,) = await ended_callbacks(world, 1)
    before = await stored(world.db)
    await world.db.write([Statement("DROP TABLE audit_log")])
    acts = (
        world.access.create_organization("zeta"),
        world.access.create_key("acme", role=Role.OWNER, scopes=list(Scope)),
        world.access.rotate_key(key.view.id, overlap_s=0),
        world.access.revoke_key(key.view.id),
        world.access.replace_webhook_secret("acme"),
        world.access.reveal_webhook_secret("acme"),
        world.switch.set_active("eu", is_active=False, actor=COMMAND_LINE),
        world.matches.cancel(PROGRAM, server_id),
        world.matches.create(PERSON, body(), None),
        world.matches.create(PROGRAM, body(), None),
        world.callbacks.redeliver(PROGRAM, callback_id),
        world.callbacks.redeliver_given_up(PROGRAM, b'{"since": "2020-01-01"}'),
    )
    for act in acts:
        with pytest.raises(DatabaseError, match=re.compile("audit_log")):
            await act
    assert await stored(world.db) == before
    assert [one.id for one in await world.access.organizations()] == [org_id]
    assert (await servers.get(world.db, server_id)) is not None


async def stored(db: Database) -> list[object]:
    """Return all rows that the acts would change."""
    tables = ("organizations", "api_keys", "region_flags", "servers", "callbacks", "outcomes")
    return list(itertools.chain(*[await db.read(f"SELECT * FROM {table} ORDER BY 1") for table in tables]))
