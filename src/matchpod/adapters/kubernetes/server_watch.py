"""Follow the game servers of a fleet: list them, then watch the changes, and list again if changes were missed.

It never ends and never raises, except when cancelled. What was seen is passed to an observer.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from matchpod.adapters.kubernetes.api_errors import (
    GoneError,
    KubernetesError,
    MalformedAnswerError,
    UnreachableError,
)
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.objects import AgonesServer, WatchEvent

FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 10.0
"""Pause before another attempt: exponential backoff with jitter."""

SHORT_WATCH_S = 1.0
"""A watch that ends sooner counts as failed: a server that closes them all must not be called without a pause."""

BOOKMARK = "BOOKMARK"
DELETED = "DELETED"

_log = logging.getLogger(__name__)


class WatchObserver(Protocol):
    """Receives what a watch sees."""

    def replace(self, servers: Sequence[AgonesServer]) -> None:
        """These are all servers now."""

    def change(self, server: AgonesServer, *, is_deleted: bool) -> None:
        """A server was added, changed or deleted."""

    def connected(self) -> None:
        """The watch is open: changes arrive."""

    def failed(self, error: KubernetesError) -> None:
        """The servers cannot be listed or watched at present; changes may be missed until `connected`."""


def pause_s(failures: int, share: float) -> float:
    """Return the pause after a number of failures in a row; `share` (0 to 1) spreads the attempts of processes."""
    return min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16)) * (0.5 + share / 2) if failures else 0.0


async def watch_servers(client: KubernetesClient, labels: Mapping[str, str], observer: WatchObserver) -> None:
    """Follow the servers with these labels until cancelled."""
    watch = _Watch(client, labels, observer)
    while True:
        await watch.run_once()
        await asyncio.sleep(pause_s(watch.failures, random.random()))


class _Watch:
    def __init__(self, client: KubernetesClient, labels: Mapping[str, str], observer: WatchObserver) -> None:
        self._client = client
        self._labels = labels
        self._observer = observer
        self._version: str | None = None
        self.failures = 0

    async def run_once(self) -> None:
        """List if needed, and watch until the watch ends."""
        began_s = asyncio.get_running_loop().time()
        is_failed = False
        try:
            if self._version is None:
                await self._list()
            await self._watch()
        except GoneError:
            _log.info("watch expired, listing again", extra={"labels": dict(self._labels)})
            self._version = None
        except KubernetesError as exc:
            is_failed = True
            self._observer.failed(exc)
        except Exception:  # noqa: BLE001 - the loop must survive
            is_failed = True
            _log.exception("watch failed")
            self._version = None
            self._observer.failed(KubernetesError("an unexpected error, see the log"))
        is_short = asyncio.get_running_loop().time() - began_s < SHORT_WATCH_S
        self.failures = self.failures + 1 if is_failed or is_short else 0

    async def _list(self) -> None:
        listed = await self._client.servers(self._labels)
        self._observer.replace(listed.items or ())
        self._version = listed.metadata.resource_version

    async def _watch(self) -> None:
        assert self._version is not None
        try:
            async with (
                asyncio.timeout(self._client.watch_limit_s),
                self._client.watch_servers(self._labels, self._version) as events,
            ):
                self._observer.connected()
                async for event in events:
                    self._apply(event)
        except TimeoutError as exc:
            # The server should have closed it: the connection is dead, although nothing said so.
            raise UnreachableError(f"a watch did not end after {self._client.watch_limit_s:g} s") from exc

    def _apply(self, event: WatchEvent) -> None:
        try:
            server = msgspec.json.decode(event.object, type=AgonesServer)
        except msgspec.DecodeError as exc:
            self._version = None
            raise MalformedAnswerError(f"an event of a watch cannot be read: {exc}") from exc
        if event.type != BOOKMARK:
            self._observer.change(server, is_deleted=event.type == DELETED)
        self._version = server.metadata.resource_version or self._version
