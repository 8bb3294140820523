"""Tests of the relay and the receiver that measure the latency of callbacks."""

from __future__ import annotations

import asyncio

from tests.bench.checkouts import percentile
from tests.bench.latency_relay import CallbackReceiver, Relay

HEAD = b"POST /log HTTP/1.1\r\nX-Server-Addr: 127.0.0.1:27015\r\nContent-Length: 26\r\n\r\n"
WAIT_S = 10.0


async def test_relay_records_the_end_of_a_game_even_if_its_text_is_split() -> None:
    received, has_more, is_closed = bytearray(), asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(received) < len(HEAD) + 26:
            received.extend(await reader.read(1024))
            has_more.set()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()
        is_closed.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as service, asyncio.timeout(WAIT_S):
        relay = Relay()
        await relay.open()
        relay.upstream_port = service.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        for sent in (HEAD, HEAD + b"12:00:00 - Game O", HEAD + b"12:00:00 - Game Over: comp"):
            assert relay.game_over_s == {}
            writer.write(sent[len(received) :])
            while len(received) < len(sent):
                await has_more.wait()
                has_more.clear()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert list(relay.game_over_s) == [27015]
        assert received == HEAD + b"12:00:00 - Game Over: comp"
        writer.close()
        await writer.wait_closed()
        await is_closed.wait()
        relay.close()


async def test_receiver_records_when_a_callback_began() -> None:
    receiver = CallbackReceiver()
    await receiver.open()
    async with asyncio.timeout(WAIT_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
        for number, body in ((7, b"one"), (8, b"three")):
            writer.write(b"POST /%d HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (number, len(body)))
            for _ in range(10):  # the receiver has its turn
                await asyncio.sleep(0)
            assert number not in receiver.arrived_s
            writer.write(body)
            await reader.readuntil(b"\r\n\r\n")
            assert receiver.bodies[number] == body
        assert receiver.arrived_s[8] > receiver.arrived_s[7]
        writer.close()
        await writer.wait_closed()
    receiver.close()


def test_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert percentile([2.0, 1.0], 0.5) == 1
