"""Limits of a connection: endless heads, silent clients, clients that do not read, pipelined requests, no HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from matchpod.app.http_server import DEFAULT_PATIENCE
from matchpod.core.errors import InvalidParamsError
from matchpod.web.http.admission import MAX_PIPELINED
from matchpod.web.http.asgi import Application, Receive, Scope, Send
from matchpod.web.http.connections import Patience
from matchpod.web.http.request_head import MAX_HEAD_BYTES, MAX_HEADERS
from matchpod.web.request_bodies import read_body
from tests.e2e.listening import listening
from tests.waiting import until

TIMEOUT_S = 120.0
REQUEST = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"

Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


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


async def _app_with_body_limit(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        body = await read_body(scope, receive, 1000, within_s=0.3)
    except InvalidParamsError as error:
        body = str(error).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def run_client(client: Client, app: Application = _app, patience: Patience = DEFAULT_PATIENCE) -> bytes:
    async def run() -> bytes:
        async with asyncio.timeout(TIMEOUT_S), listening(app, patience=patience) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                return await client(reader, writer)
            finally:
                writer.close()
                await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    return asyncio.run(run())


def send_parts(*parts: bytes, pause_s: float = 0.0) -> Client:
    """Send these parts, then read until the server closes the connection."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause_s)
            return await reader.read()
        except ConnectionError:  # the server closed the connection while we were still sending
            return b""

    return client


def body_of(response: bytes) -> dict[str, object]:
    found = json.loads(response.partition(b"\r\n\r\n")[2])
    assert isinstance(found, dict)
    return found


def test_endless_head_is_rejected_before_it_fills_the_memory() -> None:
    sent = 0

    async def client(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
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

    run_client(client)

    # Data in the buffers of both ends comes on top of the limit.
    assert MAX_HEAD_BYTES <= sent < 20_000_000


@pytest.mark.parametrize(
    "padding", [b"X: %b", b"X:%b", b"X: a%b", b"X: %ba"], ids=["value", "spaces", "after", "before"]
)
@pytest.mark.parametrize(("size", "status"), [(MAX_HEAD_BYTES, b"200"), (100_000, b"400")])
def test_limit_of_a_head_counts_every_byte(padding: bytes, size: int, status: bytes) -> None:
    start, end = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", b"\r\n\r\n"
    fill = b"a" if padding == b"X: %b" else b" "
    line = padding % (fill * (size - len(start) - len(end) - len(padding % b"")))
    assert len(start + line + end) == size
    response = run_client(send_parts(start + line + end))
    assert response.split()[1] == status
    if status == b"400":
        assert body_of(response)["message"] == f"The request head exceeds the limit of {MAX_HEAD_BYTES} bytes."


def test_trailers_are_limited_like_a_head() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n"

    response = run_client(send_parts(head, b"X: " + b"a" * 400_000))

    assert b"200 OK" not in response


def test_body_may_be_longer_than_the_limit_of_a_head() -> None:
    body = b"a" * 1_000_000
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)

    assert run_client(send_parts(head, body)).endswith(b"POST 1000000;")


SHORT_HEAD = Patience(head_s=0.2)


@pytest.mark.parametrize("parts", [(), (b"GET / HTTP/1.1\r\n", *[b"A: b\r\n"] * 50)], ids=["silent", "slow"])
def test_connection_without_a_whole_head_is_closed(parts: tuple[bytes, ...]) -> None:
    assert run_client(send_parts(*parts, pause_s=0.1), patience=SHORT_HEAD) == b""


def test_connection_with_a_slow_second_head_is_closed() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(REQUEST)
        first = await reader.readuntil(b";")
        writer.write(b"G")
        return first + await reader.read()

    assert run_client(client, patience=SHORT_HEAD).count(b"200 OK") == 1


def test_connection_serves_many_requests_in_sequence() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        responses = b""
        for _ in range(100):
            writer.write(REQUEST)
            responses += await reader.readuntil(b";")
        return responses

    assert run_client(client).count(b"200 OK") == 100


@pytest.mark.parametrize(
    ("sent", "answers"), [(REQUEST, 1), (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab", 0)]
)
def test_half_closed_connection_gets_its_response_only_if_its_request_is_whole(sent: bytes, answers: int) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(sent)
        writer.write_eof()
        return await reader.read()

    assert run_client(client).count(b"200 OK") == answers


def test_number_of_pipelined_requests_is_limited() -> None:
    last = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    assert run_client(send_parts(REQUEST * (MAX_PIPELINED - 1) + last)).count(b"200 OK") == MAX_PIPELINED


@pytest.mark.parametrize(
    ("count", "is_half_closed"), [(MAX_PIPELINED + 2, False), (5_000, False), (5_000, True), (100_000, False)]
)
def test_first_pipelined_requests_are_answered_before_the_connection_is_closed(
    count: int, *, is_half_closed: bool
) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(REQUEST * count)
        if is_half_closed:
            writer.write_eof()
        writing = asyncio.create_task(writer.drain())
        answers = await reader.read()  # until the end, without a reset
        await asyncio.gather(writing, return_exceptions=True)
        return answers

    answers = run_client(client)
    # One is being answered while the others wait.
    assert answers.count(b"HTTP/1.1 200 OK") == answers.count(b"GET 0;") == MAX_PIPELINED + 1
    assert answers.count(b"HTTP/1.1 ") == MAX_PIPELINED + 1
    assert answers.count(b"connection: close") == 1


def test_client_that_sends_all_requests_before_it_reads_gets_the_first_answers() -> None:
    def client(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as sock:
            sock.sendall(REQUEST * 2_000_000)  # far more than is read before the first ones are answered
            sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(65_536), b""))

    async def run() -> bytes:
        async with listening(_app, patience=Patience(linger_s=TIMEOUT_S)) as server:
            return await asyncio.to_thread(client, server.port)

    assert asyncio.run(run()).count(b"GET 0;") == MAX_PIPELINED + 1


def test_client_that_goes_on_sending_is_disconnected() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        answers = b""
        with suppress(ConnectionError):
            while True:
                writer.write(REQUEST * 1_000)
                await writer.drain()
        with suppress(ConnectionError):
            answers = await reader.read()
        return answers

    assert run_client(client, patience=Patience(linger_s=0.2)).count(b"200 OK") <= MAX_PIPELINED + 1


@pytest.mark.parametrize("count", [1, 2, 20])
@pytest.mark.parametrize(
    "garbage",
    [b"\x00garbage\r\n\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"],
    ids=["head", "body"],
)
def test_requests_before_garbage_are_answered(count: int, garbage: bytes) -> None:
    answers = run_client(send_parts(REQUEST * count + garbage))
    assert answers.count(b"GET 0;") == answers.count(b"HTTP/1.1 ") == count


def test_chunked_is_read_in_any_case() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding:  Chunked \r\n\r\n"
    assert run_client(send_parts(head, b"2\r\nab\r\n0\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


def test_as_many_headers_as_allowed_are_read() -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + b"X: y\r\n" * (MAX_HEADERS - 2) + b"\r\n"
    assert run_client(send_parts(head)).startswith(b"HTTP/1.1 200 ")


def chunked(encoding: bytes) -> bytes:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: %b\r\n\r\n" % encoding
    return head + b"2\r\nab\r\n0\r\n\r\n"


def with_lines(*lines: bytes, begin: bytes = b"GET / HTTP/1.1") -> bytes:
    return b"\r\n".join([begin, *lines, b"", b""])


POST, HOST = b"POST / HTTP/1.1", b"Host: x"
TOO_LONG, BAD = "exceeds the limit", ""


@pytest.mark.parametrize(
    ("sent", "status", "error", "words"),
    [
        *(
            pytest.param(piece, 400, "INVALID_PARAMS", TOO_LONG, id=f"unfinished head over the limit: {name}")
            for name, piece in {
                "path": b"GET /" + b"a" * 100_000,
                "one header": b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000,
                "many headers": b"GET / HTTP/1.1\r\n" + b"A: %b\r\n" % (b"b" * 1_000) * 99,
            }.items()
        ),
        (with_lines(HOST, *[b"X: y"] * MAX_HEADERS), 431, "HEADERS_TOO_LARGE", "has more than 100 headers."),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "INVALID_PARAMS", BAD),
        (b"FOO / HTTP/1.1\r\n\r\n", 400, "INVALID_PARAMS", BAD),
        (with_lines(HOST, begin=b"GET /\xff HTTP/1.1"), 400, "INVALID_PARAMS", BAD),
        (with_lines(HOST, begin=b"CONNECT a:1 HTTP/1.1"), 400, "INVALID_PARAMS", BAD),
        (with_lines(HOST, b"Content-Length: 1", b"Content-Length: 2", begin=POST), 400, "INVALID_PARAMS", BAD),
        (with_lines(HOST, b"Content-Length: 2", b"Content-Length: 2", begin=POST), 400, "INVALID_PARAMS", BAD),
        (with_lines(HOST, b"Content-Length: 2", b"Transfer-Encoding: chunked", begin=POST), 400, "INVALID_PARAMS", BAD),
        (with_lines(HOST, b"Transfer-Encoding: chunked", b"Content-Length: 2", begin=POST), 400, "INVALID_PARAMS", BAD),
        (with_lines(HOST, b"Transfer-Encoding: gzip", begin=POST) + b"abc", 400, "INVALID_PARAMS", BAD),
        (with_lines(HOST, b"Transfer-Encoding: chunked", begin=POST) + b"nonsense\r\n", 400, "INVALID_PARAMS", BAD),
        (chunked(b"gzip, chunked"), 501, "NOT_IMPLEMENTED", BAD),
        (chunked(b"GZIP ,Chunked"), 501, "NOT_IMPLEMENTED", BAD),
        (chunked(b"gzip\r\nTransfer-Encoding: chunked"), 501, "NOT_IMPLEMENTED", BAD),
        (chunked(b"chunked, gzip"), 400, "INVALID_PARAMS", BAD),
        (chunked(b"chunked, chunked"), 400, "INVALID_PARAMS", BAD),
        (chunked(b"chunked\r\nTransfer-Encoding: chunked"), 400, "INVALID_PARAMS", BAD),
        (chunked(b""), 400, "INVALID_PARAMS", BAD),
        (with_lines(), 400, "INVALID_PARAMS", "no Host header"),
        (with_lines(HOST, HOST), 400, "INVALID_PARAMS", "more than one Host header"),
        (with_lines(HOST, b"host: y", begin=b"GET / HTTP/1.0"), 400, "INVALID_PARAMS", "more than one Host header"),
        (
            with_lines(HOST, b"Authorization: a", b"authorization: b"),
            400,
            "INVALID_PARAMS",
            "more than one Authorization",
        ),
    ],
)
def test_invalid_request_gets_the_usual_error_body_and_is_not_logged(
    sent: bytes, status: int, error: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        response = run_client(send_parts(sent))
    head = response.partition(b"\r\n\r\n")[0].decode()
    body = body_of(response)
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert (body["statusCode"], body["error"]) == (status, error)
    assert words in str(body["message"])
    assert f"x-request-id: {body['requestId']}" in head
    assert not caplog.records


def test_upgrade_header_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(upgrade)
        return await reader.readuntil(b";")

    with caplog.at_level(logging.INFO):
        assert run_client(client).startswith(b"HTTP/1.1 200 OK")
    assert not caplog.records


def test_body_of_a_pipelined_request_may_arrive_after_the_first_response() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(REQUEST + b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n")
        await reader.readuntil(b"GET 0;")
        writer.write(b"ab")
        return await reader.readuntil(b"POST 2;")

    assert b"200 OK" in run_client(client)


def test_slow_body_is_answered_and_its_connection_closed() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n")
        response = asyncio.create_task(reader.readuntil(b"The request body was not complete"))
        while not response.done():
            writer.write(b"a")
            await asyncio.sleep(0.2)
        with suppress(ConnectionResetError):  # the client has sent more after the connection was closed
            await reader.read()
        return await response

    assert run_client(
        client, _app_with_body_limit, Patience(head_s=0.3, send_s=0.3)
    )  # the last: interval of the checks


# --- clients that do not read -----------------------------------------------------------------------------------------


LARGE = 20_000_000
"""Bytes of a response: more than the buffers of the system for one connection."""


async def _large_app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a" * LARGE})


@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"], ids=["kept alive", "closing"])
def test_client_that_never_reads_is_disconnected(header: bytes) -> None:
    async def run() -> str:
        async with asyncio.timeout(TIMEOUT_S), listening(_large_app, patience=Patience(send_s=0.3)) as server:
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n")
                await until(lambda: 'unread"} 1' in server.metrics.text() and not server.connections.open)
            return server.metrics.text()

    metrics = asyncio.run(run())

    assert 'matchpod_connections_rejected_total{why="unread"} 1\n' in metrics
    assert "matchpod_connections 0\n" in metrics


@pytest.mark.soak
def test_client_that_reads_slowly_gets_the_whole_response() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(REQUEST)
        body = b""
        while part := await reader.read(500_000):
            body += part
            await asyncio.sleep(0.05)
        return body

    assert len(run_client(client, _large_app, Patience(send_s=1.0, head_s=0.1))) > LARGE
