"""Requests that are answered without the application: in order, once, and only if nothing about them is unusual.

Which reads are answered at once is tested in test_server_reads.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from matchpod.app.http_server import DEFAULT_LIMITS, DEFAULT_PATIENCE, PRIORITY
from matchpod.service.telemetry.metrics import ConnectionMetrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web.errors import connection_error_response
from matchpod.web.http.asgi import Receive, Scope, Send
from matchpod.web.http.connection import ApiConnection
from matchpod.web.http.connections import Connections, Patience
from matchpod.web.http.direct import Answer, DirectRoute, ReadRoute, Take
from matchpod.web.request_bodies import read_body

POST = b"POST /posts/abc HTTP/1.1\r\nHost: x\r\nX-Offset: 7\r\nContent-Length: 4\r\n\r\nline"
LARGE = POST.replace(b"Length: 4", b"Length: 70000") + b"x" * 69_996
GET = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"
READ = b"GET /reads/abc HTTP/1.1\r\nHost: x\r\nX-Kind: y\r\n\r\n"


class Transport(asyncio.Transport):
    """Keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False
        self.is_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_aborted = True

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    @property
    def bodies(self) -> list[bytes]:
        bodies, rest = [], self.sent
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            length = next(int(line.partition(b":")[2]) for line in head.split(b"\r\n") if b"content-length" in line)
            bodies.append(rest[:length])
            rest = rest[length:]
        return bodies


class Posts:
    """A connection, and the posts that were taken from it."""

    def __init__(self, *, takes: bool = True, take: Take | None = None) -> None:
        self.taken: list[tuple[str, dict[bytes, bytes], bytes]] = []
        self.answers: list[Answer] = []
        self.transport = Transport()
        route = DirectRoute(prefix=b"/posts/", take=take or self.take, response=b"direct")
        self.connections = Connections(
            self._app,
            DEFAULT_LIMITS,
            DEFAULT_PATIENCE,
            priority=PRIORITY,
            error_response=connection_error_response,
            counts=ConnectionMetrics(Registry()),
            direct=(route,),
            reads=ReadRoute(prefix=b"/reads/", read=self.read),
        )
        self.reads: list[tuple[str, dict[bytes, bytes]]] = []
        self.connection = self.connect()
        self._takes = takes

    def connect(self) -> ApiConnection:
        seat = self.connections.admit("127.0.0.1")
        assert seat is not None
        connection = ApiConnection(self.connections, seat)
        connection.connection_made(self.transport)
        return connection

    def take(self, rest: str, headers: Sequence[tuple[bytes, bytes]], body: bytes, answer: Answer) -> bool:
        if self._takes:
            self.taken.append((rest, dict(headers), body))
            self.answers.append(answer)
        return self._takes

    def read(self, rest: str, headers: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, ...] | None:
        if not self._takes:
            return None
        self.reads.append((rest, dict(headers)))
        return b"\r\ncontent-length: 6\r\n\r\n", b"direct"

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = len(await read_body(scope, receive, 1_000_000))
        body = b"app %b %b %d" % (scope["method"].encode(), scope["raw_path"], size)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    async def finish_tasks(self) -> None:
        """Wait until the application has answered."""
        while self.connections.tasks:
            await asyncio.wait(self.connections.tasks)


async def test_posts_are_answered_directly_on_a_connection_that_stays_open() -> None:
    posts = Posts()
    for _ in range(2):
        posts.connection.data_received(POST)
        assert not posts.connections.tasks
        posts.answers[-1](True)
    assert posts.transport.bodies == [b"direct", b"direct"]
    rest, headers, body = posts.taken[0]
    assert (rest, headers[b"x-offset"], body) == ("abc", b"7", b"line")
    assert not posts.transport.is_closed


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((GET,), id="another path"),
        pytest.param((POST.replace(b"POST", b"PUT"),), id="another method"),
        pytest.param(
            (POST.replace(b"1.1", b"1.0").replace(b"Host: x", b"Connection: keep-alive"),), id="an old version of HTTP"
        ),
        pytest.param((POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"),), id="an expectation"),
        pytest.param((LARGE[:-9], LARGE[-9:]), id="a large body in two parts"),
    ],
)
async def test_application_answers_whatever_is_unusual(parts: tuple[bytes, ...]) -> None:
    posts = Posts()
    for part in parts:
        posts.connection.data_received(part)
        await asyncio.sleep(0)
    await posts.finish_tasks()
    assert b"app " in posts.transport.sent
    assert not posts.taken


@pytest.mark.parametrize("cut", [-2, -4, -6, 1], ids=["in the body", "before the body", "in the head", "at once"])
async def test_post_that_arrives_in_parts_is_answered_directly(cut: int) -> None:
    posts = Posts()
    for part in (POST[:cut], POST[cut:]):
        assert not posts.taken
        posts.connection.data_received(part)
        posts.connections.close_idle(1)
    posts.answers[-1](True)
    assert posts.transport.bodies == [b"direct"]
    assert posts.taken[0][2] == b"line"
    assert not posts.transport.is_aborted, "a connection with half a request is not idle"


@pytest.mark.parametrize(
    "last",
    [POST.replace(b"1.1", b"1.0"), POST.replace(b"X-Offset: 7", b"Connection: close")],
    ids=["an old version of HTTP", "a last request"],
)
async def test_connection_is_closed_after_a_last_post(last: bytes) -> None:
    posts = Posts()
    posts.connection.data_received(last)
    posts.answers[-1](True)
    assert posts.transport.bodies == [b"direct"]
    assert b"connection: close" in posts.transport.sent
    assert posts.transport.is_closed


async def test_post_whose_body_does_not_arrive_is_rejected_and_each_part_gives_it_no_more_time() -> None:
    posts = Posts()
    posts.connections.patience = Patience(head_s=0.05)
    posts.connection = posts.connect()
    posts.connection.data_received(POST[:-4])
    async with asyncio.timeout(60):
        while not posts.transport.is_closed:
            await asyncio.sleep(0.01)
            posts.connection.data_received(b"")
    assert b"not complete in time" in posts.transport.sent
    assert not posts.taken


async def test_encoded_post_is_not_taken() -> None:
    posts = Posts()
    posts.connection.data_received(POST.replace(b"Host: x", b"Host: x\r\nContent-Encoding: gzip"))
    await posts.finish_tasks()
    assert posts.transport.sent
    assert not posts.taken


BOTH = pytest.mark.parametrize(
    ("sent", "answer"), [(POST, b"app POST /posts/abc 4"), (READ, b"app GET /reads/abc 0")], ids=["post", "read"]
)


@BOTH
async def test_request_that_is_not_taken_goes_to_the_application_as_it_was_sent(sent: bytes, answer: bytes) -> None:
    posts = Posts(takes=False)
    posts.connection.data_received(sent)
    await posts.finish_tasks()
    assert posts.transport.bodies == [answer]


@BOTH
async def test_application_answers_if_taking_a_request_fails(
    sent: bytes, answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> Any:
        raise RuntimeError("a bug")

    posts = Posts(take=fail)
    posts.connections.reads = ReadRoute(prefix=b"/reads/", read=fail)
    posts.connection.data_received(sent)
    await posts.finish_tasks()
    assert posts.transport.bodies == [answer]
    assert [record.message for record in caplog.records] == ["fast path failed: the application answers the request"]


async def test_post_that_could_not_be_answered_goes_to_the_application() -> None:
    posts = Posts()
    posts.connection.data_received(POST)
    posts.answers[0](False)
    await posts.finish_tasks()
    assert posts.transport.bodies == [b"app POST /posts/abc 4"]


async def test_requests_behind_a_post_are_answered_after_it() -> None:
    posts = Posts()
    posts.connection.data_received(POST + GET + POST)
    await asyncio.sleep(0)
    assert posts.transport.sent == b""
    posts.answers[0](True)
    await posts.finish_tasks()
    assert posts.transport.bodies == [b"direct", b"app GET /x 0", b"app POST /posts/abc 4"]


async def test_client_that_is_gone_gets_no_answer() -> None:
    posts = Posts()
    posts.connection.data_received(POST)
    posts.connection.connection_lost(None)
    posts.answers[0](True)
    posts.connection.data_received(b"")
    assert posts.transport.sent == b""


@pytest.mark.parametrize("request_bytes", [b"", POST, GET, READ], ids=["none", "POST", "GET", "read"])
async def test_closed_connection_is_freed_without_the_garbage_collector(request_bytes: bytes) -> None:
    posts = Posts()
    posts.connection.data_received(request_bytes)
    while posts.answers:
        posts.answers.pop()(True)
    await posts.finish_tasks()
    connection = weakref.ref(posts.connection)
    gc.disable()
    try:
        posts.connection.connection_lost(None)
        del posts.connection
        await asyncio.sleep(0)  # the loop forgets its cancelled timer
        assert connection() is None
    finally:
        gc.enable()


async def test_stopping_server_answers_first() -> None:
    posts = Posts()
    posts.connection.data_received(POST)
    closing = asyncio.create_task(posts.connections.close(within_s=60.0))
    await asyncio.sleep(0)
    assert not posts.transport.is_closed
    posts.answers[0](True)
    assert posts.transport.is_closed
    assert b"connection: close" in posts.transport.sent
    posts.connection.connection_lost(None)
    await closing
    assert posts.transport.bodies == [b"direct"]


async def test_reads_are_answered_at_once_on_a_connection_that_stays_open() -> None:
    posts = Posts()
    for number in (1, 2):
        posts.connection.data_received(READ)
        assert posts.transport.bodies == [b"direct"] * number
    assert posts.transport.sent.startswith(b"HTTP/1.1 200 OK\r\ndate: ")
    assert not posts.connections.tasks
    assert posts.reads[0] == ("abc", {b"host": b"x", b"x-kind": b"y"})
    posts.connections.close_idle(1)
    assert posts.transport.is_aborted


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(READ.replace(b"GET", b"HEAD"), id="another method"),
        pytest.param(READ.replace(b"/reads/", b"/other/"), id="another path"),
        pytest.param(READ.replace(b"1.1", b"1.0"), id="an old version of HTTP"),
        pytest.param(READ.replace(b"X-Kind: y", b"Connection: close"), id="a last request"),
        pytest.param(READ.replace(b"X-Kind: y", b"Content-Length: 4") + b"body", id="a body"),
    ],
)
async def test_application_answers_an_unusual_read(request_bytes: bytes) -> None:
    posts = Posts()
    posts.connection.data_received(request_bytes)
    await posts.finish_tasks()
    assert posts.transport.sent
    assert not posts.reads


async def test_reads_behind_another_wait_for_their_turn_and_are_answered_in_order() -> None:
    posts = Posts()
    posts.connection.data_received(READ + GET + READ)
    assert posts.transport.bodies == [b"direct"]
    await posts.finish_tasks()
    assert posts.transport.bodies == [b"direct", b"app GET /x 0", b"app GET /reads/abc 0"]


async def test_client_that_does_not_read_gets_no_more_at_once() -> None:
    posts = Posts()
    posts.connection.pause_writing()
    posts.connection.data_received(READ)
    await asyncio.sleep(0)
    assert not posts.transport.sent
    posts.connection.resume_writing()
    await posts.finish_tasks()
    assert posts.transport.bodies == [b"app GET /reads/abc 0"]
