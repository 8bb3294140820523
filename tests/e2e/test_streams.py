"""Streams over real sockets: what a caller sees, and that nothing is left of one who leaves, sleeps or misbehaves."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import uvloop
from uvicorn.server import ServerState

from matchpod.app.listening import HttpServer, bind, port_of, server_config
from matchpod.service.history.streams import PAGE
from matchpod.web import event_streams
from matchpod.web.connection import LOST_MS, ApiConnection
from matchpod.web.event_streams import OPENING
from tests.e2e.service.running_service import RunningService, cvars, short_match
from tests.unit.web import histories
from tests.unit.web.sites import Site

PATIENCE_S = 200.0
STOP_S = 15.0
LONG_LINE = b'{"type":"chat","text":"%b"}' % (b"x" * 4000)
ENDS_AT = b"\r\n\r\n"

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


@pytest.fixture(params=["asyncio", "uvloop"])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A web with an empty database, on each kind of event loop."""
    if request.param == "uvloop":
        monkeypatch.setattr(asyncio, "Runner", partial(asyncio.Runner, loop_factory=uvloop.new_event_loop))
    made = Site(tmp_path / "matchpod.sqlite")
    try:
        yield made
    finally:
        made.close()


class Open:
    """The web of a site on a port, and its connections."""

    def __init__(self, site: Site, state: ServerState, port: int) -> None:
        self.site = site
        self.state = state
        self.port = port

    @asynccontextmanager
    async def connect(self, *, receive_buffer: int | None = None) -> AsyncIterator[tuple[Reader, Writer]]:
        plain = socket.socket()
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=plain, limit=2**30)
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
    def buffered(self) -> int:
        """What is held for all connections, beside the system's own buffers."""
        return sum(one.transport.get_write_buffer_size() for one in self.state.connections)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.01)

    async def until_idle(self) -> None:
        """Nothing is left of any stream or connection."""
        await self.until(lambda: not (self.site.services.streams or self.state.tasks or self.state.connections))


def run(site: Site, scenario: Callable[[Open], Awaitable[None]]) -> None:
    async def main() -> None:
        config = server_config(site.app)
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: ApiConnection(config, state, {}), "127.0.0.1", 0)
        tasks = asyncio.all_tasks()
        async with asyncio.timeout(PATIENCE_S), server:
            opened = Open(site, state, server.sockets[0].getsockname()[1])
            await scenario(opened)
            await opened.until_idle()
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == tasks

    site.run(main())


def live_map(site: Site) -> tuple[str, str]:
    """The id of a map that is played, and the path of its stream."""
    map_id = histories.map_ids(site, histories.new_series(site))[0]
    return map_id, f"/api/v1/cs2/matches/{map_id}/events/stream"


def ended_map(site: Site) -> tuple[int, str]:
    """How many items a map has that is over, and the path of its stream."""
    server_id = histories.new_series(site)
    histories.finish(site, server_id)
    map_id = histories.map_ids(site, server_id)[0]
    return len(histories.timeline()), f"/api/v1/cs2/matches/{map_id}/events/stream"


async def begin(reader: Reader) -> bytes:
    """Read the head and the first bytes of a stream; answers the head."""
    head = await reader.readuntil(ENDS_AT)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    await reader.readuntil(OPENING)
    return head


def sleep(writer: Writer) -> None:
    """Read no more of what comes."""
    cast(asyncio.Transport, writer.transport).pause_reading()


async def store(site: Site, map_id: str, first: int, last: int) -> None:
    """Items without a database: what a stream holds at hand is all it needs."""
    site.services.streams.publish(map_id, first, [LONG_LINE] * (last - first + 1))


def test_events_arrive_one_by_one_and_a_caller_who_leaves_is_let_go(site: Site) -> None:
    map_id, path = live_map(site)

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path))
            head = await begin(reader)
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
def test_caller_who_vanishes_without_a_word_is_not_waited_for(site: Site) -> None:
    _, path = live_map(site)

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path))
            await begin(reader)
            (connection,) = web.state.connections
            plain = connection.transport.get_extra_info("socket")
            # The system does the rest; a line that is cut cannot be had in a test.
            assert plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == LOST_MS

    run(site, scenario)


def test_caller_who_only_stops_sending_counts_as_gone(site: Site) -> None:
    _, path = live_map(site)

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path))
            await begin(reader)
            writer.write_eof()
            await web.until_idle()

    run(site, scenario)


def test_caller_who_does_not_read_is_cut_and_little_is_held_for_him(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_streams, "SEND_TIMEOUT_S", 0.5)
    map_id, path = live_map(site)
    most = 0

    async def scenario(web: Open) -> None:
        nonlocal most
        async with web.connect(receive_buffer=4096) as (reader, writer), web.connect() as (other, other_writer):
            writer.write(web.request(path))
            other_writer.write(web.request(path))
            await begin(reader)
            await begin(other)
            sleep(writer)
            read = asyncio.create_task(other.readuntil(b"id: 6000\n"))
            for seq in range(1, 6001, 20):
                await store(web.site, map_id, seq, seq + 19)
                await asyncio.sleep(0.001)
                most = max(most, web.buffered)
            await web.until(lambda: len(web.site.services.streams) == 1)
            await read  # the other one got everything meanwhile
        await web.until_idle()

    run(site, scenario)

    # The mark at which a connection is full, and one page on top, for each of the two.
    assert most < 2 * (65_536 + PAGE * (len(LONG_LINE) + 100))
    assert 'why="slow"' in site.get("/metrics").text
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_http_1_0_gets_a_body_without_chunks_that_ends_with_the_connection(site: Site) -> None:
    count, path = ended_map(site)

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path, version="1.0"))
            head, _, body = (await reader.read()).partition(ENDS_AT)
            assert b"chunked" not in head
            assert b"content-length" not in head
            assert body.startswith(OPENING + b"id: 1\n")
            assert body.endswith(b"\n\n")
            assert body.count(b"\ndata: ") == count

    run(site, scenario)
    assert 'why="over"' in site.get("/metrics").text


def test_http_1_0_caller_of_a_live_map_is_let_go_when_he_leaves(site: Site) -> None:
    map_id, path = live_map(site)

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path, version="1.0", Connection="keep-alive"))
            await begin(reader)
            await store(web.site, map_id, 1, 3)
            await reader.readuntil(b"id: 3\n")
        await web.until_idle()

    run(site, scenario)


def test_stream_that_is_over_ends_its_body_and_its_connection(site: Site) -> None:
    _, path = ended_map(site)

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path))
            answer = await reader.read()
            assert b"\r\nconnection: close\r\n" in answer
            assert answer.endswith(b"\r\n0\r\n\r\n")

    run(site, scenario)


def test_connection_is_used_before_a_stream_and_after_204(site: Site) -> None:
    count, path = ended_map(site)

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            for method, query, status in (("HEAD", "", b"200"), ("GET", f"?lastEventId={count}", b"204")):
                writer.write(web.request(path + query, method=method))
                head = await reader.readuntil(ENDS_AT)
                assert head.split()[1] == status
                assert b"connection: close" not in head
                assert b"transfer-encoding" not in head
            writer.write(web.request(path, **{"Last-Event-ID": str(count - 1)}))
            assert (await reader.read()).count(b"\ndata: ") == 1

    run(site, scenario)


@pytest.mark.parametrize("is_together", [True, False], ids=["sent together", "sent later"])
def test_requests_sent_behind_a_stream_are_dropped_and_hide_nothing(site: Site, is_together: bool) -> None:
    map_id, path = live_map(site)

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            behind = web.request("/api/v1/regions") * 3
            writer.write(web.request(path) + (behind if is_together else b""))
            await begin(reader)
            if not is_together:
                writer.write(behind + b"and what is no request at all\r\n\r\n")
            await store(web.site, map_id, 1, 2)
            await reader.readuntil(b"id: 2\n")
        await web.until_idle()  # although requests were waiting

    run(site, scenario)


def test_many_callers_come_and_go_and_nothing_is_left(site: Site) -> None:
    map_id, path = live_map(site)

    async def read(web: Open, number: int) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path))
            await begin(reader)
            if number % 3:
                await reader.readuntil(b"\ndata: ")
            if number % 2:
                writer.transport.abort()

    async def scenario(web: Open) -> None:
        async with asyncio.TaskGroup() as group:
            callers = [group.create_task(read(web, number)) for number in range(60)]
            seq = 0
            while not all(caller.done() for caller in callers):
                seq += 1
                await store(web.site, map_id, seq, seq)
                await asyncio.sleep(0.01)
        await web.until_idle()
        assert not web.site.services.streams._channels

    run(site, scenario)


@pytest.mark.parametrize("is_slow", [False, True], ids=["awake", "asleep"])
def test_streams_do_not_keep_the_service_from_stopping(site: Site, is_slow: bool) -> None:
    map_id, path = live_map(site)

    async def main() -> None:
        listening = asyncio.Event()
        server = HttpServer(server_config(site.app), listening.set)
        with bind("127.0.0.1", 0) as bound:
            web = Open(site, server.server_state, port_of(bound))
            serving = asyncio.create_task(server.serve(sockets=[bound]))
            await listening.wait()
            async with asyncio.timeout(PATIENCE_S), web.connect(receive_buffer=4096) as (reader, writer):
                writer.write(web.request(path))
                await begin(reader)
                if is_slow:
                    sleep(writer)
                    for seq in range(1, 4001, 20):
                        await store(site, map_id, seq, seq + 19)
                        await asyncio.sleep(0.001)
                began = asyncio.get_running_loop().time()
                site.services.streams.close()
                server.stop()
                await serving
                took_s = asyncio.get_running_loop().time() - began
                if not is_slow:
                    assert (await reader.read()).endswith(b"0\r\n\r\n")
        assert took_s < 8

    site.run(main())


def test_what_is_pushed_is_what_is_polled(site: Site) -> None:
    _, path = ended_map(site)
    polled = site.get(path.removesuffix("/stream")).json()["items"]

    async def scenario(web: Open) -> None:
        async with web.connect() as (reader, writer):
            writer.write(web.request(path, version="1.0"))
            body = (await reader.read()).partition(ENDS_AT)[2]
            pushed = [json.loads(part.split(b"\ndata: ")[1]) for part in body.split(b"\n\n") if b"\ndata: " in part]
            assert pushed == polled

    run(site, scenario)


# --- the whole service --------------------------------------------------------------------------------------------


def client_of_the_page() -> Callable[[str, int, str, str], Iterator[dict[str, object]]]:
    """The client that callers are shown, as it stands there."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "streams.md").read_text()
    names: dict[str, object] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    return cast(Callable[[str, int, str, str], Iterator[dict[str, object]]], names["follow"])


def test_client_of_the_page_gets_everything_over_a_killed_service(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        settings = short_match(customCvars=cvars(60))
        server_id = str(service.create(settings)["serverId"])
        follow = client_of_the_page()
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


def test_service_with_readers_stops_as_fast_as_without(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        server_id = str(service.create(short_match())["serverId"])
        connections = [http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_S) for _ in range(20)]
        for connection in connections:
            connection.request(
                "GET", f"/api/v1/servers/{server_id}/stream", headers={"Authorization": f"Bearer {service.key}"}
            )
        answers = [connection.getresponse() for connection in connections]
        assert {answer.status for answer in answers} == {200}
        code, took_s = service.terminate()
        assert code == 0
        assert took_s < STOP_S
        for connection, answer in zip(connections, answers, strict=True):
            answer.read()  # to its proper end
            connection.close()
        assert [one for one in service.log() if one["level"] == "ERROR"] == []
