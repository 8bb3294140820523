"""Provide game servers from a Fleet of Agones, each allocated to one match and deleted afterwards.

The cluster decides which match gets a server, so there are no slots; `slot` is the name of the GameServer. All that
this fleet knows is in the cluster: labels say which match a server belongs to, so that any process can find it again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import count

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
from matchpod.adapters.fleets.agones_passwords import Fit, Passwords, first_passwords
from matchpod.adapters.fleets.agones_servers import (
    REGION_LABEL,
    Place,
    choose_address,
    choose_port,
    console_of,
    gone_reason,
    is_ready,
    listed_server,
    may_be_ours,
    server_id_of,
)
from matchpod.adapters.kubernetes.api_errors import (
    ClusterConfigError,
    ConflictError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    RejectedError,
)
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.server_watch import watch_servers
from matchpod.core.server_loss import FleetReport
from matchpod.ports import (
    Capacity,
    Consoles,
    FleetError,
    FleetUnavailableError,
    GameServer,
    ListedServer,
    ServerOrder,
)

GONE_POLL_S = 5.0
"""How often a server that the watch does not show is asked for."""

FLEET_POLL_S = 30.0
"""How often to check that the Fleet exists."""

MISSING_FLEET_POLL_S = 5.0
"""The same while it does not."""

PROBE_S = 3.0
"""How long a waiting server may take to accept a password for `probe`."""

RELEASE_PAUSE_S = 0.5
"""Pause before a failed deletion is repeated."""

_log = logging.getLogger(__name__)


class AgonesFleet:
    """Allocates, follows and deletes the game servers of one Fleet."""

    def __init__(
        self,
        options: AgonesOptions,
        client: KubernetesClient,
        consoles: Consoles,
        on_password: Callable[[Fit], None] = lambda _: None,
    ) -> None:
        """`on_password` is called for each allocated server, with the secret that its password follows from."""
        self._options = options
        self._client = client
        self._allocations = Allocations(client, options)
        self._cache = ServerCache(options, self._allocations.notice)
        self._allocations.cache = self._cache
        self._passwords = Passwords(options, consoles, self._cache, on_password)
        self._is_following = False

    @property
    def slots(self) -> None:
        """None: the cluster decides which match gets a server."""
        return None

    @property
    def fault(self) -> str | None:
        """Why the fleet cannot be used at present, while it is followed; None if it can."""
        return self._cache.fault

    @property
    def is_followed(self) -> bool:
        """True while changes of the game servers arrive."""
        return self._cache.is_current

    @property
    def capacity_now(self) -> Capacity:
        """The game servers that the watch shows."""
        return self._cache.capacity()

    async def check(self) -> Sequence[str]:
        """Return what is wrong: the secret, the connection, the Fleet, our rights."""
        faults: list[str] = []
        unreadable: list[str] = []
        try:
            self._options.read_secrets()
        except ValueError as exc:
            faults.append(str(exc))
        try:
            await self._client.fleet(self._options.fleet)
        except ForbiddenError as exc:
            unreadable.append(sentence_of(exc, READ_FLEET))
        except KubernetesError as exc:
            faults.append(await self._fleet_sentence(exc))
            if not is_missing(exc):
                return faults
            faults[-1] += await self._known_fleets()
        return [*faults, *(await self._missing_rights() or unreadable)]

    async def probe(self) -> str | None:
        """Try to log in to a waiting server, and return what is wrong; None if nothing is, or if that is unknown."""
        try:
            secrets = self._options.read_secrets()
            listed = await self._client.servers(self._options.server_labels)
        except (ValueError, KubernetesError):
            return None  # `check` reports it
        waiting = [server for server in listed.items or () if is_ready(server)]
        try:
            async with asyncio.timeout(PROBE_S):
                is_fit = await self._passwords.probe(waiting, secrets)
        except TimeoutError:
            return None
        return None if is_fit is not False else "A waiting game server rejected the password of the fleet secret."

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Follow the game servers until cancelled; call `on_change` if one became ready or `fault` changed."""
        self._cache.on_change = on_change
        self._is_following = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(watch_servers(self._client, self._options.server_labels, self._cache))
                tasks.create_task(self._follow_fleet())
                tasks.create_task(self._passwords.follow())
        finally:
            self._is_following = False
            self._cache.disconnect()

    async def capacity(self) -> Capacity:
        """Count the game servers: those that the watch has shown, or those in the status of the Fleet.

        FleetUnavailableError if they are unknown. While the fleet is followed this does not call the cluster.
        """
        if self._is_following:
            if not self._cache.is_listed:
                raise FleetUnavailableError(self.fault or "The game servers are not known yet.")
            return self.capacity_now
        try:
            status = (await self._client.fleet(self._options.fleet)).status
        except KubernetesError as exc:
            raise FleetUnavailableError(await self._fleet_sentence(exc)) from exc
        return Capacity(ready=status.ready_replicas, allocated=status.allocated_replicas, total=status.replicas)

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        """Find or allocate the server of a match, and give it the password of the match; None if none is free.

        After a FleetError a server may be held: release it by the id of the match.
        """
        if not is_label_value(order.server_id):
            raise FleetError(f"the id {order.server_id!r} is not a valid value of a label in Kubernetes")
        secrets = self._passwords.read()
        is_new = not (order.is_repeated or order.slot or self.holds(order.server_id))
        async with self._passwords.turn() if is_new else nullcontext():
            obtained = await self._allocations.obtain(order)
            if obtained is None:
                return None
            place, is_found = obtained
            server = self._game_server(place, order)
            passwords = first_passwords(secrets, place.name)
            address = ConsoleAddress(server.rcon_host, server.rcon_port, passwords, order.rcon_password)
            try:
                await self._passwords.replace(place.name, address, is_found=is_found)
            except FleetError as exc:
                raise type(exc)(f"GameServer {place.name}: {exc}") from exc
            return server

    async def wait_gone(self, server_id: str, slot: str) -> str:
        """Wait until the server is deleted, is being deleted or has failed, and return which of them.

        Meanwhile other servers of the match are deleted: a call whose process died may allocate one later.
        """
        while True:
            if slot:
                self._allocations.keep(server_id, slot)
            with self._cache.waiting_for(slot) as gone:
                reason = await self._known_reason(server_id, slot)
                if reason is not None:
                    return reason
                # The pause is only needed if the watch does not show this server.
                done, _ = await asyncio.wait([gone], timeout=GONE_POLL_S * random.uniform(0.8, 1.2))
                if done:
                    return gone.result()

    def holds(self, server_id: str) -> bool:
        """True if a server is known to be allocated to a match."""
        return self._allocations.holds(server_id)

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        """Report what the watch shows, or what the cluster answers if the watch does not show the server."""
        try:
            reason = await self._read_known_reason(server_id, slot)
        except KubernetesError:
            return FleetReport.UNKNOWN
        return FleetReport.ALIVE if reason is None else FleetReport.GONE

    async def release(self, server_id: str, slot: str) -> None:
        """Delete all servers of the match, found by its id, and confirm that each is gone or being deleted.

        Usually that is one, of the name `slot`. FleetError if it cannot be confirmed.
        """
        if not is_label_value(server_id):
            return
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._options.release_s
        for number in count():
            cause: KubernetesError | None = None
            try:
                if not await self._delete_all(server_id):
                    self._allocations.forget(server_id)
                    return
            except (RejectedError, ClusterConfigError) as exc:
                raise unavailable(exc, DELETE_SERVER) from exc
            except KubernetesError as exc:
                cause = exc
            if loop.time() >= deadline_s:
                raise FleetError(
                    f"the deletion of GameServer {slot} is not confirmed: {cause or 'it still exists'}"
                ) from cause
            if cause is not None or number:  # the first deletion is confirmed at once
                await asyncio.sleep(RELEASE_PAUSE_S * random.uniform(0.5, 1.0))

    async def servers(self) -> Sequence[ListedServer]:
        """Return the servers of this region, and those that other installations use in the same Fleet."""
        try:
            lists = [
                await self._client.servers(labels)
                for labels in ({REGION_LABEL: self._options.region}, self._options.server_labels)
            ]
        except KubernetesError as exc:
            raise unavailable(exc, LIST_SERVERS) from exc
        found = {server.metadata.name: server for one in lists for server in one.items or ()}
        now_s = time.time()
        listed = [listed_server(found[name], self._options, now_s) for name in sorted(found)]
        return [one for one in listed if one is not None]

    async def close(self) -> None:
        """Close the connections to the cluster; the game servers stay."""
        await self._allocations.close()
        await self._client.close()

    def _game_server(self, place: Place, order: ServerOrder) -> GameServer:
        options = self._options
        host = choose_address(place, options.address_types)
        port = choose_port(place, options.port_name, "udp")
        console = console_of(place, options)
        if port is None:
            raise FleetError(f"GameServer {place.name} has no port")
        if host is None or console is None:
            raise FleetError(f"GameServer {place.name} has no address of type {', '.join(options.address_types)}")
        console_host, console_port = console
        return GameServer(
            ip=host,
            port=port,
            rcon_host=console_host,
            rcon_port=console_port,
            rcon_password=order.rcon_password,
            slot=place.name,
        )

    async def _known_reason(self, server_id: str, slot: str) -> str | None:
        """Return why the server is gone; None if it is not, or if that is not known."""
        try:
            return await self._read_known_reason(server_id, slot)
        except KubernetesError as exc:
            _log.debug("server state unknown", extra={"server_id": server_id, "slot": slot, "error": str(exc)})
            return None

    async def _read_known_reason(self, server_id: str, slot: str) -> str | None:
        known = self._cache.find(server_id, slot)
        return await self._read_reason(server_id, slot) if known is None else gone_reason(known)

    async def _read_reason(self, server_id: str, slot: str) -> str | None:
        if not is_label_value(server_id) or (slot and not is_object_name(slot)):
            return "there is no such GameServer"
        if not slot:
            reasons = [gone_reason(one) for one in await self._allocations.servers_of(server_id)]
            return None if None in reasons else next(iter(reasons), DELETED)
        try:
            server = await self._client.server(slot)
        except NotFoundError as exc:
            if not is_missing(exc):
                raise
            return DELETED
        is_its = may_be_ours(server, self._options) and server_id_of(server) == server_id
        return gone_reason(server) if is_its else "the GameServer belongs to no or another match"

    async def _delete_all(self, server_id: str) -> bool:
        """Delete the servers of a match that are not being deleted; False if there were none."""
        listed = await self._allocations.servers_of(server_id)
        left = [one.metadata for one in listed if one.metadata.deletion_timestamp is None]
        for server in left:
            try:
                await self._client.delete_server(server.name, uid=server.uid)
            except (NotFoundError, ConflictError):  # it is gone, or another one has its name
                continue
        return bool(left)

    async def _fleet_sentence(self, error: KubernetesError) -> str:
        # Without a connection there is no namespace, but its sentence does not need one either.
        namespace = await self._client.namespace() if is_missing(error) else ""
        return fleet_sentence(error, self._options.fleet, namespace)

    async def _known_fleets(self) -> str:
        try:
            names = [fleet.metadata.name for fleet in (await self._client.fleets()).items or ()]
        except KubernetesError:
            return ""
        return f" Fleets there: {', '.join(sorted(names))}." if names else " It has none."

    async def _missing_rights(self) -> list[str]:
        try:
            missing = [right for right in RIGHTS if not await self._client.may(right.verb, right.group, right.resource)]
        except KubernetesError:
            return []  # whether we have them shows when they are used
        return [f"The account of the service lacks the right to {right}." for right in missing]

    async def _follow_fleet(self) -> None:
        """Record whether the Fleet exists: Agones answers an allocation from a missing one as if it were full."""
        while True:
            pause_s = FLEET_POLL_S
            try:
                await self._client.fleet(self._options.fleet)
                self._cache.set_fleet_fault(None)
            except KubernetesError as exc:
                pause_s = MISSING_FLEET_POLL_S
                if is_missing(exc):  # the watch reports anything else
                    self._cache.set_fleet_fault(await self._fleet_sentence(exc))
            except Exception:  # noqa: BLE001 - the loop must survive
                _log.exception("fleet check failed")
            await asyncio.sleep(pause_s)
