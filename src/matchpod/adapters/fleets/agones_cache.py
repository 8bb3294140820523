"""Keep the game servers that a watch has seen, and tell those who wait for one that it is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from matchpod.adapters.fleets.agones_faults import WATCH_SERVERS, sentence_of
from matchpod.adapters.fleets.agones_options import AgonesOptions
from matchpod.adapters.fleets.agones_servers import (
    gone_reason,
    is_allocated,
    is_ready,
    may_be_ours,
    server_id_of,
)
from matchpod.adapters.kubernetes.api_errors import KubernetesError, UnreachableError
from matchpod.adapters.kubernetes.objects import AgonesServer
from matchpod.ports import Capacity

DELETED = "the GameServer was deleted"

_log = logging.getLogger(__name__)


class ServerCache:
    """The game servers of a fleet, by name. It observes a watch."""

    def __init__(self, options: AgonesOptions, on_labelled: Callable[[AgonesServer], None]) -> None:
        """Each server that is seen to be allocated for this fleet is passed to `on_labelled`."""
        self._options = options
        self._on_labelled = on_labelled
        self._servers: dict[str, AgonesServer] = {}
        self._waiting: dict[str, set[asyncio.Future[str]]] = {}
        self._is_listed = False
        self._is_connected = False
        self._watch_fault: str | None = None
        self._fleet_fault: str | None = None
        self._secret_fault: str | None = None
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_listed(self) -> bool:
        """True once the servers are known, even if changes do not arrive at present."""
        return self._is_listed

    @property
    def is_current(self) -> bool:
        """True while changes arrive: what is known here can be relied on."""
        return self._is_listed and self._is_connected

    @property
    def fault(self) -> str | None:
        """Why the fleet cannot be used, or None."""
        return self._watch_fault or self._fleet_fault or self._secret_fault

    def capacity(self) -> Capacity:
        """Count the servers that are not on their way out."""
        usable = [server for server in self._servers.values() if gone_reason(server) is None]
        return Capacity(ready=sum(map(is_ready, usable)), allocated=sum(map(is_allocated, usable)), total=len(usable))

    def find(self, server_id: str, name: str) -> AgonesServer | None:
        """Return the server of a match, if it is known here and can be relied on."""
        server = self._servers.get(name) if self.is_current else None
        is_its = server is not None and may_be_ours(server, self._options) and server_id_of(server) == server_id
        return server if is_its else None

    def of_match(self, server_id: str) -> list[AgonesServer]:
        """Return all servers that are known here to have the label of a match."""
        servers = [server for server in self._servers.values() if may_be_ours(server, self._options)]
        return [server for server in servers if server_id_of(server) == server_id]

    @contextmanager
    def waiting_for(self, name: str) -> Iterator[asyncio.Future[str]]:
        """Provide a future that gets the reason when the server is gone."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(name, set())
        waiting.add(future)
        try:
            yield future
        finally:
            waiting.discard(future)
            if not waiting and self._waiting.get(name) is waiting:
                del self._waiting[name]

    def set_fleet_fault(self, fault: str | None) -> None:
        """Record whether the Fleet object exists."""
        if fault != self._fleet_fault:
            self._fleet_fault = fault
            self._note_fault()

    def set_secret_fault(self, fault: str | None) -> None:
        """Record whether the secret of the fleet can be used."""
        if fault != self._secret_fault:
            self._secret_fault = fault
            self._note_fault()

    def ready(self) -> list[AgonesServer]:
        """Return the servers that wait for a match."""
        return [server for server in self._servers.values() if is_ready(server)]

    def disconnect(self) -> None:
        """Record that the servers are no longer followed."""
        self._is_connected = False

    # --- what the watch saw -------------------------------------------------------------------------------------------

    def replace(self, servers: Sequence[AgonesServer]) -> None:
        """Replace all servers: what is missing was deleted while no watch was open."""
        before = self._servers
        self._servers = {server.metadata.name: server for server in servers}
        self._is_listed = True
        for name in before.keys() - self._servers.keys():
            self._finish(name, DELETED)
        for server in servers:
            self._finish_if_gone(server)
            self._note_label(server)
        if any(is_ready(server) and not _was_ready(before, server) for server in servers):
            self.on_change()

    def change(self, server: AgonesServer, *, is_deleted: bool) -> None:
        """Apply one event."""
        name = server.metadata.name
        if is_deleted:
            known = self._servers.get(name)
            # Its event may be late: a new server of the same name may be known already.
            if known is None or known.metadata.uid == server.metadata.uid:
                self._servers.pop(name, None)
                self._finish(name, DELETED)
            return
        becomes_ready = is_ready(server) and not _was_ready(self._servers, server)
        self._servers[name] = server
        self._finish_if_gone(server)
        self._note_label(server)
        if becomes_ready:
            self.on_change()

    def connected(self) -> None:
        """Record that a watch is open."""
        self._is_connected = True
        if self._watch_fault is not None:
            self._watch_fault = None
            self._note_fault()

    def failed(self, error: KubernetesError) -> None:
        """Record that there is no watch. A lost connection is a fault only if it cannot be opened again."""
        was_connected, self._is_connected = self._is_connected, False
        if was_connected and isinstance(error, UnreachableError):
            _log.info("watch lost", extra={"error": str(error)})
            return
        fault = sentence_of(error, WATCH_SERVERS)
        if fault != self._watch_fault:
            self._watch_fault = fault
            self._note_fault()

    def _note_fault(self) -> None:
        if self.fault is None:
            _log.info("fleet available", extra={"region": self._options.region})
        else:
            _log.warning("fleet unavailable", extra={"region": self._options.region, "error": self.fault})
        self.on_change()

    def _note_label(self, server: AgonesServer) -> None:
        if may_be_ours(server, self._options) and server_id_of(server):
            self._on_labelled(server)

    def _finish_if_gone(self, server: AgonesServer) -> None:
        reason = gone_reason(server)
        if reason is not None:
            self._finish(server.metadata.name, reason)

    def _finish(self, name: str, reason: str) -> None:
        for future in self._waiting.pop(name, ()):
            if not future.done():
                future.set_result(reason)


def _was_ready(servers: Mapping[str, AgonesServer], server: AgonesServer) -> bool:
    before = servers.get(server.metadata.name)
    return before is not None and is_ready(before)
