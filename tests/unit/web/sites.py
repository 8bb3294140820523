"""The web application on real services and a SQLite file, called in process: no sockets, and a manual clock.

A test module imports the fixture with `site = sites.site`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec
import pytest
import uvloop

from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import (
    Database,
    DatabaseUnavailableError,
    DemoStorage,
    Row,
    Statement,
    Value,
)
from matchpod.service.access.audit import Audit
from matchpod.service.access.organizations import Access
from matchpod.service.access.quotas import UNLIMITED, Quotas
from matchpod.service.actions.requests import ActionRequests, Actions
from matchpod.service.callbacks.deliveries import CallbackDeliveries
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.end_match import end_match
from matchpod.service.identity.principals import Role, Scope
from matchpod.service.ingest.posts import Ingest
from matchpod.service.ingest.urls import IngestUrls
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.matches import Matches
from matchpod.service.operations.disk_space import DiskSpace
from matchpod.service.operations.readiness import Readiness
from matchpod.service.reading.demos import Demos
from matchpod.service.reading.history import History
from matchpod.service.reading.match_records import MatchRecords
from matchpod.service.region_checks.requests import RegionChecks
from matchpod.service.regions.regions import Region, Regions
from matchpod.service.rulings import Rulings
from matchpod.service.streams.map_streams import Streams
from matchpod.service.streams.readers import DEFAULT_PACE as DEFAULT_POLL_PACE
from matchpod.service.streams.readers import PollPace
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.service.webhooks.management import Webhooks
from matchpod.storage import servers
from matchpod.storage.servers import ServerRow
from matchpod.web import Limits, Services, create_web
from matchpod.web.application import Application
from matchpod.web.event_streams import DEFAULT_PACE as DEFAULT_STREAM_PACE
from matchpod.web.event_streams import StreamPace
from tests.clocks import ManualClock
from tests.contract.databases import DelegatingDatabase
from tests.migrated import create_migrated
from tests.unused_fleet import UnusedFleet

NOW_MS = 1_790_000_000_123
PLAYER = "76561198000000001"
OTHER_PLAYER = "76561198000000002"
BODY: Mapping[str, object] = {
    "region": "sandbox",
    "gameType": "cs2",
    "gameSettings": {"matchType": "competitive", "map": "de_dust2"},
}
BOTH = (Scope.SERVERS_READ, Scope.SERVERS_WRITE)

T = TypeVar("T")


class FailingDatabase(DelegatingDatabase):
    """A database that raises `failure`, if set, on every access."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.failure: Exception | None = None
        self.failed = asyncio.Event()
        """Set when `failure` was raised."""

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self._fail()
        return await super().read(sql, params)

    async def read_one(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        self._fail()
        return await self._db.read_one(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self._fail()
        return await super().write(statements)

    def _fail(self) -> None:
        if self.failure is not None:
            self.failed.set()
            raise self.failure


class CountingBytes:
    """Returns a counter instead of random bytes, so that ids are the same in every run."""

    def __init__(self) -> None:
        self.next = 0

    def __call__(self, size: int) -> bytes:
        self.next += 1
        return self.next.to_bytes(size)


class Site:
    """The web application, the services behind it, and keys of two organizations."""

    def __init__(
        self,
        path: Path,
        *,
        quotas: Quotas = UNLIMITED,
        max_streams: int | None = None,
        is_explicit: bool = True,
        poll_pace: PollPace = DEFAULT_POLL_PACE,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> None:
        self.quotas = quotas
        self.max_streams = max_streams
        self.poll_pace = poll_pace
        self.runner = asyncio.Runner(loop_factory=loop_factory)
        self.clock = ManualClock(NOW_MS)
        create_migrated(path)
        self.sqlite = self.run(SqliteDatabase.open(path))
        self.db = FailingDatabase(self.sqlite)
        self.live = LocalMatches()
        self.random_bytes = CountingBytes()
        self.vault = KeyFileVault.from_text("A" * 43 + "=")
        self.metrics = Registry()
        self.free_mb = 1_000
        self.disk = DiskSpace(
            {"data": path.parent},
            min_free_mb=512,
            free_bytes=lambda _: self.free_mb * 1024 * 1024,
            clock=self.clock,
            metrics=self.metrics,
        )
        self.readiness = Readiness(db=self.db, clock=self.clock, disk=self.disk, regions=Regions([], self.db))
        self.readiness.mark_ready()
        self.wakes = 0
        self.private_callbacks = PrivateCallbacks(db=self.db, by_settings=True, is_explicit=is_explicit)
        self.demo_storage: DemoStorage = FolderStorage(path.parent / "demos")
        self.services = self._services()
        self.app = self.open_web()
        for name in ("ours", "theirs"):
            self.run(self.services.access.create_organization(name))
        self.key = self.new_key()
        self.other_key = self.new_key("theirs")

    def _services(self) -> Services:
        regions = Regions(
            [
                Region(code="sandbox", name="Sandbox", location="Here", allows_simulator=True, fleet=UnusedFleet()),
                Region(code="eu-west", name="Europe West", location="Paris", fleet=UnusedFleet()),
            ],
            self.db,
        )
        live, metrics = self.live, Metrics(self.metrics)
        audit = Audit(db=self.db, clock=self.clock, random_bytes=CountingBytes())
        streams = Streams(db=self.db, live=live, metrics=metrics, max_of_org=self.max_streams, pace=self.poll_pace)
        remote = RemoteMatches(db=self.db, regions=regions, turns=FoldTurns())
        matches = Matches(
            db=self.db,
            db_version=self.sqlite.version,
            clock=self.clock,
            vault=self.vault,
            regions=regions,
            live=live,
            remote=remote,
            read_cvars=read_custom_cvars,
            notify=lambda _: streams.organizations.wake(),
            audit=audit,
            metrics=metrics,
            quotas=self.quotas,
            private_callbacks=self.private_callbacks,
            disk=self.disk,
            installation="",
            random_bytes=self.random_bytes,
        )
        history = History(db=self.db, live=live, remote=remote)
        return Services(
            access=Access(db=self.db, clock=self.clock, vault=self.vault, audit=audit, random_bytes=self.random_bytes),
            audit=audit,
            actions=Actions(
                db=self.db,
                clock=self.clock,
                live=live,
                remote=remote,
                requests=ActionRequests(self.db, self.clock, audit, live=live, random_bytes=self.random_bytes),
            ),
            matches=matches,
            region_checks=RegionChecks(
                db=self.db, clock=self.clock, audit=audit, codes=[region.code for region in regions.all()]
            ),
            rulings=Rulings(
                db=self.db,
                clock=self.clock,
                audit=audit,
                wake=streams.organizations.wake,
                random_bytes=self.random_bytes,
            ),
            private_callbacks=self.private_callbacks,
            callbacks=CallbackDeliveries(db=self.db, clock=self.clock, wake=self.wake, audit=audit),
            webhooks=Webhooks(
                db=self.db,
                clock=self.clock,
                vault=self.vault,
                audit=audit,
                private_callbacks=self.private_callbacks,
                max_webhooks=3,
                random_bytes=self.random_bytes,
            ),
            history=history,
            demos=Demos(db=self.db, history=history, storage=self.demo_storage),
            records=MatchRecords(db=self.db),
            streams=streams,
            ingest=Ingest(
                db=self.db,
                clock=self.clock,
                vault=self.vault,
                live=live,
                log_writer=LogWriter(self.db, live, FoldTurns()),
                metrics=metrics,
                urls=IngestUrls("http://127.0.0.1:8080"),
                regions=regions,
                turns=FoldTurns(),
                quota_bytes=None,
            ),
            regions=regions,
            metrics=self.metrics,
            readiness=self.readiness,
            limits=Limits(max_body_bytes=65_536),
            fair_turns=streams.fair_turns,
            version="1.2.3",
        )

    def wake(self) -> None:
        self.wakes += 1

    def open_web(
        self,
        *,
        rate_limit: int | None = None,
        cors_origins: tuple[str, ...] = (),
        stream_pace: StreamPace = DEFAULT_STREAM_PACE,
    ) -> Application:
        """Create an application with its own metrics, and use it for the following requests."""
        limits = Limits(max_body_bytes=self.services.limits.max_body_bytes, rate_limit=rate_limit)
        services = msgspec.structs.replace(self.services, limits=limits, metrics=Registry(), cors_origins=cors_origins)
        self.app = create_web(
            services,
            monotonic=self.clock.monotonic,
            random_bytes=self.random_bytes,
            stream_pace=stream_pace,
        )
        return self.app

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.runner.run(work)

    def close(self) -> None:
        self.run(self.db.close())
        self.runner.close()

    # --- requests ---------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        json: object = None,
    ) -> httpx.Response:
        """Send one request, with a key unless it is None; the response is not compressed unless the headers ask."""
        all_headers = httpx.Headers(headers)
        all_headers.setdefault("Accept-Encoding", "identity")
        if key is not None:
            all_headers["Authorization"] = f"Bearer {key}"
        body = msgspec.json.encode(json) if json is not None else content

        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://matchpod.test") as client:
                return await client.request(method, path, headers=all_headers, content=body)

        return self.run(exchange())

    def get(self, path: str, key: str | None = None) -> httpx.Response:
        return self.request("GET", path, key=key or self.key)

    def create(self, key: str | None = None, idempotency_key: str | None = None, /, **fields: object) -> httpx.Response:
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self.request("POST", "/api/v1/matches", key=key or self.key, headers=headers, json={**BODY, **fields})

    def cancel(self, server_id: str, key: str | None = None) -> httpx.Response:
        return self.request("POST", f"/api/v1/servers/{server_id}/cancel", key=key or self.key)

    # --- test setup -------------------------------------------------------------------------------------------------

    def new_key(self, org: str = "ours", *, role: Role = Role.OWNER, scopes: Sequence[Scope] = BOTH) -> str:
        return self.run(self.services.access.create_key(org, role=role, scopes=scopes)).text

    def new_server(self, **fields: object) -> str:
        response = self.create(**fields)
        assert response.status_code == 201, response.text
        server_id: str = response.json()["serverId"]
        return server_id

    def row(self, server_id: str) -> ServerRow:
        row = self.run(servers.get(self.db, server_id))
        assert row is not None
        return row

    def start(self, server_id: str) -> None:
        """Mark the server as running: players may connect."""
        change = servers.change(
            server_id,
            self.row(server_id).fence,
            phase=ServerPhase.RUNNING,
            match_phase=PublicPhase.WAITING_FOR_PLAYERS,
            status=ServerStatus.RUNNING,
            ip="203.0.113.7",
            port=27015,
            allocated_at_ms=NOW_MS,
            running_at_ms=NOW_MS,
        )
        self.run(self.db.write([change]))

    def end(
        self,
        server_id: str,
        outcome: Outcome | None = None,
        *,
        reason: CancelReason | None = None,
        result: bytes | None = None,
    ) -> None:
        """End the match without a caller's cancel: with an outcome, or for a reason or with a result."""
        row = self.row(server_id)
        outcome = outcome or Outcome(at_ms=NOW_MS, reason=reason)
        statements = end_match(row, outcome, result=result, fence=None, callback_id=f"msg_{server_id}")
        self.run(self.db.write(statements))


@contextmanager
def opened(folder: Path, **options: Any) -> Iterator[Site]:
    """Run a site on an empty database in this folder."""
    created = Site(folder / "matchpod.sqlite", **options)
    try:
        yield created
    finally:
        created.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site with two organizations and no matches."""
    with opened(tmp_path) as created:
        yield created


@pytest.fixture(
    params=[uvloop.new_event_loop, pytest.param(asyncio.new_event_loop, marks=pytest.mark.soak)],
    ids=["uvloop", "asyncio"],
)
def site_on_loops(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """The same on the event loop of the service, in `make soak` also on that of Python."""
    with opened(tmp_path, loop_factory=request.param) as created:
        yield created


def unavailable() -> DatabaseUnavailableError:
    return DatabaseUnavailableError("the disk is full")


def check_error(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    """Check that the response is a well-formed error; return its body."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body: dict[str, object] = response.json()
    assert list(body) == [name for name in ("statusCode", "error", "message", "details", "requestId") if name in body]
    assert body["statusCode"] == status
    assert body["error"] == code
    assert isinstance(body["message"], str)
    assert body["message"]
    assert body["requestId"] == response.headers["x-request-id"]
    return body
