"""Too many connections over real sockets: who is served, who is rejected, and what happens without open files."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import uvloop

from matchpod.app.http_server import ACCEPT_PAUSE_S, DEFAULT_PATIENCE
from matchpod.web.http.admission import ADDRESS_EXCESS, ConnectionLimits
from matchpod.web.http.asgi import Receive, Scope, Send
from matchpod.web.http.connections import Patience
from tests.e2e.listening import Client, Listening, listening
from tests.open_files import no_more_files
from tests.waiting import until

TIMEOUT_S = 120.0
LIMITS = ConnectionLimits(total=16)
"""Of these, 14 are ordinary and 2 reserved."""
FAR_AWAY = "203.0.113.7"
PER_ADDRESS = 4

Scenario = Callable[["Server"], Awaitable[None]]
Run = Callable[..., None]


def request(path: str, forwarded_for: str | None = None) -> bytes:
    header = "" if forwarded_for is None else f"X-Forwarded-For: {forwarded_for}\r\n"
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode()


class Server:
    """The listening server, and the requests that it holds back."""

    def __init__(self, server: Listening, release: asyncio.Event, held: list[str]) -> None:
        self._server = server
        self.port = server.port
        self.connections = server.connections
        self.connect = server.connect
        self.release = release
        self._held = held

    async def get(self, path: str, *, forwarded_for: str | None = None) -> tuple[int, Client]:
        client = await self.connect(request(path, forwarded_for))
        return await client.status(), client

    async def hold(self, count: int, path: str = "/hold", *, forwarded_for: str | None = None) -> None:
        """Open connections, each with a request in progress."""
        before, clients = len(self._held), [await self.connect() for _ in range(count)]
        for client in clients:
            client.send(request(path, forwarded_for))
        await until(lambda: len(self._held) == before + count)

    def metric(self, name: str) -> float:
        lines = dict(line.rsplit(" ", 1) for line in self._server.metrics.text().splitlines() if line[0] != "#")
        return float(lines.get(name, 0))


def run_on(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
    scenario: Scenario,
    *,
    limits: ConnectionLimits = LIMITS,
    host: str = "127.0.0.1",
    patience: Patience = DEFAULT_PATIENCE,
    accept_pause_s: float = ACCEPT_PAUSE_S,
) -> None:
    async def main() -> None:
        release, held = asyncio.Event(), list[str]()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"].endswith("/hold"):
                held.append(scope["path"])
                await release.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ok"})

        opened = listening(app, limits, host=host, patience=patience, accept_pause_s=accept_pause_s)
        async with asyncio.timeout(TIMEOUT_S), opened as listener:
            try:
                await scenario(Server(listener, release, held))
            finally:
                release.set()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


@pytest.fixture(
    params=[uvloop.new_event_loop, pytest.param(asyncio.new_event_loop, marks=pytest.mark.soak)],
    ids=["uvloop", "asyncio"],
)
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario on the event loop of the service, in `make soak` also on that of Python."""
    return partial(run_on, request.param)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert [one for one in caplog.records if one.levelno > logging.WARNING] == []
    return [one.message for one in caplog.records if one.levelno == logging.WARNING]


def test_new_connection_replaces_the_one_that_has_been_idle_longest(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(server: Server) -> None:
        idle = [(await server.get("/x"))[1] for _ in range(LIMITS.ordinary)]
        idle[0].send(request("/again"))
        assert await idle[0].status() == 200

        assert (await server.get("/new"))[0] == 200
        assert await idle[1].rest() == b""
        for client in (idle[0], *idle[2:]):
            client.send(request("/still"))
            assert await client.status() == 200
        assert server.metric("matchpod_connections") == LIMITS.ordinary
        assert server.metric('matchpod_connections_rejected_total{why="idle"}') == 1

    run(scenario, patience=Patience(fresh_s=0.0))
    assert warnings(caplog) == ["idle connections closed: limit reached"]


def test_unfinished_heads_keep_no_place(run: Run) -> None:
    async def scenario(server: Server) -> None:
        for _ in range(3 * LIMITS.total):
            await server.connect(b"GET / HT")
        assert (await server.get("/x"))[0] == 200
        assert len(server.connections.open) <= LIMITS.ordinary

    run(scenario, patience=Patience(fresh_s=0.0))


def test_only_game_servers_and_probes_are_answered_if_all_ordinary_places_are_in_use(
    run: Run,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(server: Server) -> None:
        await server.hold(LIMITS.ordinary)
        for path in ("/ingest/logs/abc", "/healthz", "/readyz", "/metrics"):
            assert (await server.get(path))[0] == 200
        for _ in range(3):
            status, client = await server.get("/api/v1/regions")
            assert status == 503
            assert b"\r\nretry-after: 5\r\n" in client.head
            body = json.loads(client.body)
            assert (body["statusCode"], body["error"]) == (503, "SERVICE_UNAVAILABLE")
            assert body["requestId"].encode() in client.head
            assert await client.rest() == b""
        assert server.metric('matchpod_connections_rejected_total{why="limit"}') == 3

        server.release.set()
        await until(lambda: not server.connections.tasks)
        assert (await server.get("/api/v1/regions"))[0] == 200

    run(scenario)
    assert warnings(caplog).count("connections rejected: limit reached") == 1


def test_silent_clients_do_not_keep_game_servers_out_of_the_reserved_places(run: Run) -> None:
    async def scenario(server: Server) -> None:
        await server.hold(LIMITS.ordinary)
        for _ in range(3 * LIMITS.total):
            await server.connect()
        assert (await server.get("/ingest/logs/abc"))[0] == 200

    run(scenario)


def test_fresh_connections_are_not_replaced_while_reserved_places_are_left(run: Run) -> None:
    async def scenario(server: Server) -> None:
        await server.hold(LIMITS.ordinary)
        game_servers = [await server.connect() for _ in range(LIMITS.total - LIMITS.ordinary)]
        for client in game_servers:
            client.send(request("/ingest/logs/abc"))
            assert await client.status() == 200

    run(scenario, patience=Patience(fresh_s=TIMEOUT_S))


def test_connection_without_any_place_is_closed_at_once(run: Run) -> None:
    async def scenario(server: Server) -> None:
        await server.hold(LIMITS.ordinary)
        for _ in range(LIMITS.total - LIMITS.ordinary):
            await server.hold(1, "/ingest/hold")
        client = await server.connect()
        client.send(request("/ingest/logs/abc"))
        assert await client.rest() == b""
        assert len(server.connections.open) == LIMITS.total

    run(scenario)


def test_address_has_a_limit_that_game_servers_are_exempt_from(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(server: Server) -> None:
        for _ in range(20):
            assert (await server.get("/ingest/logs/abc"))[0] == 200
        await server.hold(PER_ADDRESS)
        status, client = await server.get("/api/v1/regions")
        assert status == 503
        assert f"More than {PER_ADDRESS} connections" in json.loads(client.body)["message"]
        assert await client.rest() == b""
        assert (await server.get("/ingest/logs/abc"))[0] == 200

    run(scenario, limits=ConnectionLimits(total=64, per_address=PER_ADDRESS), host=FAR_AWAY)
    (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert warning.message == "connections rejected: limit of an address reached"
    assert vars(warning)["address"] == FAR_AWAY


def test_address_far_over_its_limit_is_not_answered_and_takes_no_place_of_others(run: Run) -> None:
    async def scenario(server: Server) -> None:
        for _ in range(50):
            await server.connect()
        await until(lambda: server.metric('matchpod_connections_rejected_total{why="address"}') > 0)
        assert len(server.connections.open) <= ADDRESS_EXCESS * PER_ADDRESS
        assert server.metric('matchpod_connections_rejected_total{why="idle"}') == 0

    run(scenario, limits=ConnectionLimits(total=64, per_address=PER_ADDRESS), host=FAR_AWAY)


# --- open files -------------------------------------------------------------------------------------------------------


def test_without_open_files_accepting_pauses_and_clients_are_served_later(
    run: Run,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(server: Server) -> None:
        _, idle = await server.get("/x")
        sockets = [socket.socket() for _ in range(3)]
        failed = 'matchpod_connections_rejected_total{why="files"}'
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        with no_more_files():
            for one in sockets:
                one.setblocking(False)
                await loop.sock_connect(one, ("127.0.0.1", server.port))
            await until(lambda: server.metric(failed) >= 3)
            assert server.metric(failed) <= 1 + (loop.time() - started_s) / 0.1
        assert await idle.rest() == b""
        for one in sockets:
            client = Client(*await asyncio.open_connection(sock=one))
            client.send(request("/x"))
            assert await client.status() == 200
            client.close()

    run(scenario, accept_pause_s=0.1)
    assert warnings(caplog).count("accepting connections paused") == 1


def test_requests_through_a_proxy_count_for_their_clients(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(server: Server) -> None:
        await server.hold(PER_ADDRESS, forwarded_for=FAR_AWAY)
        status, client = await server.get("/api/v1/regions", forwarded_for=f"198.51.100.9, {FAR_AWAY}")
        assert status == 503
        assert f"More than {PER_ADDRESS} requests" in json.loads(client.body)["message"]
        assert (await server.get("/ingest/logs/abc", forwarded_for=FAR_AWAY))[0] == 200
        assert (await server.get("/metrics", forwarded_for=FAR_AWAY))[0] == 200
        for other in ("203.0.113.8", None):
            await server.hold(PER_ADDRESS, forwarded_for=other)

        server.release.set()
        await until(lambda: not server.connections.tasks)
        for _ in range(2 * PER_ADDRESS):
            assert (await server.get("/api/v1/regions", forwarded_for=FAR_AWAY))[0] == 200

    run(scenario, limits=ConnectionLimits(total=64, per_address=PER_ADDRESS))
    (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert vars(warning)["address"] == FAR_AWAY


def test_proxies_that_are_not_trusted_count_themselves(run: Run) -> None:
    async def scenario(server: Server) -> None:
        await server.hold(PER_ADDRESS, forwarded_for=FAR_AWAY)
        assert (await server.get("/api/v1/regions", forwarded_for="203.0.113.8"))[0] == 503

    limits = ConnectionLimits(total=64, per_address=PER_ADDRESS, trusted_proxies=())
    run(scenario, limits=limits, host="198.51.100.1")
