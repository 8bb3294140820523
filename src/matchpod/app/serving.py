"""Start and supervise the service, and stop it in an order that loses nothing.

During a stop, `/readyz` fails first. Then matches are released and callbacks in progress finish, while requests are
still answered for a grace period. Streams and the API close last. Matches continue on their game servers; the next
process resumes them. If a part of the service ends unexpectedly, the whole process stops, because a partly working
process would keep its leases without driving the matches.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
import uvloop

from matchpod.adapters.begun_entry import BegunEntryFile, records_of_dead_processes
from matchpod.adapters.callback_sender import max_attempts
from matchpod.adapters.folder_lock import FolderInUseError, FolderLock
from matchpod.adapters.systemd_notify import SystemdNotifier
from matchpod.app import first_run
from matchpod.app.composition import Service, check_fleets, compose, warn_of_denied_callbacks
from matchpod.app.database_copies import claim_place, renew_place
from matchpod.app.demo_storage import demo_storage_fault
from matchpod.app.garbage import collect_rarely, run_collections, share_one_heap
from matchpod.app.http_server import DEFAULT_LIMITS, HttpServer, bind, port_of
from matchpod.app.log_urls import unreachable_log_urls
from matchpod.app.loop_watch import watched_loop
from matchpod.app.reloading import ServerLists
from matchpod.app.resources import (
    Resources,
    ResourcesError,
    check_vault_key,
    make_folder,
    open_resources,
    warn_of_open_files,
)
from matchpod.app.upload_process import UploadProcess
from matchpod.app.upload_service import END_S as END_UPLOADS_S
from matchpod.app.upload_service import drain_s as drain_uploads_s
from matchpod.ports import DatabaseError
from matchpod.service.match_log.suspects import Suspects
from matchpod.service.webhooks.dispatcher import MAX_PLACES
from matchpod.settings import Settings
from matchpod.storage import demos, servers
from matchpod.web.http.admission import ADDRESS_EXCESS, ConnectionLimits
from matchpod.web.http.connections import Patience

DRAIN_MATCHES_S: Final = 5.0
"""Timeout in seconds for releasing a few matches, each with at most one transaction in progress. After it, the other
parts begin to stop as well."""
DRAIN_MATCH_S: Final = 0.025
"""Time in seconds by which each match extends DRAIN_MATCHES_S, because its snapshot must be saved."""
MAX_DRAIN_MATCHES_S: Final = 18.0
"""Upper bound in seconds of the timeout for releasing matches. Matches that are not released in time are resumed from
an earlier snapshot."""
DRAIN_CALLBACKS_S: Final = 12.0
"""Timeout in seconds for delivery attempts in progress. An attempt takes at most 10 s."""
DRAIN_REQUESTS_S: Final = 4.0
"""Timeout in seconds for requests in progress. The server closes their connections earlier (`Patience.closing_s`)."""
FORCED_EXIT_S: Final = 25
"""Time in seconds after which SIGALRM ends a process that hangs while it stops. It is more than the sum of the timeouts
above (callbacks are delivered during the grace period), and less than the 30 s after which process managers usually
kill a process."""
OPEN_FILES: Final = 65_536
"""Limit on open files that the process requests, far above its number of connections. The system may allow less."""

MAX_CONNECTIONS: Final = 16_384
"""Default limit for connections: enough for all streams of a process and a few thousand other connections. Each takes
up to 15 KB of memory, and up to 64 KiB more while a request head arrives."""
RESERVED_FILES: Final = 80
"""Number of file descriptors reserved for other purposes: the port for probes and metrics, the database, the log, the
fleets."""
RESERVED_FILES_PER_SERVER: Final = 2
"""Number of file descriptors reserved per game server: one for its console, and one for short use, such as at its
start."""

OPS_PER_ADDRESS: Final = 8
PROBES_PER_ADDRESS: Final = 24
OPS_LIMITS: Final = ConnectionLimits(
    total=16,
    per_address=OPS_PER_ADDRESS // ADDRESS_EXCESS,
    pipelined=0,
    probes=ConnectionLimits(total=32, per_address=PROBES_PER_ADDRESS // ADDRESS_EXCESS),
)
"""Connection limits of the port for probes and metrics: enough for a few scrapers and probes, with one request each.
Their descriptors are part of RESERVED_FILES."""
OPS_PATIENCE: Final = Patience(head_s=5.0)
"""Timeouts of the port for probes and metrics. They can be short: a probe is one packet, and a scraper then opens a new
connection for each scrape."""

UPLOAD_PORT_TRIES: Final = 10
UPLOAD_PORT_PAUSE_S: Final = 0.5

Job = Callable[[], Coroutine[object, object, None]]
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
REGION_CHECKS: Final = "region checks"
"""Name of the task that checks game servers of regions."""

_log = logging.getLogger(__name__)


def run_service(
    settings: Settings,
    *,
    announce: Callable[[str], None] | None,
    command: str = "matchpod",
    is_restored: bool = False,
    load: Callable[[], Settings] | None = None,
) -> int:
    """Run the service until a stop signal; return the exit code.

    `announce` prints the first API key, or how to create another key, on a terminal; it is None without a terminal.
    `command` is how to run this program. With `is_restored`, the service drives the matches of a database that is a
    copy, because the original is gone. `load` reads the settings again at SIGHUP; without it, they never change.
    """
    share_one_heap()
    limits = connection_limits(settings, _allow_open_files())
    warn_of_denied_callbacks(settings)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            again = load or (lambda: settings)
            serving = _serve(settings, limits, announce, command=command, is_restored=is_restored, load=again)
            return runner.run(serving)
    except DatabaseError as exc:
        raise ResourcesError(f"The service cannot start: {exc}.") from exc
    except ResourcesError:
        raise
    except Exception:  # noqa: BLE001 - a bug: the operator needs the traceback in the log
        _log.exception("service failed")
        return 1
    finally:
        signal.alarm(0)


def connection_limits(settings: Settings, open_files: int) -> ConnectionLimits:
    """Return the configured limits for HTTP connections, but no more than the limit on open files allows."""
    servers_count = sum(region.fleet.capacity for region in settings.regions)
    attempts = max_attempts(open_files)
    sent = attempts + min(MAX_PLACES, attempts)  # attempts of callbacks and of webhooks
    possible = max_connections(open_files, servers=servers_count, sent=sent)
    wanted = MAX_CONNECTIONS if settings.max_connections is None else settings.max_connections
    if settings.max_connections is not None and wanted > possible:
        _log.warning(
            "max_connections reduced: limit on open files too low",
            extra={"max_connections": wanted, "reduced_to": possible, "open_files": open_files},
        )
    return ConnectionLimits(
        total=min(wanted, possible),
        per_address=settings.max_connections_per_address,
        trusted_proxies=settings.trusted_proxies,
    )


def max_connections(open_files: int, *, servers: int, sent: int) -> int:
    """Return the maximum number of HTTP connections for a process that may have `open_files`.

    The process drives at most `servers` game servers, and sends at most `sent` requests concurrently.
    """
    reserved = RESERVED_FILES + RESERVED_FILES_PER_SERVER * servers + sent
    return max(open_files - reserved, open_files // 2)


def forced_exit_s(grace_s: int) -> int:
    """Return the seconds after which a stopping process is ended by force.

    Callbacks are delivered during the grace period, so only the time by which it exceeds their timeout is added. With
    the default grace period, the process ends before a process manager kills it.
    """
    return FORCED_EXIT_S + max(0, grace_s - int(DRAIN_CALLBACKS_S))


def drain_matches_s(matches: int) -> float:
    """Return the timeout in seconds for releasing this number of matches."""
    return min(DRAIN_MATCHES_S + matches * DRAIN_MATCH_S, MAX_DRAIN_MATCHES_S)


async def _serve(
    settings: Settings,
    limits: ConnectionLimits,
    announce: Callable[[str], None] | None,
    *,
    command: str,
    is_restored: bool,
    load: Callable[[], Settings],
) -> int:
    async with AsyncExitStack() as stack:
        check_fleets(settings)
        warn_of_open_files(settings)
        resources = await _open(settings, stack)
        read_only = await _prepare(resources, is_restored=is_restored)
        begun, unfinished = _open_begun_entry(resources)
        stack.callback(begun.close)
        bound, ops, uploads = await _bind_ports(settings, stack)
        url, ingest_base = _local_url(settings, bound), settings.ingest_base(port_of(bound))
        upload_base = settings.upload_base(None if uploads is None else port_of(uploads))
        service = compose(resources, owner=_owner(), ingest_base=ingest_base, upload_base=upload_base, begun=begun)
        stack.push_async_callback(_close, service)
        stack.enter_context(_watch_loop(service, exit_s=settings.stall_exit_s))
        if read_only is None:
            await _prepare_driving(service, unfinished, await _faults_of(resources, ingest_base))
        else:
            service.readiness.serve_reads_only(read_only)
        await check_vault_key(resources)
        stack.enter_context(ServerLists(settings, service.regions, load=load, base=ingest_base).following())
        key = await _create_key(service, settings)
        # Check the key again: another process with another key may have created the organization in the meantime.
        await check_vault_key(resources)
        if key is not None:
            link = await _first_link(service, settings, ingest_base)
            _show_key(settings, _welcome_text(settings, key, link, base_url=url, command=command), announce)
        elif announce is not None:
            announce(await first_run.another_key_text(service.access, command=command, has_console=settings.console))
        collect_rarely()
        process = ServiceProcess(service, Sockets(bound, ops, uploads), url, limits=limits, grace_s=settings.grace_s)
        return await process.run(also=partial(renew_place, resources))


async def _open(settings: Settings, stack: AsyncExitStack) -> Resources:
    """Create the data folder, lock it if the database is in it, and open the resources."""
    make_folder(settings.data_dir)
    if settings.database_url is None:
        stack.callback(_lock_folder(settings).release)
    resources = await open_resources(settings)
    stack.push_async_callback(resources.close)
    return resources


def _watch_loop(service: Service, *, exit_s: float) -> AbstractContextManager[None]:
    metrics = service.deps.metrics
    return watched_loop(exit_s=exit_s, on_stall=metrics.count_stall, on_lag=metrics.loop_lag_s.observe)


async def _bind_ports(
    settings: Settings, stack: AsyncExitStack
) -> tuple[socket.socket, socket.socket | None, socket.socket | None]:
    """Bind the main port and, if they are configured, the port for probes and metrics, and the port for uploads."""

    def bind_if_set(port: int | None, setting: str) -> socket.socket | None:
        return None if port is None else stack.enter_context(bind(settings.host, port, setting))

    bound = stack.enter_context(bind(settings.host, settings.port))
    ops = bind_if_set(settings.ops_port, "MATCHPOD_OPS_PORT")
    for _ in range(UPLOAD_PORT_TRIES):  # after a service was killed, its upload process needs a moment to end
        with suppress(ResourcesError):
            return bound, ops, bind_if_set(settings.upload_port, "MATCHPOD_UPLOAD_PORT")
        await asyncio.sleep(UPLOAD_PORT_PAUSE_S)
    return bound, ops, bind_if_set(settings.upload_port, "MATCHPOD_UPLOAD_PORT")


async def _prepare(resources: Resources, *, is_restored: bool) -> str | None:
    """Prepare the database for driving its matches. If they must not be driven, return a sentence with the reason."""
    read_only = await claim_place(resources, is_restored=is_restored)
    if read_only is None:
        # The folder of an SQLite database is locked, so no other process that could hold a lease is alive.
        prepare = servers.repair_times if resources.db.is_shared else servers.drop_leases
        await prepare(resources.db, resources.clock.now_ms())
        if not resources.db.is_shared:
            await demos.lose_all(resources.db, resources.clock.now_ms())
    return read_only


async def record_deaths(suspects: Suspects, records: Mapping[Path, tuple[str, int] | None]) -> None:
    """Record which entries were being applied when earlier processes died, and delete the files that name the entries.

    If the database's answer is lost, the next start records the death again. The file name is the idempotency key.
    """
    for path, entry in records.items():
        try:
            if entry is not None:
                await suspects.record_death(*entry, path.name)
        except DatabaseError as exc:
            _log.warning("death of an earlier process not recorded", extra={"file": path, "error": str(exc)})
        else:
            path.unlink(missing_ok=True)


class Sockets(msgspec.Struct, frozen=True):
    """The bound sockets of a service: for the API, for probes and metrics, and for demo uploads."""

    main: socket.socket
    ops: socket.socket | None = None
    uploads: socket.socket | None = None


class ServiceProcess:
    """Runs the parts of the service until a stop signal arrives or one of the parts ends, then stops them all."""

    def __init__(
        self,
        service: Service,
        sockets: Sockets,
        url: str,
        *,
        limits: ConnectionLimits = DEFAULT_LIMITS,
        grace_s: int = 0,
    ) -> None:
        self._service = service
        self._notifier = SystemdNotifier(os.environ)
        self._grace_s = grace_s
        self._url = url
        address = sockets.main.getsockname()[0]
        # The URL is for programs on this machine. If the socket has another address, such as 0.0.0.0, log that too.
        self._listening = {"url": url} | ({} if address == urlsplit(url).hostname else {"address": address})
        self._http = HttpServer(
            service.web,
            on_listening=self._on_listening,
            limits=limits,
            metrics=service.connection_metrics,
            direct=service.web.direct_routes,
            reads=service.web.server_reads,
        )
        self._servers = {self._http: sockets.main}
        if sockets.ops is not None and service.ops is not None:
            on_listening = partial(_log.info, "listening for probes and metrics", extra={"port": port_of(sockets.ops)})
            server = HttpServer(service.ops, on_listening=on_listening, limits=OPS_LIMITS, patience=OPS_PATIENCE)
            self._servers[server] = sockets.ops
        self._uploads = None if sockets.uploads is None else _upload_process(service, sockets.uploads)
        self._drain_uploads_s = drain_uploads_s(grace_s)

    async def run(self, *, also: Job | None = None) -> int:
        """Run until stopped. Return the exit code: 0 after a stop signal, 1 if a part ended unexpectedly.

        `also` is an additional job, which runs only if this process drives matches.
        """
        stop_requested = asyncio.Event()
        stop = asyncio.create_task(stop_requested.wait(), name="stop")
        http = {asyncio.create_task(server.serve(bound), name="http") for server, bound in self._servers.items()}
        jobs = {*http, *(asyncio.create_task(job(), name=name) for name, job in self._jobs(also).items())}
        try:
            with _stop_signals(stop_requested.set):
                await asyncio.wait({*jobs, stop}, return_when=asyncio.FIRST_COMPLETED)
                crashed = {job for job in jobs if job.done()}
                _log_crashed(crashed)
                for job in jobs:
                    if job.get_name() == REGION_CHECKS:
                        job.cancel()  # cancelled first, to have time to restore the server that it checks
                await self._stop(http)
        finally:
            for task in (*jobs, stop):
                task.cancel()
            await asyncio.gather(*jobs, stop, return_exceptions=True)
        _log.info("stopped")
        return 1 if crashed else 0

    @property
    def _is_driving(self) -> bool:
        return self._service.readiness.read_only is None

    def _jobs(self, also: Job | None) -> dict[str, Job]:
        """Return all jobs except the HTTP servers. A read-only process only gets jobs that change no stored data."""
        upkeep = self._service.upkeep
        jobs: dict[str, Job] = {"clocks": upkeep.run_clock_checks, "garbage": run_collections}
        if self._notifier.watchdog_s:
            jobs["watchdog"] = self._notifier.run_watchdog
        if self._is_driving:
            jobs |= {
                "supervisor": self._service.supervisor.run,
                "outbox": self._service.dispatcher.run,
                "webhooks": self._service.webhooks.dispatcher.run,
                "webhook events": self._service.webhooks.feed.run,
                "attention": self._service.webhooks.attention.run,
                "gauges": upkeep.run_gauges,
                "sweep": upkeep.run_sweeps,
                "search index": upkeep.run_indexing,
                REGION_CHECKS: self._service.region_checks.run,
            }
            if self._uploads is not None:
                jobs["uploads"] = self._uploads.run
            if also is not None:
                jobs["place"] = also
        return jobs

    def _on_listening(self) -> None:
        self._service.readiness.mark_ready()
        self._notifier.ready(f"listening on {self._url}")
        _log.info("listening", extra=self._listening)

    async def _stop(self, http: Collection[asyncio.Task[None]]) -> None:
        signal.alarm(forced_exit_s(self._grace_s))
        self._service.readiness.drain()
        self._notifier.stopping()
        _log.info("stopping")
        matches = callbacks = None
        if self._is_driving:
            supervisor = self._service.supervisor
            limit_s = drain_matches_s(len(supervisor))
            matches = asyncio.create_task(_stop_part("matches", supervisor.drain(), limit_s))
            await asyncio.wait({matches}, timeout=DRAIN_MATCHES_S)
            callbacks = asyncio.gather(
                self._service.dispatcher.drain(DRAIN_CALLBACKS_S),
                self._service.webhooks.dispatcher.drain(DRAIN_CALLBACKS_S),
            )
        await asyncio.sleep(self._grace_s)
        uploads = None if self._uploads is None else asyncio.create_task(self._uploads.stop(self._drain_uploads_s))
        if matches is not None:
            await matches
        self._service.readiness.stop()
        if callbacks is not None:
            await _stop_part("callbacks", callbacks, DRAIN_CALLBACKS_S + 1)
        # Close streams last: clients reconnect at once, and take a rejected reconnection for the stream's end.
        self._service.streams.close()
        self._service.broadcasts.close()
        for server in self._servers:
            server.stop()
        if uploads is not None:
            await _stop_part("uploads", uploads, self._drain_uploads_s + END_UPLOADS_S)
        await _stop_part("requests", asyncio.wait(http), DRAIN_REQUESTS_S)


def _upload_process(service: Service, bound: socket.socket) -> UploadProcess:
    deps = service.deps
    return UploadProcess(
        bound,
        db=deps.db,
        clock=deps.clock,
        metrics=deps.metrics.demos,
        owner=_owner(),
        on_available=deps.streams.organizations.wake,
    )


async def _stop_part(part: str, work: Awaitable[object], limit_s: float) -> None:
    """Wait until a part has stopped. A failure is only logged, so that the other parts are stopped as well."""
    try:
        async with asyncio.timeout(limit_s):
            await work
    except Exception:  # noqa: BLE001 - the other parts still have to be stopped
        _log.exception("service part did not stop cleanly", extra={"part": part})


def _log_crashed(crashed: set[asyncio.Task[None]]) -> None:
    for task in crashed:
        exc = None if task.cancelled() else task.exception()
        _log.error("service part ended unexpectedly", extra={"part": task.get_name()}, exc_info=exc)


@contextmanager
def _stop_signals(on_first: Callable[[], None]) -> Iterator[None]:
    """Call `on_first` at the first stop signal. A second signal has its default action: it ends the process."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def first() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        on_first()

    for number in _SIGNALS:
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


async def _create_key(service: Service, settings: Settings) -> str | None:
    """Create the first organization and key if there are none. Return the key if it must be shown."""
    if settings.first_key_file is None:
        return await first_run.create_first_key(service.access)
    try:
        await first_run.create_key_from_file(service.access, settings.first_key_file)
    except first_run.FirstKeyError as exc:
        raise ResourcesError(str(exc)) from exc
    return None


async def _first_link(service: Service, settings: Settings, base_url: str) -> str | None:
    if not settings.console:
        return None
    return await first_run.create_first_link(service.access, service.sessions, base_url=base_url)


def _welcome_text(settings: Settings, key: str, link: str | None, *, base_url: str, command: str) -> str:
    return first_run.welcome_text(
        key,
        link=link,
        base_url=base_url,
        region=settings.regions[0].code,
        command=command,
        has_callback=settings.allows_private_callbacks,
    )


def _show_key(settings: Settings, text: str, announce: Callable[[str], None] | None) -> None:
    if announce is not None:
        announce(text)
        return
    try:
        path = first_run.write_key_file(settings.data_dir, text)
    except OSError as exc:
        hint = f"Create another one: matchpod keys create --org {first_run.ORGANIZATION} --role owner."
        raise ResourcesError(f"The first API key cannot be written: {exc.strerror or exc}. {hint}") from exc
    _log.warning(
        "first API key written to a file; keep the key in a safe place and delete the file", extra={"file": path}
    )


def _open_begun_entry(resources: Resources) -> tuple[BegunEntryFile, dict[Path, tuple[str, int] | None]]:
    """Open this process's record of the entry that it applies, and read the records that dead processes have left."""
    folder = resources.settings.data_dir
    try:
        return BegunEntryFile(folder), records_of_dead_processes(folder)
    except OSError as exc:
        raise ResourcesError(f"The data folder {folder} cannot be written: {exc.strerror or exc}.") from exc


async def _prepare_driving(
    service: Service, unfinished: dict[Path, tuple[str, int] | None], faults: Sequence[str]
) -> None:
    await record_deaths(service.deps.suspects, unfinished)
    await _check_fleets(service, faults)
    await service.dispatcher.private_callbacks.are_allowed()  # logs a warning if a proxy was detected before


async def _faults_of(resources: Resources, ingest_base: str) -> list[str]:
    """Return the faults of the settings that prevent driving matches, except the faults of fleets."""
    fault = await demo_storage_fault(resources.settings, resources.db, resources.demo_storage)
    return [*unreachable_log_urls(resources.settings, ingest_base), *([] if fault is None else [fault])]


async def _check_fleets(service: Service, known: Sequence[str]) -> None:
    """Raise ResourcesError if there are known faults, or faults in the settings of fleets.

    A fault that may be temporary only makes the region of the fleet unavailable.
    """
    checked = await asyncio.gather(*(region.fleet.check() for region in service.regions.all()))
    faults = [
        *known,
        *(
            f"Region {region.code}: {fault}"
            for region, found in zip(service.regions.all(), checked, strict=True)
            for fault in found
        ),
    ]
    if faults:
        raise ResourcesError("\n".join(faults))


async def _close(service: Service) -> None:
    await asyncio.to_thread(service.deps.spans.close)
    await service.sender.close()
    await service.webhooks.sender.close()
    for region in service.regions.all():
        await region.fleet.close()


def _allow_open_files() -> int:
    """Raise the limit on open files and return it. Each match needs two connections, and a common limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def _lock_folder(settings: Settings) -> FolderLock:
    try:
        return FolderLock.acquire(settings.data_dir)
    except FolderInUseError as exc:
        holder = "Another process" if exc.pid is None else f"Process {exc.pid}"
        raise ResourcesError(f"{holder} already uses the data folder {settings.data_dir}.") from exc
    except OSError as exc:
        raise ResourcesError(f"The data folder {settings.data_dir} cannot be locked: {exc.strerror or exc}.") from exc


def _local_url(settings: Settings, bound: socket.socket) -> str:
    """Return the URL at which programs on this machine reach the service."""
    return msgspec.structs.replace(settings, public_url=None).ingest_base(port_of(bound))


def _owner() -> str:
    """Return a unique name for this process, which contains its host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
