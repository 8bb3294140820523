"""Read HTTP/1.1 messages from streams, and send single requests: enough for receivers, proxies and clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec


class Request(msgspec.Struct, frozen=True):
    """A request with its bytes as they were received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    head: bytes

    @property
    def raw(self) -> bytes:
        return self.head + self.body


class Response(msgspec.Struct, frozen=True):
    """A response with its bytes as they were received."""

    status: int
    body: bytes
    raw: bytes

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    start, headers = _parse_head(head)
    method, path, _ = start.split(" ", 2)
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))), head)


async def read_response(reader: asyncio.StreamReader) -> Response:
    """Read one response; raise OSError or IncompleteReadError if the connection was closed before its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    start, headers = _parse_head(head)
    raw = body = await reader.readexactly(int(headers.get("content-length", 0)))
    if headers.get("transfer-encoding") == "chunked":
        size = 1
        while size:
            line = await reader.readuntil(b"\r\n")
            size = int(line, 16)
            chunk = await reader.readexactly(size + 2)
            raw, body = raw + line + chunk, body + chunk[:-2]
    return Response(int(start.split(" ")[1]), body, head + raw)


async def send(port: int, raw: bytes) -> Response:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        return await read_response(reader)
    finally:
        writer.close()


def format_request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    if method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _parse_head(head: bytes) -> tuple[str, dict[str, str]]:
    start, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return start, {name.lower(): value.strip() for name, _, value in pairs}
