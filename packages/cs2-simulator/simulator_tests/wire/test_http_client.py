"""Tests of the HTTP client: it returns the response or an error, and never raises or waits forever."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import time
import tracemalloc
from types import FrameType

import msgspec
import pytest

from cs2_simulator.outside import FetchResult, Upload
from cs2_simulator.wire.http_client import HttpClient
from simulator_tests.wire.log_receiver import OK, LogReceiver, Response, status

BLOCK_BYTES = 64 * 1024


def post(url: str, *, times: int = 1, timeout_s: float = 10.0) -> list[FetchResult]:
    async def work() -> list[FetchResult]:
        client = HttpClient(timeout_s=timeout_s)
        results = [await client.post(url, [("X-Name", "value")], b"body") for _ in range(times)]
        await client.close()
        return results

    return asyncio.run(work())


def test_post_is_received_as_sent() -> None:
    with LogReceiver() as receiver:
        receiver.default = status(200, b"received")
        assert post(receiver.url + "/a?b=c") == [FetchResult(200, b"received")]
        (request,) = receiver.requests
    assert (request.method, request.target, request.body) == ("POST", "/log/a?b=c", b"body")
    assert request.headers == [("Host", f"127.0.0.1:{receiver.port}"), ("X-Name", "value"), ("Content-Length", "4")]


def test_get_has_no_body() -> None:
    async def work(url: str) -> FetchResult:
        client = HttpClient()
        fetched = await client.get(url, [])
        await client.close()
        return fetched

    with LogReceiver() as receiver:
        receiver.default = status(404, b"none")
        assert asyncio.run(work(f"http://127.0.0.1:{receiver.port}")) == FetchResult(404, b"none")
        (request,) = receiver.requests
    assert (request.method, request.target) == ("GET", "/")
    assert [name for name, _ in request.headers] == ["Host"]


async def test_header_value_cannot_inject_a_header() -> None:
    with LogReceiver() as receiver:
        url = receiver.url
        client = HttpClient()
        await client.post(url, [("X-Team", "a\r\nX-Evil: b\x7f")], b"")
        await client.close()
        assert receiver.requests[0].header_map["X-Team"].rstrip() == "a  X-Evil: b"


def test_raw_post_has_exactly_the_given_header_lines() -> None:
    async def work(url: str) -> FetchResult:
        client = HttpClient()
        fetched = await client.post_raw(url, b"B: 1\r\nContent-Length: 4\r\nA: 2\r\n", b"body")
        assert (await client.post_raw("nowhere", b"", b"")).status is None
        await client.close()
        return fetched

    with LogReceiver() as receiver:
        assert asyncio.run(work(receiver.url + "?x=ü")) == FetchResult(200)
        (request,) = receiver.requests
    assert request.headers == [("B", "1"), ("Content-Length", "4"), ("A", "2")]
    assert (request.target, request.body) == ("/log?x=ü", b"body")


@pytest.mark.parametrize("name", ["", "X Name", "X:Name", "X\r\nName", "Ü", "content-length", "Transfer-Encoding"])
def test_request_with_an_invalid_header_is_not_sent(name: str) -> None:
    async def work(url: str) -> FetchResult:
        client = HttpClient()
        fetched = await client.post(url, [(name, "1")], b"")
        await client.close()
        return fetched

    with LogReceiver() as receiver:
        fetched = asyncio.run(work(receiver.url))
        assert receiver.requests == []
    assert fetched.status is None
    assert fetched.reason.startswith("not sent: ")


async def test_host_header_can_be_overridden() -> None:
    with LogReceiver() as receiver:
        url = receiver.url
        client = HttpClient()
        await client.get(url, [("host", "example.org")])
        await client.close()
        assert receiver.requests[0].headers == [("Host", "example.org")]


@pytest.mark.parametrize("is_closed_at_once", [True, False])
async def test_idle_connection_that_the_peer_closed_is_replaced(is_closed_at_once: bool) -> None:
    with LogReceiver() as receiver:
        receiver.default = Response(OK, closes=is_closed_at_once)
        client = HttpClient()
        assert (await client.get(receiver.url, [])).status == 200
        if not is_closed_at_once:
            assert client.connections == 1
            receiver.stop()
            receiver.start()
        async with asyncio.timeout(60):
            while client.connections:
                await asyncio.sleep(0)
        assert (await client.get(receiver.url, [])).status == 200
        await client.close()


def test_request_is_retried_once_if_a_reused_connection_is_closed() -> None:
    with LogReceiver() as receiver:
        receiver.responses.extend([Response(), Response(b"", closes=True), Response()])
        assert [fetched.status for fetched in post(receiver.url, times=2)] == [200, 200]
        assert [request.connection for request in receiver.requests] == [1, 1, 2]


def test_request_is_not_retried_after_a_truncated_response() -> None:
    with LogReceiver() as receiver:
        receiver.responses.extend([Response(), Response(b"HTTP/1.1 200", closes=True)])
        first, second = post(receiver.url, times=2)
        assert (first.status, second.status) == (200, None)
        assert len(receiver.requests) == 2


def test_unsolicited_bytes_close_an_idle_connection() -> None:
    with LogReceiver() as receiver:
        receiver.responses.append(Response(OK + b"HTTP/1.1 200 OK\r\n\r\nmore"))
        assert [fetched.status for fetched in post(receiver.url, times=2)] == [200, 200]
        assert [request.connection for request in receiver.requests] == [1, 2]


@pytest.mark.parametrize(
    "response",
    [
        Response(b"", closes=True),
        Response(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", closes=True),
        Response(b"SSH-2.0-OpenSSH\r\n\r\n"),
    ],
)
def test_invalid_response_has_a_reason_instead_of_a_status(response: Response) -> None:
    with LogReceiver() as receiver:
        receiver.default = response
        (fetched,) = post(receiver.url)
    assert fetched.status is None
    assert fetched.reason


@pytest.mark.parametrize("response", [Response(hangs=True), Response(OK, drip_s=0.5)])
def test_request_times_out(response: Response) -> None:
    with LogReceiver() as receiver:
        receiver.default = response
        begin_s = time.monotonic()
        (fetched,) = post(receiver.url, timeout_s=0.5)
    assert fetched == FetchResult(None, reason="no response within 0.5 s")
    assert time.monotonic() - begin_s < 60


def test_unknown_host_is_reported() -> None:
    (fetched,) = post("http://unknown.invalid/")
    assert fetched.status is None
    assert fetched.reason


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:9/log",
        "ftp://127.0.0.1/",
        "http://",
        "http://a:99999/",
        "http://[::1/",
        "http://a/b c",
        "http://a..b/",
    ],
)
def test_invalid_url_is_reported(url: str) -> None:
    (fetched,) = post(url)
    assert fetched.status is None
    assert fetched.reason


def test_https_request_to_a_plain_server_fails() -> None:
    with LogReceiver() as receiver:
        (fetched,) = post(receiver.url.replace("http:", "https:"), timeout_s=3)
    assert fetched.status is None


@pytest.mark.parametrize(
    "response", [None, Response(b"nonsense\r\n\r\n"), Response(b"", closes=True), Response(hangs=True)]
)
def test_failed_requests_create_no_reference_cycles(response: Response | None) -> None:
    """A reference cycle would keep a whole request in memory until the next, rare, collection."""

    async def work(url: str) -> list[FrameType]:
        client = HttpClient(timeout_s=0.05)
        gc.disable()
        gc.freeze()  # what other tests left takes long to search
        gc.set_debug(gc.DEBUG_SAVEALL)
        for _ in range(5):
            assert (await client.post(url, [], b"body")).status is None
        gc.collect()
        gc.set_debug(0)
        gc.unfreeze()
        gc.enable()
        found = [one for one in gc.garbage if isinstance(one, FrameType)]
        gc.garbage.clear()
        await client.close()
        return found

    with LogReceiver() as receiver:
        if response is None:
            receiver.stop()
        else:
            receiver.default = response
        assert asyncio.run(work(receiver.url)) == []


def test_close_ends_pending_and_later_requests() -> None:
    async def work(url: str) -> list[FetchResult]:
        client = HttpClient()
        pending = asyncio.create_task(client.post(url, [], b""))
        await asyncio.to_thread(receiver.wait_for_requests, 1)
        await client.close()
        return [await pending, await client.post(url, [], b"")]

    with LogReceiver() as receiver:
        receiver.default = Response(hangs=True)
        assert [fetched.status for fetched in asyncio.run(work(receiver.url))] == [None, None]
        assert len(receiver.requests) == 1


def test_concurrent_requests_all_receive_a_response() -> None:
    async def work(url: str) -> list[FetchResult]:
        client = HttpClient()
        results = await asyncio.gather(*(client.post(f"{url}/{number}", [], b"") for number in range(100)))
        await client.close()
        return results

    with LogReceiver() as receiver:
        assert [fetched.status for fetched in asyncio.run(work(receiver.url))] == [200] * 100
        assert len({request.target for request in receiver.requests}) == 100


class UploadReceiver:
    """Receives uploads and only counts their bytes, or answers each before its body."""

    def __init__(self, *, is_early: bool = False) -> None:
        self.is_early = is_early
        self.heads: list[bytes] = []
        self.received_bytes = 0
        self.is_cut = False
        self.is_served = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._receive(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self.is_served.set()

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        left = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        while left and not self.is_early:
            block = await reader.read(BLOCK_BYTES)
            if not block:
                self.is_cut = True
                return
            left -= len(block)
            self.received_bytes += len(block)
        writer.write(b"HTTP/1.1 %d Status\r\nContent-Length: 0\r\n\r\n" % (413 if self.is_early else 200))
        await writer.drain()
        if self.is_early:
            with contextlib.suppress(OSError):
                while await reader.read(BLOCK_BYTES):  # until the client closes its connection
                    pass


async def upload(receiver: UploadReceiver, sent: Upload) -> FetchResult:
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = HttpClient()
    async with server:
        result = await client.upload(f"http://127.0.0.1:{port}/demos", [("X-Name", "value")], sent)
        assert client.connections == 0, "its connection is not used again"
        async with asyncio.timeout(60):
            await receiver.is_served.wait()
    await client.close()
    return result


def blocks(count: int) -> Upload:
    return Upload(count * BLOCK_BYTES, lambda: itertools.repeat(b"x" * BLOCK_BYTES, count))


async def test_upload_arrives_whole_without_being_kept_in_memory() -> None:
    receiver, sent = UploadReceiver(), blocks(320)
    tracemalloc.start()
    try:
        assert await upload(receiver, sent) == FetchResult(200)
        assert tracemalloc.get_traced_memory()[1] < sent.size / 10
    finally:
        tracemalloc.stop()
    assert receiver.received_bytes == sent.size
    assert b"\r\nX-Name: value\r\n" in receiver.heads[0]


async def test_upload_that_is_cut_breaks_its_connection() -> None:
    receiver = UploadReceiver()
    result = await upload(receiver, msgspec.structs.replace(blocks(4), stops_after=2 * BLOCK_BYTES))
    assert (result.status, result.reason) == (None, "upload cut")
    assert receiver.is_cut


async def test_upload_keeps_its_pace() -> None:
    began_s = time.monotonic()
    await upload(UploadReceiver(), msgspec.structs.replace(blocks(4), bytes_per_s=10 * BLOCK_BYTES))
    assert time.monotonic() - began_s >= 0.35


async def test_upload_ends_when_the_receiver_answers_early() -> None:
    async with asyncio.timeout(60):
        assert (await upload(UploadReceiver(is_early=True), blocks(3200))).status == 413
