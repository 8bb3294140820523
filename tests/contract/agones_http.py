"""HTTP side of the fake API: parse requests, send responses and watch streams, and drop connections."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from tests.contract.agones_api import FakeAgones

HOST = "127.0.0.1"

Object = dict[str, Any]

_PATH = re.compile(
    r"/apis/(?P<group>[a-z.0-9]+)/v1/namespaces/(?P<namespace>[^/]+)/(?P<kind>[a-z]+)(/(?P<name>[^/]+))?"
)


class Reply:
    def __init__(self, status: int, body: Object | str, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.headers = headers or {}
        self.body = body if isinstance(body, str) else json.dumps(body)
        self.content_type = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"


class ReplyError(Exception):
    """The call ends here with this answer."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class HangUpError(Exception):
    """The connection is closed without an answer."""


def status_object(code: int, reason: str, message: str) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


class Call:
    """A request; `verb` is that of Kubernetes."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        url = urlsplit(target)
        self.method, self.path, self.headers, self.body = method, url.path, headers, body
        self.query = dict(parse_qsl(url.query))
        found = _PATH.fullmatch(url.path)
        parts = found.groupdict() if found else {}
        self.group, self.namespace, self.kind = (parts.get(name) or "" for name in ("group", "namespace", "kind"))
        self.name = unquote(parts.get("name") or "")
        read = "get" if self.name else "watch" if self.query.get("watch") else "list"
        self.verb = {"GET": read, "POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(method, method)

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def right(self) -> str:
        return f"{self.verb} {self.kind}"


@asynccontextmanager
async def serve(api: FakeAgones, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_serve_connection(api, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, HOST, 0, ssl=tls)
    try:
        yield f"{'https' if tls else 'http'}://{HOST}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.sleep(0)  # a connection that was accepted just now has its task then
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await api.close()


async def _serve_connection(api: FakeAgones, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while call := await _read_call(reader):
            if call.verb == "watch":
                await _serve_watch(api, call, writer)
                return
            await _send(await _answer(api, call), writer)
    except (HangUpError, asyncio.CancelledError):
        writer.transport.abort()  # without what is not sent yet, for which the peer may never have room
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()  # otherwise the test may end with an open socket


async def _read_call(reader: asyncio.StreamReader) -> Call | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, target, _ = first.split(" ")
    return Call(method, target, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _serve_watch(api: FakeAgones, call: Call, writer: asyncio.StreamWriter) -> None:
    reply = await _answer(api, call)  # its list is not used, but a fault or a missing right counts here too
    if reply.status >= 400:
        await _send(reply, writer)
        return
    writer.write(_head(200, "application/json", "Transfer-Encoding: chunked"))
    await writer.drain()
    async for event in api.watch(call):
        line = json.dumps(event).encode() + b"\n"
        writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _answer(api: FakeAgones, call: Call) -> Reply:
    try:
        return await api.answer(call)
    except ReplyError as raised:
        return raised.reply


async def _send(reply: Reply, writer: asyncio.StreamWriter) -> None:
    body = reply.body.encode()
    fields = [f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in reply.headers.items())]
    writer.write(_head(reply.status, reply.content_type, *fields) + body)
    await writer.drain()


def _head(status: int, content_type: str, *fields: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", *fields, "", "")).encode()
