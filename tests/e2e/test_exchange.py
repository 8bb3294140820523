"""Requests and responses over a real connection: framing, keep-alive, trailers, and applications that fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

import pytest

from matchpod.web.http.asgi import Application, Receive, Scope, Send
from tests.e2e.listening import listening

TIMEOUT_S = 120.0


def exchange(app: Application, *parts: bytes, end: bytes = b"") -> bytes:
    """Send these parts; return what the server sends until it closes the connection, or until `end`."""

    async def run() -> bytes:
        async with asyncio.timeout(TIMEOUT_S), listening(app) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            for part in parts:
                writer.write(part)
                await writer.drain()
            try:
                return await (reader.readuntil(end) if end else reader.read())
            finally:
                writer.close()
                await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    return asyncio.run(run())


def responding(
    *parts: bytes, status: int = 200, headers: Sequence[tuple[bytes, bytes]] = (), reads_body: bool = True
) -> Application:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while reads_body and (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        for part in parts[:-1]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": parts[-1] if parts else b""})

    return app


def head(*lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} /a%20b?x=1 HTTP/{version}", "Host: x", *lines, "", ""]).encode()


def test_scope_has_path_query_and_headers() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await responding(b"ok")(scope, receive, send)

    exchange(app, head("X-A: 1", "Connection: close"))
    (scope,) = seen
    assert (scope["method"], scope["path"], scope["raw_path"]) == ("GET", "/a b", b"/a%20b")
    assert (scope["query_string"], scope["http_version"]) == (b"x=1", "1.1")
    assert scope["headers"] == [(b"host", b"x"), (b"x-a", b"1"), (b"connection", b"close")]


def test_body_in_one_part_has_a_length_and_one_in_several_is_chunked() -> None:
    assert b"content-length: 2\r\n" in exchange(responding(b"ok"), head("Connection: close"))
    response = exchange(responding(b"one", b"two"), head("Connection: close"))
    assert response.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
    assert b"transfer-encoding: chunked\r\n" in response


def test_http_1_0_gets_no_chunks_and_keeps_the_connection_only_if_asked() -> None:
    response = exchange(responding(b"one", b"two"), head(version="1.0"))
    assert response.endswith(b"\r\n\r\nonetwo")
    assert b"connection: close\r\n" in response
    kept = exchange(responding(b"ok"), head("Connection: keep-alive", version="1.0"), end=b"ok")
    assert b"connection: keep-alive\r\n" in kept


def test_head_of_a_body_of_unknown_length_announces_none() -> None:
    request = head(method="HEAD")
    response = exchange(responding(b""), request, head("Connection: close", method="HEAD"))
    assert response.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert b"content-length" not in response


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_response_without_a_body_keeps_the_connection_usable(method: str, status: int) -> None:
    app = responding(b"", status=status)
    request = head(method=method)
    response = exchange(app, request, head("Connection: close", method=method))
    assert response.count(b"HTTP/1.1 %d " % status) == 2


def test_continue_is_sent_before_the_body_is_read() -> None:
    lines = ("Content-Length: 2", "Expect: 100-continue", "Connection: close")
    response = exchange(responding(b"ok"), head(*lines, method="POST"), b"ab")
    assert response.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_trailers_are_not_headers() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await responding(b"ok")(scope, receive, send)
        seen.append(scope)

    lines = ("Transfer-Encoding: chunked", "Connection: close")
    exchange(app, head(*lines, method="POST"), b"2\r\nab\r\n0\r\nAuthorization: Bearer x\r\n\r\n")
    assert b"authorization" not in dict(seen[0]["headers"])


def test_connection_is_closed_after_a_response_before_the_end_of_the_body() -> None:
    request = head("Content-Length: 3000000", method="POST")
    response = exchange(responding(b"too large", status=413, reads_body=False), request, b"a" * 3_000_000)
    assert response.endswith(b"too large")
    assert b"connection: close\r\n" in response


def test_failure_of_the_application_is_a_500_or_an_aborted_response(caplog: pytest.LogCaptureFixture) -> None:
    async def fails_at_once(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("a bug")

    async def fails_later(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        raise ValueError("a bug")

    with caplog.at_level(logging.ERROR):
        assert exchange(fails_at_once, head()).startswith(b"HTTP/1.1 500 ")
        with suppress(ConnectionResetError):
            assert b"0\r\n\r\n" not in exchange(fails_later, head())
    assert [record.message for record in caplog.records] == ["application failed"] * 2


def test_response_must_have_the_announced_length(caplog: pytest.LogCaptureFixture) -> None:
    short = responding(b"ok", headers=[(b"content-length", b"9")])
    assert b"200" not in exchange(short, head())
    assert "announced content length" in caplog.text
