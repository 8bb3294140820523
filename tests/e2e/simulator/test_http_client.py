"""Requests get their answer, and whatever a peer does the client neither fails nor waits for ever."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from types import FrameType

import pytest

from matchpod.simulator.outside import Fetched
from matchpod.simulator.wire import http_client
from matchpod.simulator.wire.http_client import HttpClient
from matchpod.simulator.wire.http_response import MAX_HEAD_BYTES
from tests.e2e.simulator.log_receiver import OK, Answer, LogReceiver, status


def ask(url: str, *, times: int = 1, timeout_s: float = 10.0, pause_s: float = 0.0) -> list[Fetched]:
    """Post to a URL some times, one after the other."""

    async def work() -> list[Fetched]:
        client = HttpClient(timeout_s=timeout_s)
        answers = []
        for _ in range(times):
            answers.append(await client.post(url, [("X-Name", "value")], b"body"))
            await asyncio.sleep(pause_s)
        await client.close()
        return answers

    return asyncio.run(work())


def test_post_arrives_as_given() -> None:
    with LogReceiver() as receiver:
        receiver.usual = status(200, b"taken")
        assert ask(receiver.url + "/a?b=c") == [Fetched(200, b"taken")]
        (request,) = receiver.requests
    assert (request.method, request.target, request.body) == ("POST", "/log/a?b=c", b"body")
    assert request.headers == [("Host", f"127.0.0.1:{receiver.port}"), ("X-Name", "value"), ("Content-Length", "4")]


def test_get_has_no_body() -> None:
    async def work(url: str) -> Fetched:
        client = HttpClient()
        fetched = await client.get(url, [])
        await client.close()
        return fetched

    with LogReceiver() as receiver:
        receiver.usual = status(404, b"none")
        assert asyncio.run(work(f"http://127.0.0.1:{receiver.port}")) == Fetched(404, b"none")
        (request,) = receiver.requests
    assert (request.method, request.target) == ("GET", "/")
    assert [name for name, _ in request.headers] == ["Host"]


def test_a_header_cannot_be_broken_into_two() -> None:
    async def work(url: str) -> None:
        client = HttpClient()
        await client.post(url, [("X-Team", "a\r\nX-Evil: b\x7f")], b"")
        await client.close()

    with LogReceiver() as receiver:
        asyncio.run(work(receiver.url))
        assert receiver.requests[0].named["X-Team"].rstrip() == "a  X-Evil: b"


def test_post_can_have_header_lines_of_its_own_and_no_others() -> None:
    async def work(url: str) -> Fetched:
        client = HttpClient()
        fetched = await client.post_as_given(url, b"B: 1\r\nContent-Length: 4\r\nA: 2\r\n", b"body")
        assert (await client.post_as_given("nowhere", b"", b"")).status is None
        await client.close()
        return fetched

    with LogReceiver() as receiver:
        assert asyncio.run(work(receiver.url + "?x=ü")) == Fetched(200)
        (request,) = receiver.requests
    assert request.headers == [("B", "1"), ("Content-Length", "4"), ("A", "2")]
    assert (request.target, request.body) == ("/log?x=ü", b"body")


@pytest.mark.parametrize("name", ["", "X Name", "X:Name", "X\r\nName", "Ü", "content-length", "Transfer-Encoding"])
def test_header_that_is_none_is_not_sent(name: str) -> None:
    async def work(url: str) -> Fetched:
        client = HttpClient()
        fetched = await client.post(url, [(name, "1")], b"")
        await client.close()
        return fetched

    with LogReceiver() as receiver:
        fetched = asyncio.run(work(receiver.url))
        assert receiver.requests == []
    assert fetched.status is None
    assert fetched.reason.startswith("not sent: ")


def test_host_can_be_given() -> None:
    async def work(url: str) -> None:
        client = HttpClient()
        await client.get(url, [("host", "example.org")])
        await client.close()

    with LogReceiver() as receiver:
        asyncio.run(work(receiver.url))
        assert receiver.requests[0].headers == [("Host", "example.org")]


def test_connection_that_nobody_needs_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "IDLE_S", 0.1)

    async def work(url: str) -> None:
        client = HttpClient()
        await client.get(url, [])
        assert client.connections == 1
        async with asyncio.timeout(10):
            while client.connections:
                await asyncio.sleep(0.01)
        await client.get(url, [])
        await client.close()

    with LogReceiver() as receiver:
        asyncio.run(work(receiver.url))
        assert [request.connection for request in receiver.requests] == [1, 2]


def test_connection_that_is_needed_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "IDLE_S", 0.2)
    with LogReceiver() as receiver:
        ask(receiver.url, times=8, pause_s=0.1)
        assert {request.connection for request in receiver.requests} == {1}


def test_connection_closed_by_the_peer_is_forgotten() -> None:
    async def work(url: str) -> None:
        client = HttpClient()
        await client.get(url, [])
        assert client.connections == 1
        receiver.go_down()
        async with asyncio.timeout(10):
            while client.connections:
                await asyncio.sleep(0.01)
        await client.close()

    with LogReceiver() as receiver:
        asyncio.run(work(receiver.url))


def test_connection_is_used_again() -> None:
    with LogReceiver() as receiver:
        ask(receiver.url, times=3)
        assert [request.connection for request in receiver.requests] == [1, 1, 1]


def test_connection_that_was_closed_meanwhile_is_replaced() -> None:
    with LogReceiver() as receiver:
        receiver.answers.append(Answer(OK, closes=True))
        answers = ask(receiver.url, times=2, pause_s=0.2)
        assert [fetched.status for fetched in answers] == [200, 200]
        assert len(receiver.requests) == 2


def test_connection_closed_under_a_second_request_is_replaced_once() -> None:
    with LogReceiver() as receiver:
        receiver.answers.extend([Answer(), Answer(b"", closes=True), Answer()])
        assert [fetched.status for fetched in ask(receiver.url, times=2)] == [200, 200]
        assert [request.connection for request in receiver.requests] == [1, 1, 2]


def test_answer_that_breaks_off_on_a_kept_connection_is_not_asked_for_again() -> None:
    with LogReceiver() as receiver:
        receiver.answers.extend([Answer(), Answer(b"HTTP/1.1 200", closes=True)])
        first, second = ask(receiver.url, times=2)
        assert (first.status, second.status) == (200, None)
        assert len(receiver.requests) == 2


def test_bytes_nobody_asked_for_end_a_kept_connection() -> None:
    with LogReceiver() as receiver:
        receiver.answers.append(Answer(OK + b"HTTP/1.1 200 OK\r\n\r\nmore"))
        assert [fetched.status for fetched in ask(receiver.url, times=2)] == [200, 200]
        assert [request.connection for request in receiver.requests] == [1, 2]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"", closes=True),
        Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", closes=True),
        Answer(b"SSH-2.0-OpenSSH\r\n\r\n"),
        Answer(b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES),
        Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"),
    ],
)
def test_what_is_no_answer_has_no_status_but_a_reason(answer: Answer) -> None:
    with LogReceiver() as receiver:
        receiver.usual = answer
        (fetched,) = ask(receiver.url)
    assert fetched.status is None
    assert fetched.reason


def test_answer_up_to_the_end_of_the_connection_is_whole() -> None:
    with LogReceiver() as receiver:
        receiver.usual = Answer(b"HTTP/1.0 200 OK\r\n\r\nwhole", closes=True)
        assert ask(receiver.url) == [Fetched(200, b"whole")]


def test_slow_answer_is_awaited() -> None:
    with LogReceiver() as receiver:
        receiver.usual = Answer(OK, drip_s=0.01)
        assert [fetched.status for fetched in ask(receiver.url)] == [200]


@pytest.mark.parametrize("answer", [Answer(hangs=True), Answer(OK, drip_s=0.5)])
def test_patience_ends(answer: Answer) -> None:
    with LogReceiver() as receiver:
        receiver.usual = answer
        begin_s = time.monotonic()
        (fetched,) = ask(receiver.url, timeout_s=0.5)
    assert fetched == Fetched(None, reason="no answer within 0.5 s")
    assert time.monotonic() - begin_s < 60


def test_host_may_be_a_name() -> None:
    with LogReceiver() as receiver:
        answers = ask(receiver.url.replace("127.0.0.1", "localhost"), times=2)
    assert [fetched.status for fetched in answers] == [200, 200]


def test_name_that_nobody_has_is_told() -> None:
    (fetched,) = ask("http://nobody.invalid/")
    assert fetched.status is None
    assert fetched.reason


def test_resolver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **__: object) -> list[object]:
        asked.append(1)
        released.wait(120)
        return []

    asked: list[int] = []
    released = threading.Event()
    monkeypatch.setattr(http_client, "getaddrinfo", hang)
    before_s = time.monotonic()
    answers = ask("http://somebody.invalid/", times=3, timeout_s=0.2)
    took_s = time.monotonic() - before_s  # also the loop has ended by now
    released.set()
    assert took_s < 60
    assert [fetched.reason for fetched in answers] == ["no answer within 0.2 s"] * 3
    assert asked == [1]


def test_nobody_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (fetched,) = ask(f"http://127.0.0.1:{port}/")
    assert fetched.status is None
    assert "Connect call failed" in fetched.reason


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
def test_what_is_no_address_is_told(url: str) -> None:
    (fetched,) = ask(url)
    assert fetched.status is None
    assert fetched.reason


def test_plain_server_does_not_pass_for_a_secure_one() -> None:
    with LogReceiver() as receiver:
        (fetched,) = ask(receiver.url.replace("http:", "https:"), timeout_s=3)
    assert fetched.status is None


@pytest.mark.parametrize("answer", [None, Answer(b"nonsense\r\n\r\n"), Answer(b"", closes=True), Answer(hangs=True)])
def test_faults_leave_nothing_for_the_garbage_collector(answer: Answer | None) -> None:
    """What it would find there keeps a whole request in memory, and it does not come often."""

    async def work(url: str) -> list[FrameType]:
        client = HttpClient(timeout_s=0.05)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        for _ in range(5):
            assert (await client.post(url, [], b"body")).status is None
        gc.collect()
        gc.set_debug(0)
        gc.enable()
        found = [one for one in gc.garbage if isinstance(one, FrameType)]
        gc.garbage.clear()
        await client.close()
        return found

    with LogReceiver() as receiver:
        if answer is None:
            receiver.go_down()
        else:
            receiver.usual = answer
        assert asyncio.run(work(receiver.url)) == []


def test_closing_ends_requests_under_way_and_later_ones() -> None:
    async def work(url: str) -> list[Fetched]:
        client = HttpClient()
        under_way = asyncio.create_task(client.post(url, [], b""))
        await asyncio.to_thread(receiver.wait_for_requests, 1)
        await client.close()
        return [await under_way, await client.post(url, [], b"")]

    with LogReceiver() as receiver:
        receiver.usual = Answer(hangs=True)
        assert [fetched.status for fetched in asyncio.run(work(receiver.url))] == [None, None]
        assert len(receiver.requests) == 1


def test_many_requests_at_a_time_all_get_their_own_answer() -> None:
    async def work(url: str) -> list[Fetched]:
        client = HttpClient()
        answers = await asyncio.gather(*(client.post(f"{url}/{number}", [], b"") for number in range(100)))
        await client.close()
        return answers

    with LogReceiver() as receiver:
        assert [fetched.status for fetched in asyncio.run(work(receiver.url))] == [200] * 100
        assert len({request.target for request in receiver.requests}) == 100
