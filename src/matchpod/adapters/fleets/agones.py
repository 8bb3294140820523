"""Provide game servers from an Agones Fleet. Each server is allocated to one match, and deleted afterwards.

The cluster decides which server a match gets, so there are no slots to reserve; `slot` stores the name of the
GameServer. All state of this fleet is in the cluster: labels show which match a server belongs to, so any process can
find the server.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from itertools import count

from matchpod import ports
from matchpod.adapters.fleets.agones_allocation import Allocations
from matchpod.adapters.fleets.agones_cache import DELETED, ServerCache
from matchpod.adapters.fleets.agones_console import ConsoleAddress
from matchpod.adapters.fleets.agones_faults import (
    DELETE_SERVER,
    LIST_SERVERS,
    READ_FLEET,
    RIGHTS,
    fleet_sentence,
    is_missing,
    sentence_of,
    unavailable,
)
from matchpod.adapters.fleets.agones_options import AgonesOptions, is_label_value, is_object_name
from matchpod.adapters.fleets.agones_passwords import Fit, Passwords, Trial, first_passwords
from matchpod.adapters.fleets.agones_servers import (
    REGION_LABEL,
    Place,
    ServerRef,
    choose_address,
    choose_port,
    console_of,
    gone_reason,
    is_allocated,
    is_left_over,
    is_of_match,
    is_ready,
    listed_server,
    named_port,
    owner_of,
    server_id_of,
)
from matchpod.adapters.kubernetes import api_errors
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.objects import AgonesServer
from matchpod.adapters.kubernetes.server_watch import watch_servers
from matchpod.core.servers.server_loss import FleetReport

FLEET_POLL_S = 30.0
"""Interval in seconds at which the service checks that the Fleet exists."""

TV_PORT_NAME = "gotv"
"""The name of the GOTV port of a game server, if it has such a port."""

PROBE_S = 3.0
"""Timeout in seconds for the login to a waiting server in `probe`."""

RELEASE_PAUSE_S = 0.5
"""Delay in seconds before a deletion is retried."""

_log = logging.getLogger(__name__)


class AgonesFleet:
    """Allocates, watches and deletes the game servers of an Agones Fleet."""

    def __init__(
        self,
        options: AgonesOptions,
        client: KubernetesClient,
        consoles: ports.Consoles,
        on_password: Callable[[Fit], None] = lambda _: None,
        *,
        trials: ports.SecretTrials | None = None,
    ) -> None:
        """Call `on_password` with the `Fit` of each allocated server whose first password was tried.

        Without `trials`, servers that reject the secret are counted in this process only.
        """
        self._options = options
        self._client = client
        self._allocations = Allocations(client, options)
        self._cache = ServerCache(options, self._allocations.notice)
        self._allocations.cache = self._cache
        self._passwords = Passwords(options, consoles, self._cache, on_password, trials=trials)
        self._is_following = False
        self._is_reviewed = False

    @property
    def slots(self) -> None:
        """Return None, because the cluster decides which server a match gets."""
        return None

    @property
    def keeps_servers(self) -> bool:
        """Return False, because a released server is deleted."""
        return False

    @property
    def fault(self) -> str | None:
        """Why the fleet is currently unavailable, as last found by `check` or `follow`; None if no fault is known."""
        return self._cache.fault

    @property
    def is_followed(self) -> bool:
        """True while the watch reports changes of the game servers."""
        return self._cache.is_current

    @property
    def capacity_now(self) -> ports.Capacity:
        """The numbers of game servers, as last reported by the watch."""
        return self._cache.capacity()

    async def check(self) -> Sequence[str]:
        """Return faults in the settings (secret, kubeconfig). A temporary fault is not returned, but set as `fault`."""
        faults: list[str] = []
        try:
            self._options.read_secrets()
        except ValueError as exc:
            faults.append(str(exc))
        try:
            async with asyncio.timeout(self._options.check_s):
                await self._review()
        except api_errors.ClusterConfigError as exc:
            faults.append(sentence_of(exc, READ_FLEET))
        except api_errors.KubernetesError as exc:
            self._cache.failed(exc, READ_FLEET)
        except TimeoutError:
            self._cache.failed(
                api_errors.UnreachableError(f"The cluster did not answer within {self._options.check_s:g} s")
            )
        return faults

    async def probe(self) -> str | None:
        """Try to log in to a waiting server. Return what is wrong; None if it worked, or if the result is unknown."""
        try:
            secrets = self._options.read_secrets()
            listed = await self._client.servers(self._options.server_labels)
        except (ValueError, api_errors.KubernetesError):
            return None  # `check` reports these errors
        waiting = [server for server in listed.items or () if is_ready(server)]
        try:
            async with asyncio.timeout(PROBE_S):
                is_fit = await self._passwords.probe(waiting, secrets)
        except TimeoutError:
            return None
        return None if is_fit is not False else "A waiting game server rejected the password of the fleet secret."

    def waiting_server(self, slot: str) -> None:
        """Return None, because a waiting server cannot be reserved: another match might get it at any time."""
        return

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Follow the game servers until cancelled; call `on_change` when a server becomes ready or `fault` changes."""
        self._cache.begin(on_change)
        self._is_following = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch())
                tasks.create_task(self._follow_fleet())
                tasks.create_task(self._passwords.follow())
        finally:
            self._is_following = False
            self._cache.disconnect()

    async def _watch(self) -> None:
        options = self._options
        await watch_servers(self._client, options.server_labels, self._cache, relist_s=options.relist_s)

    async def capacity(self) -> ports.Capacity:
        """Count the game servers, as reported by the watch or, if `follow` is not running, in the status of the Fleet.

        Raise FleetUnavailableError if the numbers are unknown. While the fleet is followed, the cluster is not called.
        """
        if self._is_following:
            if not self._cache.is_listed:
                raise ports.FleetUnavailableError(self.fault or "The game servers are not known yet.")
            return self.capacity_now
        try:
            status = (await self._client.fleet(self._options.fleet)).status
        except api_errors.KubernetesError as exc:
            raise ports.FleetUnavailableError(await self._fleet_sentence(exc)) from exc
        return ports.Capacity(ready=status.ready_replicas, allocated=status.allocated_replicas, total=status.replicas)

    async def allocate(self, order: ports.ServerOrder) -> ports.GameServer | None:
        """Find or allocate the server of a match, and set the match's password on it; None if no server is free.

        Even if this raises a FleetError, a server may be allocated to the match. So the caller must call `release`.
        """
        if not is_label_value(order.server_id):
            raise ports.FleetError(f"the id {order.server_id!r} is not a valid value of a label in Kubernetes")
        secrets = self._passwords.read()
        is_new = not (order.is_repeated or order.slot or self.holds(order.server_id))
        async with self._passwords.turn() if is_new else nullcontext(Trial(None)) as trial:
            obtained = await self._allocations.obtain(order)
            if obtained is None:
                return None
            place, is_found = obtained
            server = self._game_server(place, order)
            passwords = first_passwords(secrets, place.name)
            address = ConsoleAddress(server.rcon_host, server.rcon_port, passwords, order.rcon_password)
            try:
                await self._passwords.replace(place.name, address, trial, is_found=is_found)
            except ports.FleetError as exc:
                raise type(exc)(f"GameServer {place.name}: {exc}") from exc
            return server

    async def wait_gone(self, server_id: str, slot: str) -> str:
        """Wait until the server is (being) deleted, has failed, or no longer belongs to the match; return the reason.

        During the wait, other servers of the match are deleted: a call of a dead process may still allocate another
        server.
        """
        ref = ServerRef.read(slot)
        while True:
            if ref.name:
                self._allocations.keep(server_id, ref.name)
            with self._cache.waiting_for(server_id, ref) as gone:
                reason = await self._known_reason(server_id, ref)
                if reason is not None:
                    return reason
                # If the watch does not report on this server, the loop reads it from the cluster after this timeout.
                done, _ = await asyncio.wait([gone], timeout=self._options.gone_poll_s * random.uniform(0.8, 1.2))
                if done and (reason := gone.result()) is not None:
                    return reason

    def holds(self, server_id: str) -> bool:
        """True if a server is known to be allocated to this match."""
        return self._allocations.holds(server_id)

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        """Report the server's state from the watch or, if the watch does not have the server, from the cluster."""
        try:
            reason = await self._read_known_reason(server_id, ServerRef.read(slot))
        except api_errors.KubernetesError:
            return FleetReport.UNKNOWN
        return FleetReport.ALIVE if reason is None else FleetReport.GONE

    async def release(self, server_id: str, slot: str, lease: ports.ServerLease | None = None) -> None:
        """Delete all servers of the match (usually one), and verify that they are gone; raise FleetError if that fails.

        Servers are found by the label of the match. The server in `slot` is also found by its name and UID: after a
        restore of etcd, it has lost its label, but still has the match's password.
        """
        if not is_label_value(server_id):
            return
        ref: ServerRef | None = ServerRef.read(slot)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._options.release_s
        for number in count():
            cause: api_errors.KubernetesError | None = None
            if lease is not None:
                lease.check()
            try:
                left, deleted = await self._delete_all(server_id, ref)
                if not left:
                    self._allocations.forget(server_id)
                    return
                if ref is not None and any(ref.is_same(gone) and server_id_of(gone) == server_id for gone in deleted):
                    # This server still had its match label, so the next search by label shows whether it is gone.
                    ref = None
            except (api_errors.RejectedError, api_errors.ClusterConfigError) as exc:
                raise unavailable(exc, DELETE_SERVER) from exc
            except api_errors.KubernetesError as exc:
                if self._cache.fault is not None:
                    raise unavailable(exc, DELETE_SERVER) from exc  # the caller retries after the outage
                cause = exc
            if loop.time() >= deadline_s:
                raise ports.FleetError(
                    f"the deletion of GameServer {slot} is not confirmed: {cause or 'it still exists'}"
                ) from cause
            if cause is not None or number:  # the first deletion is verified without a delay
                await asyncio.sleep(RELEASE_PAUSE_S * random.uniform(0.5, 1.0))

    async def servers(self) -> Sequence[ports.ListedServer]:
        """Return the servers of this region's matches, and the servers that other installations use in this Fleet."""
        try:
            lists = [
                await self._client.servers(labels)
                for labels in ({REGION_LABEL: self._options.region}, self._options.server_labels)
            ]
        except api_errors.KubernetesError as exc:
            raise unavailable(exc, LIST_SERVERS) from exc
        found = {server.metadata.name: server for page in lists for server in page.items or ()}
        now_s = time.time()
        listed = [listed_server(found[name], self._options, now_s) for name in sorted(found)]
        return [server for server in listed if server is not None]

    async def close(self) -> None:
        """Close the connections to the cluster; the game servers keep running."""
        await self._allocations.close()
        await self._client.close()

    def _game_server(self, place: Place, order: ports.ServerOrder) -> ports.GameServer:
        options = self._options
        host = choose_address(place, options.address_types)
        port = choose_port(place, options.port_name, "udp")
        console = console_of(place, options)
        if port is None:
            raise ports.FleetError(f"GameServer {place.name} has no port")
        if host is None or console is None:
            raise ports.FleetError(f"GameServer {place.name} has no address of type {', '.join(options.address_types)}")
        console_host, console_port = console
        return ports.GameServer(
            ip=host,
            port=port,
            tv_port=named_port(place, TV_PORT_NAME, "udp"),
            rcon_host=console_host,
            rcon_port=console_port,
            rcon_password=order.rcon_password,
            slot=str(ServerRef(place.name, place.uid)),
        )

    async def _known_reason(self, server_id: str, ref: ServerRef) -> str | None:
        """Return why the server is gone; None if it is not gone, or if its state is unknown."""
        try:
            return await self._read_known_reason(server_id, ref)
        except api_errors.KubernetesError as exc:
            _log.debug("server state unknown", extra={"server_id": server_id, "slot": ref.name, "error": str(exc)})
            return None

    async def _read_known_reason(self, server_id: str, ref: ServerRef) -> str | None:
        known = self._cache.find(server_id, ref)
        reason = None if known is None else gone_reason(known)
        if reason is not None or (known is not None and is_allocated(known)):
            return reason
        if self._cache.is_unreachable:
            raise api_errors.UnreachableError("the watch gets no answer")  # the watch will list all servers again
        return await self._read_reason(server_id, ref)

    async def _read_reason(self, server_id: str, ref: ServerRef) -> str | None:
        if not is_label_value(server_id) or (ref.name and not is_object_name(ref.name)):
            return "there is no such GameServer"
        if not ref.name:
            reasons = [gone_reason(found) for found in await self._allocations.servers_of(server_id)]
            return None if None in reasons else next(iter(reasons), DELETED)
        server = await self._read_server(ref)
        if server is None:
            return DELETED
        if not is_of_match(server, self._options, server_id):
            return "the GameServer belongs to another match or to none"
        if gone_reason(server) is None and not is_allocated(server) and not self._allocations.is_fresh(server_id):
            return f"the GameServer is no longer allocated: its state is {server.status.state}"
        return gone_reason(server)

    async def _read_server(self, ref: ServerRef) -> AgonesServer | None:
        """Return the server; None if it does not exist, or if its name now belongs to another server."""
        try:
            server = await self._client.server(ref.name)
        except api_errors.ApiNotFoundError as exc:
            if not is_missing(exc):
                raise
            return None
        return server if ref.is_same(server) else None

    async def _delete_all(self, server_id: str, ref: ServerRef | None) -> tuple[list[AgonesServer], list[AgonesServer]]:
        """Delete the servers of a match. Return those not yet being deleted, and those that this call deleted.

        A server that changes between reading and deleting, for example because it is allocated again, is not deleted;
        the next call reads it again.
        """
        found = list(await self._allocations.servers_of(server_id))
        if ref is not None and is_object_name(ref.name) and not any(map(ref.is_same, found)):
            server = await self._read_server(ref)
            if server is not None and is_left_over(server, self._options):
                _log.warning("server has lost the label of its match", extra={"server_id": server_id, "slot": str(ref)})
                found.append(server)
            elif server is not None and is_allocated(server):
                now = {"owner": owner_of(server), "allocated_to": server_id_of(server)}
                about = {"server_id": server_id, "slot": str(ref), **now}
                _log.warning("server not deleted: it was allocated again", extra=about)
        left = [server for server in found if server.metadata.deletion_timestamp is None]
        deleted: list[AgonesServer] = []
        for server in left:
            meta = server.metadata
            with suppress(api_errors.ApiNotFoundError, api_errors.ConflictError):
                await self._client.delete_server(meta.name, uid=meta.uid, version=meta.resource_version)
                deleted.append(server)
        return left, deleted

    async def _review(self) -> None:
        """Check the Fleet and our rights, and record what is wrong; raise KubernetesError if they cannot be checked."""
        faults: list[str] = []
        unreadable: list[str] = []
        try:
            await self._client.fleet(self._options.fleet)
        except api_errors.ApiForbiddenError as exc:
            unreadable.append(sentence_of(exc, READ_FLEET))
        except api_errors.ApiNotFoundError as exc:
            if not is_missing(exc):
                raise
            faults.append(await self._fleet_sentence(exc) + await self._known_fleets())
        faults += await self._missing_rights() or unreadable
        self._is_reviewed = not faults
        self._cache.set_fleet_fault(" ".join(faults) or None)

    async def _fleet_sentence(self, error: api_errors.KubernetesError) -> str:
        # Without a connection, the namespace is unknown; the sentence for a connection error does not contain it.
        namespace = await self._client.namespace() if is_missing(error) else ""
        return fleet_sentence(error, self._options.fleet, namespace)

    async def _known_fleets(self) -> str:
        try:
            names = [fleet.metadata.name for fleet in (await self._client.fleets()).items or ()]
        except api_errors.KubernetesError:
            return ""
        return f" Fleets there: {', '.join(sorted(names))}." if names else " The namespace has no Fleets."

    async def _missing_rights(self) -> list[str]:
        try:
            missing = [right for right in RIGHTS if not await self._client.may(right.verb, right.group, right.resource)]
        except api_errors.KubernetesError:
            return []  # a missing right is reported by the first call that needs it
        return [f"The account of the service lacks the right to {right}." for right in missing]

    async def _has_fleet(self) -> bool:
        """False if the Fleet does not exist, or if we may not read it."""
        try:
            await self._client.fleet(self._options.fleet)
        except (api_errors.ApiNotFoundError, api_errors.ApiForbiddenError):
            return False
        return True

    async def _follow_fleet(self) -> None:
        """Check periodically that the Fleet exists, because Agones treats a missing Fleet like a full Fleet."""
        while True:
            try:
                if not self._is_reviewed or not await self._has_fleet():
                    await self._review()
            except api_errors.KubernetesError as exc:  # the watch reports it
                self._is_reviewed = False
                _log.debug("fleet check failed", extra={"region": self._options.region, "error": str(exc)})
            except Exception:  # noqa: BLE001 - the loop must survive
                _log.exception("fleet check failed")
            await asyncio.sleep(FLEET_POLL_S if self._is_reviewed else self._options.missing_fleet_poll_s)
