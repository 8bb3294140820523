"""Which object is made of which? The whole service, put together from the ground up; nothing runs yet."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version as installed_version

import msgspec
from starlette.types import ASGIApp

from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.adapters.fleets.process import ProcessFleet, ProcessOptions
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.app.ground import Ground
from matchpod.app.upkeep import Upkeep
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import CallbackSender, Consoles, Fleet
from matchpod.service.access import Access
from matchpod.service.callbacks import Outbox
from matchpod.service.history.reading import History
from matchpod.service.history.streams import Streams
from matchpod.service.ingest import Ingest
from matchpod.service.live import LiveMatches
from matchpod.service.matches import Matches
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.service.readiness import Readiness
from matchpod.service.regions import Region, Regions
from matchpod.service.runner.surroundings import Surroundings
from matchpod.service.spectators import Spectators
from matchpod.service.supervisor import Supervisor
from matchpod.settings import ProcessFleetSettings, RegionSettings, Settings
from matchpod.web import Limits, Services, create_web


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that somebody must start, watch and stop."""

    access: Access
    regions: Regions
    readiness: Readiness
    supervisor: Supervisor
    outbox: Outbox
    upkeep: Upkeep
    streams: Streams
    sender: CallbackSender
    web: ASGIApp


def compose(ground: Ground, *, owner: str, ingest_base: str) -> Service:
    """The service on this ground; `owner` is its name in leases, `ingest_base` where game servers reach it."""
    settings, db, clock, vault = ground.settings, ground.db, ground.clock, ground.vault
    version = installed_version("matchpod")
    metrics = Metrics()
    measures = Measures(metrics)
    sender = HttpCallbackSender(allow_private=settings.callback_private)
    outbox = Outbox(db=db, clock=clock, vault=vault, sender=sender, measures=measures, owner=owner, version=version)
    around = _compose_surroundings(ground, measures=measures, ingest_base=ingest_base, on_concluded=outbox.wake)
    supervisor = Supervisor(around, owner=owner)
    access = Access(db=db, clock=clock, vault=vault)
    spectators = Spectators(db=db, regions=around.regions)
    readiness = Readiness(db=db, clock=clock)
    services = Services(
        access=access,
        matches=_compose_matches(ground, around, supervisor, outbox=outbox, spectators=spectators),
        history=History(db=db, live=around.live, spectators=spectators),
        streams=around.streams,
        ingest=Ingest(db=db, clock=clock, live=around.live, measures=measures, ingest_base=ingest_base),
        regions=around.regions,
        metrics=metrics,
        readiness=readiness,
        limits=Limits(max_body_bytes=settings.max_body_bytes, rate_limit=settings.rate_limit),
        version=version,
    )
    return Service(
        access=access,
        regions=around.regions,
        readiness=readiness,
        supervisor=supervisor,
        outbox=outbox,
        upkeep=Upkeep(around, readiness=readiness, raw_log_days=settings.raw_log_days, event_days=settings.event_days),
        streams=around.streams,
        sender=sender,
        web=create_web(services),
    )


def compose_regions(settings: Settings, consoles: Consoles) -> Sequence[Region]:
    """The regions with their fleets; what a fleet keeps lies in its own part of the data folder."""
    return [
        Region(
            code=region.code,
            name=region.name,
            location=region.location,
            speed=region.speed,
            allows_simulator=region.allows_simulator,
            fleet=_compose_fleet(region, settings, consoles),
        )
        for region in settings.regions
    ]


def _compose_fleet(region: RegionSettings, settings: Settings, consoles: Consoles) -> Fleet:
    fleet = region.fleet
    if isinstance(fleet, ProcessFleetSettings):
        options = ProcessOptions(
            command=fleet.command,
            ports=fleet.ports,
            host=fleet.host,
            public_ip=fleet.public_ip,
            speed=region.speed,
            environment=fleet.environment,
            working_directory=fleet.working_dir,
            memory_bytes=fleet.memory_bytes,
        )
        return ProcessFleet(settings.data_dir / "fleets" / region.code, options)
    return StaticFleet([StaticServer(one.address, one.rcon_password.reveal()) for one in fleet.servers], consoles)


def _compose_surroundings(
    ground: Ground, *, measures: Measures, ingest_base: str, on_concluded: Callable[[], None]
) -> Surroundings:
    consoles, live = RconConsoles(), LiveMatches()
    return Surroundings(
        db=ground.db,
        clock=ground.clock,
        vault=ground.vault,
        regions=Regions(compose_regions(ground.settings, consoles), ground.db),
        live=live,
        streams=Streams(db=ground.db, live=live, measures=measures),
        consoles=consoles,
        measures=measures,
        ingest_base=ingest_base,
        pending_ms=ground.settings.pending_s * 1000,
        random_bytes=secrets.token_bytes,
        on_concluded=on_concluded,
    )


def _compose_matches(
    ground: Ground, around: Surroundings, supervisor: Supervisor, *, outbox: Outbox, spectators: Spectators
) -> Matches:
    def notify(server_id: str) -> None:
        supervisor.notify(server_id)
        outbox.wake()  # a caller who cancels is told as well

    return Matches(
        db=ground.db,
        clock=ground.clock,
        vault=ground.vault,
        regions=around.regions,
        live=around.live,
        spectators=spectators,
        read_cvars=partial(read_custom_cvars, extra_names=frozenset(ground.settings.extra_cvars)),
        notify=notify,
        measures=around.measures,
    )
