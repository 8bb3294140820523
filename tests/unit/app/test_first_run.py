"""The first API key and the text printed with it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.adapters.vault import KEY_BYTES, KeyFileVault
from matchpod.app.first_run import EXTERNAL_ID, ORGANIZATION, another_key_text, create_first_key, welcome_text
from matchpod.core.validation import RegionRules, read_match_request
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.service.access import Access
from matchpod.service.principals import OrganizationView
from matchpod.storage.migrate import migrate
from tests.vaults import VAULT


def test_printed_commands_contain_a_valid_match_and_the_key() -> None:
    shown = welcome_text("mk_live_x", base_url="http://127.0.0.1:1", region="eu", command="./matchpod")
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


async def test_key_is_created_only_for_a_new_database(tmp_path: Path) -> None:
    db = await SqliteDatabase.open(tmp_path / "db")
    try:
        await migrate(db, VAULT.seal)
        access = Access(db=db, clock=SystemClock(), vault=KeyFileVault(bytes(KEY_BYTES)))
        key = await create_first_key(access)
        assert key is not None
        principal = await access.authenticate(f"Bearer {key}")
        assert principal.may_create
        assert await create_first_key(access) is None
        command = (await another_key_text(access, command="./matchpod")).splitlines()[-1]
        assert shlex.split(command) == ["./matchpod", "keys", "create", "--org", ORGANIZATION, "--role", "owner"]
    finally:
        await db.close()


async def test_two_concurrent_first_starts_create_one_key(tmp_path: Path) -> None:
    class StaleAccess(Access):
        """Sees no organization, as if it had read before the other process wrote."""

        async def organizations(self) -> list[OrganizationView]:
            return []

    db = await SqliteDatabase.open(tmp_path / "db")
    try:
        await migrate(db, VAULT.seal)
        access = StaleAccess(db=db, clock=SystemClock(), vault=KeyFileVault(bytes(KEY_BYTES)))
        keys = [await create_first_key(access) for _ in range(2)]
        assert keys[0] is not None
        assert keys[1] is None
        assert [one.name for one in await Access.organizations(access)] == [ORGANIZATION]
        assert len(await access.keys(ORGANIZATION)) == 1
    finally:
        await db.close()
