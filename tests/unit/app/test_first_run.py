"""The first API key and the text printed with it."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.adapters.vault import KEY_BYTES, KeyFileVault
from matchpod.app.first_run import (
    EXTERNAL_ID,
    ORGANIZATION,
    another_key_text,
    create_first_key,
    create_first_link,
    welcome_text,
)
from matchpod.core.requests.validation import RegionRules, read_match_request
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import Database
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.access.organizations import Access
from matchpod.service.common.principals import OrganizationView
from matchpod.storage.migrate import migrate
from tests.vaults import VAULT


def test_printed_commands_contain_a_valid_match_and_the_key() -> None:
    shown = welcome_text("mk_live_x", link=None, base_url="http://127.0.0.1:1", region="eu", command="./matchpod")
    create, by_id, server = [line.strip() for line in shown.splitlines() if line.strip().startswith("curl ")]
    arguments = shlex.split(create)
    assert "    ./matchpod listen\n" in shown
    rules = {"eu": RegionRules(is_active=True, is_simulated=False)}
    request = read_match_request(
        json.loads(arguments[arguments.index("-d") + 1]), regions=rules, read_cvars=read_custom_cvars
    )
    assert request.external_match_id == EXTERNAL_ID
    assert shlex.split(by_id)[2] == f"http://127.0.0.1:1/api/v1/matches/{EXTERNAL_ID}"
    assert shlex.split(server)[2] == "http://127.0.0.1:1/api/v1/servers/$SERVER"
    for line in (create, by_id, server):
        assert "Authorization: Bearer mk_live_x" in shlex.split(line)


def test_link_to_the_console_is_shown_beside_the_key() -> None:
    texts = [
        welcome_text("mk_live_x", link=link, base_url="http://127.0.0.1:1", region="eu", command="./matchpod")
        for link in ("http://127.0.0.1:1/console/login/x", None)
    ]
    added = """
Open the console in a browser (the link works once, for 5 minutes):

    http://127.0.0.1:1/console/login/x

Print a new link later:

    ./matchpod console
"""
    assert texts[0].count(added) == 1
    assert texts[0].replace(added, "") == texts[1]


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database."""
    opened = await SqliteDatabase.open(tmp_path / "db")
    await migrate(opened, VAULT.seal)
    yield opened
    await opened.close()


async def test_first_link_logs_in_as_owner_of_the_first_organization(db: Database) -> None:
    clock = SystemClock()
    access = Access(db=db, clock=clock, vault=VAULT)
    sessions = ConsoleSessions(db=db, clock=clock, access=access, audit=Audit(db=db, clock=clock))
    await create_first_key(access)
    link = await create_first_link(access, sessions, base_url="https://pod.example")
    assert link.startswith("https://pod.example/console/login/")
    opened = await sessions.open_by_link(link.rpartition("/")[2], user_agent="")
    user = await sessions.find(opened.cookie)
    assert user is not None
    assert (user.org_name, user.is_operator) == (ORGANIZATION, False)


async def test_later_starts_name_the_commands(db: Database) -> None:
    access = Access(db=db, clock=SystemClock(), vault=VAULT)

    async def commands(*, has_console: bool) -> list[str]:
        shown = await another_key_text(access, command="./matchpod", has_console=has_console)
        return [line.strip() for line in shown.splitlines() if line.startswith("    ")]

    await access.create_organization("my cup")
    create = "./matchpod keys create --org 'my cup' --role owner"
    assert await commands(has_console=False) == [create]
    assert await commands(has_console=True) == [create, "./matchpod console"]
    await access.create_organization("our cup")
    assert await commands(has_console=True) == [create, "./matchpod console --org 'my cup'"]


async def test_key_is_created_only_for_a_new_database(db: Database) -> None:
    access = Access(db=db, clock=SystemClock(), vault=KeyFileVault(bytes(KEY_BYTES)))
    key = await create_first_key(access)
    assert key is not None
    principal = await access.authenticate(f"Bearer {key}")
    assert principal.may_create
    assert await create_first_key(access) is None
    command = (await another_key_text(access, command="./matchpod", has_console=False)).splitlines()[-1]
    assert shlex.split(command) == ["./matchpod", "keys", "create", "--org", ORGANIZATION, "--role", "owner"]


async def test_two_concurrent_first_starts_create_one_key(db: Database) -> None:
    class StaleAccess(Access):
        """Sees no organization, as if it had read before the other process wrote."""

        async def organizations(self) -> list[OrganizationView]:
            return []

    access = StaleAccess(db=db, clock=SystemClock(), vault=KeyFileVault(bytes(KEY_BYTES)))
    keys = [await create_first_key(access) for _ in range(2)]
    assert keys[0] is not None
    assert keys[1] is None
    assert [one.name for one in await Access.organizations(access)] == [ORGANIZATION]
    assert len(await access.keys(ORGANIZATION)) == 1
