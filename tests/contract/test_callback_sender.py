"""Delivery attempts of callbacks to well-behaved and misbehaving receivers."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.ports import CallbackRequest, CallbackSender, Delivery

LIMIT_S = 1.0
AMPLE_S = 60.0
"""A time limit that is not reached."""

PATIENCE_S = 200.0
"""Timeout for steps that are immediate on an idle machine."""

BODY = b'{"eventType":"match_over"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NO_RESPONSE = "no response within 1 s"
TOO_LONG = "the response headers are too long"
NOT_PUBLIC = (
    "not sent: the receiver has an address that is not public;"
    " to allow private addresses, set MATCHPOD_CALLBACK_PRIVATE=allow"
)

Behavior = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """Runs a behavior on each connection; counts connections and detects when the sender closes one."""

    def __init__(self, behavior: Behavior) -> None:
        self._behavior = behavior
        self.connections = 0
        self.closed = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._behavior(reader, writer)
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
        finally:
            self.closed.set()
            writer.transport.abort()


@asynccontextmanager
async def receiving(behavior: Behavior, trust: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(behavior)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=trust)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await asyncio.sleep(0)


def request_to(url: str, *, allow_private: bool = True, **headers: str) -> CallbackRequest:
    all_headers = {"Content-Type": "application/json", **headers}
    return CallbackRequest(url=url, headers=all_headers, body=BODY, allow_private=allow_private)


def ample_sender() -> HttpCallbackSender:
    return HttpCallbackSender(total_s=AMPLE_S)


async def attempt(
    behavior: Behavior, *, scheme: str = "http", total_s: float = AMPLE_S, rest_s: float = 0.1
) -> Delivery:
    """Make one attempt to reach a receiver with this behavior; check that the sender closes the connection."""
    sender: CallbackSender = HttpCallbackSender(total_s=total_s, rest_s=rest_s)
    async with receiving(behavior) as receiver, asyncio.timeout(PATIENCE_S):
        delivery = await sender.send(request_to(f"{scheme}://127.0.0.1:{receiver.port}/hook?secret=s3cret"))
        await receiver.closed.wait()
        assert receiver.connections == 1
    await sender.close()
    assert "s3cret" not in (delivery.error or "")
    return delivery


async def try_url(url: str, *, allow_private: bool, **headers: str) -> Delivery:
    """Make one attempt to reach a URL without starting a receiver."""
    sender = HttpCallbackSender(total_s=5.0)
    delivery = await sender.send(request_to(url, allow_private=allow_private, **headers))
    await sender.close()
    return delivery


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(len(BODY))


def responding(*pieces: bytes) -> Behavior:
    """Read the request, respond in these pieces, and leave the connection open."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)  # so that they arrive apart

    return behave


def trickling(beginning: bytes, piece: bytes) -> Behavior:
    """Respond with a beginning, then with one more piece at a time, forever."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(beginning)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.05)

    return behave


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(65536)


async def close_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize("status", [200, 201, 204, 299, 302, 307, 400, 404, 410, 500, 503])
async def test_status_is_reported_and_2xx_is_a_success(status: int) -> None:
    delivery = await attempt(responding(f"HTTP/1.1 {status} Reason\r\nContent-Length: 2\r\n\r\nok".encode()))
    assert (delivery.status, delivery.error) == (status, None)
    assert delivery.is_success is (status < 300)


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200\r\n\r\n"],
        [b"HTTP/1.0 200 OK\r\n\r\nbody"],
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
        [b"HTT", b"P/1.1 200 O", b"K\r\n\r", b"\n"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"2\r\nok\r\n0\r\n", b"\r\n"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"zz\r\nno chunk"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\nshort"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nmore than two"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 300_000],
    ],
)
async def test_response_with_status_200_is_a_success_in_any_form(pieces: list[bytes]) -> None:
    delivery = await attempt(responding(*pieces))
    assert (delivery.status, delivery.error) == (200, None)


async def flood(beginning: bytes, piece: bytes) -> tuple[Delivery, int]:
    """Send a beginning, then pieces as fast as the sender reads them; return also how many bytes were accepted."""
    accepted = 0

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        await read_request(reader)
        writer.write(beginning)
        while True:
            writer.write(piece)
            await writer.drain()
            accepted += len(piece)

    return await attempt(behave), accepted


SOCKET_BUFFERS = 32_000_000
"""More than the system and both programs buffer on a connection over loopback."""


@pytest.mark.parametrize(
    ("beginning", "piece", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100_000, (200, None)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"x" * 100_000, (200, None)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 0x8000 + b"\r\n", (200, None)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n" * 10_000, (200, None)),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", b"x" * 100_000, (302, None)),
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 10_000, (None, TOO_LONG)),
        (b"HTTP/1.1 200 OK\r\nA: ", b"x" * 100_000, (None, TOO_LONG)),
        (b"HTTP/1.1 200 ", b"x" * 100_000, (None, TOO_LONG)),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1_000, (None, TOO_LONG)),
        (b"", b"\r\n" * 10_000, (None, TOO_LONG)),
    ],
    ids=["body", "after the body", "chunks", "trailers", "redirect", "headers", "header", "reason", "interim", "lines"],
)
async def test_endless_response_is_aborted_after_a_limited_number_of_bytes(
    beginning: bytes, piece: bytes, expected: tuple[int | None, str | None]
) -> None:
    delivery, accepted = await flood(beginning, piece)
    assert (delivery.status, delivery.error) == expected
    assert accepted < SOCKET_BUFFERS
    assert delivery.duration_ms < AMPLE_S * 1000 / 2


@pytest.mark.parametrize(("total_s", "rest_s"), [(AMPLE_S, 0.1), (2.0, PATIENCE_S)], ids=["rest", "time limit"])
async def test_status_counts_although_the_body_is_endless(total_s: float, rest_s: float) -> None:
    delivery = await attempt(trickling(b"HTTP/1.1 200 OK\r\n\r\n", b"x"), total_s=total_s, rest_s=rest_s)
    assert (delivery.status, delivery.error) == (200, None)
    assert delivery.duration_ms < AMPLE_S * 1000 / 2


@pytest.mark.parametrize(
    "behavior",
    [
        hang,
        responding(b""),
        responding(b"HTTP/1.1 200 OK\r\n"),
        trickling(b"HTTP/1.1 200 OK\r\nA: ", b"x"),
        trickling(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
        trickling(b"HTTP/1.1 302 ", b"x"),
        responding(b"\r\n\r\n"),
    ],
    ids=["hangs", "empty", "stops within the headers", "endless header", "endless headers", "reason", "empty lines"],
)
async def test_missing_response_fails_after_the_time_limit(behavior: Behavior) -> None:
    delivery = await attempt(behavior, total_s=LIMIT_S)
    assert (delivery.status, delivery.error) == (None, NO_RESPONSE)
    assert 900 <= delivery.duration_ms < 60_000


@pytest.mark.parametrize(
    "response",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x00\xff" * 500 + b"\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 \xd9\xa2\xd9\xa0\xd9\xa0 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"x" * 300_000,
    ],
)
async def test_garbage_is_not_a_response(response: bytes) -> None:
    delivery = await attempt(responding(response))
    assert (delivery.status, delivery.error) == (None, "the response is not HTTP")


def ending(beginning: bytes) -> Behavior:
    """Read the request, respond with these bytes, and end the response."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(beginning)
        writer.write_eof()

    return behave


@pytest.mark.parametrize(
    ("behavior", "error"),
    [
        (ending(b"-ERR unknown command\r\n"), "the response is not HTTP"),
        (responding(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n"), TOO_LONG),
        (trickling(b"", b"HTTP/1.1 100 Continue\r\nX: " + b"x" * 20_000 + b"\r\n\r\n"), TOO_LONG),
        (close_at_once, "the connection was closed before a response arrived"),
        (ending(b"HTTP/1.1 200 OK\r\n"), "the connection was closed before a response arrived"),
    ],
    ids=["garbage", "long headers", "endless interim responses", "closed at once", "closed within the headers"],
)
async def test_attempt_without_a_response_is_a_failure(behavior: Behavior, error: str) -> None:
    delivery = await attempt(behavior)
    assert (delivery.status, delivery.error) == (None, error)


async def test_missing_tls_handshake_fails_after_the_time_limit() -> None:
    assert (await attempt(hang, scheme="https", total_s=LIMIT_S)).error == NO_RESPONSE


async def test_https_to_a_receiver_without_tls_is_a_failure() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readexactly(5)
        await reader.readexactly(int.from_bytes(head[3:]))  # the whole TLS hello: closing with unread bytes resets
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    delivery = await attempt(behave, scheme="https")
    assert (delivery.status, delivery.error) == (None, "the TLS handshake failed")


async def test_request_is_one_post_with_the_given_headers_and_body() -> None:
    received = b""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received = await read_request(reader)
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with receiving(behave) as receiver:
        url = f"http://LocalHost:{receiver.port}/a%20b/?x=1&y=%2F#part"
        assert (await ample_sender().send(request_to(url, Authorization="Bearer t"))).is_success
    assert received == (
        b"POST /a%%20b/?x=1&y=%%2F HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer t\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
        % (receiver.port, len(BODY), BODY)
    )


async def test_redirect_is_not_followed() -> None:
    async with receiving(responding(OK)) as target:
        moved = f"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:{target.port}/\r\nContent-Length: 0\r\n\r\n"
        delivery = await attempt(responding(moved.encode()))
        assert (delivery.status, delivery.is_success, target.connections) == (307, False, 0)


async def test_refused_connection_is_a_failure() -> None:
    async with receiving(hang) as receiver:
        pass
    delivery = await try_url(f"http://127.0.0.1:{receiver.port}/", allow_private=True)
    assert (delivery.status, delivery.error) == (None, "the connection was refused")


@pytest.mark.parametrize("host", ["receiver.invalid", "a" * 64 + ".invalid", "x..invalid"])
async def test_unknown_host_is_a_failure(host: str) -> None:
    delivery = await try_url(f"http://{host}/", allow_private=True)
    assert delivery.status is None
    # An unavailable resolver may take longer than the time limit.
    assert delivery.error in ("not sent: the host name was not found", "no response within 5 s")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "localhost",
        "LOCALHOST",
        "0.0.0.0",
        "0",
        "10.0.0.1",
        "169.254.169.254",
        "2852039166",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ],
)
async def test_private_address_in_any_notation_is_rejected_before_connecting(host: str) -> None:
    async with receiving(responding(OK)) as receiver:
        request = request_to(f"http://{host}:{receiver.port}/", allow_private=False)
        delivery = await HttpCallbackSender(total_s=AMPLE_S).send(request)
        assert (delivery.status, receiver.connections) == (None, 0)
    # A machine without IPv6 may not resolve IPv6 addresses at all.
    assert delivery.error in [NOT_PUBLIC] + ["not sent: the host name was not found"] * host.startswith("[")


AddressInfo = tuple[int, int, int, str, tuple[str, int]]


def address_info(address: str) -> AddressInfo:
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 0))


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every host name have these addresses."""
    monkeypatch.setattr(
        "matchpod.adapters.host_lookups.getaddrinfo", lambda *_, **__: [address_info(address) for address in addresses]
    )


async def test_host_with_one_private_address_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "8.8.8.8", "127.0.0.1")
    delivery = await try_url("http://receiver.example/", allow_private=False)
    assert delivery.error == NOT_PUBLIC


@pytest.mark.parametrize(("open_files", "capacity"), [(1_024, 256), (16_384, 4_096), (65_536, 4_096), (-1, 4_096)])
def test_capacity_leaves_open_files_for_the_rest_of_the_process(
    monkeypatch: pytest.MonkeyPatch, open_files: int, capacity: int
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (open_files, -1))
    assert HttpCallbackSender().capacity == capacity


async def test_next_address_is_tried_if_one_refuses_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.2", "127.0.0.1")
    assert (await attempt(responding(b"HTTP/1.1 204 Done\r\n\r\n"))).status == 204


@contextmanager
def slow_resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Replace the resolver. A lookup sets the first event, and returns when a test sets the second one."""
    called, proceed = threading.Event(), threading.Event()

    def resolve(*_: object, **__: object) -> list[AddressInfo]:
        called.set()
        proceed.wait(PATIENCE_S)
        return [address_info("127.0.0.1")]

    monkeypatch.setattr("matchpod.adapters.host_lookups.getaddrinfo", resolve)
    try:
        yield called, proceed
    finally:
        proceed.set()


async def test_hanging_resolver_fails_after_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_resolver(monkeypatch):
        sender = HttpCallbackSender(total_s=LIMIT_S)
        delivery = await sender.send(request_to("http://receiver.example/"))
    assert (delivery.status, delivery.error) == (None, NO_RESPONSE)
    assert delivery.duration_ms < AMPLE_S * 1000 / 2


async def test_nothing_is_sent_if_the_sender_is_closed_while_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    received = b""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received = await reader.read(65536)

    sender = ample_sender()
    with slow_resolver(monkeypatch) as (called, proceed):
        async with receiving(behave) as receiver, asyncio.timeout(PATIENCE_S):
            task = asyncio.create_task(sender.send(request_to(f"http://receiver.example:{receiver.port}/")))
            await asyncio.to_thread(called.wait, PATIENCE_S)
            await sender.close()
            proceed.set()
            delivery = await task
            await receiver.closed.wait()
    assert (delivery.status, delivery.error, received) == (None, "not sent: the sender is closed", b"")


@pytest.mark.parametrize(
    ("response", "total_s", "expected"),
    [
        (b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", AMPLE_S, (413, None)),
        (b"", LIMIT_S, (None, NO_RESPONSE)),
    ],
    ids=["which counts", "so the attempt fails"],
)
async def test_receiver_responds_without_reading_a_large_request(
    response: bytes, total_s: float, expected: tuple[int | None, str | None]
) -> None:
    is_over = asyncio.Event()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response)
        await is_over.wait()

    sender = HttpCallbackSender(total_s=total_s)
    async with receiving(behave) as receiver, asyncio.timeout(PATIENCE_S):
        url, larger_than_buffers = f"http://127.0.0.1:{receiver.port}/", b"x" * 20_000_000
        delivery = await sender.send(CallbackRequest(url=url, headers={}, body=larger_than_buffers, allow_private=True))
        is_over.set()
        await receiver.closed.wait()
    assert (delivery.status, delivery.error) == expected
    assert delivery.duration_ms < AMPLE_S * 1000 / 2


async def test_unreachable_address_is_a_failure() -> None:
    delivery = await try_url("http://255.255.255.255:9/", allow_private=True)
    assert delivery.status is None
    assert delivery.error == "the receiver could not be reached"


@pytest.mark.parametrize(
    "url",
    [
        *("", "nonsense", "ftp://receiver.example/", "file:///etc/passwd", "//receiver.example/", "http://"),
        *("http:///path", "http://:80/", "http://a:0/", "http://a:99999/", "http://a:b/", "http://[::1/"),
        *(
            "http://user:s3cret@receiver.example/",
            "http://a/ HTTP/1.1",
            "http://a/\r\nX: y",
            "http://a\\@b/",
            "http://é/",
        ),
    ],
)
async def test_callback_to_an_invalid_url_is_not_sent(url: str) -> None:
    delivery = await try_url(url, allow_private=True)
    assert delivery.status is None
    assert (delivery.error or "").startswith("not sent: the URL ")
    assert "s3cret" not in (delivery.error or "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("Authorization", f"s3cret{end}X-Evil: 1") for end in ("\r\n", "\n", "\r", "\0", "\x7f", "é", "\u2028")),
        *((name, "s3cret") for name in ("", "a b", "a:", "a\r\nb", "é", "Host", "content-length", "Transfer-Encoding")),
    ],
)
async def test_invalid_header_is_not_sent_and_not_shown(name: str, value: str) -> None:
    delivery = await try_url("http://127.0.0.1:9/", allow_private=True, **{name: value})
    assert delivery.status is None
    assert (delivery.error or "").startswith("not sent: ")
    assert "s3cret" not in (delivery.error or "")


async def test_closed_sender_and_cancelled_attempt_close_their_connections() -> None:
    received = asyncio.Event()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        received.set()

    sender = ample_sender()
    async with receiving(behave) as receiver, asyncio.timeout(PATIENCE_S):
        request = request_to(f"http://127.0.0.1:{receiver.port}/")
        cancelled = asyncio.create_task(sender.send(request))
        await received.wait()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await receiver.closed.wait()
        received.clear()
        receiver.closed.clear()
        task = asyncio.create_task(sender.send(request))
        await received.wait()
        await sender.close()
        await sender.close()
        aborted = await task
        await receiver.closed.wait()
        later = await sender.send(request)
    assert (aborted.status, aborted.error) == (None, "the connection was closed before a response arrived")
    assert (later.status, later.error) == (None, "not sent: the sender is closed")


def self_signed(folder: Path, *names: x509.GeneralName) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Create a certificate for these names; return the TLS contexts of its receiver and of a sender that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "receiver")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    certificate = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(key, hashes.SHA256())
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "receiver.pem").write_bytes(pem + secret)
    receiver = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    receiver.load_cert_chain(folder / "receiver.pem")
    return receiver, ssl.create_default_context(cadata=pem.decode())


@pytest.mark.parametrize(
    ("names", "is_trusted", "host", "expected"),
    [
        (["localhost", "127.0.0.1"], True, "localhost", (200, "")),
        (["localhost", "127.0.0.1"], True, "127.0.0.1", (200, "")),
        (["other.example"], True, "localhost", (None, "certificate verification failed: ")),
        (["localhost"], False, "localhost", (None, "certificate verification failed: ")),
    ],
    ids=["trusted name", "trusted address", "another name", "untrusted"],
)
async def test_https_accepts_only_a_trusted_certificate_of_the_receiver(
    tmp_path: Path, names: list[str], is_trusted: bool, host: str, expected: tuple[int | None, str]
) -> None:
    general = [
        x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name) for name in names
    ]
    receiver_side, sender_side = self_signed(tmp_path, *general)
    async with receiving(responding(OK), receiver_side) as receiver:
        sender = HttpCallbackSender(total_s=AMPLE_S, trust=sender_side if is_trusted else None)
        delivery = await sender.send(request_to(f"https://{host}:{receiver.port}/"))
        await sender.close()
    status, error = expected
    assert delivery.status == status
    assert (delivery.error or "").startswith(error)
    assert bool(delivery.error) == bool(error)


async def test_file_with_private_authorities_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver_side, _ = self_signed(tmp_path, x509.DNSName("localhost"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "receiver.pem"))
    async with receiving(responding(OK), receiver_side) as receiver:
        sender = ample_sender()
        delivery = await sender.send(request_to(f"https://localhost:{receiver.port}/"))
        await sender.close()
    assert (delivery.status, delivery.error) == (200, None)
