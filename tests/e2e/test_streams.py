"""Streams over real sockets: what clients receive, and that no stream is left after they disconnect or misbehave."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from matchpod.app.http_server import DEFAULT_PATIENCE, HttpServer, bind, port_of
from matchpod.service.streams.channels import PAGE
from matchpod.web.event_streams import HEARTBEAT_S, OPENING, StreamPace
from matchpod.web.http.connection import UNACKNOWLEDGED_MS, ApiConnection
from matchpod.web.http.connections import Connections, Patience
from tests.e2e.listening import listening
from tests.e2e.service.running_service import RunningService, cvars, short_match
from tests.unit.web import histories, sites
from tests.unit.web.sites import Site
from tests.waiting import until

TIMEOUT_S = 200.0
STOP_S = 15.0
LONG_LINE = b'{"type":"chat","text":"%b"}' % (b"x" * 4000)
ENDS_AT = b"\r\n\r\n"

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


site = sites.site_on_loops


class WebServer:
    """The application of a site on a port, and its connections."""

    def __init__(self, site: Site, connections: Connections, port: int) -> None:
        self.site = site
        self.connections = connections
        self.port = port

    @asynccontextmanager
    async def connect(self, *, receive_buffer: int | None = None) -> AsyncIterator[tuple[Reader, Writer]]:
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=2**30)
        try:
            yield reader, writer
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    def request(self, path: str, *, method: str = "GET", version: str = "1.1", **headers: str) -> bytes:
        sent = {"Host": "x", "Authorization": f"Bearer {self.site.key}", **headers}
        lines = [f"{method} {path} HTTP/{version}", *[f"{name}: {value}" for name, value in sent.items()], "", ""]
        return "\r\n".join(lines).encode()

    @property
    def transports(self) -> list[asyncio.Transport]:
        """The server's side of all connections."""
        return [one.transport for one in self.connections.open if isinstance(one, ApiConnection)]

    @property
    def buffered(self) -> int:
        """Bytes buffered for all connections, without the system's own buffers."""
        return sum(transport.get_write_buffer_size() for transport in self.transports)

    async def until_idle(self) -> None:
        """Wait until no stream or connection is left."""
        await until(lambda: not (self.site.services.streams or self.connections.tasks or self.connections.open))


def run(site: Site, scenario: Callable[[WebServer], Awaitable[None]], patience: Patience = DEFAULT_PATIENCE) -> None:
    async def main() -> None:
        async with asyncio.timeout(TIMEOUT_S), listening(site.app, patience=patience) as server:
            tasks = asyncio.all_tasks()
            opened = WebServer(site, server.connections, server.port)
            await scenario(opened)
            await opened.until_idle()
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == tasks

    site.run(main())


def live_map(site: Site) -> tuple[str, str]:
    """Return the id of a map being played, and the path of its stream."""
    map_id = histories.map_ids(site, histories.new_series(site))[0]
    return map_id, f"/api/v1/cs2/matches/{map_id}/events/stream"


def ended_map(site: Site) -> tuple[int, str]:
    """Return the number of items of an ended map, and the path of its stream."""
    server_id = histories.new_series(site)
    histories.finish(site, server_id)
    map_id = histories.map_ids(site, server_id)[0]
    return len(histories.timeline()), f"/api/v1/cs2/matches/{map_id}/events/stream"


async def read_start(reader: Reader) -> bytes:
    """Read the head and the first bytes of a stream; return the head."""
    head = await reader.readuntil(ENDS_AT)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    await reader.readuntil(OPENING)
    return head


def stop_reading(writer: Writer) -> None:
    cast(asyncio.Transport, writer.transport).pause_reading()


async def publish(site: Site, map_id: str, first: int, last: int) -> None:
    """Publish items without storing them: the stream buffers what it needs."""
    site.services.streams.publish(map_id, first, [LONG_LINE] * (last - first + 1))


async def fill_buffers(web: WebServer, map_id: str) -> None:
    """Publish items until the only client, which does not read, cannot be sent more."""
    seq = 0
    while not web.buffered:
        seq += 1
        await publish(web.site, map_id, seq, seq)
        await asyncio.sleep(0)


def test_events_are_received_one_by_one_until_the_client_disconnects(site: Site) -> None:
    map_id, path = live_map(site)

    async def scenario(web: WebServer) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path))
            head = await read_start(reader)
            assert b"content-type: text/event-stream\r\n" in head
            assert b"transfer-encoding: chunked\r\n" in head
            for seq in (1, 2, 3):
                web.site.services.streams.publish(map_id, seq, [b'{"type":"kill","seq":%d}' % seq])
                frame = b'id: %d\nevent: kill\ndata: {"type":"kill","seq":%d}\n\n' % (seq, seq)
                await reader.readuntil(b"%x\r\n%b\r\n" % (len(frame), frame))
            assert len(web.site.services.streams) == 1
        await web.until_idle()

    run(site, scenario)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has this option")
def test_silently_vanished_client_times_out(site: Site) -> None:
    _, path = live_map(site)

    async def scenario(web: WebServer) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path))
            await read_start(reader)
            (transport,) = web.transports
            sock = transport.get_extra_info("socket")
            # The system does the rest; a broken network cannot be simulated here.
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNACKNOWLEDGED_MS

    run(site, scenario)


@pytest.mark.parametrize("has_begun", [True, False], ids=["after its stream began", "before"])
def test_half_closed_connection_counts_as_disconnected(site: Site, *, has_begun: bool) -> None:
    _, path = live_map(site)

    async def scenario(web: WebServer) -> None:
        async with web.connect() as (reader, writer), asyncio.timeout(HEARTBEAT_S * 0.8):
            writer.write(web.request(path))
            if has_begun:
                await read_start(reader)
            writer.write_eof()
            await until(lambda: has_begun or bool(web.connections.open))
            await web.until_idle()

    run(site, scenario)


def test_client_that_does_not_read_the_end_of_a_stream_is_disconnected(site: Site) -> None:
    map_id, path = live_map(site)

    async def scenario(web: WebServer) -> None:
        async with web.connect(receive_buffer=4096) as (reader, writer):
            writer.write(web.request(path))
            await read_start(reader)
            stop_reading(writer)
            await fill_buffers(web, map_id)
            web.site.services.streams.close()
            await web.until_idle()

    run(site, scenario, Patience(send_s=0.5))


def test_client_that_does_not_read_is_disconnected_and_little_is_buffered_for_it(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.open_web(stream_pace=StreamPace(send_s=0.5))
    map_id, path = live_map(site)
    most = 0

    async def scenario(web: WebServer) -> None:
        nonlocal most
        async with web.connect(receive_buffer=4096) as (reader, writer), web.connect() as (other, other_writer):
            writer.write(web.request(path))
            other_writer.write(web.request(path))
            await read_start(reader)
            await read_start(other)
            stop_reading(writer)
            read = asyncio.create_task(other.readuntil(b"id: 6000\n"))
            for seq in range(1, 6001, 20):
                await publish(web.site, map_id, seq, seq + 19)
                await asyncio.sleep(0.001)
                most = max(most, web.buffered)
            await until(lambda: len(web.site.services.streams) == 1)
            await read  # the other client received everything meanwhile
        await web.until_idle()

    run(site, scenario)

    # The high-water mark of a connection plus one page, for each of the two.
    assert most < 2 * (65_536 + PAGE * (len(LONG_LINE) + 100))
    assert 'why="slow"' in site.get("/metrics").text
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_ended_stream_closes_its_body_and_its_connection(site: Site) -> None:
    _, path = ended_map(site)

    async def scenario(web: WebServer) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path))
            response = await reader.read()
            assert b"\r\nconnection: close\r\n" in response
            assert response.endswith(b"\r\n0\r\n\r\n")

    run(site, scenario)


@pytest.mark.parametrize("is_together", [True, False], ids=["sent together", "sent later"])
def test_requests_pipelined_after_a_stream_are_dropped(site: Site, is_together: bool) -> None:
    map_id, path = live_map(site)

    async def scenario(web: WebServer) -> None:
        async with web.connect() as (reader, writer):
            behind = web.request("/api/v1/regions") * 3
            writer.write(web.request(path) + (behind if is_together else b""))
            await read_start(reader)
            if not is_together:
                writer.write(behind + b"this is not a request\r\n\r\n")
            await publish(web.site, map_id, 1, 2)
            await reader.readuntil(b"id: 2\n")
        await web.until_idle()  # although requests were queued

    run(site, scenario)


@pytest.mark.parametrize("is_slow", [False, True], ids=["reading", "not reading"])
def test_streams_do_not_delay_stopping_the_service(site: Site, is_slow: bool) -> None:
    map_id, path = live_map(site)

    async def main() -> None:
        listening = asyncio.Event()
        server = HttpServer(site.app, on_listening=listening.set)
        with bind("127.0.0.1", 0) as bound:
            web = WebServer(site, server.connections, port_of(bound))
            serving = asyncio.create_task(server.serve(bound))
            await listening.wait()
            async with asyncio.timeout(TIMEOUT_S), web.connect(receive_buffer=4096) as (reader, writer):
                writer.write(web.request(path))
                await read_start(reader)
                if is_slow:
                    stop_reading(writer)
                    await fill_buffers(web, map_id)
                started = asyncio.get_running_loop().time()
                site.services.streams.close()
                server.stop()
                await serving
                duration_s = asyncio.get_running_loop().time() - started
                if not is_slow:
                    assert (await reader.read()).endswith(b"0\r\n\r\n")
        assert duration_s < 8

    site.run(main())


# --- the whole service --------------------------------------------------------------------------------------------


def documented_client() -> Callable[[str, int, str, str], Iterator[dict[str, object]]]:
    """Return the example client of docs/streams.md."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "streams.md").read_text()
    names: dict[str, object] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    return cast(Callable[[str, int, str, str], Iterator[dict[str, object]]], names["follow"])


def test_documented_client_receives_everything_although_the_service_is_killed(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        settings = short_match(customCvars=cvars(200, sim_lockstep=1))  # it waits while the service is down
        server_id = str(service.create(settings)["serverId"])
        follow = documented_client()
        pushed: dict[str, list[dict[str, object]]] = {}
        is_killed = False
        for item in follow("127.0.0.1", service.port, f"/api/v1/servers/{server_id}/stream", service.key):
            map_id = str(item.pop("mapId"))
            assert item.pop("mapNumber") == 1
            pushed.setdefault(map_id, []).append(item)
            if item["type"] == "round_end" and not is_killed:
                is_killed = True
                service.kill()
                service.start()
        assert len(pushed) == 1
        for map_id, items in pushed.items():
            polled = service.call("GET", f"/api/v1/cs2/matches/{map_id}/events?limit=1000").json["items"]
            assert items == polled
            assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
        assert service.get(server_id)["status"] == "stopped"
        service.wait_until_released(server_id)
