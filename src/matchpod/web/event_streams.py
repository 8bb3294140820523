"""Push timelines, and the events of all matches of an organization, to callers as server-sent events.

Errors are reported before the stream begins. A client that has lost its connection reconnects with the id of the last
event that it received. A client that reads too slowly is disconnected, and gets the missed events when it reconnects.
If the match is over and the client has every item, the response is 204, which makes clients stop reconnecting.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.faults import Fault, FaultCode
from matchpod.core.requests.query_fields import QueryFields
from matchpod.web.endpoint import Call, Credential, EventStream, Frames, Site
from matchpod.web.http.asgi import Message, Receive, Send
from matchpod.web.http.responses import CONNECTION, EVENT_STREAM, Header, Response, StreamConnection
from matchpod.web.query_strings import query_of

HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
"""Headers of a stream. X-Accel-Buffering keeps nginx from buffering the response."""
OPENING: Final = b"retry: 2000\n\n"
"""The first bytes of a stream. They are sent at once, so that the client knows that the stream is open. The field
`retry` makes the client wait 2 s before it reconnects."""
HEARTBEAT: Final = b": \n\n"
HEARTBEAT_S: Final = 15.0
"""Interval in seconds without an event after which a heartbeat is sent. Proxies close connections that are idle for 30
s, and a failed heartbeat reveals that the client has vanished."""
CHECK_S: Final = 2.0
"""Interval in seconds at which the credentials of open streams are checked. A stream may begin with a key that was
revoked up to `access.CACHE_MS` ago, so a revoked key can read for at most the sum of both times."""

QUERY: Final = "lastEventId"
HEADER: Final = "Last-Event-ID"
MAX_PARTS: Final = 5
"""Maximum number of parts of an event id in a server's stream: one part per map, and a series has at most five maps."""

NUMBER: Final = "[0-9]{1,16}"
"""Pattern of one part of an event id: the `seq` of a map's item, with at most as many digits as the largest `afterSeq`.
A number above the last `seq` of the map is valid too."""

_SEQ: Final = re.compile(NUMBER)
_SEQS: Final = re.compile(rf"{NUMBER}(?:\.{NUMBER}){{0,{MAX_PARTS - 1}}}")

_log = logging.getLogger(__name__)


class StreamPace(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals and timeouts of streams, in seconds."""

    heartbeat_s: float = HEARTBEAT_S
    send_s: float = 10.0
    """Timeout for sending to a client. After it, the client is disconnected, and gets the missed events when it
    reconnects."""
    closing_send_s: float = 0.2
    """Timeout for sending to a client while the service stops."""
    check_s: float = CHECK_S


DEFAULT_PACE: Final = StreamPace()


class StreamEnd(StrEnum):
    OVER = "over"
    GONE = "gone"
    SLOW = "slow"
    REFUSED = "refused"
    CLOSING = "closing"
    FAILED = "failed"


# --- the handlers -------------------------------------------------------------------------------------------------


async def map_stream(site: Site, call: Call) -> Response | EventStream:
    after = _position_of(call)
    row = await site.services.history.own_map(call.caller, call.params[0])
    return _stream(site, call, await site.services.streams.open_map(row, after or 0))


async def server_stream(site: Site, call: Call) -> Response | EventStream:
    fields = QueryFields(query_of(call), (QUERY,))
    given = _read_positions(call, fields, _server_fault)
    rows = await site.services.history.own_maps(call.caller, call.params[0])
    for name, parts in given.items():
        if len(parts) > len(rows) > 0:
            fields.fault(name, FaultCode.TOO_MANY_PARTS, maps=len(rows))
    fields.check()
    return _stream(site, call, await site.services.streams.open_server(rows, _first_position(given)[: len(rows)]))


async def organization_stream(site: Site, call: Call) -> Response | EventStream:
    """Push the events of all matches of the caller's organization, after the event id in the request, if any."""
    after = _position_of(call)
    reader = await site.services.streams.organizations.open(call.caller.org_id, after)
    return _stream(site, call, reader)


def _position_of(call: Call) -> int | None:
    given = _read_positions(call, QueryFields(query_of(call), (QUERY,)), _map_fault)
    return next(iter(_first_position(given)), None)


def _stream(site: Site, call: Call, frames: Frames | None) -> Response | EventStream:
    if frames is None:
        return Response(b"", 204, headers=HEADERS[1:])
    credential = Credential(id=call.caller.key_id, still_valid=site.services.access.active_keys)
    return EventStream(call=call, frames=frames, credential=credential)


def _read_positions(
    call: Call, fields: QueryFields, fault_of: Callable[[str], Fault | None]
) -> Mapping[str, Sequence[int]]:
    """Return the positions in the header and in the query string, by name; report faults in either.

    The header is first and takes precedence: clients send it automatically when they reconnect to the same URL.
    """
    query = fields.text(QUERY, fault_of)
    header = call.header(HEADER.lower().encode())
    fault = fault_of(header) if header else None
    if fault is not None:
        fields.fault(HEADER, fault.code, **fault.parameters)
    fields.check()
    given = ((HEADER, header), (QUERY, query))
    return {name: [int(part) for part in text.split(".")] for name, text in given if text}


def _first_position(given: Mapping[str, Sequence[int]]) -> Sequence[int]:
    return next(iter(given.values()), ())


def _map_fault(text: str) -> Fault | None:
    return None if _SEQ.fullmatch(text) else Fault(FaultCode.NOT_AN_EVENT_ID)


def _server_fault(text: str) -> Fault | None:
    return None if _SEQS.fullmatch(text) else Fault(FaultCode.NOT_AN_ID_PER_MAP, {"maximum": MAX_PARTS})


# --- the body -----------------------------------------------------------------------------------------------------


class _Sender:
    """Sends messages to a client, each with a timeout."""

    def __init__(self, send: Send, connection: StreamConnection | None, pace: StreamPace) -> None:
        self._send = send
        self._connection = connection
        self._timeout_s = pace.send_s
        self._closing_s = pace.closing_send_s
        self._timeout: asyncio.Timeout | None = None

    async def body(self, part: bytes, *, is_last: bool = False) -> bool:
        """Send a part of the body; return False after a timeout."""
        return await self.message({"type": "http.response.body", "body": part, "more_body": not is_last})

    def shorten_timeout(self) -> None:
        """Shorten the timeout, even of a message that is being sent, because the stream is being closed."""
        self._timeout_s = self._closing_s
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._closing_s)

    async def message(self, message: Message) -> bool:
        """Send a message; return False after a timeout."""
        if self._connection is not None and self._connection.has_room:
            await self._send(message)  # no timeout needed; its timer would cost half as much as sending
            return True
        try:
            async with asyncio.timeout(self._timeout_s) as self._timeout:
                await self._send(message)
        except TimeoutError:
            return False
        finally:
            self._timeout = None
        return True


async def send_stream(
    stream: EventStream, send: Send, *, start: Message, request_id: str, pace: StreamPace = DEFAULT_PACE
) -> StreamEnd:
    """Send a stream until it ends, then close it; return why it ended."""
    connection: StreamConnection | None = (stream.call.scope.get("extensions") or {}).get(CONNECTION)
    sender = _Sender(send, connection, pace)
    stream.frames.when_closed(sender.shorten_timeout)
    watcher = asyncio.create_task(_close_on_disconnect(stream.call.receive, stream.frames), name="disconnect watcher")
    try:
        try:
            if connection is not None:
                connection.begin_stream()
            reason = await _send_frames(stream, sender, start, watcher, heartbeat_s=pace.heartbeat_s)
            if reason not in (StreamEnd.SLOW, StreamEnd.GONE):
                reason = reason if await sender.body(b"", is_last=True) else StreamEnd.SLOW
        except Exception:  # noqa: BLE001 - the status is already sent, so only an abort can signal the error
            _log.exception("stream failed", extra={"request_id": request_id})
            reason = StreamEnd.FAILED
        if reason in (StreamEnd.SLOW, StreamEnd.FAILED) and connection is not None:
            connection.abort()
    finally:
        stream.frames.close()
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
    return reason


async def _send_frames(
    stream: EventStream, sender: _Sender, start: Message, watcher: asyncio.Task[None], *, heartbeat_s: float
) -> StreamEnd:
    frames: bytes | None = OPENING
    if not await sender.message(start):
        return StreamEnd.SLOW
    while frames is not None:
        if not await sender.body(frames or HEARTBEAT):
            return StreamEnd.SLOW
        frames = await stream.frames.next(heartbeat_s)
    if watcher.done():
        return StreamEnd.GONE
    return StreamEnd.OVER if stream.frames.is_over else StreamEnd.CLOSING


async def _close_on_disconnect(receive: Receive, frames: Frames) -> None:
    """Close the frames when the client disconnects. Ignore everything that the client sends."""
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    finally:
        frames.close()
