"""The parts of one process, as `compose` builds them: real services, without sockets. Nothing runs yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from matchpod.app import composition
from matchpod.app.demo_storage import open_demo_storage
from matchpod.app.measurement import measure
from matchpod.app.resources import Resources
from matchpod.app.webhooks import compose_webhooks
from matchpod.ports import CallbackSender, Consoles, Database, Value
from matchpod.service.ingest.urls import IngestUrls
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.operations.readiness import Readiness
from matchpod.service.regions.regions import Region, Regions
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.supervisor import Supervisor
from matchpod.settings import Settings, load_settings
from matchpod.storage import raw_log, servers
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from tests.clocks import ManualClock
from tests.vaults import VAULT

BASE = "http://10.0.0.9:8080"
"""Where game servers reach the process."""


@cache
def usual_settings() -> Settings:
    """The defaults, without regions and without limits of what a test's machine may lack."""
    unlimited = {
        "MATCHPOD_MIN_FREE_DISK_MB": "off",
        "MATCHPOD_MAX_MATCH_LOG_MB": "off",
        "MATCHPOD_MAX_STREAMS": "off",
        "MATCHPOD_CALLBACK_PRIVATE": "allow",
    }
    return msgspec.structs.replace(load_settings(unlimited, lambda _: None), regions=())


class Parts:
    """The parts of one process; fleets, consoles and receivers are those of the test."""

    def __init__(
        self,
        db: Database,
        *,
        clock: ManualClock | None = None,
        name: str = "one",
        regions: Sequence[Region] = (),
        consoles: Consoles | None = None,
        sender: CallbackSender | None = None,
        base: str = BASE,
        log_urls: Mapping[str, str] | None = None,
        demo_base: str | None = None,
        quota_bytes: int | None = None,
        distance_of: Callable[[int], float] | None = None,
        settings: Mapping[str, Any] | None = None,
        **changed: Any,
    ) -> None:
        """`distance_of` is how long answers are held, by the number of matches; `changed` are other dependencies."""
        self.db, self.clock = db, clock or ManualClock()
        used = msgspec.structs.replace(usual_settings(), **(settings or {}))
        resources, metrics, spans = measure(
            Resources(
                settings=used,
                db=db,
                vault=VAULT,
                clock=self.clock,
                installation="",
                demo_storage=open_demo_storage(used),
            )
        )
        sender = sender or composition._sender(used)
        urls = IngestUrls(base, log_urls or {}, demo_base=demo_base)
        self.callback_dispatcher = composition._compose_dispatcher(
            resources, sender, metrics=metrics, owner=name, version="1.2", spans=spans
        )
        deps = composition._compose_deps(
            resources, None, name, self.callback_dispatcher, metrics=metrics, urls=urls, spans=spans
        )
        used_regions = Regions(regions, resources.db, deps.regions.silent)
        deps = msgspec.structs.replace(deps, regions=used_regions, consoles=consoles or deps.consoles)
        if distance_of is not None:
            writer = LogWriter(resources.db, deps.live, deps.turns, distance_of=distance_of)
            deps = msgspec.structs.replace(deps, log_writer=writer)
        self.deps: Deps = msgspec.structs.replace(deps, **changed)
        self.supervisor = Supervisor(self.deps, owner=name)
        self.remote = RemoteMatches(db=self.deps.db, regions=self.deps.regions, turns=self.deps.turns)
        disk = composition._compose_disk(resources, metrics.registry)
        shared = composition._Shared(
            disk=disk,
            remote=self.remote,
            readiness=Readiness(db=self.deps.db, clock=self.deps.clock, disk=disk, regions=self.deps.regions),
            checks=composition._compose_checks(self.deps),
            webhooks=compose_webhooks(
                resources,
                self.deps,
                self.callback_dispatcher.private_callbacks,
                sender=sender,
                remote=self.remote,
                owner=name,
            ),
        )
        self.services = composition._compose_services(
            resources, self.deps, self.callback_dispatcher, self.supervisor, shared=shared
        )
        self.ingest, self.checks = self.services.ingest, shared.checks
        if quota_bytes is not None:
            self.ingest = composition._compose_ingest(self.deps, quota_bytes=quota_bytes)
        self.live, self.metrics, self.regions = self.deps.live, self.deps.metrics, self.deps.regions
        self.matches, self.history = self.services.matches, self.services.history
        self.actions, self.rulings = self.services.actions, self.services.rulings

    async def row(self, server_id: str = "srv_1") -> ServerRow:
        row = await servers.get(self.db, server_id)
        assert row is not None
        return row

    async def stored(self, server_id: str = "srv_1") -> list[RawEntry]:
        return await raw_log.read_after(self.db, server_id, 0, limit=10_000)

    async def count(self, table: str) -> Value:
        return (await self.db.read(f"SELECT COUNT(*) FROM {table}"))[0][0]
