"""The first API key and the text printed with it."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.app.first_run import (
    EXTERNAL_ID,
    ORGANIZATION,
    FirstKeyError,
    another_key_text,
    create_first_key,
    create_first_link,
    create_key_from_file,
    welcome_text,
)
from matchpod.core.requests.validation import RegionRules, read_match_request
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import Database
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.access.organizations import Access
from matchpod.service.identity.principals import OrganizationView
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
    opened = await SqliteDatabase.open(tmp_path / "db")
    await migrate(opened, VAULT.seal)
    yield opened
    await opened.close()


@pytest.fixture
def access(db: Database) -> Access:
    return Access(db=db, clock=SystemClock(), vault=VAULT)


async def test_first_link_logs_in_as_owner_of_the_first_organization(db: Database, access: Access) -> None:
    clock = SystemClock()
    sessions = ConsoleSessions(db=db, clock=clock, access=access, audit=Audit(db=db, clock=clock))
    await create_first_key(access)
    link = await create_first_link(access, sessions, base_url="https://pod.example")
    assert link.startswith("https://pod.example/console/login/")
    opened = await sessions.open_by_link(link.rpartition("/")[2], user_agent="")
    user = await sessions.find(opened.cookie)
    assert user is not None
    assert (user.org_name, user.is_operator) == (ORGANIZATION, False)


async def test_later_starts_name_the_commands(access: Access) -> None:
    async def commands(*, has_console: bool) -> list[str]:
        shown = await another_key_text(access, command="./matchpod", has_console=has_console)
        return [line.strip() for line in shown.splitlines() if line.startswith("    ")]

    await access.create_organization("my cup")
    create = "./matchpod keys create --org 'my cup' --role owner"
    assert await commands(has_console=False) == [create]
    assert await commands(has_console=True) == [create, "./matchpod console"]
    await access.create_organization("our cup")
    assert await commands(has_console=True) == [create, "./matchpod console --org 'my cup'"]


async def test_key_is_created_only_for_a_new_database(access: Access) -> None:
    key = await create_first_key(access)
    assert key is not None
    principal = await access.authenticate(f"Bearer {key}")
    assert principal.may_create
    assert await create_first_key(access) is None
    command = (await another_key_text(access, command="./matchpod", has_console=False)).splitlines()[-1]
    assert shlex.split(command) == ["./matchpod", "keys", "create", "--org", ORGANIZATION, "--role", "owner"]


FROM_FILE = "mk_live_Qm9-fT2xKq0LrW7vUeYzA1sDdGhJk3NpXcV_bM4n5Oi"


async def test_first_key_is_read_from_a_file_once(
    db: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{FROM_FILE}\n")
    replicas = [Access(db=db, clock=SystemClock(), vault=VAULT) for _ in range(2)]
    await asyncio.gather(*(create_key_from_file(access, file) for access in replicas))
    await create_key_from_file(replicas[0], file)
    for access in replicas:
        assert (await access.authenticate(f"Bearer {FROM_FILE}")).may_create
        assert [(key.name, key.role) for key in await access.keys(ORGANIZATION)] == [("first key", "owner")]
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []
    assert FROM_FILE not in caplog.text


class StaleAccess(Access):
    """Sees no organization, as if it had read before the other process wrote."""

    async def organizations(self) -> list[OrganizationView]:
        return []


async def test_two_concurrent_first_starts_create_one_key(db: Database) -> None:
    access = StaleAccess(db=db, clock=SystemClock(), vault=VAULT)
    assert [await create_first_key(access) is None for _ in range(2)] == [False, True]
    assert [one.name for one in await Access.organizations(access)] == [ORGANIZATION]
    assert len(await access.keys(ORGANIZATION)) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "has no API key: it must contain mk_live_ and 43 letters, digits, - and _, and nothing else."),
        (b"hunter2", "has no API key"),
        (f"{FROM_FILE}0".encode(), "has no API key"),
        (f"{FROM_FILE}\n{FROM_FILE}".encode(), "has no API key"),
        (b"\xff" * 2_000, "has no API key"),
        (b"mk_live_" + b"change-me-" * 4 + b"now", "is not random: others could guess it. Make a new one."),
        (None, "No such file or directory."),
    ],
)
async def test_bad_file_with_the_first_key_is_refused_until_there_is_an_organization(
    access: Access, tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(FirstKeyError) as caught:
        await create_key_from_file(access, file)
    assert str(file) in str(caught.value)
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert await access.organizations() == []
    await access.create_organization("cup")
    await create_key_from_file(access, file)
    assert caplog.messages[-1] == "file with the first API key ignored: no longer needed"


async def test_key_in_the_file_that_was_replaced_is_not_created_again(
    access: Access, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key"
    file.write_text(FROM_FILE)
    await create_key_from_file(access, file)
    (key,) = await access.keys(ORGANIZATION)
    await access.revoke_key(key.id)
    await create_key_from_file(access, file)
    assert caplog.messages[-1] == "key in the file with the first API key does not work"
    assert not await access.is_active_key(FROM_FILE)
