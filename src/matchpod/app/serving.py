"""How does the service live and end? It is started, watched, and stopped in an order that loses nothing.

Stopping: others are told (readiness), no match is driven any more, callbacks under way end, then streams and the API.
Matches go on in their servers; whoever starts next picks them up. A part that ends by itself ends the whole process:
half a service would keep its leases and do nothing for them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import msgspec
import uvloop

from matchpod.adapters.folder_lock import FolderLock, FolderTakenError
from matchpod.app.composition import Service, compose
from matchpod.app.first_run import first_key, welcome
from matchpod.app.ground import GroundError, check_key, make_folder, open_ground
from matchpod.app.listening import bind, make_server, port_of
from matchpod.ports import DatabaseError
from matchpod.settings import Settings
from matchpod.storage import servers

DRAIN_MATCHES_S: Final = 5.0
"""For runners to give back their matches: each has at most one transaction under way."""
DRAIN_CALLBACKS_S: Final = 12.0
"""For attempts under way, which take 10 s at most."""
DRAIN_REQUESTS_S: Final = 4.0
"""For requests under way; uvicorn cuts them off before that."""
LAST_RESORT_S: Final = 25
"""Then the system ends the process, whatever it hangs in: a process manager kills what takes 30 s."""
OPEN_FILES: Final = 65_536
"""Far more than the connections of one process; as much of it as the system allows."""

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger(__name__)


def run_service(settings: Settings, *, announce: Callable[[str], None], command: str = "matchpod") -> int:
    """Run the service until it is told to stop; answers the exit code.

    `announce` shows what is shown only once, `command` is how this program is called.
    """
    _allow_open_files()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(settings, announce, command))
    except DatabaseError as exc:
        raise GroundError(f"The service cannot start: {exc}.") from exc
    except GroundError:
        raise
    except Exception:  # noqa: BLE001 - a mistake of ours; whoever runs it needs all of it in the log
        _log.exception("the service failed")
        return 1
    finally:
        signal.alarm(0)


async def _serve(settings: Settings, announce: Callable[[str], None], command: str) -> int:
    async with AsyncExitStack() as held:
        make_folder(settings.data_dir)
        if settings.database_url is None:
            held.callback(_take_folder(settings).release)
        ground = await open_ground(settings)
        held.push_async_callback(ground.close)
        if not ground.db.is_shared:
            # The folder is ours alone, so whoever holds a claim is dead: no need to wait for it to run out.
            await servers.drop_leases(ground.db)
        bound = held.enter_context(bind(settings.host, settings.port))
        url = _local_url(settings, bound)
        service = compose(ground, owner=_owner(), ingest_base=settings.ingest_base(port_of(bound)))
        held.push_async_callback(_close, service)
        await check_key(ground)
        key = await first_key(service.access)
        await check_key(ground)  # once more: another process may have begun at the same moment, with a key of its own
        if key is not None:
            announce(welcome(key, base_url=url, region=settings.regions[0].code, command=command))
        return await Watch(service, bound, url).run()


class Watch:
    """Runs the parts of a service until the first reason to stop, then stops them."""

    def __init__(self, service: Service, bound: socket.socket, url: str) -> None:
        self._service = service
        self._bound = bound
        self._url = url
        self._http = make_server(service.web, on_listening=self._note_listening)

    async def run(self) -> int:
        """The exit code: 0 when it was told to stop, 1 when a part ended by itself."""
        told_to_stop = asyncio.Event()
        told = asyncio.create_task(told_to_stop.wait(), name="told to stop")
        http = asyncio.create_task(self._http.serve(sockets=[self._bound]), name="http")
        jobs = {
            http,
            asyncio.create_task(self._service.supervisor.run(), name="supervisor"),
            asyncio.create_task(self._service.outbox.run(), name="outbox"),
            asyncio.create_task(self._service.upkeep.keep_gauges(), name="gauges"),
            asyncio.create_task(self._service.upkeep.keep_comparing_clocks(), name="clocks"),
            asyncio.create_task(self._service.upkeep.keep_sweeping(), name="sweep"),
        }
        try:
            with _signals(told_to_stop.set):
                await asyncio.wait({*jobs, told}, return_when=asyncio.FIRST_COMPLETED)
                crashed = {job for job in jobs if job.done()}
                _report(crashed)
                await self._stop(http)
        finally:
            for task in (*jobs, told):
                task.cancel()
            await asyncio.gather(*jobs, told, return_exceptions=True)
        _log.info("stopped")
        return 1 if crashed else 0

    def _note_listening(self) -> None:
        self._service.readiness.became_ready()
        _log.info("listening", extra={"url": self._url})

    async def _stop(self, http: asyncio.Task[None]) -> None:
        signal.alarm(LAST_RESORT_S)
        self._service.readiness.drain()
        _log.info("stopping")
        await _end("matches", self._service.supervisor.drain(), DRAIN_MATCHES_S)
        await _end("callbacks", self._service.outbox.drain(DRAIN_CALLBACKS_S), DRAIN_CALLBACKS_S + 1)
        # Not before: a reader comes back at once, and would take a service that refuses him for the end of the stream.
        self._service.streams.close()
        self._http.stop()
        await _end("requests", asyncio.wait([http]), DRAIN_REQUESTS_S)


async def _end(part: str, work: Awaitable[object], limit_s: float) -> None:
    """Wait for a part to end; one that cannot must not keep the others from ending well."""
    try:
        async with asyncio.timeout(limit_s):
            await work
    except Exception:  # noqa: BLE001 - whatever it is, the rest is still to be ended
        _log.exception("a part did not end as it should", extra={"part": part})


def _report(crashed: set[asyncio.Task[None]]) -> None:
    for task in crashed:
        fault = None if task.cancelled() else task.exception()
        _log.error("a part of the service ended by itself", extra={"part": task.get_name()}, exc_info=fault)


@contextmanager
def _signals(on_first: Callable[[], None]) -> Iterator[None]:
    """Call on the first signal to stop; the second ends the process at once, by the system's own means."""
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


async def _close(service: Service) -> None:
    await service.sender.close()
    for region in service.regions.all():
        await region.fleet.close()


def _allow_open_files() -> None:
    """Raise the limit on open files: a match has two connections, and 1,024 files are usual."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _take_folder(settings: Settings) -> FolderLock:
    try:
        return FolderLock.take(settings.data_dir)
    except FolderTakenError as exc:
        holder = "Another process" if exc.pid is None else f"Process {exc.pid}"
        raise GroundError(f"{holder} already serves the data folder {settings.data_dir}.") from exc
    except OSError as exc:
        raise GroundError(f"The data folder {settings.data_dir} cannot be locked: {exc.strerror or exc}.") from exc


def _local_url(settings: Settings, bound: socket.socket) -> str:
    """Where a program on this machine reaches the service."""
    return msgspec.structs.replace(settings, public_url=None).ingest_base(port_of(bound))


def _owner() -> str:
    """A name that no other process ever has, and that tells people where to look."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
