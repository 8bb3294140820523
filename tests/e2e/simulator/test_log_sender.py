"""Log posts over real sockets: nothing is lost to a bad receiver, and nothing is sent in a frenzy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic

from matchpod.cs2.log_batches import Gap, LogCursor, Notice, read_post
from matchpod.cs2.log_lines.world_lines import ConsoleChat
from matchpod.simulator.agenda import Agenda
from matchpod.simulator.log_stream import GameHeaders, LogStream
from matchpod.simulator.wire.http_client import HttpClient
from matchpod.simulator.wire.log_sender import (
    POST_INTERVAL_S,
    POSTS_PER_S,
    LogSender,
    post_interval_s,
    retry_interval_s,
)
from tests.e2e.simulator.log_receiver import OK, Answer, LogReceiver, Received, status

START_MS = 1_000_000_000_000


def describe() -> GameHeaders:
    return GameHeaders(map_name="de_dust2", server_address="127.0.0.1:1", steam_id="", instance_token="0" * 16)


class Sending:
    """A stream and its sender; `until` lets both live until something is true."""

    def __init__(
        self, *urls: str, timeout_s: float = 10.0, interval_s: float = POST_INTERVAL_S, retry_s: float = POST_INTERVAL_S
    ) -> None:
        self.agenda = Agenda(START_MS)
        self.stream = LogStream(self.agenda, describe=describe)
        self.stream.is_on = True
        for url in urls:
            self.stream.add(url)
        self.client = HttpClient(timeout_s=timeout_s)
        self.woken: list[float] = []
        self.sender = LogSender(
            self.stream, self.client, wake_at=self.woken.append, interval_s=interval_s, retry_s=retry_s
        )

    def say(self, *texts: str) -> None:
        for text in texts:
            self.stream.write(ConsoleChat(text))
            self.agenda.run_until(self.agenda.now_ms + 32)

    def look(self) -> float | None:
        return self.sender.look(asyncio.get_running_loop().time())

    async def until(self, is_enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(15):
            while not is_enough():
                self.look()
                await asyncio.sleep(0.01)

    @property
    def is_all_acknowledged(self) -> bool:
        idle = self.stream.idle_listeners
        return len(idle) == len(self.stream.list()) and not any(map(self.stream.has_lines_for, idle))

    async def close(self) -> None:
        self.sender.stop()
        await asyncio.sleep(0)
        await self.client.close()


def run(work: Coroutine[object, object, None]) -> None:
    asyncio.run(work)


def heard(requests: list[Received]) -> tuple[list[str], list[Notice]]:
    """What a reader makes of the requests: each line once, and what it noticed."""
    cursor = LogCursor()
    texts: list[str] = []
    notices: list[Notice] = []
    for request in requests:
        taken = cursor.take(read_post(request.named, request.body, received_ms=0))
        texts += [line.decode().partition(' say "')[2].rstrip('"') for line in taken.lines]
        notices += taken.notices
    return texts, notices


def test_lines_arrive_with_their_headers() -> None:
    with LogReceiver() as receiver:

        async def work() -> None:
            sending = Sending(receiver.url)
            sending.say("one", "two")
            await sending.until(lambda: sending.is_all_acknowledged)
            await sending.close()

        run(work())
        (request,) = receiver.requests
    assert request.target == "/log"
    assert [name for name, _ in request.headers][:2] == ["X-LogBytes-BeginOffset", "X-LogBytes-EndOffset"]
    assert [name for name, _ in request.headers][-2:] == ["Host", "User-Agent"]
    assert request.named["Host"] == f"127.0.0.1:{receiver.port}"
    assert heard([request])[0] == ["one", "two"]


def test_every_line_arrives_once_whatever_the_receiver_does() -> None:
    with LogReceiver() as receiver:
        receiver.answers.extend(
            [
                status(500),
                Answer(b"", closes=True),
                status(204),
                status(200),
                Answer(b"nonsense\r\n\r\n"),
                status(205),
                Answer(hangs=True),
                status(201),
                Answer(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"),
                Answer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + OK),
                Answer(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000 + b"\r\n\r\n"),
                Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\n"),
                Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", closes=True),
                Answer(drip_s=0.002),
                Answer(drip_s=0.05),
            ]
        )

        async def work() -> None:
            sending = Sending(receiver.url, timeout_s=0.5, interval_s=0.02)
            async with asyncio.timeout(30):
                while receiver.answers:
                    said.append(f"line {len(said)}")
                    sending.say(said[-1])
                    sending.look()
                    await asyncio.sleep(0.02)
            await sending.until(lambda: sending.is_all_acknowledged)
            await sending.close()

        said: list[str] = []
        run(work())
        texts, notices = heard(receiver.requests)
    assert texts == said
    assert not any(isinstance(notice, Gap) for notice in notices)


def test_a_receiver_that_comes_back_gets_what_it_missed() -> None:
    with LogReceiver() as receiver:

        async def work() -> None:
            sending = Sending(receiver.url, interval_s=0.05)
            sending.say("one")
            await sending.until(lambda: sending.is_all_acknowledged)
            await asyncio.to_thread(receiver.go_down)
            sending.say("two")
            for _ in range(20):
                sending.look()
                await asyncio.sleep(0.02)
            assert not sending.is_all_acknowledged
            sending.say("three")
            await asyncio.to_thread(receiver.go_up)
            await sending.until(lambda: sending.is_all_acknowledged)
            await sending.close()

        run(work())
        assert heard(receiver.requests)[0] == ["one", "two", "three"]


def test_410_ends_the_posts() -> None:
    with LogReceiver() as receiver:
        receiver.usual = status(410)

        async def work() -> None:
            sending = Sending(receiver.url)
            sending.say("one")
            await sending.until(lambda: not sending.stream.list())
            sending.say("two")
            assert sending.look() is None
            await sending.close()

        run(work())
        assert len(receiver.requests) == 1


def test_two_receivers_do_not_wait_for_each_other() -> None:
    with LogReceiver() as slow, LogReceiver() as quick:
        slow.usual = Answer(hangs=True)

        async def work() -> None:
            sending = Sending(slow.url, quick.url, interval_s=0.01)
            for number in range(5):
                sending.say(f"line {number}")
                await sending.until(lambda: len(quick.requests) > number)  # noqa: B023
            await sending.close()

        run(work())
        assert len(slow.requests) == 1
        assert heard(quick.requests)[0] == [f"line {number}" for number in range(5)]


def test_a_refusing_receiver_is_not_tried_faster_than_the_interval() -> None:
    with LogReceiver() as receiver:
        receiver.usual = status(500)

        async def work() -> None:
            sending = Sending(receiver.url, interval_s=0.2)
            sending.say("one")
            began_s = monotonic()
            while len(receiver.requests) < 4:
                sending.look()
                await asyncio.sleep(0.005)
            # By the sender's clock: on a busy machine requests come late and then close together.
            assert (len(receiver.requests) - 1) * 0.2 <= monotonic() - began_s
            assert sending.woken
            await sending.close()

        run(work())


def test_looking_tells_when_to_look_again() -> None:
    with LogReceiver() as receiver:

        async def work() -> None:
            sending = Sending(receiver.url, interval_s=5.0)
            now_s = asyncio.get_running_loop().time()
            assert sending.look() is None
            sending.say("one")
            await sending.until(lambda: sending.is_all_acknowledged)
            assert sending.look() is None
            sending.say("two")
            again_s = sending.look()
            assert again_s is not None
            assert again_s > now_s + 4.5
            await sending.close()

        run(work())


def test_a_tick_that_is_not_over_is_looked_at_soon() -> None:
    async def work() -> None:
        sending = Sending("http://127.0.0.1:1/")
        sending.stream.write(ConsoleChat("one"))
        now_s = asyncio.get_running_loop().time()
        again_s = sending.look()
        assert again_s is not None
        assert again_s < now_s + 1
        await sending.close()

    run(work())


def test_finishing_sends_what_is_left() -> None:
    with LogReceiver() as receiver:

        async def work() -> None:
            sending = Sending(receiver.url, interval_s=0.05)
            sending.say("one")
            await sending.until(lambda: sending.is_all_acknowledged)
            sending.say("two")
            await sending.sender.finish(10.0)
            assert sending.is_all_acknowledged
            await sending.close()

        run(work())
        assert heard(receiver.requests)[0] == ["one", "two"]


def test_finishing_gives_up_in_time() -> None:
    with LogReceiver() as receiver:
        receiver.usual = Answer(hangs=True)

        async def work() -> None:
            sending = Sending(receiver.url)
            sending.say("one")
            await sending.sender.finish(0.3)
            assert not sending.is_all_acknowledged
            await sending.close()
            assert sending.look() is None

        run(work())
        assert len(receiver.requests) == 1


def test_many_servers_post_less_often() -> None:
    assert post_interval_s(1) == post_interval_s(60) == POST_INTERVAL_S
    assert post_interval_s(600) == 600 / POSTS_PER_S > POST_INTERVAL_S


def test_many_servers_try_again_even_less_often() -> None:
    assert retry_interval_s(1) == retry_interval_s(20) == POST_INTERVAL_S
    assert retry_interval_s(600) > post_interval_s(600)


def test_a_post_that_was_not_acknowledged_is_made_again_after_its_own_interval() -> None:
    with LogReceiver() as receiver:
        receiver.answers.extend([status(500), status(200)])

        async def work() -> None:
            sending = Sending(receiver.url, interval_s=0.01, retry_s=3)
            sending.say("one")
            await sending.until(lambda: sending.is_all_acknowledged)
            sending.say("two")
            await sending.until(lambda: sending.is_all_acknowledged)
            await sending.close()

        run(work())
        first, second, third = (request.at_s for request in receiver.requests)
    assert second - first > 2.5
    assert third - second < 2.5
