"""How is a timeline pushed to callers? As server-sent events, over a response that goes on while the match does.

What can be refused is refused before the first byte. After that a caller who lost the connection comes back with the id
of the last event that he got. Who reads too slowly is cut off, and finds everything when he comes back. A map that is
over and was read to its end is answered 204, upon which clients stop coming back.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Final

from starlette.types import Message, Receive, Send

from matchpod.core.errors import UnauthorizedError, UnavailableError
from matchpod.core.query_fields import QueryFields
from matchpod.service.history.streams import Reader
from matchpod.service.principals import Scope
from matchpod.web.endpoint import EVENT_STREAM, LINE, Answer, Call, EventStream, Frames, Header, Line, Site
from matchpod.web.query_strings import query_of

HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
"""The last one is for nginx, which else collects what it passes on."""
OPENING: Final = b"retry: 2000\n\n"
"""Sent at once, so that a caller sees the stream open; a client that lost it is to come back after 2 s."""
HEARTBEAT: Final = b": \n\n"
HEARTBEAT_S: Final = 15.0
"""Of silence: proxies close what says nothing for 30 s or more, and a caller who is gone is noticed by sending."""
CHECK_KEY_S: Final = 30.0
"""How often it is asked whether the key is still good, at the next thing to send."""
SEND_TIMEOUT_S: Final = 10.0
"""For a caller to make room for more; he gets everything when he comes back."""
HURRY_S: Final = 0.2
"""For the same when the service stops."""
CUT_S: Final = 1.0
"""For the connection to notice that it was cut."""

QUERY: Final = "lastEventId"
HEADER: Final = "Last-Event-ID"
MAX_PARTS: Final = 5
"""Of the id of an event of a server: one for each map, and a series has five at most."""

NUMBER: Final = "[0-9]{1,16}"
"""One part: as many digits as the largest `afterSeq` has. What is past the end of a map has everything of it."""

_SEQ: Final = re.compile(NUMBER)
_SEQS: Final = re.compile(rf"{NUMBER}(?:\.{NUMBER}){{0,{MAX_PARTS - 1}}}")
_EXPECTED: Final = "1 to 16 digits"

_log = logging.getLogger(__name__)


class Ending(StrEnum):
    """Why a stream ended."""

    OVER = "over"
    GONE = "gone"
    SLOW = "slow"
    REFUSED = "refused"
    CLOSING = "closing"
    FAILED = "failed"


# --- the handlers -------------------------------------------------------------------------------------------------


async def map_stream(site: Site, call: Call) -> Answer | EventStream:
    """Push the timeline of a map."""
    fields = QueryFields(query_of(call), (QUERY,))
    after = _first(_read_positions(call, fields, _map_fault))
    row = await site.services.history.own_map(call.caller, call.params[0])
    return _stream(site, call, await site.services.streams.open_map(row, after[0] if after else 0))


async def server_stream(site: Site, call: Call) -> Answer | EventStream:
    """Push the timelines of all maps of a server's match."""
    fields = QueryFields(query_of(call), (QUERY,))
    given = _read_positions(call, fields, _server_fault)
    rows = await site.services.history.own_maps(call.caller, call.params[0])
    for name, parts in given.items():
        if len(parts) > len(rows) > 0:
            fields.fault(name, f"must have one part for each map of the match, which has {len(rows)}")
    fields.check()
    return _stream(site, call, await site.services.streams.open_server(rows, _first(given)[: len(rows)]))


def _stream(site: Site, call: Call, reader: Reader | None) -> Answer | EventStream:
    if reader is None:
        return Answer(b"", 204, headers=HEADERS[1:])
    return EventStream(call=call, frames=reader, is_welcome=partial(_is_welcome, site, call))


async def _is_welcome(site: Site, call: Call) -> bool:
    try:
        principal = await site.services.access.authenticate(call.header(b"authorization"))
    except UnauthorizedError:
        return False
    except UnavailableError:
        return True  # nobody can tell, and nothing new is read meanwhile
    return principal.org_id == call.caller.org_id and Scope.SERVERS_READ in principal.scopes


def _read_positions(
    call: Call, fields: QueryFields, fault_of: Callable[[str], str | None]
) -> Mapping[str, Sequence[int]]:
    """The items that the caller says he has, by where he says so. What is wrong is told, also where it does not count.

    The header comes first and counts: a client that comes back to its address sends it by itself.
    """
    asked = fields.text(QUERY, fault_of)
    sent = call.header(HEADER.lower().encode())
    fault = fault_of(sent) if sent else None
    if fault is not None:
        fields.fault(HEADER, fault)
    fields.check()
    given = ((HEADER, sent), (QUERY, asked))
    return {name: [int(part) for part in text.split(".")] for name, text in given if text}


def _first(given: Mapping[str, Sequence[int]]) -> Sequence[int]:
    return next(iter(given.values()), ())


def _map_fault(text: str) -> str | None:
    return None if _SEQ.fullmatch(text) else f"must be the id of an event: {_EXPECTED}"


def _server_fault(text: str) -> str | None:
    if _SEQS.fullmatch(text):
        return None
    return f"must be the id of an event: for each map {_EXPECTED}, joined by dots, {MAX_PARTS} at most"


# --- the body -----------------------------------------------------------------------------------------------------


class _Outlet:
    """Sends, as long as the caller makes room within a time."""

    def __init__(self, send: Send, line: Line | None) -> None:
        self._send = send
        self._line = line
        self._limit_s = SEND_TIMEOUT_S
        self._limit: asyncio.Timeout | None = None

    async def start(self, message: Message) -> bool:
        """Send status and headers; False when there was no room."""
        return await self._sent(message)

    async def body(self, part: bytes, *, is_last: bool = False) -> bool:
        """Send a part of the body; False when there was no room."""
        return await self._sent({"type": "http.response.body", "body": part, "more_body": not is_last})

    def hurry(self) -> None:
        """Wait hardly any longer: somebody wants to stop."""
        self._limit_s = HURRY_S
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + HURRY_S)

    async def _sent(self, message: Message) -> bool:
        if self._line is not None and self._line.has_room:
            await self._send(message)  # a timer would cost half as much as this
            return True
        try:
            async with asyncio.timeout(self._limit_s) as self._limit:
                await self._send(message)
        except TimeoutError:
            return False
        finally:
            self._limit = None
        return True


async def pour(stream: EventStream, send: Send, *, start: Message, request_id: str) -> Ending:
    """Send a stream until there is a reason not to; then everything is let go."""
    line: Line | None = (stream.call.scope.get("extensions") or {}).get(LINE)
    outlet = _Outlet(send, line)
    stream.frames.when_closed(outlet.hurry)
    watcher = asyncio.create_task(_watch(stream.call.receive, stream.frames), name="is the reader there")
    try:
        try:
            if line is not None:
                line.begin_stream()
            ending = await _pour(stream, outlet, start, watcher)
            if ending not in (Ending.SLOW, Ending.GONE):
                if line is not None:
                    line.end_stream()
                ending = ending if await outlet.body(b"", is_last=True) else Ending.SLOW
        except Exception:  # noqa: BLE001 - the status is long sent; that the body breaks off has to say it
            _log.exception("stream failed", extra={"request_id": request_id})
            ending = Ending.FAILED
        if ending in (Ending.SLOW, Ending.FAILED) and line is not None:
            line.cut()
            await asyncio.wait([watcher], timeout=CUT_S)  # half an answer is an error unless the caller is gone
    finally:
        stream.frames.close()
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
    return ending


async def _pour(stream: EventStream, outlet: _Outlet, start: Message, watcher: asyncio.Task[None]) -> Ending:
    loop = asyncio.get_running_loop()
    check_at = loop.time() + CHECK_KEY_S
    is_welcome = True
    frames: bytes | None = OPENING
    if not await outlet.start(start):
        return Ending.SLOW
    while frames is not None and is_welcome:
        if not await outlet.body(frames or HEARTBEAT):
            return Ending.SLOW
        frames = await stream.frames.next(HEARTBEAT_S)
        if loop.time() >= check_at:
            check_at = loop.time() + CHECK_KEY_S
            is_welcome = await stream.is_welcome()
    if watcher.done():
        return Ending.GONE
    if not is_welcome:
        return Ending.REFUSED
    return Ending.OVER if stream.frames.is_over else Ending.CLOSING


async def _watch(receive: Receive, frames: Frames) -> None:
    """Wait until the caller hangs up; what he sends is nothing to us."""
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    finally:
        frames.close()
