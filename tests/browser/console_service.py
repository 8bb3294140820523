"""A service with people and sandbox matches, for tests of the console in a browser."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import httpx

from matchpod.app.resources import Resources, open_resources
from matchpod.ports import Statement, Value
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.access.organizations import Access
from matchpod.service.acknowledgements import Acknowledgements
from matchpod.service.identity.principals import ConsoleRole, NewKey, Principal, Role, Scope
from matchpod.service.ingest.tokens import open_tokens
from matchpod.service.ingest.urls import IngestUrls
from matchpod.settings import load_settings
from matchpod.storage import organizations, servers
from tests.e2e.service.running_service import (
    RunningService,
    cvars,
    free_port_range,
    players,
    region,
    short_match,
    wait_until,
)
from tests.stored_demos import upload_demo

T = TypeVar("T")

FAST, PATIENT = "sandbox", "stockholm"
"""A region faster than real time, and one whose timeouts are longer than all tests take."""
SERVERS = 2
"""Servers per region; more matches wait for a free one, which takes no process."""
TEAM1 = "<img src=x onerror=alert(1)>"
TEAM2 = "<b onclick=alert(8)>'&' עברית"
HOSTILE_IDS = (
    '"><script>alert(2)</script>',
    "{{7*7}} {% raw %} ${7*7} #{7*7}",
    "\u202egnp.exe \u2066 \u200f right to left",
    "'\" onmouseover=alert(3) x='",
    "Z\u0338\u0322\u0341\u033f\u034fa\u0321\u0347 " + "W" * 245,
)
PLAYER_NAMES = (
    '<img src=x onerror="alert(4)">',
    "</title><script>alert(5)</script>",
    "\u202ereversed",
    '" onfocus=alert(6) autofocus x="',
    "hx-get=/console/logout " + "Ж" * 40,
)
WEBHOOK_URL = "http://127.0.0.1:9/" + "in/" * 60 + "W" * 200
KEPT_S = 150.0
"""Half of the time that players have to join."""
CHAT = '<svg onload=alert(7)> !admin " style="position:fixed'
FIRST_ACCOUNT = int(players(1)[0]) - 76561197960265728


class ConsoleService:
    """The service, its people and its matches; `regions` and `more` are settings."""

    def __init__(self, folder: Path, *, servers: int = SERVERS, regions: str = "", **more: str) -> None:
        if not regions:
            ports = free_port_range(2 * servers)
            regions = region(FAST, ports[:servers], speed=30) + region(PATIENT, ports[servers:], speed=1)
        settings = {"callback_private": "allow", "max_creations_per_minute": "off", "max_live_matches": "off"}
        self.running = RunningService(folder, regions=regions, settings={**settings, **more})
        self.hostile: list[str] = []
        self.ended_id = ""
        self._webhook_ids: dict[str, str] = {}
        self._created_s = 0.0
        self._posted: dict[str, int] = {}

    @property
    def url(self) -> str:
        return self.running.url

    # --- people ---------------------------------------------------------------------------------------------------

    def with_resources(self, work: Callable[[Resources], Awaitable[T]]) -> T:
        """Use the data of the service, as commands do; in a thread, because Playwright runs an event loop in ours."""
        settings = load_settings(self.running.environment(), lambda path: path.read_bytes())

        async def run() -> T:
            resources = await open_resources(settings)
            try:
                return await work(resources)
            finally:
                await resources.db.close()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, run()).result()

    def new_key(
        self, role: Role = Role.OWNER, *, org: str = "demo", scopes: tuple[Scope, ...] = tuple(Scope)
    ) -> NewKey:
        """Create a key; an organization that does not exist is created."""

        async def create(resources: Resources) -> NewKey:
            access = _access(resources)
            if org not in {one.name for one in await access.organizations()}:
                await access.create_organization(org)
            return await access.create_key(org, role=role, scopes=scopes)

        return self.with_resources(create)

    def revoke(self, key: NewKey) -> None:
        async def revoke(resources: Resources) -> None:
            await _access(resources).revoke_key(key.view.id)

        self.with_resources(revoke)

    def new_cookie(self, key: str) -> str:
        """Log in with a key, past the limit of log-ins per minute; return the value of the cookie."""

        async def open_session(resources: Resources) -> str:
            return (await _sessions(resources).open_by_key(key, user_agent="a browser")).cookie

        return self.with_resources(open_session)

    def new_link(self, org: str | None = "demo", *, name: str = "", role: Role | ConsoleRole = Role.OWNER) -> str:
        """Return a link that logs in as a person of an organization, or as operator."""

        async def create(resources: Resources) -> str:
            ids = {one.name: one.id for one in await organizations.list(resources.db)}
            return await _sessions(resources).create_link(None if org is None else ids[org], name=name, role=role)

        return f"{self.url}/console/login/{self.with_resources(create)}"

    # --- matches --------------------------------------------------------------------------------------------------

    def cancel_hostile_matches(self) -> None:
        """Cancel the open matches, for a test that needs their servers; the next test gets new ones."""
        for server_id in self.hostile:
            self.running.cancel(server_id)
        self.hostile = []

    def create_open_match(self, name: str, *, first: int = 0, **settings: object) -> str:
        """Create a match that waits for players as long as the tests take; return the id of its server."""
        return self.create_match(name, region=PATIENT, scenario="no_show", speed=1, first=first, **settings)

    def create_match(
        self,
        name: str,
        *,
        scenario: str = "full_match",
        speed: int = 100,
        region: str = FAST,
        first: int = 0,
        **settings: object,
    ) -> str:
        """Create a short match; return the id of its server."""
        given = {**short_match(customCvars=cvars(speed, scenario)), **settings}
        created = self.running.create(given, region=region, externalMatchId=name)
        return str(created["serverId"])

    def keep_open(self) -> None:
        """Replace the open matches before their time to join ends."""
        if not self.hostile or time.monotonic() - self._created_s > KEPT_S:
            self.cancel_hostile_matches()
            self.acknowledge_all()
            self.create_hostile_matches()

    def fail(self, server_id: str) -> None:
        """End a match as if its server had been lost, without waiting for that."""
        self._change(server_id, "acknowledged_at_ms = 1")  # no page may ever show it as canceled: an end is final
        self.running.cancel(server_id)
        self.running.wait_until_released(server_id)  # nothing else changes the match
        lost = "reason = 'server_lost', status = 'failed', running_at_ms = 1, acknowledged_at_ms = NULL"
        self._change(server_id, lost)

    def _change(self, server_id: str, columns: str) -> None:
        async def change(resources: Resources) -> None:
            await resources.db.write([Statement(f"UPDATE servers SET {columns} WHERE id = :id", {"id": server_id})])

        self.with_resources(change)

    def acknowledge_all(self) -> None:
        """Take all matches without a result off the wall, also those that were canceled just now."""

        async def acknowledge(resources: Resources) -> None:
            audit = Audit(db=resources.db, clock=resources.clock, random_bytes=os.urandom)
            service = Acknowledgements(db=resources.db, clock=resources.clock, audit=audit)
            (org_id,) = (one.id for one in await organizations.list(resources.db) if one.name == "demo")
            person = Principal(org_id=org_id, key_id="key_test", role=Role.OWNER, scopes=frozenset(Scope))
            now_ms = resources.clock.now_ms()
            await service.acknowledge_older(person, now_ms + 1)
            # Those that were canceled by hand leave by themselves, later than a test can wait.
            given: dict[str, Value] = {"org_id": org_id, "now_ms": now_ms}
            canceled = "reason = 'canceled_by_user' AND acknowledged_at_ms IS NULL"
            sql = f"UPDATE servers SET acknowledged_at_ms = :now_ms WHERE org_id = :org_id AND {canceled}"
            await resources.db.write([Statement(sql, given)])

        self.with_resources(acknowledge)

    def create_hostile_matches(self) -> None:
        """Create open matches with the worst texts that callers and players can send."""
        self._created_s = time.monotonic()
        listed = players(len(PLAYER_NAMES) * 2)
        teams = {
            "team1": {"name": TEAM1, "players": listed[: len(PLAYER_NAMES)]},
            "team2": {"name": TEAM2, "players": listed[len(PLAYER_NAMES) :]},
        }
        self.ended_id = self.create_open_match("canceled")
        self.running.cancel(self.ended_id)
        self.acknowledge_all()
        self.hostile = [self.create_open_match(name, teams=teams) for name in HOSTILE_IDS]
        self.running.wait_for_status(self.hostile[0], "running")
        self.join_players()

    def join_players(self) -> None:
        """Let players with hostile names join; after a minute the console of the server says that they are gone."""
        self.post_log(self.hostile[0], *_joining_lines())

    def store_demo(self, server_id: str, body: bytes, file_name: str) -> None:
        """Store a demo of the first map of an ended match, as if it had been played and its server had uploaded it."""
        self.running.wait_until_released(server_id)  # its maps are written for the last time before that

        async def store(resources: Resources) -> None:
            played = "UPDATE maps SET started_at_ms = 1 WHERE server_id = :id AND map_number = 1"
            await resources.db.write([Statement(played, {"id": server_id})])
            await upload_demo(resources.db, resources.demo_storage, server_id, body, file_name=file_name)

        self.with_resources(store)

    # --- webhooks -------------------------------------------------------------------------------------------------

    def webhook_ids(self) -> dict[str, str]:
        """Return the ids of a webhook, which is created once, and of a delivery that could not be sent."""
        if not self._webhook_ids:
            path = "/api/v1/webhooks"
            created = self.running.call("POST", path, {"url": WEBHOOK_URL, "events": ["*"]}).json
            path += f"/{created['id']}"
            sent = self.running.call("POST", f"{path}/test").json
            path += f"/deliveries/{sent['id']}"
            wait_until(lambda: self.running.call("GET", path).json["attemptCount"] or None, "a test was tried")
            self._webhook_ids = {"webhookId": created["id"], "deliveryId": sent["id"]}
        return self._webhook_ids

    def post_log(self, server_id: str, *lines: str) -> None:
        """Send lines as the server of a match, far after what it has sent itself; a later post follows the earlier."""

        async def read_token(resources: Resources) -> str:
            row = await servers.get(resources.db, server_id)
            assert row is not None
            return open_tokens(row, resources.vault).log

        body = "".join(f"{line}\n" for line in lines).encode()
        begin = self._posted.get(server_id, 10_000_000)
        self._posted[server_id] = begin + len(body)
        headers = {"X-LogBytes-BeginOffset": str(begin), "X-LogBytes-EndOffset": str(begin + len(body))}
        address = IngestUrls(self.url).logs(self.with_resources(read_token))
        assert httpx.post(address, content=body, headers=headers).status_code == 200


def _sessions(resources: Resources) -> ConsoleSessions:
    audit = Audit(db=resources.db, clock=resources.clock, random_bytes=os.urandom)
    return ConsoleSessions(db=resources.db, clock=resources.clock, access=_access(resources), audit=audit)


def _access(resources: Resources) -> Access:
    return Access(db=resources.db, clock=resources.clock, vault=resources.vault)


def lines_of_chat(text: str) -> list[str]:
    """Return what a server logs when its first listed player joins and writes this."""
    who = f"{PLAYER_NAMES[0]}<2><[U:1:{FIRST_ACCOUNT}]>"
    stamp = "11/17/2026 - 12:00:01.000 - "
    return [f'{stamp}"{who}<>" entered the game', f'{stamp}"{who}<CT>" say "{text}"']


def _joining_lines() -> list[str]:
    stamp = "11/17/2026 - 12:00:00.000 - "
    lines = []
    for number, name in enumerate(PLAYER_NAMES):
        who = f"{name}<{number + 2}><[U:1:{FIRST_ACCOUNT + number}]>"
        lines += [
            f'{stamp}"{who}<>" connected, address ""',
            f'{stamp}"{who}<>" entered the game',
            f'{stamp}"{who}" switched from team <Unassigned> to <CT>',
            f'{stamp}"{who}<CT>" say "{CHAT}"',
        ]
    return lines
