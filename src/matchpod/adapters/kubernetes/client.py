"""Call the Kubernetes API of a cluster with Agones: allocate, read, watch and delete game servers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from matchpod.adapters.kubernetes.api_errors import ApiGoneError, MalformedAnswerError, UnreachableError, error_of_event
from matchpod.adapters.kubernetes.cluster import Cluster, ClusterSource, cluster_of_pod
from matchpod.adapters.kubernetes.cluster_meter import ClusterMeter, Verb
from matchpod.adapters.kubernetes.kubeconfig import read_kubeconfig
from matchpod.adapters.kubernetes.objects import (
    AccessReview,
    AgonesServer,
    Allocation,
    ApiRequest,
    FleetList,
    FleetObject,
    ServerList,
    WatchEvent,
)

if TYPE_CHECKING:
    from matchpod.adapters.kubernetes.transport import HttpTransport

CALL_S = 10.0
"""Timeout in seconds for a call. A page of a list, which may have some megabytes, gets twice as long."""

PAGE_SIZE = 500
"""Maximum number of objects per page of a list (the same as in other clients), because the server keeps a page in
memory."""

LIST_TRIES = 3
"""Number of attempts to read a list in pages. If pages expire each time, the list is then read as a single page."""

ALLOCATE_S = 15.0
"""Timeout in seconds for an allocation. Agones itself collects requests for half a second and retries conflicts."""

WATCH_S = 30
"""Time in seconds after which the server closes a watch. It is short, because a lost connection may go unnoticed until
then."""

WATCH_GRACE_S = 10.0
"""Additional time in seconds, after WATCH_S, for the server to close a watch. After it, the watch is treated as lost.
"""

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""Maximum number of bytes in a line of a watch. Kubernetes stores objects of at most 1.5 MB."""

ERROR_EVENT = "ERROR"

_METHODS = {Verb.CREATE: "POST", Verb.DELETE: "DELETE"}

_AGONES = "/apis/agones.dev/v1"
_ALLOCATION = "/apis/allocation.agones.dev/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

_Decoded = TypeVar("_Decoded")
_List = TypeVar("_List", ServerList, FleetList)


def load_cluster(source: ClusterSource, environment: Mapping[str, str]) -> Cluster:
    """Read the configuration of the cluster from its source; raise ClusterConfigError if the source cannot be used."""
    if source.kubeconfig is not None:
        return read_kubeconfig(source.kubeconfig, source.context)
    return cluster_of_pod(source.account_folder, environment)


def selector_text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


class KubernetesClient:
    """Calls a cluster. The first call reads the configuration. If it cannot be used, the next call reads it again."""

    def __init__(
        self,
        source: ClusterSource,
        *,
        namespace: str | None = None,
        call_s: float = CALL_S,
        allocate_s: float = ALLOCATE_S,
        watch_s: int = WATCH_S,
        watch_grace_s: float = WATCH_GRACE_S,
        page_size: int = PAGE_SIZE,
        meter: ClusterMeter | None = None,
    ) -> None:
        """Use this namespace for the game servers; if None, the namespace of the kubeconfig context or of the pod."""
        self.meter = meter or ClusterMeter()
        self._source = source
        self._own_namespace = namespace
        self._call_s = call_s
        self._allocate_s = allocate_s
        self._watch_s = watch_s
        self._watch_grace_s = watch_grace_s
        self._page_size = page_size
        self._transport: HttpTransport | None = None
        self._namespace = namespace or ""

    async def namespace(self) -> str:
        await self._connect()
        return self._namespace

    async def allocate(self, *, selector: Mapping[str, str], without: str, labels: Mapping[str, str]) -> Allocation:
        """Allocate a ready server that matches the selector and lacks the label `without`; set `labels` on it."""
        lacks = {"key": without, "operator": "DoesNotExist"}
        spec = {
            "selectors": [{"matchLabels": selector, "matchExpressions": [lacks], "gameServerState": "Ready"}],
            "scheduling": "Packed",
            "metadata": {"labels": labels},
        }
        body = {"apiVersion": "allocation.agones.dev/v1", "kind": "GameServerAllocation", "spec": spec}
        await self._connect()
        path = f"{_ALLOCATION}/namespaces/{self._namespace}/gameserverallocations"
        return await self._call(Verb.CREATE, path, body=body, timeout_s=self._allocate_s, answer=Allocation)

    async def server(self, name: str) -> AgonesServer:
        """Return a game server; raise ApiNotFoundError if it does not exist."""
        return await self._call(Verb.GET, await self._servers_path(name), answer=AgonesServer)

    async def servers(self, labels: Mapping[str, str]) -> ServerList:
        """Return all game servers that have these labels."""
        return await self._list_all(await self._servers_path(), ServerList, {"labelSelector": selector_text(labels)})

    async def version(self, labels: Mapping[str, str]) -> str:
        """Return the resource version of the list of game servers with these labels, without reading the whole list."""
        query = {"labelSelector": selector_text(labels), "limit": "1"}
        listed = await self._call(Verb.LIST, await self._servers_path(), query=query, answer=ServerList)
        return listed.metadata.resource_version

    async def delete_server(self, name: str, *, uid: str, version: str | None = None) -> None:
        """Delete a server. Raise ConflictError if its uid or version differs, ApiNotFoundError if it does not exist."""
        preconditions = {"uid": uid} if version is None else {"uid": uid, "resourceVersion": version}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        await self._call(Verb.DELETE, await self._servers_path(name), body=body, answer=msgspec.Raw)

    @asynccontextmanager
    async def watch_servers(self, labels: Mapping[str, str], version: str) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Yield the events since a version of the list. Raise ApiGoneError if it is too old; the caller lists again.

        The events end when the server closes the watch. The caller then starts a new watch from the last version.
        """
        query = {
            "labelSelector": selector_text(labels),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(self._watch_s),
        }
        path = await self._servers_path()
        request = ApiRequest(method="GET", verb=Verb.WATCH, path=path, query=query, timeout_s=self.watch_limit_s)
        transport = await self._connect()
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self._call_s):  # the server sends the response headers at once
                    response = await stack.enter_async_context(transport.stream(request))
            except TimeoutError as exc:
                raise UnreachableError(f"a watch did not begin within {self._call_s:g} s") from exc
            yield _events(transport.chunks(response))

    @property
    def watch_limit_s(self) -> float:
        """Time limit in seconds for a watch: after it, the connection must have been lost."""
        return self._watch_s + self._watch_grace_s

    async def fleet(self, name: str) -> FleetObject:
        """Return a Fleet; raise ApiNotFoundError if it does not exist."""
        await self._connect()
        return await self._call(Verb.GET, f"{_AGONES}/namespaces/{self._namespace}/fleets/{name}", answer=FleetObject)

    async def fleets(self) -> FleetList:
        await self._connect()
        return await self._list_all(f"{_AGONES}/namespaces/{self._namespace}/fleets", FleetList, {})

    async def may(self, verb: str, group: str, resource: str) -> bool:
        """True if our account may use this verb on this resource in the namespace."""
        await self._connect()
        attributes = {"namespace": self._namespace, "verb": verb, "group": group, "resource": resource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        review = await self._call(Verb.CREATE, _REVIEWS, body=body, answer=AccessReview)
        return review.status.allowed

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()

    async def _servers_path(self, name: str | None = None) -> str:
        await self._connect()
        path = f"{_AGONES}/namespaces/{self._namespace}/gameservers"
        return path if name is None else f"{path}/{quote(name, safe='')}"

    async def _list_all(self, path: str, answer: type[_List], query: Mapping[str, str]) -> _List:
        """Read a list page by page. If the next page has expired, start again: all pages must have the same version."""
        for _ in range(LIST_TRIES):
            try:
                return await self._list_pages(path, answer, {**query, "limit": str(self._page_size)})
            except ApiGoneError:
                continue
        return await self._list_pages(path, answer, query)

    async def _list_pages(self, path: str, answer: type[_List], query: Mapping[str, str]) -> _List:
        items: list[Any] = []
        page, asked = None, dict(query)
        while page is None or page.metadata.next_page:
            page = await self._call(Verb.LIST, path, query=asked, timeout_s=2 * self._call_s, answer=answer)
            items += page.items or ()
            asked["continue"] = page.metadata.next_page
        return msgspec.structs.replace(page, items=tuple(items))

    async def _connect(self) -> HttpTransport:
        if self._transport is None:
            cluster = await asyncio.to_thread(load_cluster, self._source, os.environ)
            # Imported here, because httpx is slow to import, and only services with an Agones region need it.
            from matchpod.adapters.kubernetes.transport import HttpTransport

            if self._transport is None:
                self._transport = HttpTransport(cluster, self.meter)
                self._namespace = self._own_namespace or cluster.namespace
        return self._transport

    async def _call(
        self,
        verb: Verb,
        path: str,
        *,
        answer: type[_Decoded],
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        timeout_s: float | None = None,
    ) -> _Decoded:
        transport = await self._connect()
        encoded = None if body is None else msgspec.json.encode(body)
        request = ApiRequest(
            method=_METHODS.get(verb, "GET"),
            verb=verb,
            path=path,
            query=query or {},
            body=encoded,
            timeout_s=timeout_s or self._call_s,
        )
        return _decode(await transport.send(request), answer)


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent]:
    """Yield the events of a watch, one per line. An ERROR event is raised as an exception."""
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        while (end := rest.find(b"\n")) >= 0:
            line = bytes(rest[:end])
            del rest[: end + 1]
            if line.strip():
                event = _decode(line, WatchEvent)
                if event.type == ERROR_EVENT:
                    raise error_of_event(bytes(event.object))
                yield event
        if len(rest) > MAX_EVENT_BYTES:
            raise MalformedAnswerError("a watch event is too long")


def _decode(body: bytes, answer: type[_Decoded]) -> _Decoded:
    try:
        return msgspec.json.decode(body, type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise MalformedAnswerError(f"the answer cannot be read: {exc}") from exc
