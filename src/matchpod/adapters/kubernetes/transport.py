"""Send HTTP requests to a cluster. The only module that imports httpx, which takes a quarter of a second.

httpx's errors become ours here. Redirects are not followed, and proxies of the environment are not used.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError, UnauthorizedError, UnreachableError, error_of
from matchpod.adapters.kubernetes.api_request import ApiRequest
from matchpod.adapters.kubernetes.cluster import Cluster
from matchpod.adapters.kubernetes.credentials import Credentials, Login
from matchpod.adapters.kubernetes.tls import tls_context

CONNECT_S = 5.0
"""Time limit for a connection."""

MAX_CONNECTIONS = 64
"""Connections to one cluster; further requests wait, within their time limits."""


class HttpTransport:
    """The connections to one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._credentials = Credentials(cluster.account)
        self._client: httpx.AsyncClient | None = None
        self._client_login = Login()
        self._old_clients: list[httpx.AsyncClient] = []

    async def send(self, request: ApiRequest) -> bytes:
        """Send a request and return the body of a successful answer; otherwise raise a KubernetesError."""
        await self._credentials.login()  # has its own time limit, which may be longer
        try:
            async with asyncio.timeout(request.timeout_s):
                async with self.stream(request) as response:
                    return await self._read(response)
        except TimeoutError as exc:
            raise UnreachableError(f"{self._cluster.server} did not answer within {request.timeout_s:g} s") from exc

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[httpx.Response]:
        """Send a request and yield a successful response whose body is still to be read with `chunks`."""
        for is_last in (False, True):
            login = await self._credentials.login()
            response = await self._begin(request, login)
            try:
                if response.is_success:
                    yield response
                    return
                error = error_of(response.status_code, await self._read(response))
            finally:
                await response.aclose()
            if is_last or not isinstance(error, UnauthorizedError):
                raise error
            self._credentials.expire(login)

    async def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Yield the body of a response as it arrives."""
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as exc:
            raise self._unreachable(exc) from exc

    async def close(self) -> None:
        """Close all connections."""
        for client in (*self._old_clients, *([self._client] if self._client else [])):
            await client.aclose()
        self._client = None
        self._old_clients.clear()

    async def _read(self, response: httpx.Response) -> bytes:
        try:
            return await response.aread()
        except httpx.HTTPError as exc:
            raise self._unreachable(exc) from exc

    async def _begin(self, request: ApiRequest, login: Login) -> httpx.Response:
        client = await self._client_for(login)
        headers = {"Accept": "application/json", "User-Agent": "matchpod"}
        if login.token:
            headers["Authorization"] = f"Bearer {login.token}"
        if request.body is not None:
            # Without it, Agones answers an allocation with 500.
            headers["Content-Type"] = request.content_type
        built = client.build_request(
            request.method,
            self._cluster.server + request.path,
            params=dict(request.query),
            content=request.body,
            headers=headers,
            timeout=httpx.Timeout(request.timeout_s, connect=CONNECT_S),
        )
        if self._cluster.tls_server_name:
            built.extensions["sni_hostname"] = self._cluster.tls_server_name
        try:
            return await client.send(built, stream=True)
        except httpx.HTTPError as exc:
            if _is_tls_fault(exc) and self._client is client:
                self._retire()  # a certificate may have been replaced: read the files again
            raise self._unreachable(exc) from exc
        except UnicodeEncodeError as exc:
            raise ClusterConfigError("The token contains characters that cannot be sent") from exc

    async def _client_for(self, login: Login) -> httpx.AsyncClient:
        pair = Login(None, login.certificate, login.key)
        if self._client is not None and pair != self._client_login:
            self._retire()
        if self._client is None:
            context = await asyncio.to_thread(tls_context, self._cluster, login)
            if self._client is None:
                self._client = self._new_client(context)
                self._client_login = pair
        return self._client

    def _new_client(self, context: ssl.SSLContext) -> httpx.AsyncClient:
        try:
            return httpx.AsyncClient(
                verify=context,
                proxy=self._cluster.proxy_url,
                trust_env=False,
                limits=httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS // 4),
            )
        except (ValueError, ImportError, httpx.InvalidURL) as exc:
            raise ClusterConfigError(f"The proxy-url of {self._cluster.server} cannot be used: {exc}") from exc

    def _retire(self) -> None:
        """Use another client from now on; requests in progress keep theirs."""
        if self._client is not None:
            self._old_clients.append(self._client)
            self._client = None

    def _unreachable(self, exc: httpx.HTTPError) -> UnreachableError:
        reason = str(exc) or type(exc).__name__
        return UnreachableError(f"{self._cluster.server} cannot be reached: {reason}")


def _is_tls_fault(exc: BaseException) -> bool:
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
