"""Allocate game servers in Agones, one per match, even if a call fails after it has allocated a server.

An error does not show whether the failed call had an effect. So each call labels the allocated server with the id of
the match. After a failure, the service searches for a server with this label before it allocates another. A call that
timed out may still succeed later. Then the match has two servers, and the unused server is deleted. A server with the
label of a match is never allocated again, because a pod can set its own state back to Ready during its match.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence

from matchpod.adapters.fleets import agones_servers
from matchpod.adapters.fleets.agones_cache import ServerCache
from matchpod.adapters.fleets.agones_faults import ALLOCATE, LIST_SERVERS, fleet_sentence, is_missing, unavailable
from matchpod.adapters.fleets.agones_options import AgonesOptions
from matchpod.adapters.kubernetes import api_errors
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.cluster_meter import AllocationOutcome
from matchpod.adapters.kubernetes.objects import AgonesServer, AllocationState, AllocationStatus
from matchpod.ports import FleetUnavailableError, ServerOrder

FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 1.0
"""FIRST_PAUSE_S and MAX_PAUSE_S are the bounds in seconds of the backoff, with jitter, between allocation attempts."""

LOOKUPS = 4
"""Number of searches for the server of a failed call, spread over `settle_s`."""

_log = logging.getLogger(__name__)


class Allocations:
    def __init__(self, client: KubernetesClient, options: AgonesOptions) -> None:
        self._client = client
        self._options = options
        self.cache: ServerCache | None = None
        # Matches that may have a server, because an allocation call was sent for them.
        self._tried: set[str] = set()
        # Matches with an allocation call whose outcome is unknown: a server may still be allocated.
        self._unsure: set[str] = set()
        # For matches that may have several servers: the name of the server that the match uses.
        self._kept: dict[str, str] = {}
        # Per match, the loop's time when its server was allocated, or else when `is_fresh` was first called.
        self._allocated_s: dict[str, float] = {}
        self._deletions: set[asyncio.Task[None]] = set()

    async def obtain(self, order: ServerOrder) -> tuple[agones_servers.Place, bool] | None:
        """Find or allocate the server of a match. Return it, and whether it was found; None if no server is free.

        Also return None if the order is repeated and its server is gone: only another attempt may get another server.
        """
        if order.is_repeated or order.slot or order.server_id in self._tried or self.holds(order.server_id):
            found = await self._find(order.server_id, agones_servers.ServerRef.read(order.slot).name)
            if found is not None:
                return found, True
            if order.is_repeated:
                return None
        return await self._allocate(order.server_id)

    async def servers_of(self, server_id: str) -> Sequence[AgonesServer]:
        """Return all servers of a match, in any state; raise KubernetesError if they cannot be read."""
        listed = await self._client.servers(agones_servers.lookup_labels(self._options, server_id))
        return [server for server in listed.items or () if agones_servers.may_be_ours(server, self._options)]

    def holds(self, server_id: str) -> bool:
        """True if a server is known to be allocated to this match, for example by an earlier call that timed out."""
        return self.cache is not None and any(map(agones_servers.is_allocated, self.cache.of_match(server_id)))

    def is_fresh(self, server_id: str) -> bool:
        """True for `fresh_s` after the server was allocated or, if that time is unknown, after the first call."""
        now_s = asyncio.get_running_loop().time()
        return now_s - self._allocated_s.setdefault(server_id, now_s) < self._options.fresh_s

    def keep(self, server_id: str, name: str) -> None:
        """Use only this server for the match. All other servers of the match are deleted, now and when they appear."""
        self._kept[server_id] = name
        for server in self.cache.of_match(server_id) if self.cache is not None else ():
            self.notice(server)

    def forget(self, server_id: str) -> None:
        """Remove all state of a match whose servers were released."""
        self._tried.discard(server_id)
        self._unsure.discard(server_id)
        self._kept.pop(server_id, None)
        self._allocated_s.pop(server_id, None)

    def notice(self, server: AgonesServer) -> None:
        """Delete a server that was reported by the watch, if its match uses another server."""
        server_id = agones_servers.server_id_of(server) or ""
        kept = self._kept.get(server_id)
        if kept is None or kept == server.metadata.name or not agones_servers.is_allocated(server):
            return
        known = self.cache.of_match(server_id) if self.cache is not None else ()
        if not any(server.metadata.name == kept and agones_servers.is_allocated(server) for server in known):
            self._kept.pop(server_id)  # the kept server is gone: another process has allocated a new server
        else:
            task = asyncio.create_task(self._delete(server))
            self._deletions.add(task)
            task.add_done_callback(self._deletions.discard)

    async def close(self) -> None:
        """Cancel all running deletions. The release of each match retries them."""
        for task in tuple(self._deletions):
            task.cancel()
        await asyncio.gather(*self._deletions, return_exceptions=True)

    async def _allocate(self, server_id: str) -> tuple[agones_servers.Place, bool] | None:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._options.retry_s
        self._kept.pop(server_id, None)  # the old server is gone, and the new server must not be deleted
        tries = 0
        while True:
            status = None
            try:
                status = await self._send(server_id)
            except api_errors.KubernetesError as exc:
                _log.warning("allocation failed", extra={"server_id": server_id, "error": str(exc)})
                found = await self._find_late(server_id)
                if found is not None:
                    return found, True
                if loop.time() >= deadline_s:
                    raise unavailable(exc, ALLOCATE) from exc
            if status is not None and status.state is AllocationState.ALLOCATED:
                uid = await self._uid_of(status.game_server_name)
                return await self._settled(server_id, agones_servers.place_of_allocation(status, uid))
            if status is not None and server_id in self._unsure and (found := await self._find(server_id, "")):
                return found, True  # an earlier call has taken effect in the meantime
            if status is not None and not await self._may_try_again(deadline_s):
                return None
            tries += 1
            await asyncio.sleep(min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(tries, 8)) * random.uniform(0.5, 1.0))

    async def _send(self, server_id: str) -> AllocationStatus:
        """Send an allocation. Raise FleetUnavailableError if rejected, KubernetesError if the outcome is unknown."""
        was_tried = server_id in self._tried
        self._tried.add(server_id)
        labels = agones_servers.match_labels(self._options, server_id)
        clock = asyncio.get_running_loop().time
        began_s, outcome = clock(), AllocationOutcome.FAILED
        try:
            allocation = await self._client.allocate(
                selector=self._options.server_labels, without=agones_servers.SERVER_LABEL, labels=labels
            )
            has_server = allocation.status.state is AllocationState.ALLOCATED
            outcome = AllocationOutcome.ALLOCATED if has_server else AllocationOutcome.NONE_READY
        except (api_errors.RejectedError, api_errors.ClusterConfigError) as exc:
            if not was_tried:
                self._tried.discard(server_id)
            raise unavailable(exc, ALLOCATE) from exc
        except BaseException:  # includes cancellation
            self._unsure.add(server_id)
            raise
        finally:
            self._client.meter.allocated(outcome, clock() - began_s)
        if has_server:
            self._allocated_s[server_id] = clock()
        elif not was_tried:
            self._tried.discard(server_id)
        return allocation.status

    async def _uid_of(self, name: str) -> str:
        """Return the UID of a server that was just allocated, because the response lacks it; empty if it is unknown."""
        known = self.cache.named(name) if self.cache is not None else None
        if known is not None:
            return known.metadata.uid
        try:
            return (await self._client.server(name)).metadata.uid
        except api_errors.KubernetesError as exc:  # the server is identified by its name and label only
            _log.info("uid of allocated server unknown", extra={"slot": name, "error": str(exc)})
            return ""

    async def _settled(self, server_id: str, place: agones_servers.Place) -> tuple[agones_servers.Place, bool]:
        """Return the server to use, and whether an earlier call, which was not answered, had allocated it."""
        if server_id not in self._unsure:
            return place, False
        try:
            found = await self._find(server_id, "")
        except FleetUnavailableError:
            found = None  # a second server is deleted when the watch reports it, or when the match ends
        self._kept.setdefault(server_id, place.name)
        return (place, False) if found is None or found.name == place.name else (found, True)

    async def _may_try_again(self, deadline_s: float) -> bool:
        """True if servers are ready and time is left. Raise FleetUnavailableError if there is no Fleet."""
        cache = self.cache
        ready = cache.capacity().ready if cache is not None and cache.is_current else None
        if not ready:
            try:
                fleet = await self._client.fleet(self._options.fleet)
            except api_errors.KubernetesError as exc:
                if not is_missing(exc):
                    return False  # not retried; the watch reports faults of the cluster
                namespace = await self._client.namespace()
                raise FleetUnavailableError(fleet_sentence(exc, self._options.fleet, namespace)) from exc
            ready = fleet.status.ready_replicas if ready is None else ready
        return ready > 0 and asyncio.get_running_loop().time() < deadline_s

    async def _find_late(self, server_id: str) -> agones_servers.Place | None:
        """Search several times for the server of a failed call, because it may be allocated a moment later."""
        for number in range(LOOKUPS):
            if number:
                await asyncio.sleep(self._options.settle_s / (LOOKUPS - 1))
            found = await self._find(server_id, "")
            if found is not None:
                return found
        return None

    async def _find(self, server_id: str, preferred: str) -> agones_servers.Place | None:
        """Return the server that is allocated to a match. If there are several, keep one and delete the others."""
        try:
            servers = [server for server in await self.servers_of(server_id) if agones_servers.is_allocated(server)]
        except api_errors.KubernetesError as exc:
            raise unavailable(exc, LIST_SERVERS) from exc
        if not servers:
            return None
        kept = agones_servers.kept_server(servers, preferred or self._kept.get(server_id, ""))
        if server_id in self._unsure or len(servers) > 1:
            self._kept[server_id] = kept.metadata.name
        for server in servers:
            if server is not kept:
                await self._delete(server)
        return agones_servers.place_of_server(kept)

    async def _delete(self, server: AgonesServer) -> None:
        meta = server.metadata
        about = {"server_id": agones_servers.server_id_of(server), "slot": meta.name}
        _log.warning("deleting second server of a match", extra=about)
        try:
            await self._client.delete_server(meta.name, uid=meta.uid, version=meta.resource_version)
        except (api_errors.ApiNotFoundError, api_errors.ConflictError):
            return  # a changed server is deleted after its next event, or by the release
        except api_errors.KubernetesError as exc:  # the release of the match deletes all of its servers
            _log.warning("second server not deleted", extra={**about, "error": str(exc)})
