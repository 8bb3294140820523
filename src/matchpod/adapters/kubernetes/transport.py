"""Send HTTP requests to a cluster. Only this module imports httpx, whose import takes a quarter of a second.

The module converts httpx's errors to ours. Redirects are not followed, and proxies in the environment are not used.
When a busy server asks its clients to wait (Retry-After), this process sends it no requests until the wait is over, or
until the server turns out to have been only starting.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from socket import gaierror

import httpx

from matchpod.adapters.kubernetes.api_errors import (
    ApiError,
    ApiUnauthorizedError,
    ClusterConfigError,
    KubernetesError,
    UnreachableError,
    error_of,
)
from matchpod.adapters.kubernetes.busy_server import PROBE_S, BusyServer
from matchpod.adapters.kubernetes.cluster import Cluster
from matchpod.adapters.kubernetes.cluster_meter import NO_ANSWER, ClusterMeter
from matchpod.adapters.kubernetes.credentials import Credentials, Login
from matchpod.adapters.kubernetes.objects import ApiRequest
from matchpod.adapters.kubernetes.tls import tls_context

CONNECT_S = 5.0
"""Timeout in seconds for opening a connection."""

MAX_CONNECTIONS = 64
"""Maximum number of connections to a cluster. More requests wait for a connection, within their timeouts."""

READY_S = 2.0
"""Timeout in seconds for a readiness probe."""

MAX_WAIT_S = 5.0
"""Maximum time in seconds for which a request is delayed by Retry-After. If the remaining wait is longer, the request
fails at once."""

_READY = ApiRequest(method="GET", path="/readyz", timeout_s=READY_S)
_TOKEN = re.compile(r"[!-~]+")


class _Pool:
    """Connections with the same client certificate. A retired pool is closed when its last request has ended."""

    def __init__(self, client: httpx.AsyncClient, pair: Login) -> None:
        self.client = client
        self.pair = pair
        self.active = 0
        self.is_retired = False


class HttpTransport:
    def __init__(self, cluster: Cluster, meter: ClusterMeter | None = None) -> None:
        self._cluster = cluster
        self._meter = meter or ClusterMeter()
        self._credentials = Credentials(cluster.account)
        self._pool: _Pool | None = None
        self._pools: set[_Pool] = set()
        self._user_agent = f"matchpod/{version('matchpod')}"
        self._busy = BusyServer()

    async def send(self, request: ApiRequest) -> bytes:
        """Send a request and return the body of the response; raise a KubernetesError if it is not successful.

        If the server answers with Retry-After, a GET request is sent once more after the wait.
        """
        await self._credentials.login()  # not within the request's timeout, because an exec program may take longer
        try:
            async with asyncio.timeout(request.timeout_s):
                try:
                    return await self._send_once(request)
                except ApiError as exc:
                    if request.method != "GET" or exc.retry_after_s is None:
                        raise
                return await self._send_once(request)
        except TimeoutError as exc:
            raise UnreachableError(f"{self._cluster.server} did not answer within {request.timeout_s:g} s") from exc

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[httpx.Response]:
        """Send a request and yield the response if it is successful. The caller reads its body with `chunks`."""
        await self._wait_while_busy()
        for is_last in (False, True):
            login = await self._credentials.login()
            async with self._pool_for(login) as pool:
                response = await self._begin(request, login, pool)
                try:
                    if response.is_success:
                        yield response
                        return
                    retry_after = response.headers.get("Retry-After", "")
                    error = error_of(response.status_code, await self._read(response), retry_after)
                finally:
                    await response.aclose()
            if is_last or not isinstance(error, ApiUnauthorizedError):
                self._busy.note(error, asyncio.get_running_loop().time())
                raise error
            self._credentials.expire(login)

    async def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as exc:
            raise self._unreachable(exc) from _root_of(exc)

    async def close(self) -> None:
        self._pool = None
        while self._pools:
            await self._pools.pop().client.aclose()

    async def _send_once(self, request: ApiRequest) -> bytes:
        async with self.stream(request) as response:
            return await self._read(response)

    async def _wait_while_busy(self) -> None:
        """Wait until Retry-After is over or the server has started. Raise ApiError if the wait exceeds MAX_WAIT_S."""
        clock = asyncio.get_running_loop().time
        while self._busy.wait_s(clock()):
            if self._busy.is_probe_due(clock()):
                self._busy.probed(is_ready=await self._is_ready())
            wait_s = self._busy.wait_s(clock())
            if wait_s > MAX_WAIT_S:
                raise self._busy.answer(clock())
            await asyncio.sleep(min(wait_s, PROBE_S))

    async def _is_ready(self) -> bool:
        """Send a readiness probe; return whether the server is ready. Probes may be sent while the server is busy."""
        try:
            async with asyncio.timeout(READY_S):
                login = await self._credentials.login()
                async with self._pool_for(login) as pool:
                    response = await self._begin(_READY, login, pool)
                    await response.aclose()
        except (KubernetesError, TimeoutError):
            return False
        return response.is_success

    async def _read(self, response: httpx.Response) -> bytes:
        try:
            return await response.aread()
        except httpx.HTTPError as exc:
            raise self._unreachable(exc) from _root_of(exc)

    async def _begin(self, request: ApiRequest, login: Login, pool: _Pool) -> httpx.Response:
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if login.token:
            if not _TOKEN.fullmatch(login.token):  # checked here, because the error of httpx would contain the token
                raise ClusterConfigError("The token contains characters that cannot be sent")
            headers["Authorization"] = f"Bearer {login.token}"
        if request.body is not None:
            # Agones answers an allocation that has no content type with status 500.
            headers["Content-Type"] = request.content_type
        try:
            built = pool.client.build_request(
                request.method,
                self._cluster.server + request.path,
                params=dict(request.query),
                content=request.body,
                headers=headers,
                timeout=httpx.Timeout(request.timeout_s, connect=CONNECT_S),
            )
            if self._cluster.tls_server_name:
                built.extensions["sni_hostname"] = self._cluster.tls_server_name
            code = NO_ANSWER
            try:
                response = await pool.client.send(built, stream=True)
                code = str(response.status_code)
            finally:  # also counts requests that were cancelled by a timeout
                self._meter.requested(request.verb, code)
            return response
        except httpx.InvalidURL as exc:
            raise ClusterConfigError(f"{self._cluster.server} is not a valid URL of a cluster") from exc
        except httpx.HTTPError as exc:
            if any(isinstance(cause, ssl.SSLError) for cause in _causes(exc)):
                self._retire(pool)  # the next pool reads the certificate files, which may have been replaced
            raise self._unreachable(exc) from _root_of(exc)

    @asynccontextmanager
    async def _pool_for(self, login: Login) -> AsyncIterator[_Pool]:
        """Provide the connection pool for a request. If the pool is retired during the request, close it at the end."""
        pair = Login(None, login.certificate, login.key)
        pool = self._pool
        if pool is None or pool.pair != pair:
            context = await asyncio.to_thread(tls_context, self._cluster, login)
            old, pool = self._pool, self._pool
            if pool is None or pool.pair != pair:
                self._pool = pool = _Pool(self._new_client(context), pair)
                self._pools.add(pool)
            if old is not None and old is not pool:
                old.is_retired = True
                await self._close_unused(old)
        pool.active += 1
        try:
            yield pool
        finally:
            pool.active -= 1
            await self._close_unused(pool)

    def _retire(self, pool: _Pool) -> None:
        pool.is_retired = True
        if self._pool is pool:
            self._pool = None

    async def _close_unused(self, pool: _Pool) -> None:
        if pool.is_retired and pool.active == 0:
            self._pools.discard(pool)
            await pool.client.aclose()

    def _new_client(self, context: ssl.SSLContext) -> httpx.AsyncClient:
        try:
            return httpx.AsyncClient(
                verify=context,
                proxy=self._cluster.proxy_url,
                trust_env=False,
                limits=httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS // 4),
            )
        except (ValueError, ImportError, httpx.InvalidURL) as exc:  # the message of `exc` may contain a password
            raise ClusterConfigError(f"The proxy-url of {self._cluster.server} is not a URL of a proxy") from exc

    def _unreachable(self, exc: httpx.HTTPError) -> UnreachableError:
        root = _root_of(exc)
        reason = _words(root) if isinstance(root, OSError) else str(exc).rstrip(".") or type(exc).__name__
        return UnreachableError(f"{self._cluster.server} cannot be reached: {reason}")


def _root_of(exc: httpx.HTTPError) -> BaseException:
    """Return the OSError that caused an httpx error: only the OSError has a text like "Connection refused"."""
    errors = [cause for cause in _causes(exc) if isinstance(cause, OSError) and cause.strerror]
    return errors[-1] if errors else exc


def _words(error: OSError) -> str:
    has_own_numbers = isinstance(error, ssl.SSLError | gaierror)
    return str(error.strerror) if has_own_numbers or not error.errno else os.strerror(error.errno)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = exc
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
