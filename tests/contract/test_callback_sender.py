"""One attempt to deliver a callback, against receivers that behave and receivers that do not."""

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

from matchpod.adapters.callback_sender import HttpCallbackSender, is_public
from matchpod.ports import CallbackRequest, CallbackSender, Delivery

LIMIT_S = 1.0
AMPLE_S = 15.0
"""A limit that is not reached."""

PATIENCE_S = 200.0
"""For what happens at once on a machine that has nothing else to do."""

BODY = b'{"eventType":"match_over"}'

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """Takes connections, does with each what it is told, and notes what came and that the sender hung up."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self.connections = 0
        self.hung_up = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._behaviour(reader, writer)
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
        finally:
            self.hung_up.set()
            writer.transport.abort()


@asynccontextmanager
async def receiving(behaviour: Behaviour, trust: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(behaviour)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=trust)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await asyncio.sleep(0)


def request_to(url: str, **headers: str) -> CallbackRequest:
    return CallbackRequest(url=url, headers={"Content-Type": "application/json", **headers}, body=BODY)


def attempt(behaviour: Behaviour, *, scheme: str = "http", total_s: float = AMPLE_S) -> Delivery:
    """One attempt at a receiver of this behaviour, whose connection must be closed afterwards."""

    async def run() -> Delivery:
        sender: CallbackSender = HttpCallbackSender(allow_private=True, total_s=total_s)
        async with receiving(behaviour) as receiver, asyncio.timeout(PATIENCE_S):
            delivery = await sender.send(request_to(f"{scheme}://127.0.0.1:{receiver.port}/hook?secret=s3cret"))
            await receiver.hung_up.wait()
            assert receiver.connections == 1
        await sender.close()
        return delivery

    delivery = asyncio.run(run())
    assert "s3cret" not in (delivery.error or "")
    return delivery


def try_url(url: str, *, allow_private: bool, **headers: str) -> Delivery:
    """One attempt at an address where nobody needs to be."""

    async def run() -> Delivery:
        sender = HttpCallbackSender(allow_private=allow_private, total_s=5.0)
        delivery = await sender.send(request_to(url, **headers))
        await sender.close()
        return delivery

    return asyncio.run(run())


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(len(BODY))


def answering(*pieces: bytes) -> Behaviour:
    """Read the request, answer in these pieces, and leave the connection open."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    return behave


def dripping(beginning: bytes, drop: bytes) -> Behaviour:
    """Answer with a beginning, then a little now and then for ever."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(beginning)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.05)

    return behave


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(65536)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize("status", [200, 201, 204, 299, 302, 307, 400, 404, 410, 500, 503])
def test_the_status_of_an_answer_is_reported_and_the_200s_are_done(status: int) -> None:
    delivery = attempt(answering(f"HTTP/1.1 {status} Said\r\nContent-Length: 2\r\n\r\nok".encode()))
    assert (delivery.status, delivery.error) == (status, None)
    assert delivery.is_done is (status < 300)


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
        [b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 300_000],
    ],
)
def test_an_answer_in_any_shape_counts_once_its_status_has_come(pieces: list[bytes]) -> None:
    delivery = attempt(answering(*pieces))
    assert (delivery.status, delivery.error) == (200, None)


def test_a_body_that_drips_for_ever_changes_nothing_and_is_not_waited_for() -> None:
    delivery = attempt(dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"x"))
    assert (delivery.status, delivery.error) == (200, None)
    assert delivery.duration_ms < 10_000


def test_a_status_that_came_just_before_the_end_of_the_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchpod.adapters.callback_sender.REST_S", PATIENCE_S)
    delivery = attempt(dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"x"), total_s=2.0)
    assert (delivery.status, delivery.error) == (200, None)


@pytest.mark.parametrize(
    "behaviour",
    [
        hang,
        answering(b""),
        answering(b"HTTP/1.1 200 OK\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nA: ", b"x"),
        dripping(b"", b"x"),
    ],
    ids=["hangs", "says nothing", "stops in the head", "drips a header", "drips garbage"],
)
def test_a_receiver_without_an_answer_costs_the_limit_and_no_more(behaviour: Behaviour) -> None:
    delivery = attempt(behaviour, total_s=LIMIT_S)
    assert (delivery.status, delivery.error) == (None, "no answer within 1 s")
    assert 900 <= delivery.duration_ms < 8_000


def test_one_that_announces_answers_for_ever_is_cut_off() -> None:
    interim = b"HTTP/1.1 100 Continue\r\nX: " + b"x" * 20_000 + b"\r\n\r\n"
    delivery = attempt(dripping(b"", interim))
    assert (delivery.status, delivery.error) == (None, "the head of the answer is too long")


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x00\xff" * 500 + b"\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 \xd9\xa2\xd9\xa0\xd9\xa0 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"\r\n\r\n",
    ],
)
def test_garbage_is_no_answer(answer: bytes) -> None:
    delivery = attempt(answering(answer))
    assert (delivery.status, delivery.error) == (None, "the answer is not HTTP")


def test_garbage_followed_by_the_end_is_no_answer() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"-ERR unknown command\r\n")
        writer.write_eof()

    assert attempt(behave).error == "the answer is not HTTP"


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000, b"x" * 300_000])
def test_a_huge_head_is_cut_off(head: bytes) -> None:
    delivery = attempt(answering(head + b"\r\n\r\n"))
    assert (delivery.status, delivery.error) == (None, "the head of the answer is too long")


def test_one_that_hangs_up_is_a_failure() -> None:
    delivery = attempt(hang_up)
    assert (delivery.status, delivery.error) == (None, "the connection ended before the answer")


def test_one_that_hangs_up_in_the_head_is_a_failure() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        writer.write_eof()

    assert attempt(behave).error == "the connection ended before the answer"


def test_https_at_a_receiver_that_never_shakes_hands_costs_the_limit() -> None:
    assert attempt(hang, scheme="https", total_s=LIMIT_S).error == "no answer within 1 s"


def test_https_at_a_receiver_without_tls_is_a_failure() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readexactly(5)
        await reader.readexactly(int.from_bytes(head[3:]))  # all of its hello: closing on unread bytes resets
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    delivery = attempt(behave, scheme="https")
    assert (delivery.status, delivery.error) == (None, "the TLS handshake failed")


def test_the_request_is_one_post_with_the_given_headers_and_bytes() -> None:
    async def run() -> tuple[bytes, int]:
        seen = b""

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal seen
            seen = await read_request(reader)
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

        sender = HttpCallbackSender(allow_private=True, total_s=AMPLE_S)
        async with receiving(behave) as receiver:
            url = f"http://LocalHost:{receiver.port}/a%20b/?x=1&y=%2F#part"
            delivery = await sender.send(request_to(url, Authorization="Bearer t"))
            assert delivery.is_done
            return seen, receiver.port

    seen, port = asyncio.run(run())
    assert seen == (
        b"POST /a%%20b/?x=1&y=%%2F HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer t\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (port, len(BODY), BODY)
    )


def test_a_redirect_is_not_followed() -> None:
    async def run() -> tuple[Delivery, int]:
        async with receiving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as target:
            moved = f"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:{target.port}/\r\nContent-Length: 0\r\n\r\n"
            async with receiving(answering(moved.encode())) as receiver:
                sender = HttpCallbackSender(allow_private=True, total_s=AMPLE_S)
                delivery = await sender.send(request_to(f"http://127.0.0.1:{receiver.port}/"))
                return delivery, target.connections

    delivery, followed = asyncio.run(run())
    assert (delivery.status, delivery.is_done, followed) == (307, False, 0)


def test_a_port_where_nobody_listens_is_a_failure() -> None:
    async def free_port() -> int:
        async with receiving(hang) as receiver:
            return receiver.port

    delivery = try_url(f"http://127.0.0.1:{asyncio.run(free_port())}/", allow_private=True)
    assert (delivery.status, delivery.error) == (None, "the connection was refused")


@pytest.mark.parametrize("host", ["receiver.invalid", "a" * 64 + ".invalid", "x..invalid"])
def test_an_unknown_host_is_a_failure(host: str) -> None:
    delivery = try_url(f"http://{host}/", allow_private=True)
    assert delivery.status is None
    # A resolver that is away may take longer than the limit.
    assert delivery.error in ("not sent: the host name was not found", "no answer within 5 s")


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
def test_a_private_receiver_is_refused_in_every_spelling_before_a_connection_is_made(host: str) -> None:
    async def run() -> tuple[Delivery, int]:
        async with receiving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as receiver:
            sender = HttpCallbackSender(total_s=AMPLE_S)
            delivery = await sender.send(request_to(f"http://{host}:{receiver.port}/"))
            return delivery, receiver.connections

    delivery, connections = asyncio.run(run())
    assert (delivery.status, connections) == (None, 0)
    # A machine without IPv6 may not know such an address at all.
    refused = ["not sent: the receiver has an address that is not public"]
    assert delivery.error in refused + ["not sent: the host name was not found"] * host.startswith("[")


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "64:ff9b::808:808"],
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254"),
        *("172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1"),
        *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
        *("168.63.129.16", "100.100.100.200"),
        *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1"),
        *("100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%1"),
        *("fec0::1", "ff02::1", "4000::1", "nonsense", ""),
    ],
)
def test_all_others_are_not(address: str) -> None:
    assert not is_public(address)


Found = tuple[int, int, int, str, tuple[str, int]]


def found(address: str) -> Found:
    """An entry of what a resolver answers."""
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 0))


def test_one_address_that_is_not_public_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed(*_: object, **__: object) -> list[Found]:
        return [found("8.8.8.8"), found("127.0.0.1")]

    monkeypatch.setattr("matchpod.adapters.callback_sender.getaddrinfo", mixed)
    delivery = try_url("http://receiver.example/", allow_private=False)
    assert delivery.error == "not sent: the receiver has an address that is not public"


def test_the_next_address_is_tried_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def several(*_: object, **__: object) -> list[Found]:
        return [found("127.0.0.2"), found("127.0.0.1")]

    monkeypatch.setattr("matchpod.adapters.callback_sender.getaddrinfo", several)
    assert attempt(answering(b"HTTP/1.1 204 Done\r\n\r\n")).status == 204


@contextmanager
def slow_resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Look-ups that say when they were asked, and find this machine when they are let go."""
    asked, let_go = threading.Event(), threading.Event()

    def look_up(*_: object, **__: object) -> list[Found]:
        asked.set()
        let_go.wait(PATIENCE_S)
        return [found("127.0.0.1")]

    monkeypatch.setattr("matchpod.adapters.callback_sender.getaddrinfo", look_up)
    try:
        yield asked, let_go
    finally:
        let_go.set()


def test_a_resolver_that_hangs_costs_the_limit_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> Delivery:
        sender = HttpCallbackSender(allow_private=True, total_s=LIMIT_S)
        return await sender.send(request_to("http://receiver.example/"))

    with slow_resolver(monkeypatch):
        delivery = asyncio.run(run())
    assert (delivery.status, delivery.error) == (None, "no answer within 1 s")
    assert delivery.duration_ms < 8_000


def test_a_sender_that_is_closed_while_it_connects_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(asked: threading.Event, let_go: threading.Event) -> tuple[Delivery, bytes]:
        seen = b""

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal seen
            seen = await reader.read(65536)

        sender = HttpCallbackSender(allow_private=True, total_s=AMPLE_S)
        async with receiving(behave) as receiver, asyncio.timeout(PATIENCE_S):
            request = request_to(f"http://receiver.example:{receiver.port}/")
            under_way = asyncio.create_task(sender.send(request))
            await asyncio.to_thread(asked.wait, PATIENCE_S)
            await sender.close()
            let_go.set()
            delivery = await under_way
            await receiver.hung_up.wait()
            return delivery, seen

    with slow_resolver(monkeypatch) as (asked, let_go):
        delivery, seen = asyncio.run(run(asked, let_go))
    assert (delivery.status, delivery.error, seen) == (None, "not sent: the sender is closed", b"")


def send_large(behaviour: Behaviour, total_s: float) -> Delivery:
    """An attempt with more than the buffers between the two take."""

    async def run() -> Delivery:
        sender = HttpCallbackSender(allow_private=True, total_s=total_s)
        async with receiving(behaviour) as receiver, asyncio.timeout(PATIENCE_S):
            url = f"http://127.0.0.1:{receiver.port}/"
            delivery = await sender.send(CallbackRequest(url=url, headers={}, body=b"x" * 20_000_000))
            await receiver.hung_up.wait()
        return delivery

    return asyncio.run(run())


def test_an_answer_that_comes_before_the_request_was_read_counts() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await asyncio.sleep(1)

    delivery = send_large(behave, AMPLE_S)
    assert (delivery.status, delivery.error) == (413, None)


def test_a_receiver_that_never_reads_costs_the_limit_and_no_more() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3 * LIMIT_S)

    delivery = send_large(behave, LIMIT_S)
    assert (delivery.status, delivery.error) == (None, "no answer within 1 s")
    assert delivery.duration_ms < 8_000


def test_an_address_that_cannot_be_reached_is_a_failure() -> None:
    delivery = try_url("http://255.255.255.255:9/", allow_private=True)
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
def test_a_url_that_is_none_is_not_sent(url: str) -> None:
    delivery = try_url(url, allow_private=True)
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
def test_a_header_that_would_break_the_request_is_not_sent_nor_shown(name: str, value: str) -> None:
    delivery = try_url("http://127.0.0.1:9/", allow_private=True, **{name: value})
    assert delivery.status is None
    assert (delivery.error or "").startswith("not sent: ")
    assert "s3cret" not in (delivery.error or "")


def test_closing_cuts_off_what_is_under_way_and_refuses_later_attempts() -> None:
    async def run() -> tuple[Delivery, Delivery]:
        asked = asyncio.Event()

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            asked.set()

        sender = HttpCallbackSender(allow_private=True, total_s=AMPLE_S)
        async with receiving(behave) as receiver, asyncio.timeout(PATIENCE_S):
            request = request_to(f"http://127.0.0.1:{receiver.port}/")
            under_way = asyncio.create_task(sender.send(request))
            await asked.wait()
            await sender.close()
            await sender.close()
            cut_off = await under_way
            await receiver.hung_up.wait()
            return cut_off, await sender.send(request)

    cut_off, later = asyncio.run(run())
    assert (cut_off.status, cut_off.error) == (None, "the connection ended before the answer")
    assert (later.status, later.error) == (None, "not sent: the sender is closed")


def test_an_attempt_that_is_canceled_closes_its_connection() -> None:
    async def run() -> None:
        asked = asyncio.Event()

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            asked.set()

        sender = HttpCallbackSender(allow_private=True, total_s=AMPLE_S)
        async with receiving(behave) as receiver, asyncio.timeout(PATIENCE_S):
            under_way = asyncio.create_task(sender.send(request_to(f"http://127.0.0.1:{receiver.port}/")))
            await asked.wait()
            under_way.cancel()
            with pytest.raises(asyncio.CancelledError):
                await under_way
            await receiver.hung_up.wait()

    asyncio.run(run())


def self_signed(folder: Path, *names: x509.GeneralName) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A certificate for these names: the side of the receiver, and that of a sender who trusts it."""
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


def send_tls(receiver_side: ssl.SSLContext, sender_side: ssl.SSLContext | None, host: str) -> Delivery:
    async def run() -> Delivery:
        answer = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        async with receiving(answer, receiver_side) as receiver:
            sender = HttpCallbackSender(allow_private=True, total_s=AMPLE_S, trust=sender_side)
            delivery = await sender.send(request_to(f"https://{host}:{receiver.port}/"))
            await sender.close()
            await asyncio.sleep(0.05)
            return delivery

    return asyncio.run(run())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_https_reaches_a_receiver_whose_certificate_is_trusted(tmp_path: Path, host: str) -> None:
    ip = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    receiver_side, sender_side = self_signed(tmp_path, x509.DNSName("localhost"), ip)
    delivery = send_tls(receiver_side, sender_side, host)
    assert (delivery.status, delivery.error) == (200, None)


def test_https_refuses_a_certificate_of_another_name(tmp_path: Path) -> None:
    receiver_side, sender_side = self_signed(tmp_path, x509.DNSName("other.example"))
    delivery = send_tls(receiver_side, sender_side, "localhost")
    assert delivery.status is None
    assert (delivery.error or "").startswith("the certificate was not accepted: ")


def test_https_refuses_a_certificate_nobody_vouches_for(tmp_path: Path) -> None:
    receiver_side, _ = self_signed(tmp_path, x509.DNSName("localhost"))
    delivery = send_tls(receiver_side, None, "localhost")
    assert delivery.status is None
    assert (delivery.error or "").startswith("the certificate was not accepted: ")
