"""Follow the game servers of a fleet: list them, then watch for changes, and list again if changes were missed.

`watch_servers` runs until it is cancelled, and raises no other exception. It reports servers and changes to an
observer.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from matchpod.adapters.kubernetes import api_errors
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.objects import AgonesServer, WatchEvent

FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 1.5
"""Upper bound in seconds of the exponential backoff between attempts; FIRST_PAUSE_S is the first delay. It is short,
because changes must be noticed within two seconds after a cluster is available again."""

REJECTED_PAUSE_S = 5.0
"""Upper bound in seconds of the backoff while we lack a right or valid credentials. It is longer than MAX_PAUSE_S,
because only a person can change that."""

RELIST_S = 180.0
"""Interval in seconds at which all servers are listed while the watch works, in case it has missed changes."""

SHORT_WATCH_S = 1.0
"""Minimum duration in seconds of a watch that counts as successful. If a server closes each watch sooner, the backoff
grows."""

BOOKMARK = "BOOKMARK"
DELETED = "DELETED"

_log = logging.getLogger(__name__)


class WatchObserver(Protocol):
    """Receives the servers and changes that a watch reports."""

    def replace(self, servers: Sequence[AgonesServer]) -> None:
        """Replace all known servers with these servers."""

    def change(self, server: AgonesServer, *, is_deleted: bool) -> None:
        """Apply a change: a server was added, changed or deleted."""

    def connected(self) -> None:
        """Record that the watch is open: changes are reported from now on."""

    def failed(self, error: api_errors.KubernetesError) -> None:
        """Record that listing or watching failed: changes may be missed until `connected` is called."""


def pause_s(failures: int, share: float, longest_s: float = MAX_PAUSE_S) -> float:
    """Return the delay in seconds after this number of consecutive failures; `share` (0 to 1, random) is the jitter."""
    return min(longest_s, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16)) * (0.5 + share / 2) if failures else 0.0


def went_back(before: str, after: str) -> bool:
    """True if the resource version went down, because etcd was restored. A watch from `before` would miss changes."""
    return before.isdecimal() and after.isdecimal() and int(after) < int(before)


async def watch_servers(
    client: KubernetesClient, labels: Mapping[str, str], observer: WatchObserver, *, relist_s: float = RELIST_S
) -> None:
    """Follow the servers with these labels until cancelled; report them to the observer."""
    watch = _Watch(client, labels, observer, relist_s)
    while True:
        await watch.run_once()
        await asyncio.sleep(pause_s(watch.failures, random.random(), watch.longest_pause_s))


class _Watch:
    def __init__(
        self, client: KubernetesClient, labels: Mapping[str, str], observer: WatchObserver, relist_s: float
    ) -> None:
        self._client = client
        self._relist_s = relist_s
        self._labels = labels
        self._observer = observer
        self._version: str | None = None
        self._listed_s = 0.0
        self.failures = 0
        self.longest_pause_s = MAX_PAUSE_S

    async def run_once(self) -> None:
        """List the servers if needed, then watch them until the watch ends or fails."""
        began_s = asyncio.get_running_loop().time()
        is_failed = False
        self.longest_pause_s = MAX_PAUSE_S
        try:
            if not await self._is_version_valid(began_s):
                await self._list()
            await self._watch()
        except api_errors.ApiGoneError as exc:
            _log.info("watch expired, listing again", extra={"labels": dict(self._labels), "reason": str(exc)})
            self._version = None
        except api_errors.KubernetesError as exc:
            is_failed = True
            self._note_failure(exc)
            self._observer.failed(exc)
        except Exception:  # noqa: BLE001 - the loop must survive
            is_failed = True
            _log.exception("watch failed")
            self._version = None
            self._observer.failed(api_errors.KubernetesError("an unexpected error, see the log"))
        is_short = asyncio.get_running_loop().time() - began_s < SHORT_WATCH_S
        self.failures = self.failures + 1 if is_failed or is_short else 0

    def _note_failure(self, error: api_errors.KubernetesError) -> None:
        """Record a failure. The next attempt lists the servers, unless the call was rejected or the server was busy."""
        is_rejected = isinstance(error, api_errors.ApiUnauthorizedError | api_errors.ApiForbiddenError)
        if is_rejected:
            self.longest_pause_s = REJECTED_PAUSE_S
        is_busy = isinstance(error, api_errors.ApiError) and error.status == api_errors.TOO_MANY_REQUESTS
        if not is_rejected and not is_busy:
            self._version = None

    async def _is_version_valid(self, now_s: float) -> bool:
        """True if a watch from the known version is expected to report all changes since then."""
        if self._version is None or now_s - self._listed_s >= self._relist_s:
            return False
        current = await self._client.version(self._labels)
        if went_back(self._version, current):
            _log.warning(
                "resource versions of the cluster went back, listing again",
                extra={"labels": dict(self._labels), "before": self._version, "after": current},
            )
            return False
        return True

    async def _list(self) -> None:
        self._version = None
        self._client.meter.relisted()
        listed = await self._client.servers(self._labels)
        self._observer.replace(listed.items or ())
        self._version = listed.metadata.resource_version
        self._listed_s = asyncio.get_running_loop().time()

    async def _watch(self) -> None:
        assert self._version is not None
        try:
            async with (
                asyncio.timeout(self._client.watch_limit_s),
                self._client.watch_servers(self._labels, self._version) as events,
            ):
                self._observer.connected()
                self._client.meter.watch_confirmed()
                async for event in events:
                    self._apply(event)
                    self._client.meter.watch_confirmed()
        except TimeoutError as exc:
            # The server closes a watch earlier than this, so the connection was lost unnoticed.
            raise api_errors.UnreachableError(f"a watch did not end after {self._client.watch_limit_s:g} s") from exc

    def _apply(self, event: WatchEvent) -> None:
        try:
            server = msgspec.json.decode(event.object, type=AgonesServer)
        except msgspec.DecodeError as exc:
            self._version = None
            raise api_errors.MalformedAnswerError(f"an event of a watch cannot be read: {exc}") from exc
        if went_back(self._version or "", server.metadata.resource_version):
            raise api_errors.ApiGoneError(410, "Expired", "the resource versions of the cluster went back")
        if event.type != BOOKMARK:
            self._observer.change(server, is_deleted=event.type == DELETED)
        self._version = server.metadata.resource_version or self._version
