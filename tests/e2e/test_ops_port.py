"""The port for probes and metrics: probes are answered whatever others do there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
import pytest

from matchpod.app.serving import OPS_LIMITS, OPS_PATIENCE, OPS_PER_ADDRESS, PROBES_PER_ADDRESS
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web import Limits, create_web
from matchpod.web.handlers.ops import METRICS_PER_S
from matchpod.web.routes import OPS_ENDPOINTS
from tests.e2e.listening import Listening, listening
from tests.unit.web import sites
from tests.unit.web.sites import Site
from tests.waiting import until

TIMEOUT_S = 120.0
METRICS = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
LIVENESS = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
READINESS = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
FLOODERS = 36
PIPELINED = 16
PROBES = 24

Scenario = Callable[[Listening], Awaitable[None]]
Run = Callable[[Scenario], None]


async def probe(port: Listening, request: bytes = LIVENESS) -> int:
    return await (await port.connect(request)).status()


async def flood_metrics(port: Listening) -> None:
    """Send requests for the metrics without reading the answers, on a new connection whenever one is closed."""
    while True:
        with suppress(OSError):
            client = await port.connect()
            while not client.is_closing:
                client.send(METRICS * PIPELINED)
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)


site = sites.site_on_loops


@pytest.fixture
def run(site: Site) -> Run:
    limits = Limits(max_body_bytes=1, metrics_wait_s=0.0)
    services = msgspec.structs.replace(site.services, limits=limits, metrics=Registry())
    app = create_web(services, endpoints=OPS_ENDPOINTS)

    async def main(scenario: Scenario) -> None:
        opened = listening(app, OPS_LIMITS, patience=OPS_PATIENCE)
        async with asyncio.timeout(TIMEOUT_S), opened as server:
            await scenario(server)

    return lambda scenario: site.run(main(scenario))


def test_probes_are_answered_under_a_flood_of_pipelined_metrics_from_the_same_address(run: Run) -> None:
    async def scenario(port: Listening) -> None:
        floods = [asyncio.ensure_future(flood_metrics(port)) for _ in range(FLOODERS)]
        try:
            await until(lambda: port.metrics.text().count('why="address"} 0') == 0)  # some were closed
            for request in (LIVENESS, READINESS):
                assert [await probe(port, request) for _ in range(PROBES)] == [200] * PROBES
                assert await asyncio.gather(*(probe(port, request) for _ in range(PROBES))) == [200] * PROBES
        finally:
            for flood in floods:
                flood.cancel()
            await asyncio.gather(*floods, return_exceptions=True)

    run(scenario)


def test_silent_connections_take_no_place_of_a_probe(run: Run) -> None:
    async def scenario(port: Listening) -> None:
        for part in (b"", b"GET /metrics HT", b"GET /healthzz HTTP/1.1\r\n", b"POST /healthz HTTP/1.1\r\n"):
            for _ in range(2 * OPS_LIMITS.total):
                await port.connect(part)
        assert await asyncio.gather(*(probe(port) for _ in range(PROBES))) == [200] * PROBES

    run(scenario)


def test_unfinished_probes_of_an_address_leave_places_for_those_of_others(run: Run) -> None:
    async def scenario(port: Listening) -> None:
        assert OPS_LIMITS.probes is not None
        for _ in range(2 * OPS_LIMITS.probes.total):
            await port.connect(b"GET /healthz HTTP/1.1\r\n")
        connections = port.connections
        await until(lambda: len(connections.open) >= PROBES_PER_ADDRESS)
        assert connections.admit("203.0.113.7", LIVENESS) is not None

    run(scenario)


def test_address_has_at_most_eight_connections(run: Run) -> None:
    async def scenario(port: Listening) -> None:
        assert OPS_PER_ADDRESS == 8
        clients = [await port.connect(b"GET /metr") for _ in range(3 * OPS_PER_ADDRESS)]
        for client in clients[OPS_PER_ADDRESS:]:
            assert await client.rest() == b""
        for client in clients[:OPS_PER_ADDRESS]:
            client.send(b"ics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await client.status() == 200

    run(scenario)


def test_place_of_a_probe_is_for_one_request(run: Run) -> None:
    async def scenario(port: Listening) -> None:
        client = await port.connect(LIVENESS)
        assert await client.status() == 200
        assert b"\r\nconnection: close\r\n" in client.head
        assert await client.rest() == b""
        metrics = await port.connect(METRICS)
        assert [await metrics.status()] == [200]
        metrics.send(LIVENESS)
        assert await metrics.status() == 200
        metrics.send(METRICS)
        assert await metrics.status() == 200

    run(scenario)


def test_requests_are_not_pipelined(run: Run) -> None:
    async def scenario(port: Listening) -> None:
        client = await port.connect(METRICS * PIPELINED)
        assert await client.status() == 200
        assert await client.rest() == b""

    run(scenario)


def test_metrics_that_are_asked_for_too_often_are_rejected_at_once(run: Run) -> None:
    async def scenario(port: Listening) -> None:
        client = await port.connect()
        statuses = [200]
        while statuses[-1] == 200:  # each that waited would be one that passes
            client.send(METRICS)
            statuses.append(await client.status())
        assert len(statuses) > METRICS_PER_S + 1
        assert statuses[-1] == 429
        assert b"\r\nretry-after: 1\r\n" in client.head

    run(scenario)
