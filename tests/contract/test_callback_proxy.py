"""Callbacks through an HTTP proxy: to the addresses that were checked, and to no others."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import uvloop
from cryptography import x509

from matchpod.adapters.callback_proxy import HttpProxy, read_proxy
from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.ports import Delivery
from tests.contract.test_callback_sender import (
    AMPLE_S,
    LIMIT_S,
    NOT_PUBLIC,
    OK,
    Behavior,
    hang,
    receiving,
    request_to,
    resolve_to,
    responding,
    self_signed,
)

OPENED = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n"
ANSWERING = responding(OK)
PUBLIC, OTHER = "8.8.8.8", "2001:4860:4860::8888"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> asyncio.Runner:
    return asyncio.Runner(loop_factory=request.param)


class Proxy:
    """Answers each CONNECT, by its target, and passes tunnels on to one receiver."""

    def __init__(self, receiver_port: int, answers: Mapping[str, bytes]) -> None:
        self._receiver_port = receiver_port
        self._answers = answers
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            answer = self._answers.get(head.split()[1].decode().rpartition(":")[0].strip("[]"), OPENED)
            writer.write(answer)
            if answer.startswith(OPENED):
                far = await asyncio.open_connection("127.0.0.1", self._receiver_port)
                await asyncio.gather(copy(reader, far[1]), copy(far[0], writer))
        writer.transport.abort()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.transport.abort()


@asynccontextmanager
async def proxying(receiver_port: int, answers: Mapping[str, bytes]) -> AsyncIterator[tuple[Proxy, int]]:
    proxy = Proxy(receiver_port, answers)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.sleep(0)


async def attempt(
    url: str,
    *,
    answers: Mapping[str, bytes] | None = None,
    credentials: str = "",
    allow_private: bool = False,
    total_s: float = AMPLE_S,
    proxy_port: int | None = None,
    behavior: Behavior = ANSWERING,
    receiver_side: ssl.SSLContext | None = None,
    trust: ssl.SSLContext | None = None,
) -> tuple[Delivery, list[bytes], int]:
    """Send a callback; return the delivery, the requests that the proxy got, and the connections to the receiver."""
    async with receiving(behavior, receiver_side) as receiver, proxying(receiver.port, answers or {}) as (proxy, port):
        url = url.replace("PORT", str(receiver.port))
        found = read_proxy(f"http://{credentials}127.0.0.1:{proxy_port or port}")
        sender = HttpCallbackSender(total_s=total_s, trust=trust, proxy=found)
        delivery = await sender.send(request_to(url, allow_private=allow_private))
        await sender.close()
        return delivery, proxy.heads, receiver.connections


def test_proxy_gets_the_address_that_was_checked(runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, PUBLIC)
    with runner:
        delivery, (head,), connections = runner.run(attempt("http://receiver.example:8080/hook"))
    assert (delivery.status, delivery.error, connections) == (200, None, 1)
    assert head == b"CONNECT 8.8.8.8:8080 HTTP/1.1\r\nHost: 8.8.8.8:8080\r\n\r\n"


async def test_proxy_gets_our_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, OTHER)
    delivery, (head,), _ = await attempt("http://receiver.example/", credentials="pod:p%40ss@")
    assert delivery.status == 200
    assert head.startswith(b"CONNECT [2001:4860:4860::8888]:80 HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: Basic cG9kOnBAc3M=\r\n" in head  # pod:p@ss
    assert "p@ss" not in repr(read_proxy("http://pod:p%40ss@proxy"))
    assert repr(HttpProxy("proxy", 80)) == repr(read_proxy("http://pod:p%40ss@proxy"))


@pytest.mark.parametrize("addresses", [("127.0.0.1",), (PUBLIC, "10.0.0.7"), ("169.254.169.254",)])
async def test_nothing_reaches_the_proxy_if_an_address_is_private(
    monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...]
) -> None:
    resolve_to(monkeypatch, *addresses)
    delivery, heads, connections = await attempt("http://receiver.example/")
    assert (delivery.error, heads, connections) == (NOT_PUBLIC, [], 0)


async def test_private_address_that_is_allowed_is_reached_directly() -> None:
    delivery, heads, connections = await attempt("http://127.0.0.1:PORT/", allow_private=True)
    assert (delivery.status, heads, connections) == (200, [], 1)


@pytest.mark.parametrize(("name", "error"), [("receiver.example", ""), ("other.example", "certificate verification")])
def test_certificate_is_that_of_the_receiver(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, error: str
) -> None:
    resolve_to(monkeypatch, PUBLIC)
    receiver_side, sender_side = self_signed(tmp_path, x509.DNSName("receiver.example"))
    with runner:
        delivery = runner.run(attempt(f"https://{name}/", receiver_side=receiver_side, trust=sender_side))[0]
    assert delivery.status == (None if error else 200)
    assert (delivery.error or "").startswith(error)


def test_what_the_proxy_sends_before_tls_is_no_answer_of_the_receiver(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    resolve_to(monkeypatch, PUBLIC)
    receiver_side, sender_side = self_signed(tmp_path, x509.DNSName("receiver.example"))
    unavailable = responding(OK.replace(b"200 OK", b"503 Unavailable"))
    tried = attempt(
        "https://receiver.example/",
        behavior=unavailable,
        answers={PUBLIC: OPENED + OK},
        receiver_side=receiver_side,
        trust=sender_side,
    )
    with runner:
        assert runner.run(tried)[0].status == 503


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "answered with status 407"),
        (b"HTTP/1.1 403\r\nContent-Length: 2\r\n\r\nno", "answered with status 403"),
        (b"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n", "answered with status 301"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "did not answer with HTTP"),
        (b"HTTP/1.1 200 OK\r\n", "closed the connection or did not answer with HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "closed the connection or did not answer with HTTP"),
        (b"", "closed the connection or did not answer with HTTP"),
    ],
)
async def test_status_of_the_proxy_is_not_that_of_the_receiver(
    monkeypatch: pytest.MonkeyPatch, answer: bytes, error: str
) -> None:
    resolve_to(monkeypatch, PUBLIC)
    delivery, _, connections = await attempt("http://receiver.example/", answers={PUBLIC: answer})
    assert (delivery.status, delivery.error, connections) == (None, f"not sent: the callback proxy {error}", 0)


async def test_next_address_is_tried_if_the_proxy_does_not_reach_one(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, OTHER, PUBLIC)
    answers = {OTHER: b"HTTP/1.1 502 Bad Gateway\r\n\r\n"}
    delivery, heads, _ = await attempt("http://receiver.example/", answers=answers)
    assert (delivery.status, len(heads)) == (200, 2)


async def test_proxy_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, PUBLIC)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        delivery, _, _ = await attempt("http://receiver.example/", proxy_port=port)
    assert delivery.error == "not sent: the callback proxy cannot be reached"


async def test_hanging_proxy_fails_after_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, PUBLIC)
    async with receiving(hang) as silent:
        sender = HttpCallbackSender(total_s=LIMIT_S, proxy=read_proxy(f"http://127.0.0.1:{silent.port}"))
        delivery = await sender.send(request_to("http://receiver.example/", allow_private=False))
        await asyncio.wait_for(silent.closed.wait(), AMPLE_S)
        await sender.close()
    assert delivery.error == "no response within 1 s"
