"""Requests wait for the turn of their organization; what must get through does not."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import httpx
import msgspec
import pytest

from matchpod.service.fair_turns import FairTurns, TurnKey, TurnLimits, changes_of
from matchpod.service.identity.principals import Role, Scope
from matchpod.service.telemetry.metrics import HttpMetrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web import create_web
from matchpod.web.endpoint import Call
from matchpod.web.request_turns import NO_KEY, RequestTurn
from tests.unit.web import sites
from tests.unit.web.sites import BODY, Site, check_error
from tests.vaults import tokens_of

site = sites.site

FOREVER = TurnLimits(wait_s=3600.0, hold_s=0.0)
LISTS = ("/api/v1/servers", "/api/v1/cs2/matches", "/api/v1/cs2/series", "/api/v1/callbacks", "/api/v1/audit")
UNKNOWN_SERVER = "/api/v1/servers/srv_00000000000000000000000000"


class Guests:
    """Clients of a site whose turns are held by the test."""

    def __init__(self, site: Site, limits: TurnLimits = FOREVER) -> None:
        self.site = site
        self.turns = FairTurns(limits)
        self.metrics = Registry()
        services = msgspec.structs.replace(site.services, fair_turns=self.turns, metrics=self.metrics)
        self.app = create_web(services, random_bytes=site.random_bytes)
        self.ours = TurnKey(site.run(self._organization()))
        self.our_changes = changes_of(self.ours.owner)

    async def _organization(self) -> str:
        return (await self.site.services.access.authenticate(f"Bearer {self.site.key}")).org_id

    async def hold(self, key: TurnKey) -> None:
        """Take all places of a key."""
        for _ in range(self.turns.limits.of_key * key.parallel):
            while not self.turns.begin(key):
                await asyncio.sleep(0)

    def release(self, key: TurnKey) -> None:
        for _ in range(self.turns.limits.of_key * key.parallel):
            self.turns.end(key)

    def send(
        self, method: str, path: str, key: str | None = None, *, content: bytes | None = None, **headers: str
    ) -> asyncio.Task[httpx.Response]:
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"

        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://matchpod.test") as client:
                return await client.request(method, path, headers=headers, content=content)

        return asyncio.ensure_future(exchange())

    async def until_waiting(self, count: int) -> None:
        async with asyncio.timeout(60):
            while self.turns.waiting < count:
                await asyncio.sleep(0)

    def gauge(self) -> str:
        return next(line for line in self.metrics.text().splitlines() if line.startswith("matchpod_requests_waiting "))

    def run(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            async with asyncio.timeout(60):
                await scenario()

        self.site.run(main())


def test_requests_of_an_organization_wait_for_its_turns_and_those_of_others_do_not(site: Site) -> None:
    guests = Guests(site)

    async def scenario() -> None:
        await guests.hold(guests.ours)
        waiting = [guests.send("GET", path, site.key) for path in LISTS]
        await guests.until_waiting(len(LISTS))
        assert guests.gauge() == f"matchpod_requests_waiting {len(LISTS)}"
        for path in LISTS:
            assert (await guests.send("GET", path, site.other_key)).status_code == 200
        assert not any(one.done() for one in waiting)
        guests.release(guests.ours)
        assert [(await one).status_code for one in waiting] == [200] * len(LISTS)
        assert not guests.turns.waiting
        assert guests.gauge() == "matchpod_requests_waiting 0"

    guests.run(scenario)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/regions", 200),
        ("GET", "/openapi.json", 200),
        ("GET", "/docs", 200),
        ("OPTIONS", "/api/v1/servers", 204),
        ("GET", "/no/such/path", 404),
        ("DELETE", "/api/v1/servers", 405),
        ("GET", "/api/v1/servers", 401),
    ],
)
def test_requests_without_a_key_share_one_queue(site: Site, method: str, path: str, status: int) -> None:
    guests = Guests(site)

    async def scenario() -> None:
        await guests.hold(NO_KEY)
        waiting = guests.send(method, path)
        await guests.until_waiting(1)
        assert (await guests.send("GET", "/api/v1/servers", site.key)).status_code == 200
        guests.release(NO_KEY)
        assert (await waiting).status_code == status

    guests.run(scenario)


def test_wrong_requests_wait_in_the_queue_of_their_organization(site: Site) -> None:
    guests, reader = Guests(site), site.new_key(role=Role.MEMBER, scopes=[Scope.SERVERS_READ])

    async def scenario() -> None:
        await guests.hold(guests.ours)
        await guests.hold(guests.our_changes)
        waiting = [
            guests.send("GET", "/api/v1/servers?pageSise=2", site.key),
            guests.send("POST", "/api/v1/matches", site.key, content=b"{}"),
            guests.send("POST", "/api/v1/matches", reader, content=b"{}"),
            guests.send("GET", UNKNOWN_SERVER, site.key),
        ]
        await guests.until_waiting(len(waiting))
        guests.release(guests.ours)
        guests.release(guests.our_changes)
        assert [(await one).status_code for one in waiting] == [400, 400, 403, 404]

    guests.run(scenario)


def test_changes_do_not_wait_behind_reads_of_the_same_organization(site: Site) -> None:
    guests = Guests(site)

    async def scenario() -> None:
        await guests.hold(guests.ours)
        waiting = guests.send("GET", "/api/v1/servers", site.key)
        await guests.until_waiting(1)
        created = await guests.send("POST", "/api/v1/matches", site.key, content=msgspec.json.encode(BODY))
        assert created.status_code == 201
        await guests.hold(guests.our_changes)
        guests.release(guests.ours)
        assert (await waiting).status_code == 200
        waiting = guests.send("POST", "/api/v1/matches", site.key, content=b"{}")
        await guests.until_waiting(1)
        guests.release(guests.our_changes)
        assert (await waiting).status_code == 400

    guests.run(scenario)


def test_log_posts_and_probes_wait_for_no_turn(site: Site) -> None:
    guests = Guests(site)
    token = tokens_of(site.row(site.new_server())).log

    async def scenario() -> None:
        await guests.hold(guests.ours)
        await guests.hold(NO_KEY)
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await guests.send("GET", path)).status_code == 200
        assert (await guests.send("POST", f"/ingest/logs/{token}", content=b"line\n")).status_code == 200
        assert not guests.turns.waiting

    guests.run(scenario)


def test_log_post_that_cannot_be_stored_waits_for_no_turn(site: Site) -> None:
    guests = Guests(site)

    async def scenario() -> None:
        await guests.hold(NO_KEY)
        site.readiness.serve_reads_only("Its database is a copy.")
        assert (await guests.send("POST", "/ingest/logs/unknown", content=b"line\n")).status_code == 503

    guests.run(scenario)


def test_usual_poll_of_a_server_waits_for_no_turn(site: Site) -> None:
    guests, server_id = Guests(site), site.new_server()
    reads = guests.app.server_reads
    assert reads is not None

    async def scenario() -> None:
        assert (await guests.send("GET", f"/api/v1/servers/{server_id}", site.key)).status_code == 200
        await guests.hold(guests.ours)
        assert reads.read(server_id, [(b"authorization", f"Bearer {site.key}".encode())]) is not None

    guests.run(scenario)


def test_body_arrives_before_the_turn_so_that_slow_clients_hold_none(site: Site) -> None:
    guests, rest = Guests(site), asyncio.Event()

    async def scenario() -> None:
        body = msgspec.json.encode(BODY)
        parts = [body[:10], body[10:]]

        async def receive() -> Mapping[str, object]:
            if len(parts) == 1:
                await rest.wait()
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        sent: list[Mapping[str, object]] = []

        async def send(message: Mapping[str, object]) -> None:
            sent.append(message)

        headers = [(b"authorization", f"Bearer {site.key}".encode())]
        path = "/api/v1/matches"
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": headers}
        slow = [asyncio.ensure_future(guests.app(scope, receive, send))]  # type: ignore[arg-type]
        while len(parts) == 2:
            await asyncio.sleep(0)
        await guests.hold(guests.our_changes)  # none of its places is taken
        rest.set()
        await guests.until_waiting(1)
        guests.release(guests.our_changes)
        await slow[0]
        assert sent[0]["status"] == 201

    guests.run(scenario)


def test_parts_of_a_response_are_made_in_turns_too(site: Site) -> None:
    guests = Guests(site)

    async def parts() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d" % number

    async def scenario() -> None:
        turn = RequestTurn(guests.turns, {}, HttpMetrics(Registry()).waiting)
        await turn.begin(guests.ours)
        turn.end()
        made = turn.parts(parts())
        await asyncio.sleep(0)
        assert await anext(made) == b"0"
        await guests.hold(guests.ours)
        waiting = asyncio.ensure_future(anext(made))
        await guests.until_waiting(1)
        guests.release(guests.ours)
        assert await waiting == b"1"
        assert [part async for part in made] == [b"2"]

    guests.run(scenario)


# --- those that get no turn ---------------------------------------------------------------------------------------


def test_organization_whose_queue_is_full_is_told_to_retry(site: Site) -> None:
    guests = Guests(site, TurnLimits(waiting=2, wait_s=3600.0, full_s=0.0))

    async def scenario() -> None:
        await guests.hold(guests.ours)
        waiting = [guests.send("GET", "/api/v1/servers", site.key) for _ in range(2)]
        await guests.until_waiting(2)
        rejected = await guests.send("GET", "/api/v1/servers", site.key)
        body = check_error(rejected, 429, "RATE_LIMIT_EXCEEDED")
        assert body["message"] == "This organization has 2 waiting requests, the maximum. Retry later."
        assert int(rejected.headers["retry-after"]) >= 1
        # Others have their own queue.
        assert (await guests.send("GET", "/api/v1/servers", site.other_key)).status_code == 200
        guests.release(guests.ours)
        assert [(await one).status_code for one in waiting] == [200, 200]

    guests.run(scenario)


def test_request_without_a_key_is_unavailable_if_their_queue_is_full(site: Site) -> None:
    guests = Guests(site, TurnLimits(waiting=0, full_s=0.0))

    async def scenario() -> None:
        await guests.hold(NO_KEY)
        for path in ("/api/v1/regions", "/no/such/path"):
            rejected = await guests.send("GET", path)
            check_error(rejected, 503, "SERVICE_UNAVAILABLE")
            assert int(rejected.headers["retry-after"]) >= 1

    guests.run(scenario)


def test_request_that_waits_too_long_is_unavailable_and_leaves_the_queue(site: Site) -> None:
    guests = Guests(site, TurnLimits(wait_s=0.0))

    async def scenario() -> None:
        await guests.hold(guests.ours)
        late = await guests.send("GET", "/api/v1/servers", site.key)
        body = check_error(late, 503, "SERVICE_UNAVAILABLE")
        assert "has waited 0 s for its turn" in str(body["message"])
        assert int(late.headers["retry-after"]) >= 1
        assert not guests.turns.waiting

    guests.run(scenario)


def test_requests_that_wait_or_are_rejected_leave_no_garbage(site: Site) -> None:
    """Garbage is collected every few minutes only: what a flood leaves behind must be freed at once."""
    guests = Guests(site, TurnLimits(waiting=1, wait_s=3600.0, full_s=0.0))

    async def exchange(path: str) -> None:
        async def receive() -> Mapping[str, object]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Mapping[str, object]) -> None:
            pass

        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": []}
        await guests.app(scope, receive, send)  # type: ignore[arg-type]

    async def scenario() -> None:
        await exchange("/no/such/path")
        gc.collect()
        gc.disable()
        try:
            await guests.hold(NO_KEY)
            waiting = asyncio.ensure_future(exchange("/no/such/path"))
            await guests.until_waiting(1)
            for path in ("/no/such/path", "/api/v1/regions"):
                await exchange(path)  # rejected: the queue is full
            guests.release(NO_KEY)
            await waiting
            assert not [one for one in gc.get_objects() if isinstance(one, Call | RequestTurn)]
        finally:
            gc.enable()

    guests.run(scenario)


def test_every_request_ends_its_turn(site: Site) -> None:
    guests = Guests(site)
    requests = [
        ("GET", "/api/v1/servers", site.key, b""),
        ("GET", UNKNOWN_SERVER, site.key, b""),
        ("POST", "/api/v1/matches", site.key, msgspec.json.encode(BODY)),
        ("POST", "/api/v1/matches", site.key, b"x" * 70_000),
        ("POST", "/api/v1/matches", None, b"{}"),
        ("HEAD", "/api/v1/servers", site.key, b""),
        ("HEAD", "/api/v1/stream", site.key, b""),
        ("GET", "/no/such/path", None, b""),
        ("OPTIONS", "/api/v1/servers", None, b""),
    ]

    async def scenario() -> None:
        for method, path, key, content in requests * 3:
            await guests.send(method, path, key, content=content)
        site.db.failure = sites.unavailable()
        assert (await guests.send("GET", "/api/v1/servers", site.key)).status_code == 503
        site.db.failure = LookupError()
        assert (await guests.send("GET", "/api/v1/servers", site.key)).status_code == 500
        site.db.failure = None
        await guests.hold(guests.ours)
        await guests.hold(NO_KEY)

    guests.run(scenario)
