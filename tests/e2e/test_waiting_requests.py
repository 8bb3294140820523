"""Requests that wait for their turn, over real sockets: clients that go away, and a service that stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx
import msgspec

from matchpod.app.http_server import DEFAULT_PATIENCE
from matchpod.service.fair_turns import FairTurns, TurnLimits
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web import create_web
from matchpod.web.handlers.ops import METRICS_PER_S
from matchpod.web.request_turns import NO_KEY
from matchpod.web.services import METRICS_WAIT_S
from tests.e2e.listening import Listening, listening
from tests.unit.web import sites
from tests.unit.web.sites import Site
from tests.waiting import until

site = sites.site

TIMEOUT_S = 120.0
REQUEST = b"GET /api/v1/regions HTTP/1.1\r\nHost: x\r\n\r\n"
CLIENTS = 20


class Clients:
    """Clients of the server, and the turns that they wait for."""

    def __init__(self, turns: FairTurns, server: Listening) -> None:
        self.turns = turns
        self.server = server
        self._opened: list[asyncio.StreamWriter] = []

    async def send(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        self._opened.append(writer)
        writer.write(data)
        return reader, writer

    async def close(self) -> None:
        for writer in self._opened:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def run(site: Site, scenario: Callable[[Clients], Awaitable[None]]) -> None:
    """Run a scenario on a server all of whose turns for requests without a key are taken."""
    turns = FairTurns(TurnLimits(wait_s=3600.0))
    app = create_web(msgspec.structs.replace(site.services, fair_turns=turns, metrics=Registry()))

    async def main() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            for _ in range(turns.limits.of_key):
                while not turns.begin(NO_KEY):
                    await asyncio.sleep(0)
            async with listening(app) as server:
                clients = Clients(turns, server)
                await scenario(clients)
            await clients.close()

    site.run(main())


def test_client_that_goes_away_frees_its_place_in_the_queue(site: Site) -> None:
    async def scenario(clients: Clients) -> None:
        opened = [await clients.send(REQUEST) for _ in range(CLIENTS)]
        await until(lambda: clients.turns.waiting == CLIENTS)
        for _, writer in opened[1:]:
            writer.transport.abort()
        await until(lambda: clients.turns.waiting == 1)
        clients.turns.end(NO_KEY)
        assert (await opened[0][0].readuntil(b"\r\n")) == b"HTTP/1.1 200 OK\r\n"
        opened[0][1].close()
        await clients.server.until_idle()

    run(site, scenario)


def test_waiting_request_is_answered_while_the_service_stops(site: Site) -> None:
    async def scenario(clients: Clients) -> None:
        reader, _ = await clients.send(REQUEST)
        await until(lambda: clients.turns.waiting)
        closing = asyncio.ensure_future(clients.server.connections.close(TIMEOUT_S))
        await asyncio.sleep(0)
        clients.turns.end(NO_KEY)
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")
        await closing

    run(site, scenario)


def test_requests_that_get_no_turn_do_not_keep_the_service_from_stopping(site: Site) -> None:
    turns_of: list[FairTurns] = []

    async def scenario(clients: Clients) -> None:
        turns_of.append(clients.turns)
        for _ in range(CLIENTS):
            await clients.send(REQUEST)
        await until(lambda: clients.turns.waiting == CLIENTS)

    began_s = time.monotonic()
    run(site, scenario)
    assert time.monotonic() - began_s >= DEFAULT_PATIENCE.closing_s
    assert not turns_of[0].waiting


def test_pipelined_requests_take_one_turn_after_the_other(site: Site) -> None:
    async def scenario(clients: Clients) -> None:
        reader, writer = await clients.send(REQUEST * 5)
        await until(lambda: clients.turns.waiting)
        assert clients.turns.waiting == 1
        clients.turns.end(NO_KEY)
        for _ in range(5):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0]))
        writer.close()

    run(site, scenario)


def test_flood_for_the_metrics_does_not_starve_a_scraper_behind_the_same_proxy(site: Site) -> None:
    async def flood() -> list[int]:
        async with listening(create_web(msgspec.structs.replace(site.services, metrics=Registry()))) as server:
            url, limits = f"http://127.0.0.1:{server.port}/metrics", httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(timeout=TIMEOUT_S, limits=limits) as client:

                async def get(address: str) -> int:
                    return (await client.get(url, headers={"X-Forwarded-For": address})).status_code

                async def stranger() -> None:
                    while True:
                        await get("203.0.113.9")

                async with asyncio.TaskGroup() as tasks:
                    count = METRICS_PER_S + int(METRICS_WAIT_S * METRICS_PER_S) + 20
                    strangers = [tasks.create_task(stranger()) for _ in range(count)]
                    scraped = [await get("203.0.113.7") for _ in range(4)]
                    for task in strangers:
                        task.cancel()
        return scraped

    assert site.run(flood()) == [200] * 4
