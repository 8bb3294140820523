"""Relay what game servers send to a service as a real network delivers it: in small segments, bodies after their heads.

Run as `python -m tests.bench.segment_relay FILE`; the file, which may appear later, has the port of the service.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import uvloop

SEGMENT = 1_460
"""Bytes of a TCP segment on Ethernet."""
HEAD_END = b"\r\n\r\n"


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, in_segments: bool) -> None:
    try:
        while data := await reader.read(65_536):
            head, end, body = data.partition(HEAD_END) if in_segments else (data, b"", b"")
            for part in (head + end, body):
                for first in range(0, len(part), SEGMENT):
                    writer.write(part[first : first + SEGMENT])
                    if in_segments:
                        await asyncio.sleep(0.001)  # longer than the service needs to read what has arrived
    except ConnectionError:
        pass
    finally:
        writer.close()


async def serve(file: Path) -> None:
    """Relay connections until the process ends."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", int(file.read_text()))
        inner_writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(
            _pass_on(reader, inner_writer, in_segments=True), _pass_on(inner_reader, writer, in_segments=False)
        )

    server = await asyncio.start_server(relay, "127.0.0.1", 0, backlog=1_024)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
