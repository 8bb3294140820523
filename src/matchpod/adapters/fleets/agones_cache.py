"""Cache the game servers that a watch reports, and wake tasks that wait until the server of a match is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from matchpod.adapters.fleets.agones_faults import WATCH_SERVERS, Right, sentence_of
from matchpod.adapters.fleets.agones_options import AgonesOptions
from matchpod.adapters.fleets.agones_servers import (
    ServerRef,
    gone_reason,
    is_allocated,
    is_of_match,
    is_ready,
    may_be_ours,
    server_id_of,
)
from matchpod.adapters.kubernetes.api_errors import KubernetesError, UnreachableError
from matchpod.adapters.kubernetes.objects import AgonesServer
from matchpod.ports import Capacity

DELETED = "the GameServer was deleted"

_log = logging.getLogger(__name__)


class _Waiting:
    """A task that waits until a match's server is gone. `future` gets the reason; None if the server must be read."""

    def __init__(self, server_id: str, ref: ServerRef) -> None:
        self.server_id = server_id
        self.ref = ref
        self.future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def finish(self, reason: str | None) -> None:
        if not self.future.done():
            self.future.set_result(reason)


class ServerCache:
    """The game servers of a fleet by name, updated by a watch, and the faults of the fleet."""

    def __init__(self, options: AgonesOptions, on_labelled: Callable[[AgonesServer], None]) -> None:
        """Call `on_labelled` with each reported server that has the label of one of our matches."""
        self._options = options
        self._on_labelled = on_labelled
        self._servers: dict[str, AgonesServer] = {}
        self._waiting: dict[str, set[_Waiting]] = {}
        self._is_listed = False
        self._is_connected = False
        self._is_unreachable = False
        self._watch_fault: str | None = None
        self._fleet_fault: str | None = None
        self._secret_fault: str | None = None
        self._on_change: Callable[[], None] | None = None

    @property
    def is_listed(self) -> bool:
        """True once the servers have been listed, even if the watch is currently lost."""
        return self._is_listed

    @property
    def is_current(self) -> bool:
        """True while the watch reports changes, so that the cached servers are up to date."""
        return self._is_listed and self._is_connected

    @property
    def is_unreachable(self) -> bool:
        """True while the watch gets no answer from the cluster, so that other calls would time out too."""
        return self._is_unreachable

    @property
    def fault(self) -> str | None:
        """Why the fleet is unavailable, or None."""
        return self._watch_fault or self._fleet_fault or self._secret_fault

    def capacity(self) -> Capacity:
        """Count the servers that are not being deleted."""
        usable = [server for server in self._servers.values() if gone_reason(server) is None]
        return Capacity(ready=sum(map(is_ready, usable)), allocated=sum(map(is_allocated, usable)), total=len(usable))

    def named(self, name: str) -> AgonesServer | None:
        """Return the server with this name, if it is cached and the cache is up to date."""
        return self._servers.get(name) if self.is_current else None

    def find(self, server_id: str, ref: ServerRef) -> AgonesServer | None:
        """Return the server of a match, if it is cached and the cache is up to date."""
        server = self.named(ref.name)
        is_its = server is not None and ref.is_same(server) and is_of_match(server, self._options, server_id)
        return server if is_its else None

    def of_match(self, server_id: str) -> list[AgonesServer]:
        """Return all cached servers that have the label of a match."""
        servers = [server for server in self._servers.values() if may_be_ours(server, self._options)]
        return [server for server in servers if server_id_of(server) == server_id]

    @contextmanager
    def waiting_for(self, server_id: str, ref: ServerRef) -> Iterator[asyncio.Future[str | None]]:
        """Provide a future that gets the reason when the server is gone.

        The future gets None if the watch reports that the server is no longer allocated to the match. The caller must
        then read the server, because the watch may be behind.
        """
        added = _Waiting(server_id, ref)
        waiting = self._waiting.setdefault(ref.name, set())
        waiting.add(added)
        try:
            yield added.future
        finally:
            waiting.discard(added)
            if not waiting and self._waiting.get(ref.name) is waiting:
                del self._waiting[ref.name]

    def set_fleet_fault(self, fault: str | None) -> None:
        """Record what is wrong with the Fleet object or with our rights; None if nothing is wrong."""
        if fault != self._fleet_fault:
            self._fleet_fault = fault
            self._note_fault()

    def set_secret_fault(self, fault: str | None) -> None:
        """Record what is wrong with the fleet's secret; None if nothing is wrong."""
        if fault != self._secret_fault:
            self._secret_fault = fault
            self._note_fault()

    def ready(self) -> list[AgonesServer]:
        """Return the servers that wait for a match."""
        return [server for server in self._servers.values() if is_ready(server)]

    def begin(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` for changes from now on, and at once if a fault was recorded before."""
        self._on_change = on_change
        if self.fault is not None:
            self._note_fault()

    def disconnect(self) -> None:
        """Record that the watch was stopped."""
        self._is_connected = self._is_unreachable = False

    # --- reports of the watch -----------------------------------------------------------------------------------------

    def replace(self, servers: Sequence[AgonesServer]) -> None:
        """Replace all servers. Servers missing from the new list were deleted while there was no watch."""
        before = self._servers
        self._servers = {server.metadata.name: server for server in servers}
        self._is_listed, self._is_unreachable = True, False
        for name in before.keys() - self._servers.keys():
            for waiting in self._waiting.get(name, ()):
                waiting.finish(DELETED)
        for server in servers:
            self._tell_waiting(server)
            self._note_label(server)
        if any(is_ready(server) and not _was_ready(before, server) for server in servers):
            self._changed()

    def change(self, server: AgonesServer, *, is_deleted: bool) -> None:
        name = server.metadata.name
        if is_deleted:
            known = self._servers.get(name)
            # The deletion may be of an older server, because a new server with the same name may already be cached.
            if known is None or known.metadata.uid == server.metadata.uid:
                self._servers.pop(name, None)
                for waiting in self._waiting.get(name, ()):
                    if waiting.ref.is_same(server):
                        waiting.finish(DELETED)
            return
        becomes_ready = is_ready(server) and not _was_ready(self._servers, server)
        self._servers[name] = server
        self._tell_waiting(server)
        self._note_label(server)
        if becomes_ready:
            self._changed()

    def connected(self) -> None:
        self._is_connected, self._is_unreachable = True, False
        if self._watch_fault is not None:
            self._watch_fault = None
            self._note_fault()

    def failed(self, error: KubernetesError, right: Right = WATCH_SERVERS) -> None:
        """Record that the watch failed. A lost connection becomes a fault only if reconnecting fails too."""
        was_connected, self._is_connected = self._is_connected, False
        self._is_unreachable = isinstance(error, UnreachableError)
        if was_connected and self._is_unreachable:
            _log.info("watch lost", extra={"error": str(error)})
            return
        fault = sentence_of(error, right)
        if fault != self._watch_fault:
            self._watch_fault = fault
            self._note_fault()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()

    def _note_fault(self) -> None:
        if self._on_change is None:  # `follow` is not running, and the caller of `check` reports faults
            return
        if self.fault is None:
            _log.info("fleet available", extra={"region": self._options.region})
        else:
            _log.warning("fleet unavailable", extra={"region": self._options.region, "error": self.fault})
        self._on_change()

    def _note_label(self, server: AgonesServer) -> None:
        if may_be_ours(server, self._options) and server_id_of(server):
            self._on_labelled(server)

    def _tell_waiting(self, server: AgonesServer) -> None:
        for waiting in self._waiting.get(server.metadata.name, ()):
            is_its = waiting.ref.is_same(server) and is_of_match(server, self._options, waiting.server_id)
            if not is_its or not is_allocated(server):
                waiting.finish(gone_reason(server) if is_its else None)


def _was_ready(servers: Mapping[str, AgonesServer], server: AgonesServer) -> bool:
    before = servers.get(server.metadata.name)
    return before is not None and is_ready(before)
