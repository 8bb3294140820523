"""Server-sent events: permissions and positions, and how a stream is sent, kept alive, aborted and closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager

import pytest

from matchpod.service.access.organizations import CACHE_MS
from matchpod.service.identity.principals import Principal, Role
from matchpod.service.identity.principals import Scope as AccessScope
from matchpod.storage import api_keys
from matchpod.web.endpoint import Call, Credential, EventStream
from matchpod.web.event_streams import CHECK_S, HEARTBEAT, HEARTBEAT_S, OPENING, StreamEnd, StreamPace, send_stream
from matchpod.web.handlers.stream_access import StreamAccess
from matchpod.web.http.asgi import Message, Scope
from matchpod.web.http.responses import CONNECTION
from tests.unit.web import histories, sites
from tests.unit.web.sites import Site, check_error, unavailable

site = sites.site

TIMEOUT_S = 20.0
UNKNOWN = "00000000-0000-5000-8000-000000000000"
START: Message = {"type": "http.response.start", "status": 200, "headers": []}


# --- permissions and positions --------------------------------------------------------------------------------------


class EndedMatch:
    """An ended match: the first map has a short timeline, the other two have none."""

    def __init__(self, site: Site) -> None:
        self.server_id = histories.new_series(site)
        self.map_id, *self.maps_without_items = histories.map_ids(site, self.server_id)
        histories.finish(site, self.server_id)
        self.last = len(histories.timeline())
        self.paths = [
            f"/api/v1/cs2/matches/{self.map_id}/events/stream",
            f"/api/v1/cs2/maps/{self.map_id}/events/stream",
            f"/api/v1/servers/{self.server_id}/stream",
        ]


def ids(body: bytes) -> list[str]:
    return [part.split(b"\n")[0].removeprefix(b"id: ").decode() for part in body.split(b"\n\n") if b"data: " in part]


def test_stream_of_an_ended_map_equals_polling_and_ends(site: Site) -> None:
    ended = EndedMatch(site)
    polled = site.get(f"/api/v1/cs2/matches/{ended.map_id}/events")
    for path in ended.paths[:2]:
        response = site.get(path)
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["x-request-id"].startswith("req_")
        assert response.content.startswith(OPENING)
        parts = [part.split("\n") for part in response.text.removeprefix(OPENING.decode()).split("\n\n")[:-1]]
        items = polled.json()["items"]
        assert [id_line for id_line, _, _ in parts] == [f"id: {item['seq']}" for item in items]
        assert [event for _, event, _ in parts] == [f"event: {item['type']}" for item in items]
        joined = ",".join(item.removeprefix("data: ") for _, _, item in parts)
        assert f'"items":[{joined}]' in polled.text


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_fully_read_ended_stream_returns_204(site: Site, method: str, number: int) -> None:
    ended = EndedMatch(site)
    for seq in (ended.last, 2**53 - 1, "9" * 16):
        response = site.request(method, f"{ended.paths[number]}?lastEventId={seq}", key=site.key)
        assert response.status_code == 204
        assert response.content == b""
        assert "content-length" not in response.headers
        assert "content-type" not in response.headers
        assert response.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("number", [0, 2])
def test_head_returns_headers_and_leaves_no_stream_open(site: Site, number: int) -> None:
    response = site.request("HEAD", EndedMatch(site).paths[number], key=site.key)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    assert "content-length" not in response.headers
    assert response.content == b""
    assert not site.services.streams


@pytest.mark.parametrize("text", ["-1", "1.5", "abc", " 1", "1 ", "٣", "1" + "0" * 16, "9" * 400, "1_0", "0x1", "1."])
def test_position_on_a_map_must_be_at_most_16_digits(site: Site, text: str) -> None:
    path = EndedMatch(site).paths[0]
    body = check_error(site.request("GET", path + "?lastEventId=" + text, key=site.key), 400, "INVALID_PARAMS")
    assert [fault["path"] for fault in listed(body)] == ["lastEventId"]
    if text.isascii() and text == text.strip():
        response = site.request("GET", path, key=site.key, headers={"Last-Event-ID": text})
        assert [fault["path"] for fault in listed(check_error(response, 400, "INVALID_PARAMS"))] == ["Last-Event-ID"]


@pytest.mark.parametrize("text", ["1..2", ".1", "1.", "1.x", "1.2.3.4.5.6", "1.2.3.4", "1" + "0" * 16 + ".1", "1,2"])
def test_position_in_a_match_must_be_digits_per_map_joined_by_dots(site: Site, text: str) -> None:
    path = EndedMatch(site).paths[2]
    assert rejected_parameters(site, f"{path}?lastEventId={text}") == ["lastEventId"]
    assert rejected_parameters(site, path, text) == ["Last-Event-ID"]
    assert site.get(f"{path}?lastEventId=1.0.0").status_code == 200


@pytest.mark.parametrize("number", [0, 1, 2])
def test_invalid_position_is_reported_even_if_the_other_one_is_used(site: Site, number: int) -> None:
    path = EndedMatch(site).paths[number]
    assert rejected_parameters(site, f"{path}?lastEventId=x", "1") == ["lastEventId"]
    assert rejected_parameters(site, f"{path}?lastEventId=1", "x") == ["Last-Event-ID"]


def test_position_with_more_parts_than_maps_is_rejected(site: Site) -> None:
    path = EndedMatch(site).paths[2]
    assert rejected_parameters(site, f"{path}?lastEventId=1.2.3.4", "1.2.3") == ["lastEventId"]
    assert rejected_parameters(site, f"{path}?lastEventId=1.2.3.4", "1.2.3.4.5") == ["Last-Event-ID", "lastEventId"]
    message = site.get(f"{path}?lastEventId=1.2.3.4").json()["message"]
    assert message == "lastEventId must have at most one part per map of the match, which has 3"


def rejected_parameters(site: Site, path: str, header: str = "") -> list[str]:
    response = site.request("GET", path, key=site.key, headers={"Last-Event-ID": header})
    return [fault["path"] for fault in listed(check_error(response, 400, "INVALID_PARAMS"))]


def listed(body: dict[str, object]) -> list[dict[str, str]]:
    details = body["details"]
    assert isinstance(details, list)
    return details


def test_errors_are_checked_in_order_before_the_stream_starts(site: Site) -> None:
    ended = EndedMatch(site)
    for number, unknown in ((0, ended.paths[0].replace(ended.map_id, UNKNOWN)), (2, "/api/v1/servers/srv_x/stream")):
        path = ended.paths[number]
        check_error(site.request("GET", path), 401, "UNAUTHORIZED")
        check_error(site.get(path, site.new_key(scopes=[AccessScope.SERVERS_WRITE])), 403, "FORBIDDEN")
        check_error(site.get(unknown + "?lastEventId=x"), 400, "INVALID_PARAMS")
        check_error(site.get(unknown), 404, "NOT_FOUND")
        check_error(site.get(path + "?lastEventId=x", site.other_key), 400, "INVALID_PARAMS")
        check_error(site.get(path, site.other_key), 403, "FORBIDDEN")
        assert site.request("POST", path, key=site.key).status_code == 405


# --- an open stream -------------------------------------------------------------------------------------------------


class StreamClient:
    """A client that reads a stream of the application, message by message."""

    def __init__(self, site: Site, path: str) -> None:
        self.messages: asyncio.Queue[Message] = asyncio.Queue()
        self.disconnected = asyncio.Event()
        self._is_requested = False
        self.scope: Scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {site.key}".encode())],
        }

    async def receive(self) -> Message:
        if not self._is_requested:
            self._is_requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def body(self) -> bytes:
        """Return the next part of the body."""
        async with asyncio.timeout(TIMEOUT_S):
            message = await self.messages.get()
        part: bytes = message["body"]
        return part


@asynccontextmanager
async def open_stream(site: Site, path: str) -> AsyncIterator[tuple[StreamClient, asyncio.Task[None]]]:
    client = StreamClient(site, path)
    task = asyncio.create_task(site.app(client.scope, client.receive, client.messages.put))
    start = await client.messages.get()
    assert start["status"] == 200
    assert await client.body() == OPENING
    try:
        yield client, task
    finally:
        client.disconnected.set()
        async with asyncio.timeout(TIMEOUT_S):
            await task
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1, "something is left running"
        assert not site.services.streams


def test_stream_is_counted_when_it_starts(site: Site) -> None:
    server_id = histories.new_series(site)
    path = f"/api/v1/servers/{server_id}/stream"

    async def scenario() -> None:
        async with open_stream(site, path):
            text = site.app._site.services.metrics.text()
            assert (
                'matchpod_http_requests_total{route="/api/v1/servers/{id}/stream",method="GET",status="200"} 1' in text
            )
            site.clock.at_ms += 3_600_000
        text = site.app._site.services.metrics.text()
        assert 'matchpod_http_request_seconds_sum{route="/api/v1/servers/{id}/stream",status_class="2xx"} 0' in text

    site.run(scenario())


def test_revoking_the_key_ends_the_stream_while_it_is_idle(site: Site) -> None:
    site.open_web(stream_pace=StreamPace(check_s=0.01))
    map_id = histories.map_ids(site, histories.new_series(site))[0]
    other = site.new_key()
    (key, _) = site.run(site.services.access.keys("ours"))

    async def scenario() -> None:
        async with (
            asyncio.timeout(TIMEOUT_S),
            open_stream(site, f"/api/v1/cs2/maps/{map_id}/events/stream") as (client, _),
        ):
            site.db.failure = unavailable()  # the key cannot be checked
            await site.db.failed.wait()
            site.services.streams.publish(map_id, 1, [b'{"type":"chat","seq":1}'])
            assert ids(await client.body()) == ["1"]
            site.db.failure = None
            await api_keys.revoke(site.db, key.id, site.clock.at_ms)  # as another process does
            assert not (await client.messages.get())["more_body"]

    site.run(scenario())
    assert 'why="refused"' in site.request("GET", "/metrics", key=other).text
    check_error(site.get("/api/v1/servers"), 401, "UNAUTHORIZED")  # although the key was cached


def test_streams_are_checked_together(site: Site) -> None:
    checked: list[Sequence[str]] = []
    checked_twice = asyncio.Event()

    async def still_valid(found: Sequence[str]) -> set[str]:
        checked.append(sorted(found))
        if len(checked) == 2:
            checked_twice.set()
        return {one for one in found if one != "b"}

    async def scenario() -> list[bool]:
        access = StreamAccess(0.01)
        streams = [
            EventStream(
                call=Call(scope={}, receive=FakeConnection().receive, params=(), principal=CALLER),
                frames=ScriptedFrames(),
                credential=Credential(id=one, still_valid=still_valid),
            )
            for one in "aabbc"
        ]
        with ExitStack() as stack:
            watched = [stack.enter_context(access.watch(stream)) for stream in streams]
            async with asyncio.timeout(TIMEOUT_S):
                await checked_twice.wait()
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1, "something is left running"
        return [one.is_ended for one in watched]

    assert site.run(scenario()) == [False, False, True, True, False]
    assert checked[0] == ["a", "b", "c"]


def test_revoked_key_reads_nothing_after_five_seconds() -> None:
    assert CACHE_MS / 1000 + CHECK_S <= 5.0


# --- sending --------------------------------------------------------------------------------------------------------


class ScriptedFrames:
    """Frames given by the test; None ends the stream, and an exception is raised."""

    def __init__(self, *parts: bytes | Exception | None, is_over: bool = False) -> None:
        self.parts = list(parts)
        self.is_over = is_over
        self.is_closed = False
        self.timeouts: list[float] = []
        self.act: Callable[[], None] | None = None
        self._closed = asyncio.Event()

    async def next(self, within_s: float) -> bytes | None:
        self.timeouts.append(within_s)
        if not self.parts:
            await self._closed.wait()
            return None
        part = self.parts.pop(0)
        if isinstance(part, Exception):
            raise part
        return part

    def close(self) -> None:
        self.is_closed = True
        self._closed.set()
        if self.act is not None:
            self.act()

    def when_closed(self, act: Callable[[], None]) -> None:
        self.act = act


class FakeConnection:
    """A connection that records what is sent and called, and can block or disconnect."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.disconnected = asyncio.Event()
        self.can_send = asyncio.Event()
        self.can_send.set()
        self.calls: list[str] = []

    async def send(self, message: Message) -> None:
        await self.can_send.wait()
        self.sent.append(message)

    async def receive(self) -> Message:
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    @property
    def has_room(self) -> bool:
        return self.can_send.is_set()

    def begin_stream(self) -> None:
        self.calls.append("begin")

    def abort(self) -> None:
        self.calls.append("abort")
        self.disconnected.set()

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


CALLER = Principal(org_id="org_1", key_id="key_1", role=Role.MEMBER, scopes=frozenset())


async def _all(ids: Sequence[str]) -> set[str]:
    return set(ids)


CREDENTIAL = Credential(id="key_1", still_valid=_all)
QUICK = StreamPace(send_s=0.01)


async def run_stream(
    frames: ScriptedFrames,
    connection: FakeConnection,
    *,
    has_connection: bool = True,
    pace: StreamPace = QUICK,
) -> StreamEnd:
    scope: Scope = {"extensions": {CONNECTION: connection}} if has_connection else {}
    call = Call(scope=scope, receive=connection.receive, params=(), principal=CALLER)
    stream = EventStream(call=call, frames=frames, credential=CREDENTIAL)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await send_stream(stream, connection.send, start=START, request_id="req_1", pace=pace)
    finally:
        assert frames.is_closed
        assert len(asyncio.all_tasks()) == 1, "something is left running"


@pytest.mark.parametrize("has_connection", [True, False])
async def test_frames_are_sent_at_once_with_heartbeats_in_between(has_connection: bool) -> None:
    connection, frames = FakeConnection(), ScriptedFrames(b"one", b"", b"two", b"", b"", None, is_over=True)
    assert await run_stream(frames, connection, has_connection=has_connection) is StreamEnd.OVER
    assert connection.sent[0] is START
    assert connection.body == OPENING + b"one" + HEARTBEAT + b"two" + HEARTBEAT + HEARTBEAT
    assert [message.get("more_body") for message in connection.sent[1:]] == [True] * 6 + [False]
    assert set(frames.timeouts) == {HEARTBEAT_S}
    assert connection.calls == (["begin"] if has_connection else [])


async def test_slow_client_does_not_delay_stopping_the_service() -> None:
    connection, frames = FakeConnection(), ScriptedFrames()
    connection.can_send.clear()
    asyncio.get_running_loop().call_later(0.01, frames.close)
    pace = StreamPace(send_s=3_600.0, closing_send_s=0.01)
    assert await run_stream(frames, connection, pace=pace) is StreamEnd.SLOW


async def test_internal_error_aborts_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    connection, frames = FakeConnection(), ScriptedFrames(b"one", ValueError("bug"))
    assert await run_stream(frames, connection) is StreamEnd.FAILED
    assert connection.calls == ["begin", "abort"]
    assert all(message.get("more_body", True) for message in connection.sent)
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert record.message == "stream failed"
    assert record.exc_info is not None


async def test_cancelled_stream_is_closed() -> None:
    async def send_alone(frames: ScriptedFrames, connection: FakeConnection) -> None:
        call = Call(scope={}, receive=connection.receive, params=(), principal=CALLER)
        stream = EventStream(call=call, frames=frames, credential=CREDENTIAL)
        await send_stream(stream, connection.send, start=START, request_id="req_1")

    connection, frames = FakeConnection(), ScriptedFrames()
    task = asyncio.create_task(send_alone(frames, connection))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert frames.is_closed
    assert len(asyncio.all_tasks()) == 1
