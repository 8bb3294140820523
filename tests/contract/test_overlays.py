"""Tokens of overlays show one match of their organization, until they are ended."""

from __future__ import annotations

import pytest

from matchpod.core.errors import ForbiddenError, NotFoundError
from matchpod.ports import Database
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.overlays import Overlay, Overlays
from tests.contract import databases
from tests.contract.parts import Parts
from tests.contract.test_storage_servers import create, server

harness = databases.mostly_sqlite_harness

OWNER = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))
MEMBER = Principal(org_id="org_1", key_id="key_2", role=Role.MEMBER, scopes=frozenset(Scope))
READER = Principal(org_id="org_1", key_id="key_3", role=Role.OWNER, scopes=frozenset({Scope.SERVERS_READ}))
PERSON = Principal(org_id="org_1", key_id="key_1", role=Role.ADMIN, scopes=frozenset(Scope), session_id="ses_1")


class World(Parts):
    """Overlays of one process, with two matches of `org_1` and one of `org_2`."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.audit = self.services.audit
        self.overlays = Overlays(db=db, clock=self.clock, audit=self.audit)

    async def acts(self) -> list[tuple[str, str, str]]:
        return sorted((item.action, item.actor, item.target) for item in await self.audit.page("org_1"))


@pytest.fixture
async def world(db: Database) -> World:
    await create(db, server("srv_1"), server("srv_2"), server("srv_3", org_id="org_2"))
    return World(db)


async def test_token_shows_its_match(world: World) -> None:
    token = await world.overlays.create(OWNER, "srv_1")
    other = await world.overlays.create(PERSON, "srv_2")
    assert (len(token), token != other) == (43, True)
    assert await world.overlays.find(token) == Overlay(server_id="srv_1", org_id="org_1")
    assert await world.overlays.find(other) == Overlay(server_id="srv_2", org_id="org_1")
    assert await world.acts() == [("overlay_created", "key_1", "srv_1"), ("overlay_created", "ses_1", "srv_2")]


@databases.on_both
async def test_tokens_of_a_match_end_together(world: World) -> None:
    ended = [await world.overlays.create(OWNER, "srv_1") for _ in range(2)]
    kept = await world.overlays.create(OWNER, "srv_2")
    assert await world.overlays.end(OWNER, "srv_1") == 2
    assert [await world.overlays.find(token) for token in ended] == [None, None]
    ids = [world.overlays.id_of(token) for token in (*ended, kept)]
    assert await world.overlays.valid_tokens(ids) == {ids[-1]}
    assert await world.overlays.find(kept) is not None
    assert await world.overlays.end(OWNER, "srv_1") == 0
    assert [act for act in await world.acts() if act[0] == "overlays_ended"] == [("overlays_ended", "key_1", "srv_1")]


async def test_overlays_need_the_rights_to_act(world: World) -> None:
    for principal in (MEMBER, READER):
        for act in (world.overlays.create, world.overlays.end):
            with pytest.raises(ForbiddenError, match="permission to act on matches"):
                await act(principal, "srv_1")
    assert await world.acts() == []


@databases.on_both
async def test_only_own_matches_have_overlays(world: World) -> None:
    for server_id in ("srv_3", "srv_9", "", "\x00"):
        for act in (world.overlays.create, world.overlays.end):
            with pytest.raises(ForbiddenError if server_id == "srv_3" else NotFoundError):
                await act(OWNER, server_id)
    assert await world.db.read("SELECT token_hash FROM overlay_tokens") == []


@databases.on_both
async def test_token_is_not_stored(world: World) -> None:
    token = await world.overlays.create(OWNER, "srv_1")
    stored = [await world.db.read(f"SELECT * FROM {table}") for table in ("overlay_tokens", "audit_log")]
    assert token not in str(stored)
