"""What a server sends of its log, to whom, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchpod.cs2.log_batches import Gap, LogCursor, Notice, read_post
from matchpod.cs2.log_clock import parse_stamp
from matchpod.cs2.log_lines.reader import LineReader
from matchpod.cs2.log_lines.world_lines import ConsoleChat, WorldTriggered
from matchpod.simulator.agenda import TICKS_PER_S, Agenda
from matchpod.simulator.log_stream import BATCH_LINES, MAX_BODY_BYTES, GameHeaders, Listener, LogRequest, LogStream

START_MS = parse_stamp("07/17/2026 - 18:14:24.000") or 0
URL = "http://127.0.0.1:9090/log"
OTHER_URL = "http://127.0.0.1:9091/other?x=1"
TICK_MS = 16


def headers_of_the_game() -> GameHeaders:
    return GameHeaders(
        map_name="de_dust2",
        server_address="203.0.113.1:27015",
        steam_id="[A:1:2404786178:50561]",
        instance_token="7be6ded70c65df71",
    )


class Server:
    """A stream with its clock, and short words for what the tests do with it."""

    def __init__(self, *urls: str, is_losing: Callable[[], bool] | None = None) -> None:
        self.agenda = Agenda(START_MS)
        self.stream = LogStream(self.agenda, describe=headers_of_the_game, is_losing=is_losing)
        self.stream.is_on = True
        for url in urls:
            self.stream.add(url)

    def say(self, *texts: str) -> None:
        """Log texts, each in a tick of its own that is over afterwards."""
        for text in texts:
            self.stream.write(ConsoleChat(text))
            self.pass_tick()

    def pass_tick(self, ticks: int = 1) -> None:
        self.agenda.run_until(START_MS - (-(self.agenda.tick + ticks) * 1000 // TICKS_PER_S))

    def listener(self, url: str = URL) -> Listener:
        return next(listener for listener in self.stream.idle_listeners if listener.url == url)

    def request(self, url: str = URL) -> LogRequest | None:
        return self.stream.next_request(self.listener(url))

    def post(self, status: int | None = 200, url: str = URL) -> tuple[int, int, list[str]]:
        """Make one request and answer it: its offsets and the texts in it."""
        listener = self.listener(url)
        request = self.stream.next_request(listener)
        assert request is not None
        self.stream.answered(listener, status)
        return summary(request)


def summary(request: LogRequest) -> tuple[int, int, list[str]]:
    post = read_post(dict(request.headers), request.body, received_ms=0)
    assert post.begin is not None
    assert post.end is not None
    assert post.end - post.begin == len(request.body)
    return post.begin, post.end, texts_in(request.body)


def texts_in(body: bytes) -> list[str]:
    reader = LineReader()
    lines = [reader.read(raw)[1] for raw in body.split(b"\n")[:-1]]
    return [line.said for line in lines if isinstance(line, ConsoleChat)]


def test_headers_are_those_of_a_real_post_in_their_order(corpus: Path) -> None:
    transcript = (corpus / "cs2-http-posts.txt").read_text(encoding="utf-8")
    real = next(line for line in transcript.splitlines() if line.startswith("HEADERS: "))
    names = [part.partition("=")[0] for part in real.removeprefix("HEADERS: ").split("; ")]
    server = Server(URL)
    server.say("hello")
    request = server.request()
    assert request is not None
    assert [name for name, _ in request.headers] == names


def test_header_values_are_those_of_a_real_post(corpus: Path) -> None:
    transcript = (corpus / "cs2-http-posts.txt").read_text(encoding="utf-8")
    real = next(line for line in transcript.splitlines() if line.startswith("HEADERS: "))
    server = Server(URL)
    server.say("hello")
    request = server.request()
    assert request is not None
    told = {"X-LogBytes-EndOffset", "X-Tick-Start", "X-Tick-End", "X-Timestamp", "X-Game-Map", "Content-Length"}
    assert [f"{name}={value}" for name, value in request.headers if name not in told] == [
        part for part in real.removeprefix("HEADERS: ").split("; ") if part.partition("=")[0] not in told
    ]


def test_lines_bear_the_time_of_their_tick_in_milliseconds() -> None:
    server = Server(URL)
    server.pass_tick(16)
    server.stream.write(WorldTriggered("Round_Start"))
    server.pass_tick()
    request = server.request()
    assert request is not None
    assert request.body == b'07/17/2026 - 18:14:24.250 - World triggered "Round_Start"\n'
    assert dict(request.headers)["X-Timestamp"] == "07/17/2026 - 18:14:24.265"
    assert dict(request.headers)["X-Tick-Start"] == "16"


def test_a_tick_that_is_not_over_waits() -> None:
    server = Server(URL)
    server.stream.write(ConsoleChat("one"))
    assert server.request() is None
    assert server.stream.has_lines_for(server.listener())
    server.stream.write(ConsoleChat("two"))
    server.pass_tick()
    assert server.post()[2] == ["one", "two"]


def test_ticks_that_are_over_go_out_without_the_one_that_is_not() -> None:
    server = Server(URL)
    server.say("one", "two")
    server.stream.write(ConsoleChat("three"))
    request = server.request()
    assert request is not None
    assert summary(request)[2] == ["one", "two"]
    assert (dict(request.headers)["X-Tick-Start"], dict(request.headers)["X-Tick-End"]) == ("0", "1")
    server.stream.answered(server.stream._listeners[0], 200)
    server.pass_tick()
    request = server.request()
    assert request is not None
    assert dict(request.headers)["X-Tick-Start"] == dict(request.headers)["X-Tick-End"] == "2"


def test_acknowledged_lines_are_not_sent_again_and_offsets_go_on() -> None:
    server = Server(URL)
    server.say("one")
    first = server.post()
    server.say("two")
    second = server.post()
    assert first[0] == 0
    assert second[0] == first[1]
    assert second[2] == ["two"]
    assert not server.stream.has_lines_for(server.listener())
    assert server.request() is None


@pytest.mark.parametrize("status", [None, 201, 204, 301, 400, 500, 503])
def test_without_200_the_same_bytes_go_out_again_with_the_newer_ones(status: int | None) -> None:
    server = Server(URL)
    server.say("one")
    first = server.post(status)
    server.say("two")
    second = server.post()
    assert (first[0], second[0]) == (0, 0)
    assert second[1] > first[1]
    assert second[2] == ["one", "two"]


def test_205_sends_the_map_from_its_start() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    server.say("two")
    server.post(205)
    server.say("three")
    assert server.post()[2] == ["one", "two", "three"]


def test_410_removes_the_listener() -> None:
    server = Server(URL, OTHER_URL)
    server.say("one")
    server.post(410)
    assert [state.url for state in server.stream.list()] == [OTHER_URL]


def test_one_request_is_under_way_at_a_time() -> None:
    server = Server(URL)
    server.say("one")
    listener = server.listener()
    assert server.stream.next_request(listener) is not None
    server.say("two")
    assert server.stream.next_request(listener) is None
    assert server.stream.idle_listeners == []


def test_listeners_are_listed_as_they_stand() -> None:
    server = Server(URL, OTHER_URL)
    server.pass_tick(5)
    server.say("one")
    server.post()
    server.request(OTHER_URL)
    states = [(state.url, state.has_pending_request, state.acknowledged_tick) for state in server.stream.list()]
    assert states == [(URL, False, 5), (OTHER_URL, True, 0)]


def test_adding_a_listener_twice_changes_nothing() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    server.stream.add(URL)
    assert len(server.stream.list()) == 1
    assert server.request() is None


def test_a_later_listener_gets_the_whole_map() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    server.stream.add(OTHER_URL)
    server.say("two")
    assert server.post(url=OTHER_URL)[2] == ["one", "two"]
    assert server.post()[2] == ["two"]


def test_nothing_is_recorded_before_anybody_listens() -> None:
    server = Server()
    server.say("one")
    server.stream.add(URL)
    server.say("two")
    assert server.post()[2] == ["two"]


def test_nothing_is_lost_before_anybody_listens_when_told_so() -> None:
    server = Server()
    server.stream.records_early = True
    assert server.stream.records_early
    server.say("one")
    server.stream.add(URL)
    server.say("two")
    assert server.post()[2] == ["one", "two"]


def test_nothing_is_recorded_while_the_log_is_off() -> None:
    server = Server(URL)
    server.say("one")
    server.stream.is_on = False
    assert not server.stream.is_on
    server.say("two")
    server.stream.is_on = True
    server.say("three")
    assert server.post()[2] == ["one", "three"]


def test_bytes_begin_again_after_the_last_listener_left() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    assert server.stream.remove(URL)
    server.say("two")
    server.stream.add(URL)
    server.say("three")
    assert server.post()[0] == 0
    assert server.request() is None


def test_ticks_go_on_after_the_last_listener_left() -> None:
    server = Server(URL)
    server.say("one")
    server.stream.remove_all()
    server.stream.add(URL)
    server.say("two")
    request = server.request()
    assert request is not None
    assert dict(request.headers)["X-Tick-Start"] == "1"


def test_removing_who_does_not_listen_is_told() -> None:
    assert not Server(URL).stream.remove(OTHER_URL)


def test_an_answer_for_a_removed_listener_changes_nothing() -> None:
    server = Server(URL, OTHER_URL)
    server.say("one")
    listener = server.listener()
    server.stream.next_request(listener)
    server.stream.remove(URL)
    server.stream.answered(listener, 200)
    server.stream.answered(listener, 200)
    assert server.stream.next_request(listener) is None
    assert [state.url for state in server.stream.list()] == [OTHER_URL]


def test_a_map_load_begins_at_byte_and_tick_0_and_loses_the_rest() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    server.say("two")
    server.stream.begin_map()
    server.pass_tick(3)
    server.say("three")
    listener = server.listener()
    request = server.stream.next_request(listener)
    assert request is not None
    assert summary(request)[0] == 0
    assert summary(request)[2] == ["three"]
    assert dict(request.headers)["X-Tick-Start"] == "3"


@pytest.mark.parametrize("status", [200, 205, 410, None])
def test_an_answer_to_a_request_of_the_map_before_changes_nothing(status: int | None) -> None:
    server = Server(URL)
    server.say("one")
    listener = server.listener()
    server.stream.next_request(listener)
    server.stream.begin_map()
    server.say("two")
    assert server.stream.next_request(listener) is None
    server.stream.answered(listener, status)
    assert server.post()[2] == ["two"]


def test_a_delayed_listener_gets_lines_later() -> None:
    server = Server()
    server.stream.add(URL, delay_ms=1000)
    server.say("one")
    assert server.request() is None
    server.pass_tick(62)
    assert server.request() is None
    server.pass_tick()
    assert server.post()[2] == ["one"]


def test_posts_are_not_filled_beyond_their_limit() -> None:
    server = Server(URL)
    server.say(*(f"{number:0200}" for number in range(3000)))
    texts: list[str] = []
    while server.stream.has_lines_for(server.listener()):
        begin, end, more = server.post()
        assert end - begin <= MAX_BODY_BYTES
        texts += more
    assert texts == [f"{number:0200}" for number in range(3000)]


def test_one_tick_is_sent_whole_whatever_its_size() -> None:
    server = Server(URL)
    for number in range(3000):
        server.stream.write(ConsoleChat(f"{number:0200}"))
    server.pass_tick()
    assert len(server.post()[2]) == 3000


def test_a_map_that_waits_for_its_receiver_takes_little_memory() -> None:
    server = Server(URL)
    server.say(*(f"{number:0100}" for number in range(20 * BATCH_LINES)))
    assert len(server.stream._texts) <= BATCH_LINES + 1
    assert server.stream._kept.held_bytes < 200_000


def test_lost_ticks_leave_a_gap_in_the_offsets() -> None:
    lost = iter([False, False, True, True, False])
    server = Server(URL, is_losing=lambda: next(lost))
    server.say("one", "two", "three", "four", "five")
    first = server.post()
    second = server.post()
    assert first[2] == ["one", "two"]
    assert second[2] == ["five"]
    lost_lines = 2 * len('07/17/2026 - 18:14:24.000 - "Console<0>" say ""\n') + len("threefour")
    assert second[0] - first[1] == lost_lines
    assert server.request() is None


def test_a_reader_of_the_posts_notices_the_lost_bytes() -> None:
    lost = iter([False, True, False])
    server = Server(URL, is_losing=lambda: next(lost))
    server.say("one", "two", "three")
    cursor = LogCursor()
    notices: list[Notice] = []
    lines: list[bytes] = []
    while (request := server.request()) is not None:
        taken = cursor.take(read_post(dict(request.headers), request.body, received_ms=0))
        notices += taken.notices
        lines += taken.lines
        server.stream.answered(server.stream._listeners[0], 200)
    assert [type(notice) for notice in notices] == [Gap]
    assert [line.split()[-1] for line in lines] == [b'"one"', b'"three"']


def test_lines_lost_last_are_nothing_to_send() -> None:
    server = Server(URL, is_losing=lambda: True)
    server.say("one")
    assert not server.stream.has_lines_for(server.listener())
    assert server.request() is None


def test_a_secret_adds_a_token_of_16_digits() -> None:
    agenda = Agenda(START_MS)

    def describe() -> GameHeaders:
        return GameHeaders(map_name="m", server_address="a:1", steam_id="", instance_token="t", token_secret="s")

    stream = LogStream(agenda, describe=describe)
    stream.is_on = True
    stream.add(URL)
    stream.write(ConsoleChat("one"))
    agenda.run_until(START_MS + TICK_MS)
    request = stream.next_request(stream.idle_listeners[0])
    assert request is not None
    token = dict(request.headers)["X-Server-Unique-Token"]
    assert len(token) == 16
    assert int(token, 16) >= 0


def test_host_is_that_of_the_address() -> None:
    server = Server(OTHER_URL)
    server.say("one")
    request = server.request(OTHER_URL)
    assert request is not None
    assert dict(request.headers)["Host"] == "127.0.0.1:9091"


def test_text_that_utf8_cannot_write_is_sent_all_the_same() -> None:
    server = Server(URL)
    server.say("\ud800 ü")
    request = server.request()
    assert request is not None
    assert request.body.endswith('say "? ü"\n'.encode())


steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 4)),
        st.tuples(st.just("post"), st.sampled_from([200, 200, 200, None, 500, 205])),
        st.tuples(st.just("map"), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_a_reader_gets_each_line_once_whatever_it_answers(steps: list[tuple[str, int | None]]) -> None:
    server = Server(URL)
    cursor = LogCursor()
    said: list[str] = []
    heard: list[str] = []
    number = 0

    def post(status: int | None) -> None:
        listener = server.listener()
        request = server.stream.next_request(listener)
        if request is not None:
            taken = cursor.take(read_post(dict(request.headers), request.body, received_ms=0))
            assert not any(isinstance(notice, Gap) for notice in taken.notices)
            heard.extend(texts_in(b"".join(line + b"\n" for line in taken.lines)))
            server.stream.answered(listener, status)

    for step, value in steps:
        if step == "say":
            for _ in range(value or 0):
                number += 1
                said.append(f"line {number}")
                server.say(f"line {number}")
        elif step == "post":
            post(value)
        else:
            del said[len(heard) :]  # lost with the map
            server.stream.begin_map()
            server.pass_tick(100)
    post(200)
    assert heard == said
