"""Tests of the log stream: which requests it makes, and how it handles the responses."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cs2_protocol.log_batches import Gap, LogCursor, LogNotice, read_post
from cs2_protocol.log_clock import parse_stamp
from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_lines import ConsoleChat
from cs2_simulator.agenda import TICKS_PER_S, Agenda
from cs2_simulator.log_stream import (
    BATCH_LINES,
    FIRST_TICK,
    MAX_BODY_BYTES,
    GameHeaders,
    LogReceiver,
    LogRequest,
    LogStream,
)
from protocol_tests.effort import examples

START_MS = parse_stamp("07/17/2026 - 18:14:24.000") or 0
URL = "http://127.0.0.1:9090/log"
OTHER_URL = "http://127.0.0.1:9091/other?x=1"
TICK_MS = 16


HEADERS = GameHeaders(
    map_name="de_dust2",
    server_address="203.0.113.1:27015",
    steam_id="[A:1:2404786178:50561]",
    instance_token="7be6ded70c65df71",
)


class Server:
    def __init__(
        self,
        *urls: str,
        is_tick_lost: Callable[[], bool] | None = None,
        is_post_lost: Callable[[bytes], bool] | None = None,
        headers: GameHeaders = HEADERS,
    ) -> None:
        self.agenda = Agenda(START_MS)
        self.stream = LogStream(
            self.agenda, describe=lambda: headers, is_tick_lost=is_tick_lost, is_post_lost=is_post_lost
        )
        self.stream.is_on = True
        for url in urls:
            self.stream.add(url)

    def log(self, *texts: str) -> None:
        for text in texts:
            self.stream.write(ConsoleChat(text))
            self.pass_tick()

    def pass_tick(self, ticks: int = 1) -> None:
        self.agenda.run_until(START_MS - (-(self.agenda.tick + ticks) * 1000 // TICKS_PER_S))

    def listener(self, url: str = URL) -> LogReceiver:
        return next(listener for listener in self.stream.idle_listeners if listener.url == url)

    def request(self, url: str = URL) -> LogRequest:
        request = self.stream.next_request(self.listener(url))
        assert request is not None
        return request

    def is_silent(self) -> bool:
        return self.stream.next_request(self.listener()) is None

    def post(self, status: int | None = 200, url: str = URL) -> tuple[int, int, list[str]]:
        listener, request = self.listener(url), self.request(url)
        self.stream.handle_response(listener, status)
        return summary(request)


def summary(request: LogRequest) -> tuple[int, int, list[str]]:
    post = read_post(dict(request.headers), request.body, received_ms=0)
    assert post.begin is not None
    assert post.end is not None
    assert post.end - post.begin == len(request.body)
    return post.begin, post.end, texts_in(request.body)


def ticks_of(request: LogRequest) -> tuple[int, int]:
    headers = dict(request.headers)
    return int(headers["X-Tick-Start"]) - FIRST_TICK, int(headers["X-Tick-End"]) - FIRST_TICK


def texts_in(body: bytes) -> list[str]:
    reader = LineReader()
    lines = [reader.read(raw)[1] for raw in body.split(b"\n")[:-1]]
    return [line.message for line in lines if isinstance(line, ConsoleChat)]


def test_headers_equal_those_of_a_real_post(corpus: Path) -> None:
    transcript = (corpus / "cs2-http-posts.txt").read_text(encoding="utf-8")
    real = next(line for line in transcript.splitlines() if line.startswith("HEADERS: "))
    parts = [part.partition("=")[::2] for part in real.removeprefix("HEADERS: ").split("; ")]
    server = Server(URL)
    server.log("hello")
    request = server.request()
    assert [name for name, _ in request.headers] == [name for name, _ in parts]
    varying = {"X-LogBytes-EndOffset", "X-Tick-Start", "X-Tick-End", "X-Timestamp", "X-Game-Map", "Content-Length"}
    ours, theirs = ([part for part in each if part[0] not in varying] for each in (request.headers, parts))
    assert ours == theirs


def test_map_log_begins_at_a_tick_in_the_range_of_real_map_loads(corpus: Path) -> None:
    posts = (corpus / "cs2-http-posts.txt").read_text(errors="replace")
    loads = re.findall(r"BeginOffset=0; .*? X-Tick-Start=(\d+);.*\nBODY:\n.*\[META\]", posts)
    assert loads
    assert min(map(int, loads)) <= FIRST_TICK <= max(map(int, loads))
    server = Server(URL)
    server.pass_tick(1000)
    server.stream.begin_map()
    server.log("one")
    request = server.request()
    assert dict(request.headers)["X-Tick-Start"] == str(FIRST_TICK)


def test_post_to_the_first_listener_can_be_lost() -> None:
    server = Server(URL, OTHER_URL, is_post_lost=lambda body: b"lost" in body)
    server.log("first")
    server.post()
    server.log("lost")
    assert server.is_silent()
    server.log("third")
    begin, end, texts = server.post()
    assert texts == ["third"]
    assert server.post(url=OTHER_URL) == (0, end, ["first", "lost", "third"])
    assert begin > end - begin, "the bytes before it are missing"
    assert server.stream.is_acknowledged


@pytest.mark.parametrize("status", [None, 201, 204, 301, 400, 500, 503])
def test_unacknowledged_bytes_are_sent_again_with_newer_ones(status: int | None) -> None:
    server = Server(URL)
    server.log("one")
    first = server.post(status)
    server.log("two")
    second = server.post()
    assert (first[0], second[0]) == (0, 0)
    assert second[1] > first[1]
    assert second[2] == ["one", "two"]


def test_status_205_rewinds_to_the_start_of_the_map() -> None:
    server = Server(URL)
    server.log("one")
    server.post()
    server.log("two")
    server.post(205)
    server.log("three")
    assert server.post()[2] == ["one", "two", "three"]


def test_status_410_removes_the_listener() -> None:
    server = Server(URL, OTHER_URL)
    server.log("one")
    server.post(410)
    assert [state.url for state in server.stream.listeners] == [OTHER_URL]


def test_listener_added_later_receives_the_whole_map() -> None:
    server = Server(URL)
    server.log("one")
    server.post()
    server.stream.add(OTHER_URL)
    server.log("two")
    assert server.post(url=OTHER_URL)[2] == ["one", "two"]
    assert server.post()[2] == ["two"]


def test_lines_are_recorded_without_listeners_if_records_early_is_set() -> None:
    server = Server()
    server.stream.records_early = True
    assert server.stream.records_early
    server.log("one")
    server.stream.add(URL)
    server.log("two")
    assert server.post()[2] == ["one", "two"]


def test_nothing_is_sent_while_the_log_is_off() -> None:
    server = Server(URL)
    server.log("one")
    server.stream.is_on = False
    listener = server.listener()
    assert not server.stream.has_lines_for(listener)
    assert server.is_silent()
    server.stream.is_on = True
    assert server.stream.has_lines_for(listener)
    assert server.post()[2] == ["one"]


def test_offsets_restart_after_the_last_listener_was_removed() -> None:
    server = Server(URL)
    server.log("one")
    server.post()
    assert server.stream.remove(URL)
    server.log("two")
    server.stream.add(URL)
    server.log("three")
    assert server.post()[0] == 0
    assert server.is_silent()


def test_response_for_a_removed_listener_is_ignored() -> None:
    server = Server(URL, OTHER_URL)
    server.log("one")
    listener = server.listener()
    server.stream.next_request(listener)
    server.stream.remove(URL)
    server.stream.handle_response(listener, 200)
    server.stream.handle_response(listener, 200)
    assert server.stream.next_request(listener) is None
    assert [state.url for state in server.stream.listeners] == [OTHER_URL]


def test_map_load_restarts_offsets_and_discards_unsent_lines() -> None:
    server = Server(URL)
    server.log("one")
    server.post()
    server.log("two")
    server.stream.begin_map()
    server.pass_tick(3)
    server.log("three")
    request = server.request()
    assert summary(request)[0] == 0
    assert summary(request)[2] == ["three"]
    assert ticks_of(request) == (3, 3)


@pytest.mark.parametrize("status", [200, 205, 410, None])
def test_response_to_a_request_of_the_previous_map_is_ignored(status: int | None) -> None:
    server = Server(URL)
    server.log("one")
    listener = server.listener()
    server.stream.next_request(listener)
    server.stream.begin_map()
    server.log("two")
    assert server.stream.next_request(listener) is None
    server.stream.handle_response(listener, status)
    assert server.post()[2] == ["two"]


def test_delayed_listener_receives_lines_after_its_delay() -> None:
    server = Server()
    server.stream.add(URL, delay_ms=1000)
    server.log("one")
    assert server.is_silent()
    server.pass_tick(62)
    assert server.is_silent()
    server.pass_tick()
    assert server.post()[2] == ["one"]


def test_posts_do_not_exceed_the_size_limit() -> None:
    server = Server(URL)
    server.log(*(f"{number:0200}" for number in range(3000)))
    texts: list[str] = []
    while server.stream.has_lines_for(server.listener()):
        begin, end, more = server.post()
        assert end - begin <= MAX_BODY_BYTES
        texts += more
    assert texts == [f"{number:0200}" for number in range(3000)]


def test_unsent_map_needs_little_memory() -> None:
    server = Server(URL)
    server.log(*(f"{number:0100}" for number in range(20 * BATCH_LINES)))
    assert len(server.stream._texts) <= BATCH_LINES + 1
    assert len(pickle.dumps(server.stream._kept)) < 200_000


def test_reader_detects_lost_bytes() -> None:
    lost = iter([False, True, False])
    server = Server(URL, is_tick_lost=lambda: next(lost))
    server.log("one", "two", "three")
    cursor = LogCursor()
    notices: list[LogNotice] = []
    lines: list[bytes] = []
    while server.stream.has_lines_for(server.listener()):
        request = server.request()
        batch = cursor.read(read_post(dict(request.headers), request.body, received_ms=0))
        notices += batch.notices
        lines += batch.lines
        server.stream.handle_response(server.stream.listeners[0], 200)
    assert [type(notice) for notice in notices] == [Gap]
    assert [line.split()[-1] for line in lines] == [b'"one"', b'"three"']


def test_secret_adds_a_token_of_16_hex_digits() -> None:
    server = Server(URL, headers=replace(HEADERS, token_secret="s"))
    server.log("one")
    token = dict(server.request().headers)["X-Server-Unique-Token"]
    assert len(token) == 16
    assert int(token, 16) >= 0


def test_name_cannot_inject_a_header() -> None:
    names = {"map_name": "m\nX-Evil: 1", "team_ct": "a\r\nX-Evil: 2", "team_t": "ü\ud800"}
    server = Server(URL, headers=replace(HEADERS, **names))
    server.log("one")
    headers = dict(server.request().headers)
    assert "X-Evil" not in headers
    assert (headers["X-Game-TeamCT"], headers["X-Game-TeamT"]) == ("a  X-Evil: 2", "ü?")


def test_text_with_lone_surrogates_is_sent_with_replacements() -> None:
    server = Server(URL)
    server.log("\ud800 ü")
    request = server.request()
    assert request.body.endswith('say "? ü"\n'.encode())


class FlakyServer:
    """A server with two receivers that accept, reject or lose posts. Records sent and received texts.

    Anything may happen between a post and its response.
    """

    def __init__(self) -> None:
        self.is_tick_lost = False
        self.maps = 1
        self.agenda = Agenda(START_MS)
        self.stream = LogStream(self.agenda, describe=self._describe, is_tick_lost=lambda: self.is_tick_lost)
        self.stream.is_on = True
        self.listeners: list[LogReceiver] = []
        for url in (URL, OTHER_URL):
            self.stream.add(url)
            self.listeners = list(self.stream.idle_listeners)
        self.cursors = [LogCursor(), LogCursor()]
        self.received: list[list[str]] = [[], []]
        self.has_request = [False, False]
        self.sent: list[list[str]] = [[]]
        self.gaps = 0
        self.numbers = 0

    def log(self, lines: int) -> None:
        for _ in range(lines):
            self.numbers += 1
            text = f"{self.maps} {self.numbers}"
            self.stream.write(ConsoleChat(text))
            if self.stream.is_on and not self.is_tick_lost:
                self.sent[-1].append(text)
            self._pass_tick()

    def set_loss(self, is_tick_lost: int) -> None:
        if self.sent[-1]:  # without the first line of a map, a reader cannot recognize the map load
            self.is_tick_lost = bool(is_tick_lost)

    def set_on(self, is_on: int) -> None:
        self.stream.is_on = bool(is_on)

    def load_map(self, _value: int) -> None:
        self.maps += 1
        self.is_tick_lost = False
        self.sent.append([])
        self.stream.begin_map()
        self._pass_tick()

    def post(self, receiver: int) -> None:
        request = self._request(receiver)
        if request is not None:
            batch = self.cursors[receiver].read(read_post(dict(request.headers), request.body, received_ms=0))
            self.gaps += sum(isinstance(notice, Gap) for notice in batch.notices)
            self.received[receiver] += texts_in(b"".join(line + b"\n" for line in batch.lines))

    def lose_post(self, receiver: int) -> None:
        if self._request(receiver) is not None:
            self.respond(receiver, 599)

    def respond(self, receiver: int, status: int) -> None:
        if self.has_request[receiver]:
            self.has_request[receiver] = False
            self.stream.handle_response(self.listeners[receiver], None if status == 599 else status)

    def finish(self) -> None:
        self.stream.is_on = True
        self.log(0)
        for receiver in (0, 1):
            self.respond(receiver, 500)
            while self.stream.has_lines_for(self.listeners[receiver]):
                self.post(receiver)
                self.respond(receiver, 200)

    def _request(self, receiver: int) -> LogRequest | None:
        request = self.stream.next_request(self.listeners[receiver])
        if request is not None:
            assert not self.has_request[receiver]
            assert len(request.body) <= MAX_BODY_BYTES
            self.has_request[receiver] = True
        return request

    def _pass_tick(self) -> None:
        self.agenda.run_until(self.agenda.now_ms + 2 * TICK_MS)

    def _describe(self) -> GameHeaders:
        return GameHeaders(map_name=f"de_{self.maps}", server_address="a:1", steam_id="", instance_token="t")


receivers = st.sampled_from([0, 1])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("log"), st.integers(1, 4)),
        st.tuples(st.just("post"), receivers),
        st.tuples(st.just("post"), receivers),
        st.tuples(st.just("lose_post"), receivers),
        st.tuples(st.just("respond"), receivers, st.sampled_from([200, 200, 200, 201, 204, 205, 302, 500, 599])),
        st.tuples(st.just("load_map"), st.just(0)),
        st.tuples(st.just("set_on"), st.sampled_from([0, 1, 1])),
        st.tuples(st.just("set_loss"), st.sampled_from([0, 0, 1])),
    ),
    min_size=20,
    max_size=80,
)


@examples(60)
@given(steps)
def test_reader_receives_each_line_at_most_once_and_in_order_for_any_responses(steps: list[tuple[object, ...]]) -> None:
    server = FlakyServer()
    for name, *values in steps:
        getattr(server, str(name))(*values)
    server.finish()
    has_losses = any(name == "set_loss" for name, *_ in steps)
    assert has_losses or server.gaps == 0
    for received in server.received:
        for number, sent in enumerate(server.sent, start=1):
            of_map = [text for text in received if text.startswith(f"{number} ")]
            assert of_map == sent[: len(of_map)]  # the end of a map may be lost at the next map load
        assert of_map == sent  # the last map was received completely
        assert received == sorted(received, key=lambda text: int(text.split()[1]))
