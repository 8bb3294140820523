"""Build the service and all of its parts from the resources. Nothing is started here."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version as installed_version
from typing import assert_never

import msgspec

from matchpod.adapters import sqlite_space
from matchpod.adapters.callback_proxy import read_proxy
from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.adapters.disk import free_bytes
from matchpod.adapters.fleets.instance_folders import InstanceOptions
from matchpod.adapters.fleets.process import PASSWORD_PLACEHOLDER, ProcessFleet, ProcessOptions
from matchpod.adapters.fleets.server_user import find_user
from matchpod.adapters.fleets.static import StaticFleet
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.adapters.server_probe import SocketProbe
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.app.console import compose_console
from matchpod.app.demo_storage import demo_folder
from matchpod.app.measurement import RegionMeter, measure
from matchpod.app.reloading import static_servers
from matchpod.app.resources import Resources, ResourcesError
from matchpod.app.upkeep import Upkeep
from matchpod.app.webhooks import WebhookParts, compose_webhooks
from matchpod.console.deps import ConsoleDeps
from matchpod.console.page_updates import Broadcasts
from matchpod.console.routes import endpoints as console_endpoints
from matchpod.console.routes import error_page
from matchpod.core.requests.validation import DemoRules
from matchpod.core.servers.server_loss import LossLimits
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import CallbackSender, Consoles, Fleet, SecretTrials
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.access.failed_logins import FailedLogIns
from matchpod.service.access.organizations import Access
from matchpod.service.access.quotas import Quotas
from matchpod.service.actions.requests import ActionRequests, Actions
from matchpod.service.callbacks.deliveries import CallbackDeliveries
from matchpod.service.callbacks.dispatcher import CallbackDispatcher
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.fair_turns import OF_KEY, OF_KEY_SHARED, FairTurns, TurnLimits
from matchpod.service.ingest.posts import Ingest
from matchpod.service.ingest.urls import IngestUrls
from matchpod.service.match_log.fold_turns import BegunEntry, FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.match_log.suspects import Suspects
from matchpod.service.matches import Matches
from matchpod.service.operations.disk_space import DiskSpace
from matchpod.service.operations.readiness import Readiness
from matchpod.service.reading.demos import Demos
from matchpod.service.reading.match_records import MatchRecords
from matchpod.service.region_checks.requests import RegionChecks
from matchpod.service.region_checks.runs import CheckRuns
from matchpod.service.region_checks.server_check import CheckDeps
from matchpod.service.regions.regions import Region, Regions
from matchpod.service.regions.secret_trials import StoredTrials
from matchpod.service.regions.silence import SilentServers
from matchpod.service.rulings import Rulings
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.supervisor import Supervisor
from matchpod.service.streams.map_streams import Streams
from matchpod.service.telemetry.match_spans import MatchSpans
from matchpod.service.telemetry.measured_database import MeasuredDatabase
from matchpod.service.telemetry.metrics import ConnectionMetrics, HttpMetrics, Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.settings import (
    AgonesFleetSettings,
    FleetSettings,
    ProcessFleetSettings,
    RegionSettings,
    Settings,
    StaticFleetSettings,
)
from matchpod.web import Limits, Services, create_web
from matchpod.web.application import Application
from matchpod.web.routes import ENDPOINTS, OPS_ENDPOINTS, WITHOUT_METRICS
from matchpod.web.services import AccessLog

TRIAL_ID_BYTES = 8

Trials = SecretTrials | None

_log = logging.getLogger(__name__)


class _Shared(msgspec.Struct, frozen=True, kw_only=True):
    """Components that several services use."""

    disk: DiskSpace
    remote: RemoteMatches
    readiness: Readiness
    checks: CheckRuns
    webhooks: WebhookParts


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The components that the process starts, supervises and stops."""

    supervisor: Supervisor
    dispatcher: CallbackDispatcher
    webhooks: WebhookParts
    upkeep: Upkeep
    console: ConsoleDeps
    sender: CallbackSender
    connection_metrics: ConnectionMetrics
    deps: Deps
    region_checks: CheckRuns
    web: Application
    ops: Application | None
    """The application of the port for probes and metrics; None if there is no such port."""

    @property
    def access(self) -> Access:
        """The service for organizations and their keys."""
        return self.console.services.access

    @property
    def readiness(self) -> Readiness:
        return self.console.services.readiness

    @property
    def regions(self) -> Regions:
        return self.deps.regions

    @property
    def streams(self) -> Streams:
        return self.deps.streams

    @property
    def sessions(self) -> ConsoleSessions:
        return self.console.sessions

    @property
    def broadcasts(self) -> Broadcasts:
        """The live updates of console pages."""
        return self.console.broadcasts


def compose(
    resources: Resources,
    *,
    owner: str,
    ingest_base: str,
    upload_base: str | None = None,
    begun: BegunEntry | None = None,
) -> Service:
    """Build the service. `owner` is its name in leases, `ingest_base` its URL for browsers and game servers.

    Game servers upload demos to `upload_base`; None if demos are not recorded.
    """
    resources, metrics, spans = measure(resources)
    settings, db, clock, version = resources.settings, resources.db, resources.clock, installed_version("matchpod")
    urls = IngestUrls(ingest_base, settings.log_urls, demo_base=upload_base, demos_of_regions=settings.upload_urls)
    sender = _sender(settings)
    dispatcher = _compose_dispatcher(resources, sender, metrics=metrics, owner=owner, version=version, spans=spans)
    deps = _compose_deps(resources, begun, owner, dispatcher, metrics=metrics, spans=spans, urls=urls)
    disk = _compose_disk(resources, metrics.registry)
    supervisor, remote = Supervisor(deps, owner=owner), RemoteMatches(db=db, regions=deps.regions, turns=deps.turns)
    readiness = Readiness(db=db, clock=clock, disk=disk, regions=deps.regions)
    webhooks = compose_webhooks(
        resources, deps, dispatcher.private_callbacks, sender=_sender(settings), remote=remote, owner=owner
    )
    shared = _Shared(disk=disk, remote=remote, readiness=readiness, checks=_compose_checks(deps), webhooks=webhooks)
    services = _compose_services(resources, deps, dispatcher, supervisor, shared=shared)
    console = compose_console(resources, deps, services, remote=remote, owner=owner)
    web, ops = _compose_web(services, console, settings)
    return Service(
        console=console,
        supervisor=supervisor,
        dispatcher=dispatcher,
        webhooks=webhooks,
        upkeep=_compose_upkeep(resources, deps, readiness=readiness, disk=disk, sessions=console.sessions),
        sender=sender,
        connection_metrics=ConnectionMetrics(metrics.registry),
        deps=deps,
        region_checks=shared.checks,
        web=web,
        ops=ops,
    )


def _compose_services(
    resources: Resources, deps: Deps, dispatcher: CallbackDispatcher, supervisor: Supervisor, *, shared: _Shared
) -> Services:
    """Return the services that request handlers use."""
    settings, db, clock = resources.settings, resources.db, resources.clock
    audit = Audit(db=db, clock=clock)
    return Services(
        access=_compose_access(resources, audit, deps.metrics),
        audit=audit,
        actions=Actions(
            db=db,
            clock=clock,
            live=deps.live,
            remote=shared.remote,
            requests=ActionRequests(db, clock, audit, live=deps.live),
        ),
        matches=_compose_matches(
            resources, deps, audit, supervisor, dispatcher=dispatcher, remote=shared.remote, disk=shared.disk
        ),
        rulings=Rulings(db=db, clock=clock, audit=audit, wake=deps.streams.organizations.wake),
        callbacks=CallbackDeliveries(db=db, clock=clock, wake=dispatcher.wake, audit=audit),
        private_callbacks=dispatcher.private_callbacks,
        webhooks=shared.webhooks.management,
        history=shared.webhooks.history,
        demos=Demos(db=db, history=shared.webhooks.history, storage=resources.demo_storage),
        records=MatchRecords(db=db),
        streams=deps.streams,
        ingest=_compose_ingest(deps, quota_bytes=settings.match_log_bytes),
        regions=deps.regions,
        region_checks=_compose_requests(deps, audit, shared.checks),
        metrics=deps.metrics.registry,
        readiness=shared.readiness,
        limits=Limits(max_body_bytes=settings.max_body_bytes, rate_limit=settings.rate_limit),
        fair_turns=deps.streams.fair_turns,
        cors_origins=settings.cors_origins,
        access_log=AccessLog(settings.access_log),
        version=installed_version("matchpod"),
    )


def _compose_checks(deps: Deps) -> CheckRuns:
    return CheckRuns(
        CheckDeps(
            db=deps.db,
            clock=deps.clock,
            consoles=deps.consoles,
            probe=SocketProbe(),
            urls=deps.ingest,
            turns=deps.turns,
            installation=deps.installation,
            random_bytes=deps.random_bytes,
            pending_ms=deps.pending_ms,
        ),
        deps.regions,
    )


def _compose_requests(deps: Deps, audit: Audit, checks: CheckRuns) -> RegionChecks:
    codes = [region.code for region in deps.regions.all()]
    return RegionChecks(db=deps.db, clock=deps.clock, audit=audit, codes=codes, wake=checks.wake)


def _compose_web(
    services: Services, console: ConsoleDeps, settings: Settings
) -> tuple[Application, Application | None]:
    """Return the applications of the main port and of the port for probes and metrics (None without that port)."""
    metrics, has_ops = HttpMetrics(services.metrics), settings.ops_port is not None
    build = partial(create_web, services, endpoints=WITHOUT_METRICS if has_ops else ENDPOINTS, metrics=metrics)
    web = build(more_endpoints=console_endpoints(console), error_page=error_page) if settings.console else build()
    if not has_ops:
        return web, None
    # The port for probes and metrics has few connections, so requests for metrics must not wait there.
    limits = msgspec.structs.replace(services.limits, metrics_wait_s=0.0)
    probed = msgspec.structs.replace(services, limits=limits, access_log=AccessLog.OFF)
    return web, create_web(probed, endpoints=OPS_ENDPOINTS, metrics=metrics)


def check_fleets(settings: Settings) -> None:
    """Raise ResourcesError if a fleet cannot start servers; warn if other users can read servers' RCON passwords."""
    for region in settings.regions:
        fleet = region.fleet
        if not isinstance(fleet, ProcessFleetSettings):
            continue
        if fleet.install_dir is not None and not (fleet.install_dir / "game").is_dir():
            _log.warning(
                "the game is not installed, so no server can be started",
                extra={"region": region.code, "install_dir": str(fleet.install_dir)},
            )
        try:
            if fleet.user is not None:
                find_user(fleet.user)
        except ValueError as exc:
            raise ResourcesError(f"The servers of region {region.code} cannot run as {fleet.user}: {exc}.") from exc
        if any(PASSWORD_PLACEHOLDER in argument for argument in fleet.command):
            _log.warning(
                "all users of this machine can read the RCON passwords in the process list; use {cfg} in the command",
                extra={"region": region.code},
            )


def warn_of_denied_callbacks(settings: Settings) -> None:
    """Warn if callbacks to private addresses are denied only because of a public URL that is not loopback."""
    if settings.callback_private is None and settings.is_behind_proxy:
        _log.warning(
            "callbacks to private addresses are denied: other machines reach the service by its public URL; set "
            "MATCHPOD_CALLBACK_PRIVATE to allow or deny them",
            extra={"public_url": settings.public_url},
        )


def compose_regions(
    settings: Settings,
    consoles: Consoles,
    *,
    installation: str,
    metrics: Metrics | None = None,
    trials_of: Callable[[str], Trials] | None = None,
) -> Sequence[Region]:
    """Build the regions with their fleets. Each fleet has its own part of the data folder.

    Servers are labeled with the id of the installation; servers of other installations are never touched. `trials_of`
    returns the `SecretTrials` of a region, which limit how many servers get an unconfirmed fleet secret. Only processes
    that drive matches need to pass it.
    """
    metrics = metrics or Metrics(Registry())
    return [
        Region(
            code=region.code,
            name=region.name,
            location=region.location,
            speed=region.speed,
            allows_simulator=region.allows_simulator,
            pending_ms=_pending_ms(region.fleet),
            demos=None if settings.upload_port is None else DemoRules(region.record_demos, region.tv_delay),
            fleet=_compose_fleet(
                region,
                settings,
                consoles,
                installation,
                metrics=metrics,
                trials=None if trials_of is None else trials_of(region.code),
            ),
        )
        for region in settings.regions
    ]


def _pending_ms(fleet: FleetSettings) -> int | None:
    pending_s = fleet.pending_s if isinstance(fleet, AgonesFleetSettings) else None
    return None if pending_s is None else pending_s * 1000


def _compose_fleet(
    region: RegionSettings,
    settings: Settings,
    consoles: Consoles,
    installation: str,
    *,
    metrics: Metrics,
    trials: Trials,
) -> Fleet:
    fleet = region.fleet
    if isinstance(fleet, StaticFleetSettings):
        return StaticFleet(static_servers(fleet), consoles, owner=installation)
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
            user=fleet.user,
            cfg_folder=fleet.cfg_dir,
            instances=_instance_options(fleet),
            tv_ports=fleet.tv_ports,
            steam_tokens=tuple(token.reveal() for token in fleet.steam_tokens),
            owner=installation,
        )
        return ProcessFleet(settings.fleets_path / region.code, options)
    if isinstance(fleet, AgonesFleetSettings):
        return _compose_agones_fleet(region.code, fleet, consoles, installation, metrics=metrics, trials=trials)
    assert_never(fleet)


def _instance_options(fleet: ProcessFleetSettings) -> InstanceOptions | None:
    if fleet.install_dir is None or fleet.instances_dir is None:
        return None
    # Make the paths absolute, because servers have another working folder.
    return InstanceOptions(
        install_dir=fleet.install_dir.absolute(),
        instances_dir=fleet.instances_dir.absolute(),
        addons=fleet.addons,
        steamclient=fleet.steamclient.absolute() if fleet.steamclient else None,
    )


def _compose_agones_fleet(
    code: str, fleet: AgonesFleetSettings, consoles: Consoles, owner: str, *, metrics: Metrics, trials: Trials
) -> Fleet:
    # Imported here, because the HTTP client is slow to import, and most installations have no Agones region.
    from matchpod.adapters.fleets.agones import AgonesFleet
    from matchpod.adapters.fleets.agones_options import (
        FLEET_LABEL,
        AgonesOptions,
        read_fleet_secret,
        read_previous_fleet_secret,
    )
    from matchpod.adapters.fleets.agones_passwords import Fit
    from matchpod.adapters.kubernetes.client import KubernetesClient
    from matchpod.adapters.kubernetes.cluster import ClusterSource

    try:
        options = AgonesOptions(
            fleet=fleet.fleet,
            region=code,
            read_secret=partial(read_fleet_secret, fleet.secret_file),
            read_previous_secret=partial(read_previous_fleet_secret, fleet.previous_secret_file),
            owner=fleet.owner or owner,
            selector={FLEET_LABEL: fleet.fleet, **fleet.selector},
            address_types=fleet.address_types,
            console_address_types=fleet.console_address_types,
            port_name=fleet.port_name,
        )
    except ValueError as exc:
        raise ResourcesError(f"Region {code}: {exc}") from exc
    metrics.first_passwords.preset((code,), Fit)
    meter = RegionMeter(metrics.agones, code)
    metrics.registry.before_rendering(meter.update)
    source = ClusterSource(kubeconfig=fleet.kubeconfig, context=fleet.context)
    client = KubernetesClient(source, namespace=fleet.namespace, meter=meter)
    return AgonesFleet(options, client, consoles, partial(metrics.first_passwords.inc, code), trials=trials)


def _compose_dispatcher(
    resources: Resources, sender: CallbackSender, *, metrics: Metrics, owner: str, version: str, spans: MatchSpans
) -> CallbackDispatcher:
    settings = resources.settings
    return CallbackDispatcher(
        db=resources.db,
        clock=resources.clock,
        vault=resources.vault,
        sender=sender,
        private_callbacks=PrivateCallbacks(
            db=resources.db,
            by_settings=settings.allows_private_callbacks,
            is_explicit=settings.callback_private is not None,
        ),
        metrics=metrics,
        owner=owner,
        version=version,
        spans=spans,
    )


def _sender(settings: Settings) -> HttpCallbackSender:
    proxy = settings.callback_proxy
    return HttpCallbackSender(proxy=None if proxy is None else read_proxy(proxy.reveal()))


def _regions_of(resources: Resources, consoles: Consoles, metrics: Metrics) -> Regions:
    """Return the regions for a process that drives matches."""
    new_id = partial(secrets.token_hex, TRIAL_ID_BYTES)
    regions = compose_regions(
        resources.settings,
        consoles,
        installation=resources.installation,
        metrics=metrics,
        trials_of=partial(StoredTrials, resources.db, resources.clock, new_id=new_id),
    )
    silent = SilentServers(LossLimits(resources.settings.silence_s * 1000))
    return Regions(regions, resources.db, silent)


def _compose_deps(
    resources: Resources,
    begun: BegunEntry | None,
    owner: str,
    dispatcher: CallbackDispatcher,
    *,
    metrics: Metrics,
    urls: IngestUrls,
    spans: MatchSpans,
) -> Deps:
    consoles, live = RconConsoles(), LocalMatches()
    turns = FoldTurns(begun)
    return Deps(
        db=resources.db,
        clock=resources.clock,
        vault=resources.vault,
        regions=_regions_of(resources, consoles, metrics),
        live=live,
        log_writer=LogWriter(resources.db, live, turns),
        streams=_compose_streams(resources, live, metrics),
        consoles=consoles,
        turns=turns,
        suspects=Suspects(resources.db, turns, owner=owner, on_set_aside=metrics.entries_set_aside.inc),
        metrics=metrics,
        ingest=urls,
        pending_ms=resources.settings.pending_s * 1000,
        max_matches=resources.settings.max_matches_per_process,
        installation=resources.installation,
        random_bytes=secrets.token_bytes,
        on_match_ended=dispatcher.wake,
        spans=spans,
    )


def _compose_streams(resources: Resources, live: LocalMatches, metrics: Metrics) -> Streams:
    """Return the streams. HTTP requests and the reads of streams get their turns from the same `FairTurns`."""
    of_key = OF_KEY_SHARED if resources.db.is_shared else OF_KEY
    return Streams(
        db=resources.db,
        live=live,
        metrics=metrics,
        max_of_org=resources.settings.max_streams,
        fair_turns=FairTurns(TurnLimits(of_key=of_key)),
    )


def _compose_ingest(deps: Deps, *, quota_bytes: int | None) -> Ingest:
    return Ingest(
        db=deps.db,
        clock=deps.clock,
        vault=deps.vault,
        live=deps.live,
        log_writer=deps.log_writer,
        metrics=deps.metrics,
        urls=deps.ingest,
        regions=deps.regions,
        turns=deps.turns,
        quota_bytes=quota_bytes,
    )


def _compose_upkeep(
    resources: Resources, deps: Deps, *, readiness: Readiness, disk: DiskSpace, sessions: ConsoleSessions
) -> Upkeep:
    settings = resources.settings
    give_back = partial(sqlite_space.give_back, settings.database_path) if settings.database_url is None else None
    return Upkeep(
        deps,
        readiness=readiness,
        disk=disk,
        retention=resources.retention,
        sessions=sessions,
        demo_storage=resources.demo_storage,
        give_back=give_back,
    )


def _compose_access(resources: Resources, audit: Audit, metrics: Metrics) -> Access:
    limit = resources.settings.max_failed_logins
    failures = FailedLogIns(audit=audit, per_minute=limit, counter=metrics.failed_log_ins)
    return Access(db=resources.db, clock=resources.clock, vault=resources.vault, audit=audit, failures=failures)


def _compose_disk(resources: Resources, registry: Registry) -> DiskSpace:
    settings = resources.settings
    folders = {}
    if settings.database_url is None:
        folders["data"] = settings.data_dir
    for region in settings.regions:
        if isinstance(region.fleet, ProcessFleetSettings):
            folders["fleets"] = settings.fleets_path
            if region.fleet.instances_dir is not None:
                folders[f"instances-{region.code}"] = region.fleet.instances_dir
    demos = None if settings.upload_port is None else demo_folder(settings)
    return DiskSpace(
        folders,
        only_measured={} if demos is None else {"demos": demos},
        min_free_mb=settings.min_free_disk_mb,
        free_bytes=free_bytes,
        clock=resources.clock,
        metrics=registry,
    )


def _compose_matches(
    resources: Resources,
    deps: Deps,
    audit: Audit,
    supervisor: Supervisor,
    *,
    dispatcher: CallbackDispatcher,
    remote: RemoteMatches,
    disk: DiskSpace,
) -> Matches:
    source = resources.db.source if isinstance(resources.db, MeasuredDatabase) else resources.db

    def notify(server_id: str) -> None:
        supervisor.notify(server_id)
        dispatcher.wake()  # canceling a match also sends a callback
        deps.streams.organizations.wake()

    return Matches(
        db=resources.db,
        db_version=source.version if isinstance(source, SqliteDatabase) else None,
        clock=resources.clock,
        vault=resources.vault,
        regions=deps.regions,
        live=deps.live,
        remote=remote,
        read_cvars=partial(read_custom_cvars, extra_names=frozenset(resources.settings.extra_cvars)),
        notify=notify,
        audit=audit,
        metrics=deps.metrics,
        spans=deps.spans,
        quotas=Quotas(
            max_live_matches=resources.settings.max_live_matches,
            max_creations_per_minute=resources.settings.max_creations_per_minute,
        ),
        private_callbacks=dispatcher.private_callbacks,
        disk=disk,
        installation=resources.installation,
    )
