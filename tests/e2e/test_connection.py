"""What a stranger can make a connection hold: heads without end, silence, requests sent ahead, what is no HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from matchpod.web import connection
from matchpod.web.connection import MAX_HEAD_BYTES, MAX_PIPELINED, ApiConnection

PATIENCE_S = 120.0
REQUEST = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = f"{scope['method']} {size};".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def converse(talk: Talk) -> bytes:
    """What was answered on one connection."""

    async def run() -> bytes:
        config = uvicorn.Config(_app, http=ApiConnection, ws="none", lifespan="off", log_config=None, access_log=False)
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: ApiConnection(config, state, {}), "127.0.0.1", 0)
        async with asyncio.timeout(PATIENCE_S), server:
            host, port = server.sockets[0].getsockname()
            reader, writer = await asyncio.open_connection(host, port)
            try:
                return await talk(reader, writer)
            finally:
                writer.close()
                await asyncio.gather(writer.wait_closed(), return_exceptions=True)
                await asyncio.gather(*state.tasks, return_exceptions=True)

    return asyncio.run(run())


def sending(*parts: bytes, pause_s: float = 0.0) -> Talk:
    """Send these, then read until the other side hangs up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause_s)
            return await reader.read()
        except ConnectionError:  # it hung up while we were still talking
            return b""

    return talk


def body_of(answer: bytes) -> dict[str, object]:
    found = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert isinstance(found, dict)
    return found


def test_a_head_without_end_is_refused_long_before_it_fills_the_memory() -> None:
    sent = 0

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        nonlocal sent
        writer.write(b"GET / HTTP/1.1\r\n")
        try:
            for number in range(100_000):
                writer.write(b"X-%d: %b\r\n" % (number, b"a" * 1000))
                await writer.drain()
                sent += 1000
        except ConnectionError:
            pass
        return b""

    converse(talk)

    # What lies in the buffers of both ends comes on top of the limit.
    assert MAX_HEAD_BYTES <= sent < 20_000_000


@pytest.mark.parametrize(
    "piece",
    [
        b"GET /" + b"a" * 100_000,
        b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
    ],
    ids=["path", "one header", "many headers"],
)
def test_an_unfinished_head_over_the_limit_is_answered_400(piece: bytes) -> None:
    answer = converse(sending(piece))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert "over the limit" in str(body_of(answer)["message"])


def test_trailers_count_as_a_head() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n"

    answer = converse(sending(head, b"X: " + b"a" * 400_000))

    assert b"200 OK" not in answer


def test_a_body_is_no_head_and_may_be_longer() -> None:
    body = b"a" * 1_000_000
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)

    assert converse(sending(head, body)).endswith(b"POST 1000000;")


def test_who_stays_silent_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_TIMEOUT_S", 0.2)

    assert converse(sending()) == b""


def test_who_drips_a_head_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_TIMEOUT_S", 0.3)

    assert converse(sending(*[b"GET / HTTP/1.1\r\n", *[b"A: b\r\n"] * 50], pause_s=0.1)) == b""


def test_who_drips_a_second_head_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_TIMEOUT_S", 0.3)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(REQUEST)
        first = await reader.readuntil(b";")
        writer.write(b"G")
        return first + await reader.read()

    assert converse(talk).count(b"200 OK") == 1


def test_a_connection_serves_one_request_after_another() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        answers = b""
        for _ in range(100):
            writer.write(REQUEST)
            answers += await reader.readuntil(b";")
        return answers

    assert converse(talk).count(b"200 OK") == 100


def test_who_has_said_all_still_gets_his_answer() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(REQUEST)
        writer.write_eof()
        return await reader.read()

    assert converse(talk).endswith(b"GET 0;")


def test_who_stops_in_the_middle_of_a_body_is_hung_up_on() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab")
        writer.write_eof()
        return await reader.read()

    assert b"200 OK" not in converse(talk)


def test_a_few_requests_sent_ahead_are_answered_and_thousands_are_not() -> None:
    last = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    assert converse(sending(REQUEST * (MAX_PIPELINED - 1) + last)).count(b"200 OK") == MAX_PIPELINED
    assert converse(sending(REQUEST * 5_000)).count(b"200 OK") <= MAX_PIPELINED


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"FOO / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
def test_what_is_no_request_gets_the_body_of_every_error_and_no_line_in_the_log(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answer = converse(sending(garbage))

    head = answer.partition(b"\r\n\r\n")[0].decode()
    told = body_of(answer)
    assert head.startswith("HTTP/1.1 400 Bad Request")
    assert (told["statusCode"], told["error"]) == (400, "INVALID_PARAMS")
    assert f"x-request-id: {told['requestId']}" in head
    assert not caplog.records


def test_garbage_after_a_request_is_not_taken_for_its_answer() -> None:
    assert b"400 Bad Request" not in converse(sending(REQUEST + b"\x00garbage\r\n\r\n"))


def test_a_wish_for_another_protocol_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(upgrade)
        return await reader.readuntil(b";")

    with caplog.at_level(logging.INFO):
        assert converse(talk).startswith(b"HTTP/1.1 200 OK")
    assert not caplog.records
