"""A game server that was taken over and lies over RCON, for tests of what that costs the service.

It accepts any password, and answers enough of the service's commands that each lie is asked for.
`python -m tests.lying_server LIE...` runs one server per lie and prints their ports.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Final

from cs2_protocol.console_commands import STATUS_JSON
from cs2_protocol.console_limits import CVAR_BYTES, answer_limit
from cs2_protocol.rcon import AuthAttempt, CommandReceived, MirrorRequested, ServerConnection
from cs2_protocol.rcon_frames import RESPONSE_VALUE, Frame, encode_frame
from matchpod.cs2.cvar_names import CVAR_NAMES

HOST: Final = "127.0.0.1"
HUGE_BYTES: Final = 8 * 1024 * 1024
DRIP_S: Final = 0.2
CVARS: Final = "\n".join(f"{name} 1" for name in sorted(CVAR_NAMES)[:40])
"""`customCvars` of a match: a `static` server is asked for the value of each before it is changed."""
STATUS: Final = json.dumps({"server": {"map": "de_mirage", "clients": []}}).encode()
_WRITE_BYTES = 64 * 1024


class Lie(StrEnum):
    """What a server sends instead of its answer."""

    HUGE_CVAR = "huge-cvar"
    """A variable of 8 MiB."""
    HUGE_STATUS = "huge-status"
    """8 MiB as `status_json`."""
    ENDLESS_PARTS = "endless-parts"
    """Parts of an answer, without end."""
    TINY_PARTS = "tiny-parts"
    """Parts of one byte, without end."""
    EMPTY_PACKETS = "empty-packets"
    """Empty packets, without end."""
    OLD_IDS = "old-ids"
    """Packets for a command that was answered long ago, without end."""
    GARBAGE = "garbage"
    """Bytes that are no packet."""
    FULL_CVARS = "full-cvars"
    """Each variable as long as it may be."""
    DEEP_JSON = "deep-json"
    """Nested lists, as long as `status_json` may be."""
    WIDE_JSON = "wide-json"
    """Numbers, as long as `status_json` may be."""
    DRIP = "drip"
    """One byte at a time."""


FAULTS: Final = (
    Lie.HUGE_CVAR,
    Lie.HUGE_STATUS,
    Lie.ENDLESS_PARTS,
    Lie.TINY_PARTS,
    Lie.EMPTY_PACKETS,
    Lie.OLD_IDS,
    Lie.GARBAGE,
)
"""Lies that no server may tell; the others are within the limits."""

_ENDLESS: Final[dict[Lie, Callable[[int], Frame]]] = {
    Lie.ENDLESS_PARTS: lambda command_id: Frame(command_id, RESPONSE_VALUE, b"x" * 4000),
    Lie.TINY_PARTS: lambda command_id: Frame(command_id, RESPONSE_VALUE, b"x"),
    Lie.EMPTY_PACKETS: lambda command_id: Frame(command_id, RESPONSE_VALUE),
    Lie.OLD_IDS: lambda _: Frame(1, RESPONSE_VALUE),
}


class LyingServer:
    """The console of a server that tells one lie; a context manager, whose value is the port."""

    def __init__(self, lie: Lie, *, about: str = STATUS_JSON) -> None:
        """`about` is the command that is answered with a lie, unless the lie is about variables."""
        self._lie = lie
        self._about = about
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aexit__(self, *_exc: object) -> None:
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        connection = ServerConnection()
        try:
            with suppress(OSError, asyncio.CancelledError):
                while chunk := await reader.read(4096):
                    for event in connection.receive(chunk):
                        match event:
                            case AuthAttempt(id=attempt_id):
                                writer.write(connection.accept(attempt_id))
                            case CommandReceived(id=command_id, text=command):
                                await self._answer(writer, command_id, command)
                            case MirrorRequested(id=mirror_id):
                                writer.write(connection.mirror(mirror_id))
                    await writer.drain()
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _answer(self, writer: asyncio.StreamWriter, command_id: int, command: str) -> None:
        is_asked = command == self._about
        if is_asked and self._lie in _ENDLESS:
            packet = encode_frame(_ENDLESS[self._lie](command_id))
            while not writer.is_closing():
                writer.write(packet * (_WRITE_BYTES // len(packet)))
                await writer.drain()
        elif is_asked and self._lie is Lie.DRIP:
            for byte in encode_frame(Frame(command_id, RESPONSE_VALUE, b" " * 4000)):
                if writer.is_closing():
                    break
                writer.write(bytes([byte]))
                await asyncio.sleep(DRIP_S)
        elif is_asked and self._lie is Lie.GARBAGE:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        else:
            writer.write(encode_frame(Frame(command_id, RESPONSE_VALUE, self._body(command, is_asked=is_asked))))

    def _body(self, command: str, *, is_asked: bool) -> bytes:
        limit = answer_limit(command)
        is_cvar = limit == CVAR_BYTES
        match self._lie:
            case Lie.HUGE_CVAR if is_cvar:
                return b"x" * HUGE_BYTES
            case Lie.FULL_CVARS if is_cvar:
                return f"{command} = ".encode().ljust(limit, b"x")
            case Lie.HUGE_STATUS if is_asked:
                return b"\n" * HUGE_BYTES
            case Lie.DEEP_JSON if is_asked:
                return b'{"server":'.ljust(limit, b"[")
            case Lie.WIDE_JSON if is_asked:
                return b'{"a":[' + b"1.1e308," * (limit // 8 - 2) + b"1]}"
        return STATUS if command == STATUS_JSON else b""


@contextmanager
def lying_servers(lies: Sequence[Lie]) -> Iterator[list[int]]:
    """Run servers in a process of their own; return their ports."""
    command = [sys.executable, "-m", "tests.lying_server", *lies]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield [int(port) for port in process.stdout.readline().split()]
        finally:
            process.kill()


async def _main(lies: Sequence[str]) -> None:
    servers = [LyingServer(Lie(lie)) for lie in lies]
    ports = [await server.__aenter__() for server in servers]
    sys.stdout.write(" ".join(map(str, ports)) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
