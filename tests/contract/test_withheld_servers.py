"""Servers that wait for an operator's confirmation are stored."""

from __future__ import annotations

from matchpod.ports import Database
from matchpod.storage.withheld_servers import WithheldServer, add, confirm, remove, withheld_servers
from tests.contract import databases

harness = databases.harness
postgres_url = databases.postgres_url


async def test_withheld_servers_are_kept_confirmed_and_removed_by_region(db: Database) -> None:
    await add(db, "eu", ["srv_1", "srv_2"], 1_000)
    await add(db, "us", ["srv_1"], 1_000)
    await db.write([confirm("eu", "srv_1")])
    await add(db, "eu", ["srv_1", "srv_3"], 2_000)
    assert await withheld_servers(db) == {
        "eu": [
            WithheldServer("eu", "srv_1", 1_000, is_confirmed=True),
            WithheldServer("eu", "srv_2", 1_000, is_confirmed=False),
            WithheldServer("eu", "srv_3", 2_000, is_confirmed=False),
        ],
        "us": [WithheldServer("us", "srv_1", 1_000, is_confirmed=False)],
    }
    await remove(db, "eu", ["srv_1", "srv_2", "srv_3"])
    assert list(await withheld_servers(db)) == ["us"]
