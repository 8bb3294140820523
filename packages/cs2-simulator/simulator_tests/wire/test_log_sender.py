"""Tests of log posts over real sockets: no lines are lost, and posts are rate limited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cs2_protocol.log_batches import Gap, LogCursor, LogNotice, read_post
from cs2_protocol.log_lines.world_lines import ConsoleChat
from cs2_simulator.agenda import Agenda
from cs2_simulator.log_stream import GameHeaders, LogStream
from cs2_simulator.wire.http_client import HttpClient
from cs2_simulator.wire.log_sender import POST_INTERVAL_S, POSTS_PER_S, LogSender, post_interval_s
from simulator_tests.wire.log_receiver import OK, LogReceiver, ReceivedRequest, Response, status
from simulator_tests.wire.loop_thread import DrivenLoop, run_driven

START_MS = 1_000_000_000_000


def describe() -> GameHeaders:
    return GameHeaders(map_name="de_dust2", server_address="127.0.0.1:1", steam_id="", instance_token="0" * 16)


class SenderHarness:
    def __init__(
        self, *urls: str, timeout_s: float = 10.0, interval_s: float = POST_INTERVAL_S, retry_s: float = POST_INTERVAL_S
    ) -> None:
        self.agenda = Agenda(START_MS)
        self.stream = LogStream(self.agenda, describe=describe)
        self.stream.is_on = True
        for url in urls:
            self.stream.add(url)
        self.client = HttpClient(timeout_s=timeout_s)
        self.wake_times: list[float] = []
        self.sender = LogSender(
            self.stream, self.client, wake_at=self.wake_times.append, interval_s=interval_s, retry_s=retry_s
        )

    def log(self, *texts: str) -> None:
        for text in texts:
            self.stream.write(ConsoleChat(text))
            self.agenda.run_until(self.agenda.now_ms + 32)

    def send_due(self) -> float | None:
        return self.sender.send_due(asyncio.get_running_loop().time())

    async def run_until(self, is_met: Callable[[], bool]) -> None:
        async with asyncio.timeout(15):
            while not is_met():
                self.send_due()
                await asyncio.sleep(0.01)

    async def settle(self) -> None:
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    @property
    def is_all_acknowledged(self) -> bool:
        idle = self.stream.idle_listeners
        return len(idle) == len(self.stream.listeners) and not any(map(self.stream.has_lines_for, idle))

    async def close(self) -> None:
        self.sender.stop()
        await asyncio.sleep(0)
        await self.client.close()


def read_lines(requests: list[ReceivedRequest]) -> tuple[list[str], list[LogNotice]]:
    cursor = LogCursor()
    texts: list[str] = []
    notices: list[LogNotice] = []
    for request in requests:
        batch = cursor.read(read_post(request.header_map, request.body, received_ms=0))
        texts += [line.decode().partition(' say "')[2].rstrip('"') for line in batch.lines]
        notices += batch.notices
    return texts, notices


async def test_every_line_arrives_once_with_a_faulty_receiver() -> None:
    with LogReceiver() as receiver:
        receiver.responses.extend(
            [
                status(500),
                Response(b"", closes=True),
                status(204),
                status(200),
                Response(b"nonsense\r\n\r\n"),
                status(205),
                Response(hangs=True),
                status(201),
                Response(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"),
                Response(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + OK),
                Response(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000 + b"\r\n\r\n"),
                Response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\n"),
                Response(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", closes=True),
                Response(drip_s=0.002),
                Response(drip_s=0.05),
            ]
        )
        harness = SenderHarness(receiver.url, timeout_s=0.5, interval_s=0.02)
        logged: list[str] = []
        while receiver.responses:
            logged.append(f"line {len(logged)}")
            harness.log(logged[-1])
            left = len(receiver.responses)
            await harness.run_until(lambda: len(receiver.responses) < left)  # noqa: B023
        await harness.run_until(lambda: harness.is_all_acknowledged)
        await harness.close()
        texts, notices = read_lines(receiver.requests)
    assert texts == logged
    assert not any(isinstance(notice, Gap) for notice in notices)


async def test_slow_receiver_does_not_delay_another() -> None:
    with LogReceiver() as slow, LogReceiver() as quick:
        slow.default = Response(hangs=True)
        harness = SenderHarness(slow.url, quick.url, interval_s=0.01)
        for number in range(5):
            harness.log(f"line {number}")
            await harness.run_until(lambda: len(quick.requests) > number)  # noqa: B023
        await harness.close()
        assert len(slow.requests) == 1
        assert read_lines(quick.requests)[0] == [f"line {number}" for number in range(5)]


def test_post_is_repeated_after_the_retry_interval_and_followed_after_the_other() -> None:
    async def work(loop: DrivenLoop) -> None:
        harness = SenderHarness(receiver.url, interval_s=2, retry_s=5)

        async def post_after(interval_s: float) -> None:
            """Expect the next post when this interval has passed, and none before."""
            posted = len(receiver.requests)
            loop.advance(interval_s - 0.5)
            assert harness.send_due() == loop.time() + 0.5
            loop.advance(0.5)
            assert harness.send_due() is None
            await harness.settle()
            assert len(receiver.requests) == posted + 1

        harness.log("one")
        harness.send_due()
        await harness.settle()
        assert harness.wake_times == [loop.time() + 5]
        await post_after(5)
        assert harness.is_all_acknowledged
        harness.log("two")
        await post_after(2)
        await harness.close()

    with LogReceiver() as receiver:
        receiver.responses.append(status(500))
        run_driven(work)
        assert len(receiver.requests) == 3


async def test_send_due_returns_a_time_soon_after_the_current_tick() -> None:
    harness = SenderHarness("http://127.0.0.1:1/")
    harness.stream.write(ConsoleChat("one"))
    now_s = asyncio.get_running_loop().time()
    next_s = harness.send_due()
    assert next_s is not None
    assert next_s < now_s + 1
    await harness.close()


async def test_finish_gives_up_after_its_timeout() -> None:
    with LogReceiver() as receiver:
        receiver.default = Response(hangs=True)
        harness = SenderHarness(receiver.url)
        harness.log("one")
        await harness.sender.finish(0.3)
        assert not harness.is_all_acknowledged
        await harness.close()
        assert harness.send_due() is None
        assert len(receiver.requests) == 1


def test_many_servers_post_less_often() -> None:
    assert post_interval_s(1) == post_interval_s(60) == POST_INTERVAL_S
    assert post_interval_s(600) == 600 / POSTS_PER_S > POST_INTERVAL_S
