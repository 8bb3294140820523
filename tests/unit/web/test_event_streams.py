"""Server-sent events: who may read them and from where, and how a stream is sent, kept alive, cut and let go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from starlette.types import Message, Scope

from matchpod.service.principals import Principal, Role
from matchpod.service.principals import Scope as AccessScope
from matchpod.storage import api_keys
from matchpod.web import event_streams
from matchpod.web.endpoint import LINE, Call, EventStream
from matchpod.web.event_streams import HEARTBEAT, OPENING, Ending, pour
from tests.unit.web import histories, sites
from tests.unit.web.sites import Site, away, check_error

site = sites.site

PATIENCE_S = 20.0
UNKNOWN = "00000000-0000-5000-8000-000000000000"
START: Message = {"type": "http.response.start", "status": 200, "headers": []}


# --- who may read, and from where -----------------------------------------------------------------------------------


class Ended:
    """A match that is over: one map with a short timeline, and two that were not played."""

    def __init__(self, site: Site) -> None:
        self.server_id = histories.new_series(site)
        self.map_id, *self.unplayed = histories.map_ids(site, self.server_id)
        histories.finish(site, self.server_id)
        self.last = len(histories.timeline())
        self.paths = [
            f"/api/v1/cs2/matches/{self.map_id}/events/stream",
            f"/api/v1/cs2/maps/{self.map_id}/events/stream",
            f"/api/v1/servers/{self.server_id}/stream",
        ]


def ids(body: bytes) -> list[str]:
    return [part.split(b"\n")[0].removeprefix(b"id: ").decode() for part in body.split(b"\n\n") if b"data: " in part]


def test_map_that_is_over_is_streamed_as_it_is_polled_and_ends(site: Site) -> None:
    ended = Ended(site)
    polled = site.get(f"/api/v1/cs2/matches/{ended.map_id}/events")
    for path in ended.paths[:2]:
        answer = site.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.content.startswith(OPENING)
        parts = [part.split("\n") for part in answer.text.removeprefix(OPENING.decode()).split("\n\n")[:-1]]
        items = polled.json()["items"]
        assert [id_line for id_line, _, _ in parts] == [f"id: {item['seq']}" for item in items]
        assert [event for _, event, _ in parts] == [f"event: {item['type']}" for item in items]
        joined = ",".join(item.removeprefix("data: ") for _, _, item in parts)
        assert f'"items":[{joined}]' in polled.text


def test_server_is_streamed_with_the_map_of_each_item(site: Site) -> None:
    ended = Ended(site)
    answer = site.get(ended.paths[2])
    assert ids(answer.content) == [str(seq) for seq in range(1, ended.last + 1)]
    assert answer.text.count(f'data: {{"mapId":"{ended.map_id}","mapNumber":1,"type":"') == ended.last


@pytest.mark.parametrize("number", [0, 1, 2])
def test_stream_goes_on_after_the_last_event_that_was_seen(site: Site, number: int) -> None:
    path = Ended(site).paths[number]
    everything = ids(site.get(path).content)
    assert ids(site.get(f"{path}?lastEventId=2").content) == everything[2:]
    assert ids(site.ask("GET", path, key=site.key, headers={"Last-Event-ID": "3"}).content) == everything[3:]
    # A browser comes back to the address it knows, and says in the header how far it got.
    again = site.ask("GET", f"{path}?lastEventId=1", key=site.key, headers={"Last-Event-ID": "3"})
    assert ids(again.content) == everything[3:]
    assert ids(site.ask("GET", path, key=site.key, headers={"Last-Event-ID": ""}).content) == everything


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_is_over_and_was_read_is_answered_204(site: Site, method: str, number: int) -> None:
    ended = Ended(site)
    for seq in (ended.last, 2**53 - 1, "9" * 16):
        answer = site.ask(method, f"{ended.paths[number]}?lastEventId={seq}", key=site.key)
        assert answer.status_code == 204
        assert answer.content == b""
        assert "content-length" not in answer.headers
        assert "content-type" not in answer.headers
        assert answer.headers["x-request-id"].startswith("req_")


def test_map_that_was_never_played_is_answered_204(site: Site) -> None:
    ended = Ended(site)
    assert site.get(f"/api/v1/cs2/maps/{ended.unplayed[0]}/events/stream").status_code == 204


@pytest.mark.parametrize("number", [0, 2])
def test_head_answers_the_headers_and_leaves_nothing_open(site: Site, number: int) -> None:
    answer = site.ask("HEAD", Ended(site).paths[number], key=site.key)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert "content-length" not in answer.headers
    assert answer.content == b""
    assert not site.services.streams


@pytest.mark.parametrize("text", ["-1", "1.5", "abc", " 1", "1 ", "٣", "1" + "0" * 16, "9" * 400, "1_0", "0x1", "1."])
def test_position_on_a_map_is_digits(site: Site, text: str) -> None:
    path = Ended(site).paths[0]
    body = check_error(site.ask("GET", path + "?lastEventId=" + text, key=site.key), 400, "INVALID_PARAMS")
    assert [fault["path"] for fault in listed(body)] == ["lastEventId"]
    if text.isascii() and text == text.strip():
        answer = site.ask("GET", path, key=site.key, headers={"Last-Event-ID": text})
        assert [fault["path"] for fault in listed(check_error(answer, 400, "INVALID_PARAMS"))] == ["Last-Event-ID"]


@pytest.mark.parametrize("text", ["1..2", ".1", "1.", "1.x", "1.2.3.4.5.6", "1.2.3.4", "1" + "0" * 16 + ".1", "1,2"])
def test_position_in_a_match_is_digits_joined_by_dots_for_each_map(site: Site, text: str) -> None:
    path = Ended(site).paths[2]
    assert refused(site, f"{path}?lastEventId={text}") == ["lastEventId"]
    assert refused(site, path, text) == ["Last-Event-ID"]
    assert site.get(f"{path}?lastEventId=1.0.0").status_code == 200


@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_is_wrong_is_told_also_where_it_does_not_count(site: Site, number: int) -> None:
    path = Ended(site).paths[number]
    assert refused(site, f"{path}?lastEventId=x", "1") == ["lastEventId"]
    assert refused(site, f"{path}?lastEventId=1", "x") == ["Last-Event-ID"]


def test_more_parts_than_maps_are_told_where_they_were_given(site: Site) -> None:
    path = Ended(site).paths[2]
    assert refused(site, f"{path}?lastEventId=1.2.3.4", "1.2.3") == ["lastEventId"]
    assert refused(site, f"{path}?lastEventId=1.2.3.4", "1.2.3.4.5") == ["Last-Event-ID", "lastEventId"]
    message = site.get(f"{path}?lastEventId=1.2.3.4").json()["message"]
    assert message == "lastEventId must have one part for each map of the match, which has 3"


def test_all_faults_of_a_query_are_listed(site: Site) -> None:
    path = Ended(site).paths[0] + "?lastEventID=1&lastEventId=1&lastEventId=2"
    body = check_error(site.ask("GET", path, key=site.key, headers={"Last-Event-ID": "x"}), 400, "INVALID_PARAMS")
    assert {fault["path"] for fault in listed(body)} == {"lastEventID", "lastEventId", "Last-Event-ID"}


def refused(site: Site, path: str, header: str = "") -> list[str]:
    """Which parameters were told to be wrong."""
    answer = site.ask("GET", path, key=site.key, headers={"Last-Event-ID": header})
    return [fault["path"] for fault in listed(check_error(answer, 400, "INVALID_PARAMS"))]


def listed(body: dict[str, object]) -> list[dict[str, str]]:
    details = body["details"]
    assert isinstance(details, list)
    return details


def test_refusals_come_before_the_stream_and_in_order(site: Site) -> None:
    ended = Ended(site)
    for number, unknown in ((0, ended.paths[0].replace(ended.map_id, UNKNOWN)), (2, "/api/v1/servers/srv_x/stream")):
        path = ended.paths[number]
        check_error(site.ask("GET", path), 401, "UNAUTHORIZED")
        check_error(site.get(path, site.new_key(scopes=[AccessScope.SERVERS_WRITE])), 403, "FORBIDDEN")
        check_error(site.get(unknown + "?lastEventId=x"), 400, "INVALID_PARAMS")
        check_error(site.get(unknown), 404, "NOT_FOUND")
        check_error(site.get(path + "?lastEventId=x", site.stranger), 400, "INVALID_PARAMS")
        check_error(site.get(path, site.stranger), 403, "FORBIDDEN")
        assert site.ask("POST", path, key=site.key).status_code == 405


def test_database_that_is_away_and_a_full_process_are_told_with_a_time_to_wait(site: Site) -> None:
    path = Ended(site).paths[0]
    site.db.trouble = away()
    assert check_error(site.get(path), 503, "SERVICE_UNAVAILABLE")
    site.db.trouble = None
    site.services.streams.close()
    answer = site.get(path)
    check_error(answer, 503, "SERVICE_UNAVAILABLE")
    assert int(answer.headers["retry-after"]) >= 1


# --- a stream under way ---------------------------------------------------------------------------------------------


class Listening:
    """A caller who reads a stream of the web, message by message."""

    def __init__(self, site: Site, path: str) -> None:
        self.messages: asyncio.Queue[Message] = asyncio.Queue()
        self.hung_up = asyncio.Event()
        self._asked = False
        self.scope: Scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {site.key}".encode())],
        }

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def body(self) -> bytes:
        """The next part of the body."""
        async with asyncio.timeout(PATIENCE_S):
            message = await self.messages.get()
        part: bytes = message["body"]
        return part


@asynccontextmanager
async def listening(site: Site, path: str) -> AsyncIterator[tuple[Listening, asyncio.Task[None]]]:
    caller = Listening(site, path)
    task = asyncio.create_task(site.app(caller.scope, caller.receive, caller.messages.put))
    start = await caller.messages.get()
    assert start["status"] == 200
    assert await caller.body() == OPENING
    try:
        yield caller, task
    finally:
        caller.hung_up.set()
        async with asyncio.timeout(PATIENCE_S):
            await task
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1, "something is left running"
        assert not site.services.streams


def metric(site: Site, name: str) -> str:
    """Its value, as the latest web counts it."""
    text = site.get("/metrics").text
    return next(line.split()[-1] for line in text.splitlines() if line.startswith(name))


def test_live_match_is_pushed_and_a_caller_who_leaves_is_let_go(site: Site) -> None:
    server_id = histories.new_series(site)
    first, second, _ = histories.map_ids(site, server_id)

    async def scenario() -> None:
        async with listening(site, f"/api/v1/servers/{server_id}/stream") as (caller, _):
            site.services.streams.publish(first, 1, [b'{"type":"chat","seq":1}'])
            assert await caller.body() == (
                b'id: 1\nevent: chat\ndata: {"mapId":"%b","mapNumber":1,"type":"chat","seq":1}\n\n' % first.encode()
            )
            site.services.streams.publish(second, 1, [b'{"type":"chat","seq":1}', b'{"type":"chat","seq":2}'])
            assert ids(await caller.body()) == ["1.1", "1.2"]
            assert metric_now(site) == "1"
        assert metric_now(site) == "0"

    site.run(scenario())
    assert metric(site, "matchpod_streams_ended_total") == "1"
    assert 'why="gone"' in site.get("/metrics").text


def metric_now(site: Site) -> str:
    text = site.app._site.services.metrics.text()
    return next(line.split()[-1] for line in text.splitlines() if line.startswith("matchpod_streams "))


def test_stream_is_counted_when_it_begins(site: Site) -> None:
    server_id = histories.new_series(site)
    path = f"/api/v1/servers/{server_id}/stream"

    async def scenario() -> None:
        async with listening(site, path):
            text = site.app._site.services.metrics.text()
            assert (
                'matchpod_http_requests_total{route="/api/v1/servers/{id}/stream",method="GET",status="200"} 1' in text
            )
            site.clock.at_ms += 3_600_000
        text = site.app._site.services.metrics.text()
        assert 'matchpod_http_request_seconds_sum{route="/api/v1/servers/{id}/stream",status_class="2xx"} 0' in text

    site.run(scenario())


def test_service_that_stops_ends_its_streams(site: Site) -> None:
    map_id = histories.map_ids(site, histories.new_series(site))[0]

    async def scenario() -> None:
        async with listening(site, f"/api/v1/cs2/maps/{map_id}/events/stream") as (caller, _):
            site.services.streams.close()
            last = await caller.messages.get()
            assert last == {"type": "http.response.body", "body": b"", "more_body": False}

    site.run(scenario())
    assert 'why="closing"' in site.get("/metrics").text


def test_key_that_was_revoked_ends_the_stream(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "CHECK_KEY_S", 0.0)
    map_id = histories.map_ids(site, histories.new_series(site))[0]
    other = site.new_key()
    (key, _) = site.run(site.services.access.keys("ours"))

    async def scenario() -> None:
        async with listening(site, f"/api/v1/cs2/maps/{map_id}/events/stream") as (caller, _):
            site.services.streams.publish(map_id, 1, [b'{"type":"chat","seq":1}'])
            assert ids(await caller.body()) == ["1"]
            site.db.trouble = away()  # nobody can tell whether the key is good
            site.clock.at_ms += 10_000
            site.services.streams.publish(map_id, 2, [b'{"type":"chat","seq":2}'])
            assert ids(await caller.body()) == ["2"]
            site.db.trouble = None
            await api_keys.revoke(site.db, key.id, site.clock.at_ms)
            site.clock.at_ms += 10_000
            site.services.streams.publish(map_id, 3, [b'{"type":"chat","seq":3}'])
            assert not (await caller.messages.get())["more_body"]

    site.run(scenario())
    assert 'why="refused"' in site.ask("GET", "/metrics", key=other).text


# --- how it is sent -------------------------------------------------------------------------------------------------


class Script:
    """Frames as a test gives them; the end comes with None, a failure with an exception."""

    def __init__(self, *parts: bytes | Exception | None, is_over: bool = False) -> None:
        self.parts = list(parts)
        self.is_over = is_over
        self.is_closed = False
        self.asked: list[float] = []
        self.act: Callable[[], None] | None = None
        self._closed = asyncio.Event()

    async def next(self, within_s: float) -> bytes | None:
        self.asked.append(within_s)
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


class Wire:
    """The other end: what it was sent, when it leaves, and whether it takes anything."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.gone = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()
        self.said: list[str] = []

    async def send(self, message: Message) -> None:
        await self.takes.wait()
        self.sent.append(message)

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def has_room(self) -> bool:
        return self.takes.is_set()

    def begin_stream(self) -> None:
        self.said.append("begin")

    def end_stream(self) -> None:
        self.said.append("end")

    def cut(self) -> None:
        self.said.append("cut")
        self.gone.set()

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


CALLER = Principal(org_id="org_1", key_id="key_1", role=Role.MEMBER, scopes=frozenset())


async def _always() -> bool:
    return True


async def poured(
    script: Script, wire: Wire, *, is_welcome: Callable[[], Awaitable[bool]] = _always, has_line: bool = True
) -> Ending:
    scope: Scope = {"extensions": {LINE: wire}} if has_line else {}
    call = Call(scope=scope, receive=wire.receive, params=(), principal=CALLER)
    stream = EventStream(call=call, frames=script, is_welcome=is_welcome)
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await pour(stream, wire.send, start=START, request_id="req_1")
    finally:
        assert script.is_closed
        assert len(asyncio.all_tasks()) == 1, "something is left running"


@pytest.mark.parametrize("has_line", [True, False])
def test_frames_are_sent_as_they_come_and_silence_is_filled(has_line: bool) -> None:
    async def scenario() -> None:
        wire, script = Wire(), Script(b"one", b"", b"two", b"", b"", None, is_over=True)
        assert await poured(script, wire, has_line=has_line) is Ending.OVER
        assert wire.sent[0] is START
        assert wire.body == OPENING + b"one" + HEARTBEAT + b"two" + HEARTBEAT + HEARTBEAT
        assert [message.get("more_body") for message in wire.sent[1:]] == [True] * 6 + [False]
        assert set(script.asked) == {event_streams.HEARTBEAT_S}
        assert wire.said == (["begin", "end"] if has_line else [])

    asyncio.run(scenario())


@pytest.mark.parametrize("has_line", [True, False])
def test_caller_who_makes_no_room_is_cut(monkeypatch: pytest.MonkeyPatch, has_line: bool) -> None:
    monkeypatch.setattr(event_streams, "SEND_TIMEOUT_S", 0.01)

    async def scenario() -> None:
        wire, script = Wire(), Script(b"one", b"two")

        class Full(Script):
            async def next(self, within_s: float) -> bytes | None:
                wire.takes.clear()
                return await script.next(within_s)

        assert await poured(Full(), wire, has_line=has_line) is Ending.SLOW
        assert wire.body == OPENING
        assert wire.said == (["begin", "cut"] if has_line else [])

    asyncio.run(scenario())


@pytest.mark.parametrize("parts", [(), (None,)], ids=["start", "end"])
def test_caller_who_makes_no_room_at_the_start_or_end_is_cut(
    monkeypatch: pytest.MonkeyPatch, parts: tuple[None, ...]
) -> None:
    monkeypatch.setattr(event_streams, "SEND_TIMEOUT_S", 0.01)

    async def scenario() -> None:
        wire = Wire()

        class Full(Script):
            async def next(self, within_s: float) -> bytes | None:
                wire.takes.clear()
                return await super().next(within_s)

        if not parts:
            wire.takes.clear()
        assert await poured(Full(*parts), wire) is Ending.SLOW
        assert wire.said[-1] == "cut"

    asyncio.run(scenario())


def test_caller_who_makes_no_room_is_not_waited_for_when_the_service_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "SEND_TIMEOUT_S", 3_600.0)
    monkeypatch.setattr(event_streams, "HURRY_S", 0.01)

    async def scenario() -> None:
        wire, script = Wire(), Script()
        wire.takes.clear()
        asyncio.get_running_loop().call_later(0.01, script.close)
        assert await poured(script, wire) is Ending.SLOW

    asyncio.run(scenario())


def test_caller_who_hangs_up_is_let_go_without_another_word() -> None:
    async def scenario() -> None:
        wire, script = Wire(), Script()
        asyncio.get_running_loop().call_soon(wire.gone.set)
        assert await poured(script, wire) is Ending.GONE
        assert wire.body == OPENING
        assert wire.said == ["begin"]

    asyncio.run(scenario())


def test_what_a_caller_sends_meanwhile_is_nothing_to_us() -> None:
    async def scenario() -> None:
        wire, script = Wire(), Script(b"one", None)
        messages = [{"type": "http.request", "body": b"x", "more_body": True}] * 5

        async def receive() -> Message:
            return messages.pop() if messages else await Wire.receive(wire)

        wire.receive = receive  # type: ignore[method-assign]
        assert await poured(script, wire) is Ending.CLOSING
        assert wire.body == OPENING + b"one"

    asyncio.run(scenario())


def test_fault_of_ours_breaks_the_stream_off(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        wire, script = Wire(), Script(b"one", ValueError("bug"))
        assert await poured(script, wire) is Ending.FAILED
        assert wire.said == ["begin", "cut"]
        assert all(message.get("more_body", True) for message in wire.sent)

    asyncio.run(scenario())
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert record.message == "stream failed"
    assert record.exc_info is not None


def test_stream_that_is_cancelled_lets_go() -> None:
    async def scenario() -> None:
        wire, script = Wire(), Script()
        task = asyncio.create_task(poured_alone(script, wire))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert script.is_closed
        assert len(asyncio.all_tasks()) == 1

    async def poured_alone(script: Script, wire: Wire) -> None:
        call = Call(scope={}, receive=wire.receive, params=(), principal=CALLER)
        stream = EventStream(call=call, frames=script, is_welcome=_always)
        await pour(stream, wire.send, start=START, request_id="req_1")

    asyncio.run(scenario())


def test_caller_who_is_no_longer_welcome_hears_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "CHECK_KEY_S", 0.0)

    async def scenario() -> None:
        wire, script, answers = Wire(), Script(b"one", b"two", b"three"), [True, False]

        async def is_welcome() -> bool:
            return answers.pop(0)

        assert await poured(script, wire, is_welcome=is_welcome) is Ending.REFUSED
        assert wire.body == OPENING + b"one"
        assert wire.sent[-1]["more_body"] is False

    asyncio.run(scenario())
