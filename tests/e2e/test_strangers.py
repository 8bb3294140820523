"""Clients that reset, disappear or speak another protocol, over real sockets: nothing of it is an error of the service."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from matchpod.web.http.asgi import Receive, Scope, Send
from matchpod.web.http.responses import CONNECTION
from tests.e2e.listening import Listening, listening
from tests.unit.web import histories, sites
from tests.unit.web.sites import Site
from tests.waiting import until

TIMEOUT_S = 120.0
AT_ONCE = 20
RESET = struct.pack("ii", 1, 0)
"""With this value of SO_LINGER, closing a socket sends a reset."""
LONG_LINE = b'{"type":"chat","text":"%b"}' % (b"x" * 4000)


site = sites.site_on_loops


def requests(site: Site, stream: str) -> Sequence[bytes]:
    """Return what the clients send: requests, parts of requests, and other protocols."""
    headers = f"Host: x\r\nAuthorization: Bearer {site.key}\r\n".encode()
    post = b"POST /api/v1/matches HTTP/1.1\r\n" + headers
    return (
        b"GET %b HTTP/1.1\r\n%b\r\n" % (stream.encode(), headers),
        b"GET /openapi.json HTTP/1.1\r\n%b\r\n" % headers,
        b"GET /openapi.json HTTP/1.1\r\n%b\r\n" % headers * 20,
        post + b"Content-Length: 100000\r\n\r\n" + b"a" * 5000,
        post + b"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"POST /ingest/logs/none HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" + b"a" * 100_000,
        b"GET /healthz HTTP/1.1\r\n",
        b"G",
        b"",
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 300,  # TLS
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    )


class Stranger:
    """A client with a small receive buffer that sends something and then disappears."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.setblocking(False)

    async def visit(self, sent: bytes, *, reads: int, half_closes: bool, resets: bool) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(self._socket, ("127.0.0.1", self._port))
            if sent:
                self._socket.send(sent)
            for _ in range(reads):
                async with asyncio.timeout(0.05):
                    await loop.sock_recv(self._socket, 1000)
            if half_closes:
                self._socket.shutdown(socket.SHUT_WR)
                await asyncio.sleep(0.01)
        except (OSError, TimeoutError):
            pass
        finally:
            if resets:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._socket.close()


def test_no_client_makes_the_service_log_an_error(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    map_id = histories.map_ids(site, histories.new_series(site))[0]
    sent = requests(site, f"/api/v1/cs2/matches/{map_id}/events/stream")
    cases = list(product((*sent, *[sent[0]] * 4), (0, 1, 3), (False, True), (True, False)))

    async def visit_all(server: Listening, queue: Iterator[tuple[bytes, int, bool, bool]]) -> None:
        for data, reads, half_closes, resets in queue:
            await Stranger(server.port).visit(data, reads=reads, half_closes=half_closes, resets=resets)

    async def main() -> None:
        async with asyncio.timeout(TIMEOUT_S), listening(site.app) as server:
            queue = iter(cases)
            visits = [asyncio.create_task(visit_all(server, queue)) for _ in range(AT_ONCE)]
            seq = 0
            while not all(visit.done() for visit in visits):
                seq += 1
                site.services.streams.publish(map_id, seq, [LONG_LINE] * 5)
                await asyncio.sleep(0.01)
            await asyncio.gather(*visits)
            await server.until_idle()
            assert not site.services.streams

    with caplog.at_level(logging.INFO):
        site.run(main())

    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_stream_may_begin_after_the_client_has_reset_the_connection(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[bool] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope["extensions"][CONNECTION].begin_stream()
        begun.append(True)

    async def main() -> None:
        async with asyncio.timeout(TIMEOUT_S), listening(app) as server:
            await Stranger(server.port).visit(
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", reads=1, half_closes=False, resets=True
            )
            await until(lambda: begun)
            await server.until_idle()

    site.run(main())
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []
