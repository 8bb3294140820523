"""The whole web application with the console, called in this process: real services, no sockets, no game servers.

Matches that are created stay open, because nothing drives them. A module imports the fixture with
`site = console_site.site`.
"""

from __future__ import annotations

import copy
import itertools
import os
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx
import msgspec
import pytest
import pytest_asyncio

from matchpod.app.composition import Service, compose
from matchpod.app.resources import Resources, open_resources
from matchpod.console.routes import endpoints as console_endpoints
from matchpod.console.routes import error_page
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.identity.principals import ConsoleRole, NewKey, Role, Scope
from matchpod.service.telemetry.prometheus import Registry
from matchpod.settings import load_settings
from matchpod.web import create_web
from tests.migrated import create_migrated

URL = "http://127.0.0.1:8080"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
OWNER, ADMIN, MEMBER, WRITER, OPERATOR, STRANGER = "owner", "admin", "member", "writer", "operator", "stranger"
REFEREE, CASTER = "referee", "caster"
"""Who can be logged in. A writer has a key that may create matches but not read them; a stranger is the owner of
another organization; referees and casters have no keys, but a link for their name."""
NAMES = {REFEREE: "Rita <b>R</b>", CASTER: 'Carl, "the voice"'}
"""The names of people with a link."""

_numbers = itertools.count(1)


class ConsoleSite:
    """The application, and people who can log in."""

    def __init__(self, resources: Resources, service: Service, public_url: str) -> None:
        self.resources = resources
        self.service = service
        self.public_url = public_url
        audit = Audit(db=resources.db, clock=resources.clock, random_bytes=os.urandom)
        self.sessions = ConsoleSessions(db=resources.db, clock=resources.clock, access=service.access, audit=audit)
        self.org_ids: dict[str, str] = {}
        self.keys: dict[str, NewKey] = {}
        self.cookies: dict[str, str] = {}

    @property
    def cookie_name(self) -> str:
        return "__Host-matchpod" if self.public_url.startswith("https:") else "matchpod"

    async def set_up(self) -> None:
        """Create organizations and keys, and log everyone in."""
        for name in ("ours", "theirs"):
            self.org_ids[name] = (await self.service.access.create_organization(name)).id
        self.keys = {
            OWNER: await self.new_key("ours", Role.OWNER),
            ADMIN: await self.new_key("ours", Role.ADMIN),
            MEMBER: await self.new_key("ours", Role.MEMBER, [Scope.SERVERS_READ]),
            WRITER: await self.new_key("ours", Role.OWNER, [Scope.SERVERS_WRITE]),
            STRANGER: await self.new_key("theirs", Role.OWNER),
        }
        for who, key in self.keys.items():
            self.cookies[who] = (await self.sessions.open_by_key(key.text, user_agent="test")).cookie
        links = {OPERATOR: await self.sessions.create_link(None)}
        for role in ConsoleRole:
            name = NAMES[role.value]
            links[role.value] = await self.sessions.create_link(self.org_ids["ours"], name=name, role=role)
        for who, link in links.items():
            self.cookies[who] = (await self.sessions.open_by_link(link, user_agent="test")).cookie

    async def new_key(self, org: str, role: Role, scopes: Sequence[Scope] = tuple(Scope)) -> NewKey:
        return await self.service.access.create_key(org, role=role, scopes=scopes)

    async def request(
        self,
        method: str,
        path: str,
        *,
        who: str | None = None,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        """Send a request as this person, from a page of the console unless the headers say otherwise."""
        sent = {**SAME_ORIGIN, **({} if who is None else self.cookie(who)), **(headers or {})}
        async with self.program() as client:
            return await client.request(method, path, headers=sent, data=form, content=content)

    async def page(self, path: str, *, who: str = OWNER, status: int = 200) -> str:
        """Return the text of a page, which must have this status."""
        response = await self.request("GET", path, who=who)
        assert response.status_code == status, response.text
        return response.text

    async def follow(self, response: httpx.Response, *, who: str | None = None) -> httpx.Response:
        """Open the page that a response leads to, with the notice that it sets."""
        assert response.status_code == 303, response.text
        cookies = [one.partition(";")[0] for one in response.headers.get_list("set-cookie") if "notice" in one]
        if who is not None:
            cookies.append(self.cookie(who)["Cookie"])
        return await self.request("GET", response.headers["location"], headers={"Cookie": "; ".join(cookies)})

    def program(self) -> httpx.AsyncClient:
        """Return a client that is no browser: it sends no headers of its own."""
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=self.service.web), base_url=self.public_url)

    @asynccontextmanager
    async def client(self, who: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
        """Run a client that keeps cookies as a browser does, logged in as this person."""
        async with self.program() as client:
            client.headers.update(SAME_ORIGIN)
            if who is not None:
                client.cookies.set(self.cookie_name, self.cookies[who])
            yield client

    def cookie(self, who: str) -> dict[str, str]:
        """Return the header with the cookie of a person."""
        return {"Cookie": f"{self.cookie_name}={self.cookies[who]}"}

    async def create_match(self, who: str = OWNER, **settings: object) -> str:
        """Create a match through the API; return the id of its server."""
        body = {
            "region": "sandbox",
            "gameType": "cs2",
            "externalMatchId": f"match-{next(_numbers)}",
            "gameSettings": {"matchType": "competitive", "map": "de_mirage"},
            **settings,
        }
        async with self.program() as client:
            headers = {"Authorization": f"Bearer {self.keys[who].text}"}
            response = await client.post("/api/v1/matches", json=body, headers=headers)
        assert response.status_code == 201, response.text
        server_id: str = response.json()["serverId"]
        return server_id

    def with_parts(self, **parts: object) -> ConsoleSite:
        """Return this site with other parts of its console, such as parts with other limits."""
        console = msgspec.structs.replace(self.service.console, **parts)
        services = msgspec.structs.replace(console.services, metrics=Registry())
        web = create_web(services, more_endpoints=console_endpoints(console), error_page=error_page)
        other = copy.copy(self)
        other.service = msgspec.structs.replace(self.service, console=console, web=web)
        return other

    def stored(self) -> list[str]:
        """Return everything that is stored, as statements."""
        with closing(sqlite3.connect(self.resources.settings.database_path)) as database:
            return list(database.iterdump())


def _read_file(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


@asynccontextmanager
async def open_site(folder: Path, *, public_url: str = URL, **settings: str) -> AsyncIterator[ConsoleSite]:
    """Run an application on an empty database until the end of the block, or on one that exists, without its people."""
    variables = {"data_dir": str(folder), "min_free_disk_mb": "off", "public_url": public_url, **settings}
    loaded = load_settings({f"MATCHPOD_{name.upper()}": value for name, value in variables.items()}, _read_file)
    folder.mkdir(mode=0o700, exist_ok=True)
    is_new = not loaded.database_path.exists()
    if is_new:
        create_migrated(loaded.database_path)
    resources = await open_resources(loaded)
    try:
        service = compose(resources, owner="test", ingest_base=public_url)
        service.readiness.mark_ready()
        site = ConsoleSite(resources, service, public_url)
        if is_new:
            await site.set_up()
        try:
            yield site
        finally:
            service.broadcasts.close()
            service.streams.close()
            await service.sender.close()
    finally:
        await resources.db.close()


@pytest_asyncio.fixture
async def own_site(tmp_path: Path) -> AsyncIterator[ConsoleSite]:
    """An application of this test alone."""
    async with open_site(tmp_path / "data") as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ConsoleSite]:
    """An application with two organizations; all tests of a module share it."""
    async with open_site(tmp_path_factory.mktemp("console") / "data") as opened:
        yield opened
