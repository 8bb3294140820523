"""Callbacks to private addresses, from the creation of a match to its receiver, before and after a proxy was seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from matchpod.ports import Database, Statement
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.storage import proxy_evidence, rows
from tests.contract import databases
from tests.contract.callback_world import World, running
from tests.contract.console.console_site import OPERATOR, OWNER, ConsoleSite, open_site
from tests.contract.test_storage_servers import server
from tests.waiting import until

harness = databases.mostly_sqlite_harness

PROXIED = {"X-Forwarded-For": "203.0.113.9"}


@asynccontextmanager
async def receiver() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Run a receiver on this machine; yield its URL, and an event that it sets at its first request."""
    called = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        called.set()
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/", called


async def call(site: ConsoleSite, method: str, path: str, **headers: str) -> httpx.Response:
    key = {"Authorization": f"Bearer {site.keys[OWNER].text}"}
    return await site.request(method, path, headers={**key, **headers})


async def create(site: ConsoleSite, url: str) -> httpx.Response:
    body = {
        "region": "sandbox",
        "gameType": "cs2",
        "callbackUrl": url,
        "gameSettings": {"matchType": "competitive", "map": "de_mirage"},
    }
    key = {"Authorization": f"Bearer {site.keys[OWNER].text}"}
    return await site.request("POST", "/api/v1/matches", headers=key, content=msgspec.json.encode(body))


async def state_of(site: ConsoleSite) -> str:
    (item,) = (await call(site, "GET", "/api/v1/callbacks")).json()["items"]
    return f"{item['state']} {item['lastError'] or ''}".strip()


async def test_what_was_accepted_is_delivered_after_a_proxy_was_seen(tmp_path: Path) -> None:
    async with receiver() as (url, called), open_site(tmp_path / "data") as site:
        created = (await create(site, url)).json()
        assert (await call(site, "GET", "/api/v1/servers", **PROXIED)).status_code == 200
        assert (await create(site, url)).status_code == 400
        async with running(site.service.dispatcher):
            assert (await call(site, "POST", f"/api/v1/servers/{created['serverId']}/cancel")).status_code == 200
            await called.wait()
            await until(lambda: is_state(site, "delivered"))


async def is_state(site: ConsoleSite, state: str) -> bool:
    return await state_of(site) == state


async def test_person_who_comes_through_a_proxy_shows_it(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data") as site:
        assert "http://127.0.0.1:9000/" in (await site.request("GET", "/console/create", who=OWNER)).text
        assert (await site.request("GET", "/console", headers=PROXIED)).status_code == 303, "without a session"
        assert await proxy_evidence.find(site.resources.db) is None
        assert (await site.request("GET", "/console/operator", who=OPERATOR, headers=PROXIED)).status_code == 200
        assert await proxy_evidence.find(site.resources.db) is not None
        assert "http://127.0.0.1:9000/" not in (await site.request("GET", "/console/create", who=OWNER)).text
        assert (await create(site, "http://10.0.0.1/")).status_code == 400


@pytest.mark.parametrize(
    ("decided", "by_settings", "is_explicit", "is_allowed"),
    [
        (True, True, False, True),
        (True, False, False, True),  # the service listens on another address since
        (False, True, False, False),
        (None, True, False, True),  # of an earlier version, which decided by the settings alone
        (None, False, False, False),
        (True, False, True, False),
        (False, True, True, True),
    ],
)
async def test_attempt_follows_the_setting_or_what_was_decided_for_the_match(
    db: Database, *, decided: bool | None, by_settings: bool, is_explicit: bool, is_allowed: bool
) -> None:
    world = World(db)
    world.private_callbacks = PrivateCallbacks(db=db, by_settings=by_settings, is_explicit=is_explicit)
    await proxy_evidence.store(db, "host: play.example")
    row = msgspec.structs.replace(server("srv_cb_1"), callback_private=decided)
    await db.write([rows.insert("servers", row), Statement("UPDATE servers SET phase = 'released'")])
    await world.add("cb_1")
    async with running(world.dispatcher()):
        await world.until_attempts(1)
    assert [one.allow_private for one in world.receivers.requests] == [is_allowed]
