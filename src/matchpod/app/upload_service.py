"""Run the process that receives demos. `matchpod serve` starts it as a child process, and passes it a bound socket.

The process reports on standard output, in JSON lines, that it is alive and how uploads ended. When standard input ends,
it exits, so it never outlives its parent. It ignores signals, because the parent handles them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Final

import msgspec
import uvloop

from matchpod.app.demo_storage import open_demo_storage
from matchpod.app.garbage import share_one_heap
from matchpod.app.http_server import HttpServer, port_of
from matchpod.app.resources import open_clock, open_database
from matchpod.core.demos import MissingReason
from matchpod.ports import DemoStorage
from matchpod.service.demos.uploads import Ended, UploadLimits, Uploads
from matchpod.settings import Settings
from matchpod.web.demo_uploads import UploadApplication
from matchpod.web.http.admission import ConnectionLimits
from matchpod.web.http.connections import Patience

ALIVE_S: Final = 5.0
"""Interval in seconds at which the process reports that it is alive."""
DRAIN_S: Final = 10.0
"""Timeout in seconds for uploads in progress when the service stops; it includes the grace period. Longer uploads are
interrupted."""
MIN_DRAIN_S: Final = 0.5
END_S: Final = 3.0
"""Timeout in seconds for recording which uploads were interrupted."""
FORCED_EXIT_S: Final = DRAIN_S + 2 * END_S
"""Time in seconds after the end of the parent at which the process ends even if its event loop hangs."""

MIB: Final = 1024 * 1024
RESERVES: Final = 2
"""Demos must leave this multiple of the free disk space that new matches need (`min_free_disk_mb`)."""
DB_CONNECTIONS: Final = 2
"""Maximum number of connections to PostgreSQL. A demo needs about ten short queries."""
LIMITS: Final = ConnectionLimits(total=1024, pipelined=0)
"""Limits for the connections of game servers. Each connection has one upload at a time."""

_log = logging.getLogger(__name__)


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A report to the parent: how an upload ended or, without `ended`, only that this process is alive."""

    ended: str | None = None
    """`available`, or the reason why the demo is missing; None if the report is not about an upload."""
    received_bytes: int = 0
    seconds: float = 0.0


def drain_s(grace_s: float) -> float:
    """Return the timeout for uploads that are in progress after the grace period. Until then, uploads are accepted."""
    return max(MIN_DRAIN_S, DRAIN_S - grace_s)


def outcome_of(reason: MissingReason | None) -> str:
    return "available" if reason is None else reason.value


def run_upload_service(settings: Settings, bound_fd: int, owner: str) -> int:
    """Receive demos on a bound socket until standard input ends; return the exit code of the process."""
    share_one_heap()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    bound = socket.socket(fileno=bound_fd)
    bound.setblocking(False)  # noqa: FBT003 - no keyword arguments
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, bound, owner))


async def _serve(settings: Settings, bound: socket.socket, owner: str) -> int:
    parent_gone = asyncio.Event()
    _watch_parent(asyncio.get_running_loop(), parent_gone.set)
    db = await open_database(settings, connections=DB_CONNECTIONS)
    storage = open_demo_storage(settings)
    try:
        clock = await open_clock(db)
        uploads = Uploads(
            db=db,
            clock=clock,
            storage=storage,
            owner=owner,
            limits=upload_limits(settings, storage),
            on_ended=lambda ended: _report(_report_of(ended)),
        )
        server = HttpServer(
            UploadApplication(uploads),
            on_listening=lambda: _log.info("receiving demos", extra={"port": port_of(bound), "pid": os.getpid()}),
            limits=LIMITS,
            patience=Patience(head_s=10.0, send_s=10.0, closing_s=drain_s(settings.grace_s)),
        )
        async with asyncio.TaskGroup() as group:
            http = group.create_task(server.serve(bound))
            others = [group.create_task(uploads.run()), group.create_task(_report_life())]
            await asyncio.wait({http, group.create_task(parent_gone.wait())}, return_when=asyncio.FIRST_COMPLETED)
            server.stop()
            await http
            for task in others:
                task.cancel()
    finally:
        await storage.close()
        await db.close()
    return 0


def upload_limits(settings: Settings, storage: DemoStorage) -> UploadLimits:
    """Return the configured limits. The limit for free disk space applies only to a storage on this machine.

    Demos must leave more space free than new matches need, so that matches are never rejected because of demos.
    """
    free_mb = 0 if storage.is_shared else settings.min_free_disk_mb or 0
    return UploadLimits(
        demo_bytes=None if settings.max_demo_mb is None else settings.max_demo_mb * 1_000_000,
        org_bytes=None if settings.max_demos_gb is None else settings.max_demos_gb * 1_000_000_000,
        min_free_bytes=RESERVES * free_mb * MIB,
    )


def _watch_parent(loop: asyncio.AbstractEventLoop, on_gone: Callable[[], None]) -> None:
    """Wait in a thread until standard input ends, then call `on_gone`. End the process if its loop hangs."""

    def watch() -> None:
        while sys.stdin.buffer.read(1):
            pass
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_gone)
        threading.Event().wait(FORCED_EXIT_S)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


async def _report_life() -> None:
    while True:
        _report(Report())
        await asyncio.sleep(ALIVE_S)


def _report_of(ended: Ended) -> Report:
    return Report(ended=outcome_of(ended.reason), received_bytes=ended.received_bytes, seconds=ended.seconds)


def _report(report: Report) -> None:
    with contextlib.suppress(OSError):  # the parent is gone
        os.write(sys.stdout.fileno(), msgspec.json.encode(report) + b"\n")
